//! Reads expressions of Prometheus: which metrics they name, and whether those are in `docs/METRICS.md`.

use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Output},
};

use forebay_testkit::servers::promtool;

use crate::files::read;

/// Metrics that Prometheus itself writes of each target.
const OF_PROMETHEUS: [&str; 1] = ["up"];
/// Words before a list of labels.
const BEFORE_LABELS: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
/// Words that may be before one of those, or that stand alone. Functions have a parenthesis behind them.
const WORDS: [&str; 19] = [
    "and", "or", "unless", "bool", "offset", "inf", "nan", "atan2", "sum", "min", "max", "avg", "count",
    "group", "stddev", "stdvar", "topk", "bottomk", "quantile",
];

/// The metrics in `docs/METRICS.md`, a histogram with its three parts.
pub fn documented() -> BTreeSet<String> {
    let page = read("docs/METRICS.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.flat_map(|row| {
        let (name, rest) = row.split_once('`').unwrap();
        let is_histogram = rest.split('|').nth(1).unwrap().trim() == "histogram";
        let parts: &[&str] = if is_histogram { &["_bucket", "_sum", "_count"] } else { &[""] };
        parts.iter().map(move |part| format!("{name}{part}"))
    });
    names.collect()
}

/// Fails if an expression names a metric that is neither documented nor among those that rules record.
#[track_caller]
pub fn check_metrics(whose: &str, expression: &str, recorded: &BTreeSet<String>) {
    let documented = documented();
    let names = metrics_of(expression);
    assert!(!names.is_empty(), "{whose}: no metric in {expression}");
    for name in names {
        let known =
            documented.contains(&name) || recorded.contains(&name) || OF_PROMETHEUS.contains(&name.as_str());
        assert!(known, "{whose}: docs/METRICS.md has no {name}");
    }
}

/// The metrics that an expression names.
pub fn metrics_of(expression: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut rest = expression;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '"' | '{' | '[' => behind(rest),
            '0'..='9' => rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '.'),
            'a'..='z' | 'A'..='Z' | '_' | ':' => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
                let after = rest.trim_start_matches(is_part);
                let name = &rest[..rest.len() - after.len()];
                let next = after.trim_start();
                if BEFORE_LABELS.contains(&name) {
                    if next.starts_with('(') { behind(next) } else { next }
                } else {
                    let is_word = WORDS.contains(&name.to_ascii_lowercase().as_str());
                    if !is_word && !next.starts_with('(') {
                        names.insert(name.to_owned());
                    }
                    next
                }
            }
            other => &rest[other.len_utf8()..],
        };
    }
    names
}

/// The text behind the bracket or the quoted text with which this begins.
fn behind(text: &str) -> &str {
    let close = match text.as_bytes()[0] {
        b'{' => '}',
        b'[' => ']',
        b'(' => ')',
        _ => '"',
    };
    let (mut in_text, mut escaped) = (false, false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == close && !in_text => return &text[at + c.len_utf8()..],
            '"' => in_text = !in_text,
            _ => {}
        }
    }
    panic!("no {close} in {text}")
}

/// The output of `promtool check rules` or `promtool test rules` for a file.
pub fn promtool_rules(verb: &str, file: &Path) -> Output {
    Command::new(promtool().unwrap()).args([verb, "rules"]).arg(file).output().unwrap()
}

/// All that a program has written.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn the_metrics_of_an_expression_are_found() {
    let of = |expression| metrics_of(expression).into_iter().collect::<Vec<_>>().join(" ");
    let ratio =
        r#"sum by (shard, le) (rate(a_total{le="}", code!~"b|c"}[5m])) / on (shard) d:e:f offset 1h > 1e3"#;
    assert_eq!(of(ratio), "a_total d:e:f");
    let logic = "absent(up == 1) or topk(5, x) unless on () (max without (a) (y - Inf) and 7 * z)";
    assert_eq!(of(logic), "up x y z");
    assert_eq!(of("a * on (b) group_left c and on (d) group_left (e) f"), "a c f");
    assert_eq!(of("histogram_quantile(0.99, time())"), "");
}

#[test]
#[should_panic = "docs/METRICS.md has no forebay_other"]
fn a_metric_that_is_not_there_is_found() {
    check_metrics("a rule", "forebay_items + forebay_other", &BTreeSet::new());
}
