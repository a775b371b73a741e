//! Writes the seeds of each target to `corpus/`, where cargo-fuzz looks for them.

use std::path::Path;
use std::{fs, io};

use tower_idempotency_fuzz::seeds;

fn main() -> io::Result<()> {
    for target in seeds::TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus")
            .join(target);
        fs::create_dir_all(&folder)?;
        for (name, seed) in seeds::of(target) {
            fs::write(folder.join(name), seed)?;
        }
    }
    Ok(())
}
