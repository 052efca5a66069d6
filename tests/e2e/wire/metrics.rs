//! `/metrics`: the text format, strictly, and the table of `docs/METRICS.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write as _,
    process::{Command, Output, Stdio},
};

use forebay_proto::v1::Nack;
use forebay_testkit::servers::promtool;

use super::{NAMESPACE, Wire, item};

/// A metric of a page.
#[derive(Default)]
struct Family {
    kind: String,
    help: String,
    /// The labels of each sample, with its value.
    samples: BTreeMap<String, f64>,
}

/// A name of Prometheus.
fn is_name(text: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c == '_';
    text.starts_with(word) && text.chars().all(|c| word(c) || c.is_ascii_digit())
}

/// The names of the labels of a sample, as `a="1",b="2"`. Values have no quotes and no commas here.
fn label_names(labels: &str) -> Vec<&str> {
    let label = |label: &'_ str| -> Option<usize> {
        let (name, value) = label.split_once("=\"")?;
        (is_name(name) && value.strip_suffix('"')?.chars().all(|c| c != '"' && c != '\\'))
            .then_some(name.len())
    };
    let labels: Vec<&str> = labels.split(',').filter(|labels| !labels.is_empty()).collect();
    labels
        .into_iter()
        .map(|text| &text[..label(text).unwrap_or_else(|| panic!("the label {text:?}"))])
        .collect()
}

/// Reads a page, and fails where it is not in the text format: each metric once, with HELP, TYPE and samples
/// in this order, and no sample twice.
fn parse(page: &str) -> BTreeMap<String, Family> {
    assert!(page.ends_with('\n'), "the last line has an end");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in page.lines().filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("no text: {line}"));
            assert!(is_name(name), "{line}");
            let family = Family { help: help.to_owned(), ..Family::default() };
            assert!(families.insert(name.to_owned(), family).is_none(), "{name} is there twice");
            current = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            let family = families.get_mut(name).unwrap_or_else(|| panic!("{name} has no HELP"));
            assert!(name == current && family.kind.is_empty() && family.samples.is_empty(), "{line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            family.kind = kind.to_owned();
        } else {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let family = families.get_mut(&current).unwrap_or_else(|| panic!("{line} stands alone"));
            let name = series.split('{').next().unwrap();
            let part =
                name.strip_prefix(current.as_str()).unwrap_or_else(|| panic!("{line} is not of {current}"));
            let parts: &[&str] =
                if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(parts.contains(&part), "{line}");
            let labels = series[name.len()..].trim_start_matches('{').trim_end_matches('}');
            let names = label_names(labels);
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{line}");
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
            assert!(value.is_finite() && (family.kind == "gauge" || value >= 0.0), "{line}");
            assert!(family.samples.insert(format!("{part} {labels}"), value).is_none(), "twice: {line}");
        }
    }
    families
}

/// Runs `promtool check metrics` on a page. It knows the rules of names, units and help.
fn checked_by_promtool(page: &str) -> Output {
    let mut command = Command::new(promtool().unwrap());
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Metrics of a node whose ports have certificates, whose tokens end, that is not alone, or that keeps a copy
/// of its catalog. The tests of these look at them.
const NOT_HERE: [&str; 5] = [
    "forebay_peer_up",
    "forebay_catalog_copy_timestamp_seconds",
    "forebay_certificate_expiry_timestamp_seconds",
    "forebay_certificate_renewal_failed",
    "forebay_token_expiry_timestamp_seconds",
];

/// The rows of the documentation: type, labels and meaning by name.
fn documented() -> BTreeMap<String, [String; 3]> {
    let page = include_str!("../../../docs/METRICS.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, kind, labels, meaning] = cells[..] else { panic!("{row}") };
        (name.replace('`', ""), [kind, &labels.replace(['`', ' '], ""), meaning].map(str::to_owned))
    })
    .collect()
}

/// The labels of refusals.
fn refused(namespace: &str, method: &str, reason: &str) -> String {
    format!("namespace=\"{namespace}\",method=\"{method}\",reason=\"{reason}\"")
}

#[tokio::test]
async fn every_counter_is_there_from_the_start() {
    let wire = Wire::start().await;
    let families = parse(&wire.page("/metrics").await);
    for (name, [kind, ..]) in documented() {
        // Nobody has named a topic yet.
        if kind == "counter" && !name.starts_with("forebay_topic_") {
            assert!(families.contains_key(&name), "{name} is not there");
        }
    }
    let value = |name: &str, labels: &str| families[name].samples.get(&format!(" {labels}")).copied();
    assert_eq!(value("forebay_enqueued_total", "namespace=\"(others)\""), Some(0.0));
    let calls =
        "service=\"forebay.v1.QueueService\",method=\"Ack\",protocol=\"connect\",code=\"Unavailable\"";
    assert_eq!(value("forebay_calls_total", calls), Some(0.0));
    assert_eq!(value("forebay_refusals_total", &refused("(others)", "Ack", "DISK_FULL")), Some(0.0));
    assert_eq!(value("forebay_breaker_changes_total", "shard=\"2\",to=\"open\""), Some(0.0));
    assert_eq!(value("forebay_take_overs_total", "shard=\"2\""), Some(1.0));
    assert_eq!(value("forebay_limit_refusals_total", "limit=\"engine.calls\""), Some(0.0));
    assert!(value("process_cpu_seconds_total", "").is_some_and(|seconds| seconds > 0.0));
    assert_eq!(value("forebay_sweep_moved_rows_total", "shard=\"2\",sweep=\"retention\""), Some(0.0));
    assert_eq!(value("forebay_sweep_lag_seconds", "shard=\"2\",sweep=\"due\""), Some(0.0));
    let servers = &families["forebay_database_up"].samples;
    assert!(!servers.is_empty() && servers.values().all(|up| *up == 1.0), "{servers:?}");
}

