//! Source files as the rules read them: a path, and lines without comments.

use std::fs;
use std::path::Path;

/// One file.
#[derive(Debug)]
pub(crate) struct Source {
    /// Its path from the package's root.
    pub path: String,
    /// Its whole text.
    pub text: String,
}

impl Source {
    /// A file that is given, for showing a rule a breach.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    /// All `.rs` files of these folders. A folder that is not there has none.
    pub(crate) fn all(folders: &[&str]) -> Vec<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        for folder in folders {
            collect(root, &root.join(folder), &mut files);
        }
        assert!(!files.is_empty(), "no files in {folders:?}");
        files
    }

    /// Whether this is a `mod.rs` or the crate's `lib.rs`.
    pub(crate) fn is_door(&self) -> bool {
        self.path.ends_with("/mod.rs") || self.path == "src/lib.rs"
    }

    /// The module's path in the crate: `src/store/queue.rs` is `store`, `queue`.
    pub(crate) fn module(&self) -> Vec<&str> {
        let path = self.path.strip_prefix("src/").unwrap_or(&self.path);
        let path = path.strip_suffix(".rs").unwrap_or(path);
        let path = path.strip_suffix("/mod").unwrap_or(path);
        path.split('/').collect()
    }

    /// The trimmed lines that are neither blank nor comments, with their numbers.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate();
        lines
            .map(|(i, line)| (i + 1, line.trim()))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with("//"))
    }

    /// The same, up to the tests at the bottom of the file; none of a file of tests.
    pub(crate) fn lines_without_tests(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_tests = self.path.ends_with("tests.rs") || self.path.contains("/tests/");
        let end = if is_tests { 0 } else { self.tests_begin_at() };
        self.lines().take_while(move |(number, _)| *number < end)
    }

    fn tests_begin_at(&self) -> usize {
        let lines: Vec<(usize, &str)> = self.lines().collect();
        lines
            .windows(2)
            .find(|pair| {
                pair[0].1 == "#[cfg(test)]"
                    && pair[1].1.contains("mod ")
                    && pair[1].1.ends_with('{')
            })
            .map_or(usize::MAX, |pair| pair[0].0)
    }
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<Source>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            files.push(Source::new(
                &name.replace('\\', "/"),
                &fs::read_to_string(&path).unwrap(),
            ));
        }
    }
}
