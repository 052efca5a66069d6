//! Comments name the thing first.

use super::{finding::Finding, tree::Tree};

/// Beginnings that keep the reader waiting for the noun.
const BEGINNINGS: &[&str] = &["What", "Who", "Whom", "So many", "Those"];

/// No comment begins with a word that stands for the thing it is about. `grep` finds nouns. Generated files
/// have the comments of the protocol.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let mut before = None;
        for (index, line) in source.text.lines().enumerate() {
            let text = comment(line);
            let begins = before.is_none_or(str::is_empty);
            if let Some(word) = text.filter(|_| begins).and_then(beginning) {
                let wrong = format!("the comment begins with \"{word}\"");
                let remedy = "name the thing first, with a noun".to_owned();
                findings.push(source.finding("words", index + 1, wrong, remedy));
            }
            before = text;
        }
    }
    findings
}

/// The text of a line that is a comment.
fn comment(line: &str) -> Option<&str> {
    let text = line.trim_start().strip_prefix("//")?;
    Some(text.strip_prefix(['/', '!']).unwrap_or(text).trim())
}

fn beginning(text: &str) -> Option<&'static str> {
    let is_whole = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '\'');
    BEGINNINGS.iter().find(|word| text.strip_prefix(**word).is_some_and(is_whole)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::Fixture;

    #[test]
    fn a_comment_that_begins_with_a_pronoun_is_found() {
        for text in
            ["//! What it is.\n", "//! A.\n\n/// So many of them.\n", "//! A.\n//!\n//! Those that wait.\n"]
        {
            assert_eq!(check(&Fixture::of(text)).len(), 1, "{text:?}");
        }
    }

    #[test]
    fn a_sentence_that_goes_on_and_another_word_pass() {
        for text in ["//! It is known\n//! What that is.\n", "//! Whole batches.\n", "//! What's-its-name.\n"]
        {
            assert!(check(&Fixture::of(text)).is_empty(), "{text:?}");
        }
    }
}