#[tokio::test]
async fn the_page_is_what_the_documentation_says() {
    let wire = Wire::start().await;
    wire.stored(vec![item("t"); 3]).await;
    let taken = wire.take_one("t").await;
    assert_eq!(wire.ack(&taken.receipt).await, None);
    wire.enqueue(vec![item("a name that is refused")]).await.unwrap();
    // Topics are looked at once a second.
    let ready = format!("forebay_items{{namespace=\"{NAMESPACE}\",state=\"ready\"}}");
    wire.wait_for_metric(&ready, |items| items == 2.0).await;
    let page = wire.page("/metrics").await;
    let families = parse(&page);
    let said = tokio::task::spawn_blocking(move || {
        let wrong = "# TYPE forebay_wrong counter\nforebay_wrong 1\n";
        assert!(!checked_by_promtool(wrong).status.success(), "promtool finds nothing");
        checked_by_promtool(&page)
    });
    let said = said.await.unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&[said.stdout, said.stderr].concat()));
    let mut documented = documented();
    documented.retain(|name, _| !NOT_HERE.contains(&name.as_str()));
    let names = |found: Vec<&String>| found.into_iter().cloned().collect::<BTreeSet<String>>();
    assert_eq!(names(families.keys().collect()), names(documented.keys().collect()));
    for (name, [kind, labels, meaning]) in &documented {
        let family = &families[name];
        assert_eq!((&family.kind, &family.help), (kind, meaning), "{name}");
        for sample in family.samples.keys() {
            let found = sample.split_once(' ').unwrap().1;
            let found: Vec<&str> = label_names(found).into_iter().filter(|name| *name != "le").collect();
            assert_eq!(found.join(","), *labels, "{name}");
        }
    }
    let value = |name: &str, labels: &str| families[name].samples[&format!(" {labels}")];
    assert_eq!(value("forebay_refusals_total", &refused(NAMESPACE, "Enqueue", "INVALID_FIELD")), 1.0);
}

#[tokio::test]
async fn refusals_have_the_names_of_namespaces_in_which_something_happened() {
    let wire = Wire::start().await;
    let count = async |namespace: &str, method: &str| {
        let labels = refused(namespace, method, "INVALID_FIELD");
        wire.metric(&format!("forebay_refusals_total{{{labels}}}")).await
    };
    wire.enqueue(vec![item("a name that is refused")]).await.unwrap();
    assert_eq!([count("(others)", "Enqueue").await, count(NAMESPACE, "Enqueue").await], [1.0, 0.0]);
    wire.stored(vec![item("t")]).await;
    wire.enqueue(vec![item("a name that is refused"); 3]).await.unwrap();
    assert_eq!([count("(others)", "Enqueue").await, count(NAMESPACE, "Enqueue").await], [1.0, 3.0]);
}

#[tokio::test]
async fn namespaces_and_topics_have_their_figures() {
    let wire = Wire::start().await;
    wire.stored(vec![item("t"); 3]).await;
    wire.stored(vec![item("u")]).await;
    let [acked, failed] = [wire.take_one("t").await, wire.take_one("t").await];
    assert_eq!(wire.ack(&acked.receipt).await, None);
    assert_eq!(wire.nack(Nack { receipt: failed.receipt, ..Nack::default() }).await, None);
    let of = |name: &str, labels: &str| format!("{name}{{namespace=\"{NAMESPACE}\"{labels}}}");
    for (name, of_namespace, of_topic) in [
        ("enqueued_total", 4.0, 3.0),
        ("delivered_total", 2.0, 2.0),
        ("acked_total", 1.0, 1.0),
        ("dead_lettered_total", 0.0, 0.0),
    ] {
        assert_eq!(wire.metric(&of(&format!("forebay_{name}"), "")).await, of_namespace, "{name}");
        let topic = of(&format!("forebay_topic_{name}"), ",topic=\"t\"");
        assert_eq!(wire.metric(&topic).await, of_topic, "{name}");
    }
    assert_eq!(wire.metric(&of("forebay_failed_deliveries_total", "")).await, 1.0);
    assert_eq!(wire.metric(&of("forebay_topic_failed_total", ",topic=\"t\"")).await, 1.0);
    wire.wait_for_metric(&of("forebay_items", ",state=\"ready\""), |items| items == 3.0).await;
    wire.wait_for_metric(&of("forebay_topic_items", ",topic=\"t\",state=\"ready\""), |it| it == 2.0).await;
    let is_young = |age| age > 0.0 && age < 60.0;
    wire.wait_for_metric(&of("forebay_oldest_ready_age_seconds", ""), is_young).await;
    wire.wait_for_metric(&of("forebay_topic_oldest_ready_age_seconds", ",topic=\"u\""), is_young).await;
    let count = |name: &str| of(&format!("forebay_{name}_seconds_count"), "");
    assert_eq!(wire.metric(&count("delivery_wait")).await, 2.0);
    assert_eq!(wire.metric(&count("handling")).await, 1.0, "the other one was not acked");
    let of_topic = |part: &str| of(&format!("forebay_topic_delivery_wait_seconds_{part}"), ",topic=\"t\"");
    assert_eq!(wire.metric(&of_topic("count")).await, 2.0);
    let bound = of("forebay_topic_delivery_wait_seconds_bucket", ",topic=\"t\",le=\"3600\"");
    assert_eq!(wire.metric(&bound).await, 2.0);
    assert!(wire.metric("forebay_poll_wait_seconds_count").await >= 1.0);
    let others = "forebay_enqueued_total{namespace=\"(others)\"}";
    assert!(wire.page("/metrics").await.contains(&format!("{others} 0\n")));
}
