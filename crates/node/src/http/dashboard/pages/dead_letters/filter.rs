//! Filters that pass the dead letters of a group, or those that somebody looks for.

use forebay_engine::filter_fields;
use forebay_store::OperationKind;
use forebay_types::filter::{Filter, quoted, quoted_prefix};

/// What stands for the parts of reasons that differ, in what they have in common.
const REPLACED: [&str; 4] = ["<n>", "<hex>", "<uuid>", "<…>"];
/// How dead letters without a reason died, which is then the name of their group.
const CAUSES: [&str; 3] = ["nacked", "lease ended", "dead-lettered"];
/// The most terms of a filter of ours.
const TERMS_MAX: usize = 12;
/// The longest text of a term, in bytes.
const TERM_BYTES_MAX: usize = 60;

/// A filter for the reasons of a group: it has all that they have in common, in parts. Other reasons may have
/// these parts too. `None`: they have nothing in common that a filter could name.
pub fn of_group(reason: &str) -> Option<String> {
    if CAUSES.contains(&reason) {
        return Some("reason = \"\"".to_owned());
    }
    let parts = parts(reason);
    let is_whole = parts.len() == 1 && parts.first().is_some_and(|part| part.len() == reason.len());
    if is_whole && reason.len() <= TERM_BYTES_MAX {
        return Some(format!("reason = {}", quoted(reason)));
    }
    let begins = parts.first().is_some_and(|first| reason.starts_with(first));
    let term = |(at, part): (usize, &&str)| match at == 0 && begins {
        true => Some(format!("reason = {}", quoted_prefix(cut(part)))),
        // A dot between two numbers says nothing.
        false if part.chars().filter(|it| it.is_alphanumeric()).count() < 2 => None,
        false => Some(format!("reason : {}", quoted(cut(part)))),
    };
    let terms: Vec<String> = parts.iter().enumerate().filter_map(term).take(TERMS_MAX).collect();
    (!terms.is_empty()).then(|| terms.join(" AND "))
}

/// Whether a group has dead letters without a reason.
pub fn is_cause(reason: &str) -> bool {
    CAUSES.contains(&reason)
}

/// What is typed is a filter as calls have them, or else a part of a reason.
pub fn typed(text: &str) -> String {
    let text = text.trim();
    let is_filter = || Filter::parse(text, filter_fields(OperationKind::Redrive)).is_ok();
    if text.is_empty() || is_filter() { text.to_owned() } else { format!("reason : {}", quoted(text)) }
}

/// What lies between the replaced parts, without blanks at its ends.
fn parts(reason: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = reason;
    loop {
        let next = REPLACED.iter().filter_map(|mark| Some((rest.find(mark)?, mark.len()))).min();
        let (end, behind) = next.map_or((rest.len(), rest.len()), |(at, length)| (at, at + length));
        parts.push(rest.get(..end).unwrap_or_default().trim());
        rest = rest.get(behind..).unwrap_or_default();
        if rest.is_empty() {
            break;
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// The beginning of a text.
fn cut(text: &str) -> &str {
    let end = (0..=TERM_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use forebay_types::filter::Held;

    use super::*;

    #[track_caller]
    fn passes(filter: &str, reason: &str) -> bool {
        let parsed = Filter::parse(filter, filter_fields(OperationKind::Redrive)).expect(filter);
        parsed.holds(|_| Held::Text(reason))
    }

    #[test]
    fn a_filter_passes_the_reasons_of_its_group() {
        for (group, expected, reason, other) in [
            ("timeout", "reason = \"timeout\"", "timeout", "timeout!"),
            (
                "timeout after <n>.<n>s of \"<n>\"",
                "reason = \"timeout after*\" AND reason : \"s of \\\"\"",
                "timeout after 31.5s of \"3\"",
                "timeout after all",
            ),
            (
                "user <n>: no such user",
                "reason = \"user*\" AND reason : \": no such user\"",
                "user 7: no such \
                user",
                "user 7: locked",
            ),
            ("<uuid> is missing", "reason : \"is missing\"", "7f1d is missing", "7f1d is there"),
            ("nacked", "reason = \"\"", "", "nacked"),
            ("100 % <…> * \\", "reason = \"100 %*\"", "100 % 'x' * \\", "10 %"),
        ] {
            let filter = of_group(group).unwrap();
            assert_eq!(filter, expected, "{group}");
            assert!(passes(&filter, reason), "{filter}: {reason}");
            assert!(!passes(&filter, other), "{filter}: {other}");
        }
        assert_eq!(of_group("<n>.<n>"), None, "nothing in common");
    }

    #[test]
    fn a_long_reason_has_a_filter_that_is_taken() {
        let long = "größe überschritten <n> ".repeat(60);
        let filter = of_group(long.trim()).unwrap();
        assert!(passes(&filter, &long.replace("<n>", "12")), "{filter}");
        let one = "ä".repeat(500);
        assert!(passes(&of_group(&one).unwrap(), &one));
    }

    #[test]
    fn what_is_typed_is_a_filter_or_a_part_of_a_reason() {
        assert_eq!(typed(" "), "");
        assert_eq!(typed("reason = \"a*\" AND age > 1h"), "reason = \"a*\" AND age > 1h");
        assert_eq!(typed("timeout: 3 s"), "reason : \"timeout: 3 s\"");
        assert_eq!(typed("a \"b\""), "reason : \"a \\\"b\\\"\"");
    }
}
