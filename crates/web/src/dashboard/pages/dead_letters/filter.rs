//! Filters that pass the dead letters of a group, or those that somebody looks for.

use forebay_engine::filter_fields;
use forebay_store::OperationKind;
use forebay_types::{
    DeathCause,
    filter::{is_meant, quoted},
};

/// A filter that exactly the dead letters of a group pass.
pub(crate) fn of_group(fingerprint: &str) -> String {
    format!("group = {fingerprint}")
}

/// A filter that one dead letter passes.
pub fn of_item(id: &str) -> String {
    format!("item = {id}")
}

/// A filter that these items pass. `None`: there are none.
pub fn of_items(ids: &[&str]) -> Option<String> {
    match ids {
        [] => None,
        [id] => Some(of_item(id)),
        ids => Some(format!("item = ({})", ids.join(" OR "))),
    }
}

/// The group that a filter names, if it names nothing else.
pub(crate) fn group_of(filter: &str) -> Option<&str> {
    let named = filter.strip_prefix("group = ")?;
    named.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(named)
}

/// Whether a group has dead letters without a reason: it has the name of their cause.
pub(crate) fn is_cause(reason: &str) -> bool {
    DeathCause::ALL.iter().any(|cause| cause.as_str() == reason)
}

/// Returns the filter for a typed text: the text itself if it is a filter as calls have them, or else one for
/// a part of a reason. A wrong filter stays as it is, so that the call says what is wrong with it.
pub fn typed(text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || is_meant(text, filter_fields(OperationKind::Redrive)) {
        text.to_owned()
    } else {
        format!("reason : {}", quoted(text))
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::filter::Filter;

    use super::*;

    #[test]
    fn a_group_and_an_item_have_filters_that_calls_take() {
        let both = of_items(&["3-1041", "12-7"]).unwrap();
        for filter in [of_group("00a1b2c3d4e5f607"), of_item("3-1041"), both] {
            Filter::parse(&filter, filter_fields(OperationKind::Redrive)).expect(&filter);
            assert_eq!(typed(&filter), filter);
        }
        assert_eq!((of_items(&[]), of_items(&["3-1041"])), (None, Some(of_item("3-1041"))));
        assert_eq!(group_of(&of_group("00a1")), Some("00a1"));
        assert_eq!(group_of("group = 00a1 AND age > 1h"), None);
        assert_eq!(group_of("reason = a"), None);
    }

    #[test]
    fn what_is_typed_is_a_filter_or_a_part_of_a_reason() {
        assert_eq!(typed(" "), "");
        assert_eq!(typed("reason = \"a*\" AND age > 1h"), "reason = \"a*\" AND age > 1h");
        assert_eq!(
            typed("NOT reason = 'timeout*'"),
            "NOT reason = 'timeout*'",
            "it is refused, and not looked for"
        );
        assert_eq!(typed("timeout: 3 s"), "reason : \"timeout: 3 s\"");
        assert_eq!(typed("a \"b\""), "reason : \"a \\\"b\\\"\"");
    }
}
