//! The page `tests/field_cases.md` has a line for each case, and says what is so: the tests that it
//! names are there and name the case, and its counts are right.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The numbers of the cases that were reported in public, from and to, as they were published.
const REPORTED: [(u32, u32); 10] = [
    (1, 15),
    (17, 41),
    (44, 56),
    (58, 61),
    (64, 78),
    (82, 84),
    (88, 104),
    (107, 108),
    (111, 122),
    (127, 131),
];

/// How many sequences at which other crates fail there are.
const SEQUENCES: u32 = 103;

/// One line of the page.
struct Line {
    number: String,
    happened: String,
    shown_by: ShownBy,
}

enum ShownBy {
    Tests(Vec<String>),
    Reason(String),
}

fn page() -> Vec<Line> {
    let rows = read("tests/field_cases.md");
    rows.lines().filter_map(line).collect()
}

fn line(row: &str) -> Option<Line> {
    let cells: Vec<&str> = row
        .strip_prefix("| ")?
        .strip_suffix(" |")?
        .split(" | ")
        .collect();
    let [number, happened, shown_by] = cells.as_slice() else {
        return None;
    };
    numbered(number)?;
    Some(Line {
        number: (*number).to_owned(),
        happened: (*happened).to_owned(),
        shown_by: match shown_by.strip_prefix("cannot: ") {
            Some(reason) => ShownBy::Reason(reason.to_owned()),
            None => ShownBy::Tests(
                shown_by
                    .split(", ")
                    .map(|name| name.trim_matches('`').to_owned())
                    .collect(),
            ),
        },
    })
}

/// A letter and a number of two digits or more.
fn numbered(text: &str) -> Option<(char, u32)> {
    let kind = text
        .chars()
        .next()
        .filter(|kind| matches!(kind, 'B' | 'P'))?;
    let digits = text.strip_prefix(kind)?;
    let number = digits.parse().ok()?;
    (digits == format!("{number:02}")).then_some((kind, number))
}

#[test]
fn each_case_has_one_line() {
    let mut expected: Vec<String> = REPORTED
        .iter()
        .flat_map(|&(first, last)| first..=last)
        .map(|number| format!("B{number:02}"))
        .collect();
    assert_eq!(expected.len(), 111);
    expected.extend((1..=SEQUENCES).map(|number| format!("P{number:02}")));
    let lines = page();
    let found: Vec<&str> = lines.iter().map(|line| line.number.as_str()).collect();
    assert_eq!(found, expected);
    for line in &lines {
        assert!(line.happened.len() > 5, "{} says nothing", line.number);
        let is_filled = match &line.shown_by {
            ShownBy::Tests(names) => names.iter().all(|name| !name.is_empty()),
            ShownBy::Reason(reason) => reason.len() > 20,
        };
        assert!(is_filled, "{} is shown by nothing", line.number);
    }
}

#[test]
fn its_counts_are_right() {
    let text = read("tests/field_cases.md");
    for kind in ['B', 'P'] {
        let lines = page();
        let all = lines.iter().filter(|line| line.number.starts_with(kind));
        let (shown, not): (Vec<_>, Vec<_>) =
            all.partition(|line| matches!(line.shown_by, ShownBy::Tests(_)));
        let (shown, not) = (shown.len(), not.len());
        let row = format!("| {kind} | {shown} | {not} | {} |", shown + not);
        assert!(text.lines().any(|line| line == row), "the page lacks {row}");
    }
}

/// The cases that each test names, by the test's name. Tests of one name are taken together.
fn named_in_sources() -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for folder in ["tests", "src"] {
        each_source(Path::new(folder), &mut |text| {
            let mut above = Vec::new();
            for line in text.lines().map(str::trim) {
                if let Some(name) = function(line) {
                    let cases = found.entry(name.to_owned()).or_default();
                    cases.extend(above.drain(..));
                } else if let Some(comment) = line.strip_prefix("//") {
                    // The rest of a list that was begun in the line before begins otherwise.
                    let comment = comment.trim_start_matches(['/', ' ']);
                    if above.is_empty() && !comment.starts_with("Field case") {
                        continue;
                    }
                    let words = comment.split(|c: char| !c.is_ascii_alphanumeric());
                    let cases = words.filter(|word| numbered(word).is_some());
                    above.extend(cases.map(str::to_owned));
                } else if line.is_empty() || line == "}" {
                    above.clear();
                }
            }
        });
    }
    found
}

/// The name of the function that begins in this line.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    let rest = line.strip_prefix("fn ")?;
    rest.split(['(', '<']).next()
}

fn each_source(folder: &Path, look: &mut impl FnMut(&str)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            each_source(&path, look);
        } else if path.extension().is_some_and(|it| it == "rs") {
            look(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn each_named_test_is_there_and_names_the_case() {
    let sources = named_in_sources();
    for line in page() {
        let ShownBy::Tests(names) = line.shown_by else {
            continue;
        };
        for name in names {
            let cases = sources.get(&name);
            let cases = cases.unwrap_or_else(|| panic!("{}: there is no {name}", line.number));
            assert!(
                cases.contains(&line.number),
                "{name} does not name {}",
                line.number
            );
        }
    }
}

#[test]
fn each_case_that_a_test_names_stands_beside_it_on_the_page() {
    let mut shown = BTreeSet::new();
    for line in page() {
        if let ShownBy::Tests(names) = line.shown_by {
            shown.extend(names.into_iter().map(|name| (name, line.number.clone())));
        }
    }
    for (name, cases) in named_in_sources() {
        for case in cases {
            let pair = (name.clone(), case);
            assert!(
                shown.contains(&pair),
                "the page has no {} at {}",
                pair.0,
                pair.1
            );
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}
