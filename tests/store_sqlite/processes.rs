//! Several processes on one file, some of them killed with SIGKILL.

use std::collections::{HashMap, HashSet};

use crate::child::{Process, assert_kept};
use crate::support::{DAY, File, finish};

/// How often a process is killed.
const KILLS: usize = 12;

#[tokio::test]
async fn what_was_acknowledged_is_there_after_kill_9() {
    let file = File::new();
    let mut tokens = HashSet::new();
    for round in 0..KILLS {
        let process = Process::start(&file, &format!("churn {round}"));
        // Killed at a different point of its work each time.
        let mut said: Vec<String> = process.lines.iter().take(16 + 37 * round).collect();
        said.extend(process.kill());
        let store = file.open();
        for line in &said {
            assert_kept(&store, line).await;
        }
        assert_fresh(&mut tokens, &said);
        finish(&store, &format!("after-{round}"), DAY).await;
        store.shutdown().await;
    }
    let damage = "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'";
    assert_eq!(file.count(damage), 0);
}

#[tokio::test]
async fn a_killed_process_harms_none_of_the_others() {
    let file = File::new();
    let steady = Process::start(&file, "churn steady");
    let mut said = Vec::new();
    for round in 0..KILLS {
        let process = Process::start(&file, &format!("churn {round}"));
        said.extend(process.lines.iter().take(16 + 37 * round));
        said.extend(process.kill());
        // The other goes on after each kill.
        said.extend(steady.lines.try_iter().collect::<Vec<_>>());
        said.extend(steady.lines.iter().take(20));
    }
    said.extend(steady.kill());
    let store = file.open();
    for line in &said {
        assert_kept(&store, line).await;
    }
    assert_fresh(&mut HashSet::new(), &said);
}

#[test]
fn two_processes_never_get_one_key() {
    let file = File::new();
    let processes = [(); 2].map(|()| Process::start(&file, "race 2000"));
    let said: Vec<String> = processes.into_iter().flat_map(Process::end).collect();
    let mut granted: HashMap<&str, u32> = HashMap::new();
    for line in said.iter().filter_map(|line| line.strip_prefix("claimed ")) {
        *granted.entry(line.split(' ').next().unwrap()).or_default() += 1;
    }
    assert_eq!(granted.len(), 2000);
    assert!(granted.values().all(|&times| times == 1), "{granted:?}");
    assert_fresh(&mut HashSet::new(), &said);
}

#[test]
fn many_processes_may_make_the_file_at_once() {
    let file = File::new();
    let roles = (0..8).map(|i| format!("once {i}"));
    let processes: Vec<Process> = roles.map(|role| Process::start(&file, &role)).collect();
    let said: Vec<String> = processes.into_iter().flat_map(Process::end).collect();
    let recorded = said.iter().filter(|line| line.starts_with("recorded"));
    assert_eq!(recorded.count(), 8, "{said:?}");
    assert_fresh(&mut HashSet::new(), &said);
}

/// Checks that no token was given twice.
fn assert_fresh(tokens: &mut HashSet<String>, said: &[String]) {
    for line in said.iter().filter(|line| line.starts_with("claimed")) {
        let token = line.rsplit(' ').next().unwrap();
        assert!(tokens.insert(token.to_owned()), "given twice: {line}");
    }
}
