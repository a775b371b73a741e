//! What the pages say is there: their links lead somewhere, the tests and files that they name exist,
//! the features and codes that they list are those of the crate, and each block of Rust is compiled as it stands.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use http::StatusCode;

/// The repository's pages, except what lists single tests.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![
        "README.md".into(),
        "CONTRIBUTING.md".into(),
        "CHANGELOG.md".into(),
    ];
    for entry in fs::read_dir("docs").unwrap() {
        pages.push(entry.unwrap().path());
    }
    pages.retain(|page: &PathBuf| page.extension().is_some_and(|is| is == "md"));
    pages
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The lines outside of blocks of code, and the blocks with their languages.
fn parts(text: &str) -> (Vec<&str>, Vec<(&str, Vec<&str>)>) {
    let (mut prose, mut blocks) = (Vec::new(), Vec::<(&str, Vec<&str>)>::new());
    let mut is_code = false;
    for line in text.lines() {
        match line.strip_prefix("```") {
            Some(_) if is_code => is_code = false,
            Some(language) => {
                is_code = true;
                blocks.push((language, Vec::new()));
            }
            None if is_code => blocks.last_mut().unwrap().1.push(line),
            None => prose.push(line),
        }
    }
    (prose, blocks)
}

/// Where the links of a page lead.
fn links(text: &str) -> Vec<&str> {
    let (prose, _) = parts(text);
    let ends = prose.into_iter().flat_map(|line| line.split("](").skip(1));
    ends.filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target)
        .filter(|target| !target.contains("://"))
        .collect()
}

/// A page's anchors, as GitHub makes them of its headings.
fn anchors(text: &str) -> Vec<String> {
    let (prose, _) = parts(text);
    let headings = prose.into_iter().filter(|line| line.starts_with('#'));
    headings
        .map(|line| anchor(line.trim_start_matches('#').trim()))
        .collect()
}

fn anchor(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The texts of a page in back quotes.
fn quoted(text: &str) -> Vec<&str> {
    let (prose, _) = parts(text);
    prose
        .into_iter()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .collect()
}

/// The names of a file's functions.
fn functions(text: &str) -> Vec<String> {
    let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    let name = |rest: &str| rest.chars().take_while(is_name).collect();
    text.split("fn ").skip(1).map(name).collect()
}

/// The files of Rust in a folder and below.
fn sources(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|is| is == "rs");
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let below = folders.into_iter().flat_map(sources);
    files.into_iter().filter(is_rust).chain(below).collect()
}

/// Why a link leads nowhere.
fn broken(page: &Path, target: &str) -> Option<String> {
    let (file, wanted) = target.split_once('#').unwrap_or((target, ""));
    let to = match file {
        "" => page.to_owned(),
        _ => page.parent().unwrap().join(file),
    };
    let is_there =
        to.exists() && (wanted.is_empty() || anchors(&read(&to)).contains(&wanted.into()));
    (!is_there).then(|| format!("{} links to {target}", page.display()))
}

