//! The shape of the code holds: imports point down, files stay short, doors stay doors, `cfg`
//! stays on `mod` and `use`, and tasks are spawned in the allowed places only. Each rule is also
//! shown a breach that it must catch.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a panic is how these helpers of a test fail"
)]

#[path = "architecture/imports.rs"]
mod imports;
#[path = "architecture/source.rs"]
mod source;

use source::Source;

const MAX_LINES: usize = 400;

/// The places that spawn, each with an owner that stops what it spawned: a run whose caller left,
/// an inbox's worker, a store's coalescer, a store's sweeper. And the suite that races a store,
/// which awaits its tasks.
const SPAWNERS: [&str; 6] = [
    "src/detach.rs",
    "src/inbox/worker.rs",
    "src/store/postgres/lanes.rs",
    "src/store/postgres/sweeper.rs",
    "src/store/sqlite/thread.rs",
    "src/testing/store/races.rs",
];

#[test]
fn imports_point_down() {
    assert_none(&imports::breaches(&Source::all(&["src"])));
}

#[test]
fn files_are_at_most_400_lines_long() {
    let files = Source::all(&[
        "src",
        "tests",
        "examples",
        "benches",
        "fuzz/src",
        "fuzz/tests",
    ]);
    assert_none(&too_long(&files));
}

#[test]
fn mod_and_lib_are_doors() {
    assert_none(&walled_doors(&Source::all(&["src"])));
}

#[test]
fn cfg_stands_on_mod_and_use_only() {
    assert_none(&stray_cfgs(&Source::all(&["src"])));
}

#[test]
fn tasks_are_spawned_in_the_allowed_places_only() {
    assert_none(&stray_spawns(&Source::all(&["src"])));
}

#[test]
fn a_long_file_is_caught() {
    let file = |lines| Source::new("src/a.rs", &"\n".repeat(lines));
    assert_eq!(too_long(&[file(400)]).len(), 0);
    assert_eq!(too_long(&[file(401)]).len(), 1);
}

#[test]
fn an_item_in_a_door_is_caught() {
    let door =
        "//! Docs.\n\nmod a;\npub(crate) mod b;\n#[cfg(unix)]\npub use a::{\n    A,\n    B,\n};\n";
    let walled = |item: &str| {
        let text = format!("{door}{item}\n");
        walled_doors(&[
            Source::new("src/x/mod.rs", &text),
            Source::new("src/y.rs", &text),
        ])
        .len()
    };
    assert_eq!(walled(""), 0);
    for item in ["fn f() {}", "impl A {}", "pub struct C;", "mod inline {}"] {
        assert_eq!(walled(item), 1, "{item}");
    }
}

#[test]
fn a_cfg_on_an_item_is_caught() {
    let stray = |text: &str| stray_cfgs(&[Source::new("src/x.rs", text)]).len();
    assert_eq!(stray("#[cfg(feature = \"a\")]\n/// Docs.\npub mod a;\n"), 0);
    assert_eq!(stray("#[cfg(feature = \"a\")]\npub(crate) use b::C;\n"), 0);
    assert_eq!(stray("#[cfg(test)]\nimpl A {}\n"), 0);
    assert_eq!(stray("// #[cfg(unix)] is text here\nfn f() {}\n"), 0);
    assert_eq!(stray("#[cfg(unix)]\n#[inline]\nfn f() {}\n"), 1);
    assert_eq!(stray("    if cfg!(unix) {}\n"), 1);
    assert_eq!(stray("#[cfg_attr(unix, inline)]\nfn f() {}\n"), 1);
}

#[test]
fn a_spawn_elsewhere_is_caught() {
    let stray = |path: &str, text: &str| stray_spawns(&[Source::new(path, text)]).len();
    assert_eq!(stray("src/detach.rs", "tokio::spawn(run);\n"), 0);
    assert_eq!(stray("src/flow.rs", "tokio::spawn(run);\n"), 1);
    assert_eq!(stray("src/flow.rs", "handle.spawn(run);\n"), 1);
    assert_eq!(stray("src/flow.rs", "handle\n    .spawn_on(run, h);\n"), 1);
    let in_tests = "#[cfg(test)]\nmod tests {\n    tokio::spawn(run);\n}\n";
    assert_eq!(stray("src/flow.rs", in_tests), 0);
}

fn assert_none(breaches: &[String]) {
    assert!(breaches.is_empty(), "\n{}\n", breaches.join("\n"));
}

fn too_long(files: &[Source]) -> Vec<String> {
    files
        .iter()
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(file, lines)| format!("{}: {lines} lines, at most {MAX_LINES}", file.path))
        .collect()
}

/// Doors hold docs, `mod` and `use`, nothing else.
fn walled_doors(files: &[Source]) -> Vec<String> {
    let doors = files.iter().filter(|file| file.is_door());
    doors.flat_map(items_of_a_door).collect()
}

fn items_of_a_door(file: &Source) -> Vec<String> {
    let code: Vec<&str> = file
        .lines()
        .map(|(_, line)| line)
        .filter(|line| !line.starts_with("#[") && !line.starts_with("#!["))
        .collect();
    code.join(" ")
        .split_inclusive(';')
        .map(str::trim)
        .filter(|item| !(item.is_empty() || is_mod_or_use(item) && item.ends_with(';')))
        .map(|item| format!("{}: a door holds `mod` and `use` only: {item}", file.path))
        .collect()
}

fn stray_cfgs(files: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for file in files {
        let lines: Vec<(usize, &str)> = file.lines().collect();
        for (i, (number, line)) in lines.iter().enumerate() {
            let guarded = || {
                let mut below = lines[i..].iter().map(|(_, line)| *line);
                below.find(|line| !line.starts_with("#["))
            };
            let fine = match *line {
                "#[cfg(test)]" => true,
                line if line.starts_with("#![cfg_attr(docsrs,") => true,
                line if line.starts_with("#[cfg") => guarded().is_some_and(is_mod_or_use),
                line => !line.contains("cfg!("),
            };
            if !fine {
                breaches.push(format!("{}:{number}: {line}", file.path));
            }
        }
    }
    breaches
}

fn stray_spawns(files: &[Source]) -> Vec<String> {
    let spawns = |line: &str| {
        ["::spawn(", ".spawn(", "spawn_on(", "spawn_local("]
            .iter()
            .any(|call| line.contains(call))
    };
    let mut breaches = Vec::new();
    for file in files
        .iter()
        .filter(|file| !SPAWNERS.contains(&file.path.as_str()))
    {
        for (number, line) in file.lines_without_tests() {
            if spawns(line) {
                breaches.push(format!("{}:{number}: {line}", file.path));
            }
        }
    }
    breaches
}

fn is_mod_or_use(line: &str) -> bool {
    let line = match line.strip_prefix("pub") {
        None => line,
        Some(rest) => rest
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'))
            .map_or(rest, |(_, rest)| rest)
            .trim_start(),
    };
    ["mod ", "use "].iter().any(|word| line.starts_with(word)) && !line.contains(" {}")
}
