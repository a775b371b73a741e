//! `docs/operations.md` lists the names as they are.

use std::collections::BTreeSet;

use tower_idempotency::watch::{field, metric};

const PAGE: &str = include_str!("../../docs/operations.md");

/// The first two cells of each row of the tables below a heading, without back quotes.
fn rows(heading: &str, prefix: &str) -> BTreeSet<(String, String)> {
    let (_, below) = PAGE.split_once(&format!("\n{heading}\n")).unwrap();
    let section = below.split("\n#").next().unwrap();
    let rows = section
        .lines()
        .filter(|line| line.starts_with(&format!("| `{prefix}")));
    rows.map(|row| {
        let mut cells = row.split('|').map(|cell| cell.trim().replace('`', ""));
        cells.next();
        (cells.next().unwrap(), cells.next().unwrap())
    })
    .collect()
}

#[test]
fn the_page_lists_each_metric_with_its_labels_and_no_other() {
    let all = metric::ALL.iter();
    let listed = all.map(|it| (it.name.to_owned(), it.labels.join(", ")));
    assert_eq!(rows("### Metrics", "idempotency_"), listed.collect());
}

#[test]
fn the_page_lists_each_field_and_no_other() {
    let names = rows("### Traces", "idempotency.")
        .into_iter()
        .map(|(name, _)| name);
    let listed: BTreeSet<String> = field::ALL.iter().map(|&it| it.to_owned()).collect();
    assert_eq!(names.collect::<BTreeSet<_>>(), listed);
}
