//! The library that makes flushes slow.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

/// Compiled by `cc`, for a server to load; removed when dropped.
pub(crate) struct SlowFlush {
    folder: TempDir,
}

impl SlowFlush {
    pub(crate) fn compile() -> Self {
        let slow = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/stores/flush.c");
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-o"])
            .arg(slow.path())
            .args([source, "-ldl"])
            .status();
        assert!(status.unwrap().success(), "cc could not compile {source}");
        // The server runs as another user.
        let mut open = Command::new("chmod");
        open.arg("-R").arg("a+rX").arg(slow.folder.path());
        assert!(open.status().unwrap().success());
        slow
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("flush.so")
    }
}
