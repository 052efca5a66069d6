//! Every file says first what it is.

use super::{finding::Finding, tree::Tree};

/// Every file opens with a `//!` comment.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let silent = tree.written().filter(|source| !source.text.starts_with("//!"));
    let findings = silent.map(|source| {
        let wrong = "the file does not open with a `//!` comment".to_owned();
        source.finding("opening", 1, wrong, "say in its first line what it is".to_owned())
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::Fixture;

    #[test]
    fn a_file_that_opens_otherwise_is_found() {
        for text in ["", "// A.\n", "use std::fs;\n//! A.\n", "\n//! A.\n"] {
            assert_eq!(check(&Fixture::of(text)).len(), 1, "{text:?}");
        }
    }

    #[test]
    fn a_file_that_opens_with_its_comment_passes() {
        assert!(check(&Fixture::of("//! A.\n\nuse std::fs;\n")).is_empty());
    }
}
