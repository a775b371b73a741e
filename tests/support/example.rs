//! The programs in `examples/`, as they were built.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;

/// One of them, whose output is read; killed when dropped.
pub(crate) fn example(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let profile: PathBuf = test.parent().unwrap().parent().unwrap().into();
    let mut command = Command::new(profile.join("examples").join(name));
    command.stdout(Stdio::piped()).kill_on_drop(true);
    command
}
