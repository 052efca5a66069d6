//! Counts tests from what the runners print at their ends.

use std::{fmt, ops::AddAssign};

/// How many tests ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Did what they should.
    pub passed: u64,
    /// Did not.
    pub failed: u64,
    /// Were not run although nobody asked for fewer.
    pub skipped: u64,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// The sums of `cargo test`, which prints a result for every test binary:
/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s`.
pub fn of_cargo_test(lines: &[String]) -> Count {
    let mut sum = Count::default();
    for line in lines {
        let Some(result) = plain(line).trim_start().strip_prefix("test result: ").map(str::to_owned) else {
            continue;
        };
        let figure = |word| before(&result, word);
        sum += Count { passed: figure("passed"), failed: figure("failed"), skipped: figure("ignored") };
    }
    sum
}

/// The sums of `cargo nextest run`, from its last summary:
/// `Summary [ 0.005s] 4 tests run: 3 passed (1 slow), 1 failed, 1 timed out, 2 skipped`.
/// Its skipped tests are ignored ones and those that a filter left out.
pub fn of_nextest(lines: &[String]) -> Option<Count> {
    let line =
        lines.iter().rev().map(|line| plain(line)).find(|line| line.trim_start().starts_with("Summary ["))?;
    let (_, result) = line.split_once(" run: ")?;
    // Numbers in parentheses, as in "(1 slow, 2 flaky)", are counted among the passed.
    let mut outside = String::new();
    let mut depth = 0;
    for character in result.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 => outside.push(character),
            _ => {}
        }
    }
    let figure = |word| before(&outside, word);
    let failed = figure("failed") + figure("timed out") + figure("exec failed");
    Some(Count { passed: figure("passed"), failed, skipped: figure("skipped") })
}

/// The number that stands before `word`, in a list whose parts are set apart by `.`, `,` or `;`.
fn before(text: &str, word: &str) -> u64 {
    let parts = text.split(['.', ',', ';']).map(str::trim);
    parts
        .filter_map(|part| part.split_once(' '))
        .find(|(_, rest)| rest.trim() == word)
        .and_then(|(number, _)| number.parse().ok())
        .unwrap_or(0)
}

/// Without the escape sequences that colour it.
fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(character);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn cargo_test_is_summed_over_its_binaries() {
        let text = "running 3 tests\n\
            test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.01s\n\
            test result: \u{1b}[31mFAILED\u{1b}[0m. \
            4 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        assert_eq!(of_cargo_test(&lines(text)), Count { passed: 7, failed: 2, skipped: 1 });
    }

    #[test]
    fn nextest_is_read_from_its_summary() {
        let text = "\u{1b}[32;1m     Summary\u{1b}[0m [   0.005s] \u{1b}[1m9\u{1b}[0m tests run: \
            \u{1b}[1m6\u{1b}[0m passed (\u{1b}[1m1\u{1b}[0m slow, 1 leaky), 1 failed, 2 timed out, 3 skipped";
        assert_eq!(of_nextest(&lines(text)), Some(Count { passed: 6, failed: 3, skipped: 3 }));
    }

    #[test]
    fn without_a_summary_there_is_no_count() {
        assert_eq!(of_nextest(&lines("error: could not compile")), None);
        assert_eq!(of_cargo_test(&lines("error: could not compile")), Count::default());
    }
}
