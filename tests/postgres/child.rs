//! Other processes of a test: this very program again, with what to do in its environment.

use std::process::{Child, Command, Stdio};

const TASK: &str = "POSTGRES_TEST_TASK";

/// A process that runs the test called `test`, which is ignored otherwise, with this task.
pub(crate) fn spawn(test: &str, task: &str, preload: Option<&std::path::Path>) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library);
    }
    let process = command
        .args([test, "--exact", "--ignored", "--nocapture"])
        .env(TASK, task)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    Process { process }
}

/// What this process was started for; `None` if nobody started it.
pub(crate) fn task() -> Option<String> {
    std::env::var(TASK).ok()
}

/// Another process; killed when dropped.
pub(crate) struct Process {
    process: Child,
}

impl Process {
    /// Kills it, as the system kills: SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Whether it has ended by itself, and well.
    pub(crate) fn has_ended(&mut self) -> bool {
        match self.process.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success(), "a process failed: {status}");
                true
            }
            None => false,
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