#[test]
fn each_link_leads_to_a_file_and_a_heading() {
    let broken = |page: &PathBuf| {
        let text = read(page);
        let targets = links(&text);
        targets
            .iter()
            .filter_map(|to| broken(page, to))
            .collect::<Vec<_>>()
    };
    let all: Vec<String> = pages().iter().flat_map(broken).collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn a_broken_link_is_caught() {
    let page = Path::new("docs/guide.md");
    assert_eq!(broken(page, "layers.md#shutdown"), None);
    assert!(broken(page, "layers.md#shut-down").is_some());
    assert!(broken(page, "layer.md").is_some());
    assert_eq!(
        links("[a](b.md#c) and [d](https://e)\n```\n[f](g)\n```"),
        ["b.md#c"]
    );
    assert_eq!(anchors("## What happens when …"), ["what-happens-when-"]);
}

#[test]
fn links_from_the_code_to_pages_lead_to_them() {
    let mut seen = 0;
    for path in sources("src") {
        for rest in read(&path).split("tower-idempotency/blob/main/").skip(1) {
            let end = |c: char| c.is_whitespace() || ">)".contains(c);
            let target = rest.split(end).next().unwrap();
            let why = broken(Path::new("README.md"), target);
            assert_eq!(why, None, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 2, "the links were not found");
}

#[test]
fn each_block_of_rust_is_compiled_as_it_stands() {
    let compiled = read("src/pages.rs");
    for page in pages() {
        let text = read(&page);
        let (_, blocks) = parts(&text);
        for (language, lines) in blocks {
            if !language.starts_with("rust") {
                assert_ne!(language, "", "{}: a block says no language", page.display());
                continue;
            }
            let name = page.display();
            assert!(
                ["rust", "rust,no_run"].contains(&language),
                "{name}: {language}"
            );
            assert!(
                compiled.contains(&format!("../{name}\"")),
                "{name} is not in src/pages.rs"
            );
            // What rustdoc hides is seen on every other page, and does not compile there.
            let hidden = lines
                .iter()
                .find(|line| line.starts_with("# ") || **line == "#");
            assert_eq!(hidden, None, "{name}");
        }
    }
}

#[test]
fn tests_and_files_that_are_named_exist() {
    let mut tests = BTreeSet::new();
    for path in sources("tests").into_iter().chain(sources("src/testing")) {
        tests.extend(functions(&read(path)));
    }
    let readme = read("README.md");
    for name in quoted(&readme) {
        let is_word = name.chars().all(|c| c == '_' || c.is_alphanumeric());
        let is_sentence = is_word && name.matches('_').count() > 2;
        assert!(
            !is_sentence || tests.contains(name),
            "there is no test {name}"
        );
    }
    let pages = pages().into_iter().map(read).collect::<String>();
    for name in quoted(&pages) {
        let is_path = ["tests/", "src/", "examples/", "docs/", "web/"]
            .iter()
            .any(|at| name.starts_with(at));
        assert!(!is_path || Path::new(name).exists(), "there is no {name}");
    }
}

#[test]
fn the_readme_and_the_crates_docs_list_the_features() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let features = manifest
        .get("features")
        .and_then(|it| it.as_table())
        .unwrap();
    let defaults = features
        .get("default")
        .and_then(|it| it.as_array())
        .unwrap();
    for page in ["README.md", "src/lib.rs"] {
        let text = read(page);
        for feature in features.keys().filter(|name| *name != "default") {
            let row = text.lines().find_map(|line| {
                line.split_once(&format!("| `{feature}` | "))
                    .map(|(_, rest)| rest)
            });
            let row = row.unwrap_or_else(|| panic!("{page} does not list {feature}"));
            let is_default = defaults.iter().any(|it| it.as_str() == Some(feature));
            assert_eq!(row.starts_with("yes"), is_default, "{page}: {feature}");
        }
    }
}

#[test]
fn the_page_for_clients_lists_each_code_with_its_status() {
    let page = read("docs/clients.md");
    let (_, page) = page.split_once("## What the server says").unwrap();
    let source = read("src/problem.rs");
    let kinds = source.split("status: StatusCode::").skip(2);
    let mut seen = 0;
    for kind in kinds {
        let (name, rest) = kind.split_once(',').unwrap();
        let (_, rest) = rest.split_once("code: \"").unwrap();
        let code = rest.split('"').next().unwrap();
        let row = page
            .lines()
            .find(|line| line.starts_with('|') && line.contains(&format!("`{code}`")));
        let row = row.unwrap_or_else(|| panic!("no line for {code}"));
        let status = row.split('|').nth(2).unwrap().trim();
        let named = status.split(',').next().unwrap().parse().unwrap();
        let reason = StatusCode::from_u16(named).unwrap();
        let reason = reason.canonical_reason().unwrap().to_uppercase();
        assert_eq!(reason.replace([' ', '-'], "_"), name, "{code}");
        seen += 1;
    }
    assert!(seen > 20, "the codes were not found");
}
