//! The page's SQL.

const PAGE: &str = include_str!("../../docs/operations.md");

/// The blocks of SQL behind a line of the page, up to the next heading or, behind a line of text,
/// the first block.
pub(crate) fn sql_behind(line: &str) -> Vec<&'static str> {
    let (_, behind) = PAGE
        .split_once(&format!("\n{line}\n"))
        .unwrap_or_else(|| panic!("no line {line}"));
    let end = if line.starts_with('#') {
        behind.find("\n#").unwrap_or(behind.len())
    } else {
        behind.find("\n```\n").unwrap() + 5
    };
    blocks(&behind[..end])
}

/// How many blocks of SQL the page has.
pub(crate) fn count() -> usize {
    blocks(PAGE).len()
}

fn blocks(text: &'static str) -> Vec<&'static str> {
    let mut blocks = text.split("```sql\n");
    blocks.next();
    blocks
        .map(|block| block.split("```").next().unwrap())
        .collect()
}

#[test]
fn each_block_of_the_page_is_run_by_a_test() {
    let known = [
        "### PostgreSQL",
        "### SQLite",
        "PostgreSQL, what waits longest:",
        "SQLite, all that is not done:",
        "PostgreSQL:",
        "SQLite, as one transaction:",
        "## Sizing",
    ];
    let run: usize = known.iter().map(|line| sql_behind(line).len()).sum();
    assert_eq!(run, count());
}
