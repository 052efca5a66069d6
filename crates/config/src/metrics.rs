//! `[metrics]`: which topics have metrics of their own.

use forebay_engine::ReportedTopics;
use forebay_types::is_name_byte;

use super::file::MetricsKeys;

/// More would make the page of metrics slow to read: each topic has 13 series.
const TOPICS_MAX: usize = 10_000;

/// Checks the keys.
pub fn metrics(keys: MetricsKeys, errors: &mut Vec<String>) -> ReportedTopics {
    let reported = ReportedTopics { patterns: keys.topics, most: keys.topics_max };
    for pattern in reported.patterns.iter().filter(|pattern| !is_pattern(pattern)) {
        errors.push(format!(
            "metrics.topics: {pattern:?} must be NAMESPACE/TOPIC, or begin such a name and end in *, as in \
             shop/orders.*"
        ));
    }
    if reported.most > TOPICS_MAX {
        errors.push(format!("metrics.topics_max must be at most {TOPICS_MAX}"));
    }
    reported
}

fn is_pattern(text: &str) -> bool {
    let is_whole = |text: &str| text.split_once('/').is_some_and(|(a, b)| !a.is_empty() && !b.is_empty());
    match text.strip_suffix('*') {
        Some(prefix) => prefix.bytes().all(is_name_byte),
        None => text.bytes().all(is_name_byte) && is_whole(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wrong_pattern_is_reported() {
        let list = |entries: &[&str]| entries.iter().map(|entry| entry.to_string()).collect();
        let mut errors = Vec::new();
        let topics = list(&["*", "shop/*", "shop/orders", "a/b/c", "te*"]);
        let keys = MetricsKeys { topics, ..MetricsKeys::default() };
        let reported = metrics(keys, &mut errors);
        assert_eq!((reported.patterns.len(), reported.most), (5, 1_000));
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(metrics(MetricsKeys::default(), &mut errors), ReportedTopics::default());

        let wrong = ["", "orders", "/orders", "shop/", "a*b/c", "shop/or ders", "shop/**"];
        metrics(MetricsKeys { topics: list(&wrong), topics_max: 10_001 }, &mut errors);
        assert_eq!(errors.len(), wrong.len() + 1, "{errors:#?}");
        assert!(errors[1].starts_with("metrics.topics: \"orders\""), "{errors:#?}");
        assert!(errors[7].starts_with("metrics.topics_max"), "{errors:#?}");
    }
}
