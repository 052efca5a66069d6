//! Files are short enough to read in one go.

use super::{code_lines, finding::Finding, tree::Tree};

const LINES: usize = 400;

/// No file has more than 400 lines of code, its inline tests apart.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in tree.written() {
        let lines = code_lines::count(source);
        if lines > LINES {
            let wrong = format!("the file has {lines} lines of code");
            let remedy = format!("split it into files of at most {LINES}");
            findings.push(source.finding("length", 1, wrong, remedy));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::Fixture;

    #[test]
    fn a_file_of_401_lines_of_code_is_found() {
        let findings = check(&Fixture::of(&"use a::b;\n".repeat(401)));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].wrong.contains("401"));
    }

    #[test]
    fn a_file_of_400_lines_of_code_with_comments_and_tests_passes() {
        let tests = "#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n";
        let text = format!("{}{}{tests}", "//! A.\n".repeat(200), "use a::b;\n".repeat(400));
        assert!(check(&Fixture::of(&text)).is_empty());
    }
}
