//! Files are short enough to read in one go.

use super::{finding::Finding, tree::Tree};

const LINES: usize = 400;

/// No file is longer than 400 lines.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.written() {
        let lines = source.text.lines().count();
        if lines > LINES {
            let wrong = format!("the file has {lines} lines");
            let remedy = format!("split it into files of at most {LINES}");
            findings.push(source.finding("length", LINES + 1, wrong, remedy));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::Fixture;

    #[test]
    fn a_file_of_401_lines_is_found() {
        let findings = check(&Fixture::of(&"//! A.\n".repeat(401)));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].wrong.contains("401"));
    }

    #[test]
    fn a_file_of_400_lines_passes() {
        assert!(check(&Fixture::of(&"//! A.\n".repeat(400))).is_empty());
    }
}
