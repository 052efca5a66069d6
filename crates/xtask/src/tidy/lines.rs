//! Lines fit into a window.

use super::{finding::Finding, tree::Tree};

const COLUMNS: usize = 110;

/// No line is longer than 110 columns, comments included.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.written() {
        for (index, line) in source.text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS {
                let wrong = format!("the line has {columns} columns");
                let remedy = format!("break it at {COLUMNS}");
                findings.push(source.finding("lines", index + 1, wrong, remedy));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::Fixture;

    #[test]
    fn a_comment_of_111_columns_is_found() {
        let findings = check(&Fixture::of(&format!("//! A.\n// {}\n", "ä".repeat(108))));
        assert_eq!(findings.len(), 1);
        let text = "crates/a/src/lib.rs:2: the line has 111 columns; break it at 110";
        assert_eq!(findings[0].to_string(), text);
    }

    #[test]
    fn a_line_of_110_columns_passes() {
        assert!(check(&Fixture::of(&format!("//! A.\n// {}\n", "ä".repeat(107)))).is_empty());
    }
}
