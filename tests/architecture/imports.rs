//! Imports point down: a module may use what stands on its own level or below, no two modules
//! use each other, and nothing inside the crate is imported through a door.

use std::collections::BTreeMap;

use crate::source::Source;

/// From the ground up. A module at the top of `src` belongs to one level.
const LEVELS: [&[&str]; 11] = [
    &["error", "trace", "chance", "path"],
    &[
        "key",
        "record",
        "delivery",
        "fingerprint",
        "canonical",
        "watch",
        "counts",
    ],
    &["body", "channel", "verify", "store", "underway"],
    &["policy", "outcome", "pace", "traps"],
    &["coding"],
    &["reply", "problem", "claimed"],
    &["flow", "run", "detach"],
    &["service", "inbox", "client", "testing"],
    &["effects"],
    &["layer"],
    &["lib", "pages"],
];

type Module = Vec<String>;

/// Every import that does not point down.
pub(crate) fn breaches(files: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    let mut edges: BTreeMap<Module, Vec<Module>> = BTreeMap::new();
    for file in files {
        let from = owned(&file.module());
        for (number, line) in file.lines_without_tests() {
            for path in crate_paths(line) {
                match target(files, &path) {
                    Ok(to) if !points_down(&from, &to) => breaches.push(format!(
                        "{}:{number}: {} may not use {}, which stands above it",
                        file.path,
                        from.join("::"),
                        to.join("::")
                    )),
                    Ok(to) => edges.entry(from.clone()).or_default().push(to),
                    Err(why) => breaches.push(format!("{}:{number}: {why}", file.path)),
                }
            }
            if line.starts_with("use super::") || line.starts_with("pub use super::") {
                breaches.push(format!(
                    "{}:{number}: import from the defining module: {line}",
                    file.path
                ));
            }
        }
        if level(&from).is_none() {
            breaches.push(format!(
                "{}: a module at the top needs a level in LEVELS",
                file.path
            ));
        }
    }
    breaches.extend(circles(&edges));
    breaches
}

/// The paths behind each `crate::` of a line; `$crate::` is a macro's and none of ours.
fn crate_paths(line: &str) -> Vec<Module> {
    let mut paths = Vec::new();
    for (at, word) in line.match_indices("crate::") {
        let before = line[..at].chars().next_back();
        if before.is_some_and(|c| c == '$' || c == '_' || c.is_alphanumeric()) {
            continue;
        }
        let rest = &line[at + word.len()..];
        let end = rest.find(|c: char| !(c == '_' || c == ':' || c.is_alphanumeric()));
        let path = rest[..end.unwrap_or(rest.len())].trim_end_matches(':');
        paths.push(path.split("::").map(str::to_owned).collect());
    }
    paths
}

/// The module in which a path's item is defined.
fn target(files: &[Source], path: &[String]) -> Result<Module, String> {
    let longest = files
        .iter()
        .filter(|file| file.path != "src/lib.rs")
        .filter(|file| {
            path.iter()
                .map(String::as_str)
                .take(file.module().len())
                .eq(file.module())
        })
        .max_by_key(|file| file.module().len());
    match longest {
        Some(file) if !file.is_door() => Ok(owned(&file.module())),
        Some(_) | None => Err(format!(
            "crate::{} leads through a door; import from the defining module",
            path.join("::")
        )),
    }
}

fn points_down(from: &[String], to: &[String]) -> bool {
    level(to) <= level(from)
}

fn level(module: &[String]) -> Option<usize> {
    LEVELS
        .iter()
        .position(|level| level.contains(&module[0].as_str()))
}

/// Modules that lead back to themselves. Each circle is told once.
fn circles(edges: &BTreeMap<Module, Vec<Module>>) -> Vec<String> {
    let mut found = Vec::new();
    let mut finished = Vec::new();
    for start in edges.keys() {
        walk(start, edges, &mut Vec::new(), &mut finished, &mut found);
    }
    found
}

fn walk(
    at: &Module,
    edges: &BTreeMap<Module, Vec<Module>>,
    trail: &mut Vec<Module>,
    finished: &mut Vec<Module>,
    found: &mut Vec<String>,
) {
    if finished.contains(at) {
        return;
    }
    if let Some(begin) = trail.iter().position(|seen| seen == at) {
        let names: Vec<String> = trail[begin..].iter().map(|seen| seen.join("::")).collect();
        found.push(format!("a circle of imports: {}", names.join(" → ")));
        return;
    }
    trail.push(at.clone());
    for to in edges.get(at).into_iter().flatten().filter(|to| *to != at) {
        walk(to, edges, trail, finished, found);
    }
    trail.pop();
    finished.push(at.clone());
}

fn owned(module: &[&str]) -> Module {
    module.iter().map(|&part| part.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(changes: &[(&str, &str)]) -> Vec<String> {
        let mut files = vec![
            Source::new("src/lib.rs", "mod error;\npub mod store;\n"),
            Source::new("src/error.rs", ""),
            Source::new("src/key.rs", "use crate::error::Error;\n"),
            Source::new("src/store/mod.rs", "mod contract;\n"),
            Source::new("src/store/contract.rs", "use crate::key::Key;\n"),
            Source::new(
                "src/store/memory.rs",
                "use crate::store::contract::{A, B};\n",
            ),
        ];
        for (path, text) in changes {
            files.retain(|file| file.path != *path);
            files.push(Source::new(path, text));
        }
        breaches(&files)
    }

    #[test]
    fn a_tree_whose_imports_point_down_passes() {
        assert_eq!(tree(&[]), Vec::<String>::new());
    }

    #[test]
    fn an_import_from_above_is_caught() {
        assert_eq!(tree(&[("src/error.rs", "use crate::key::Key;\n")]).len(), 1);
        let inline = "fn f(key: &crate::key::Key) {}\n";
        assert_eq!(tree(&[("src/error.rs", inline)]).len(), 1);
    }

    #[test]
    fn a_circle_on_one_level_is_caught() {
        let back = "use crate::store::memory::MemoryStore;\n";
        let found = tree(&[("src/store/contract.rs", back)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("circle"), "{found:?}");
    }

    #[test]
    fn an_import_through_a_door_is_caught() {
        for through in ["use crate::Error;\n", "use crate::store::Store;\n"] {
            assert_eq!(tree(&[("src/policy.rs", through)]).len(), 1, "{through}");
        }
        assert_eq!(
            tree(&[("src/store/memory.rs", "use super::Store;\n")]).len(),
            1
        );
    }

    #[test]
    fn a_module_without_a_level_is_caught() {
        assert_eq!(tree(&[("src/helpers.rs", "")]).len(), 1);
    }

    #[test]
    fn comments_tests_and_macros_are_not_imports() {
        let text = "/// [`crate::layer::Layer`]\nconst A: &str = $crate::layer::B;\n\
                    #[cfg(test)]\nmod tests {\n    use crate::store::memory::M;\n}\n";
        assert_eq!(tree(&[("src/error.rs", text)]), Vec::<String>::new());
    }
}
