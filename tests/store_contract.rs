//! The macro `store_contract!` makes a test of each clause: none is written and then not run.

use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn each_clause_is_in_the_macro_under_its_group() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/testing/store");
    let mut written = BTreeSet::new();
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        let group = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("pub async fn ") {
                let name = rest.split(['<', '(']).next().unwrap();
                written.insert(format!("{group}::{name}"));
            }
        }
    }
    let suite = std::fs::read_to_string(folder.join("suite.rs")).unwrap();
    assert!(written.len() > 80, "the clauses are elsewhere");
    assert_eq!(listed(&suite), written);
}

/// The clauses between the braces of each group.
fn listed(suite: &str) -> BTreeSet<String> {
    let mut group = "";
    let mut listed = BTreeSet::new();
    for line in suite.lines().map(str::trim) {
        match (line.strip_suffix(" {"), line.strip_suffix(',')) {
            (Some(name), _) => group = name,
            (None, Some(name)) if is_name(name) => {
                listed.insert(format!("{group}::{name}"));
            }
            _ => {}
        }
    }
    listed
}

fn is_name(text: &str) -> bool {
    text.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
}
