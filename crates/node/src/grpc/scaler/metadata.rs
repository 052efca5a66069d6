//! The metadata of a trigger: what is looked at, and how much of it is right for one replica.

use std::{collections::HashMap, time::Duration};

use forebay_edge::rpc::{fields, rules::RequestRules};
use forebay_types::{Namespace, Refusal, Topic, instead};

/// The key of the namespace.
pub const NAMESPACE: &str = "namespace";
/// Keys under which a token may be: by the name of a variable, whose value KEDA puts there, or as it is.
pub const TOKENS: [&str; 2] = ["tokenFromEnv", "token"];
/// The key of the span within which scheduled items are due that count.
const LOOKAHEAD: &str = "scheduledLookahead";
/// The longest one.
const LOOKAHEAD_MAX: Duration = Duration::from_hours(24);
/// All keys, but for [`KEDA`].
const KEYS: &[&str] = &[
    NAMESPACE,
    "topic",
    "topics",
    "metric",
    "count",
    LOOKAHEAD,
    "targetBacklog",
    "targetOldestAge",
    "activation",
    TOKENS[0],
    TOKENS[1],
];
/// Keys that are for KEDA, which sends them too.
const KEDA: &[&str] = &["scalerAddress", "enableTLS", "unsafeSsl"];
/// Topics of one trigger.
const TOPICS_MAX: usize = 32;
/// The most bytes that are told of a key that is not known.
const KEY_BYTES_MAX: usize = 100;
/// KEDA has thousandths, so a smaller target would be none.
const TARGET_MIN: f64 = 0.001;
/// Whole numbers are exact up to here.
const NUMBER_MAX: f64 = 1e15;

/// Figure that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Items.
    Backlog,
    /// Seconds that the oldest head has been ready.
    OldestAge,
}

impl Metric {
    /// Its name. That of a topic is no part of it: its `/` would break the addresses of Kubernetes' metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Backlog => "forebay-backlog",
            Self::OldestAge => "forebay-oldest-age",
        }
    }
}

/// Which items are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Ready ones.
    pub ready: bool,
    /// Leased ones.
    pub leased: bool,
    /// Items that are not due yet.
    pub scheduled: bool,
}

/// Trigger as its metadata ask for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    /// The tenant.
    pub namespace: Namespace,
    /// Its topics, each once.
    pub topics: Vec<Topic>,
    /// Metrics that are measured.
    pub metrics: &'static [Metric],
    /// Which items are counted.
    pub counted: Counted,
    /// Scheduled items that are due within this span count like ready ones.
    pub lookahead: Duration,
    /// It is active if a metric is larger.
    pub activation: f64,
    /// Items of one replica.
    backlog: f64,
    /// Seconds that are right.
    oldest_age: f64,
}

impl Trigger {
    /// Reads it. Each refusal names the key.
    pub fn read(rules: &RequestRules, metadata: &HashMap<String, String>) -> Result<Self, Refusal> {
        check_keys(metadata)?;
        let text = |key: &str| metadata.get(key).map(String::as_str);
        let counted = counted(text("count"))?;
        Ok(Self {
            namespace: rules.namespace(text(NAMESPACE).unwrap_or_default())?,
            topics: topics(rules, text("topic"), text("topics"))?,
            metrics: metrics(text("metric"))?,
            counted,
            lookahead: lookahead(text(LOOKAHEAD), counted)?,
            activation: number("activation", text("activation"), 0.0, 0.0)?,
            backlog: number("targetBacklog", text("targetBacklog"), 100.0, TARGET_MIN)?,
            oldest_age: number("targetOldestAge", text("targetOldestAge"), 30.0, TARGET_MIN)?,
        })
    }

    /// Value of a metric that is right for one replica.
    pub fn target(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Backlog => self.backlog,
            Metric::OldestAge => self.oldest_age,
        }
    }

    /// The metric of a name.
    pub fn metric(&self, name: &str) -> Result<Metric, Refusal> {
        let found = self.metrics.iter().find(|metric| metric.name() == name);
        found.copied().ok_or_else(|| {
            let names: Vec<_> = self.metrics.iter().map(|metric| metric.name()).collect();
            Refusal::field("metricName", format!("must be {}", names.join(" or ")))
        })
    }
}

/// Refuses unknown keys: one could be a key that matters, with a letter that is wrong.
fn check_keys(metadata: &HashMap<String, String>) -> Result<(), Refusal> {
    let is_known = |key: &str| KEYS.contains(&key) || KEDA.contains(&key);
    // The same one each time.
    if let Some(key) = metadata.keys().filter(|key| !is_known(key)).min() {
        let key = &key[..key.floor_char_boundary(KEY_BYTES_MAX)];
        return Err(Refusal::field(key, format!("is not known; {}", instead(key, KEYS.iter().copied()))));
    }
    if TOKENS.iter().all(|key| metadata.contains_key(*key)) {
        return Err(Refusal::field(TOKENS[1], "must not be there beside tokenFromEnv"));
    }
    Ok(())
}

fn topics(rules: &RequestRules, one: Option<&str>, several: Option<&str>) -> Result<Vec<Topic>, Refusal> {
    let (key, texts) = match (one, several) {
        (Some(one), None) => ("topic", vec![one]),
        // One more is enough to refuse it.
        (None, Some(several)) => ("topics", several.split(',').take(TOPICS_MAX + 1).map(str::trim).collect()),
        (None, None) => return Err(Refusal::field("topic", "must name a topic, or topics must name some")),
        (Some(_), Some(_)) => return Err(Refusal::field("topics", "must not be there beside topic")),
    };
    if texts.len() > TOPICS_MAX {
        return Err(Refusal::too_large(key, format!("must name at most {TOPICS_MAX} topics")));
    }
    let mut topics: Vec<Topic> = Vec::new();
    for text in texts {
        let topic = fields::topic(&rules.limits, key, text)?;
        if topics.contains(&topic) {
            return Err(Refusal::field(key, format!("names {topic} twice")));
        }
        topics.push(topic);
    }
    Ok(topics)
}

fn metrics(text: Option<&str>) -> Result<&'static [Metric], Refusal> {
    Ok(match text {
        None | Some("backlog") => &[Metric::Backlog],
        Some("oldestAge") => &[Metric::OldestAge],
        Some("both") => &[Metric::Backlog, Metric::OldestAge],
        Some(_) => return Err(Refusal::field("metric", "must be backlog, oldestAge or both")),
    })
}

fn counted(text: Option<&str>) -> Result<Counted, Refusal> {
    let mut counted = Counted::default();
    for state in text.unwrap_or("ready,leased").split(',') {
        match state.trim() {
            "ready" => counted.ready = true,
            "leased" => counted.leased = true,
            "scheduled" => counted.scheduled = true,
            _ => {
                return Err(Refusal::field("count", "must be some of ready, leased, scheduled, with commas"));
            }
        }
    }
    Ok(counted)
}

fn lookahead(text: Option<&str>, counted: Counted) -> Result<Duration, Refusal> {
    let Some(text) = text else { return Ok(Duration::ZERO) };
    let span = humantime::parse_duration(text).ok().filter(|span| *span <= LOOKAHEAD_MAX);
    let span =
        span.ok_or_else(|| Refusal::field(LOOKAHEAD, "must be a span as 30s or 5m, of at most 24h"))?;
    if counted.scheduled && !span.is_zero() {
        return Err(Refusal::field(LOOKAHEAD, "must not be there where count has all that is scheduled"));
    }
    Ok(span)
}

fn number(key: &str, text: Option<&str>, default: f64, least: f64) -> Result<f64, Refusal> {
    let Some(text) = text else { return Ok(default) };
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = text.parse().ok().filter(|number| is_decimal && (least..=NUMBER_MAX).contains(number));
    number.ok_or_else(|| Refusal::field(key, format!("must be a number from {least} to {NUMBER_MAX}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Trigger, Refusal> {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Trigger::read(&RequestRules::default(), &pairs.collect())
    }

    #[test]
    fn what_is_not_named_has_a_default() {
        let named = [("namespace", "n"), ("topic", "a/b"), ("scalerAddress", "x:1"), ("tokenFromEnv", "t")];
        let trigger = read(&named).unwrap();
        assert_eq!((&*trigger.namespace, &*trigger.topics), ("n", &["a/b".into()][..]));
        assert_eq!(trigger.metrics, [Metric::Backlog]);
        assert_eq!(trigger.counted, Counted { ready: true, leased: true, scheduled: false });
        let targets = (trigger.target(Metric::Backlog), trigger.target(Metric::OldestAge));
        assert_eq!((targets, trigger.activation), ((100.0, 30.0), 0.0));
        assert_eq!(trigger.metric("forebay-backlog"), Ok(Metric::Backlog));
        assert_eq!(trigger.metric("forebay-oldest-age").unwrap_err().field.unwrap(), "metricName");
    }

    #[test]
    fn each_key_is_read() {
        let trigger = read(&[
            ("namespace", "n"),
            ("topics", "a, b"),
            ("metric", "both"),
            ("count", "scheduled,ready"),
            ("targetBacklog", "0.5"),
            ("targetOldestAge", "60"),
            ("activation", "10"),
        ]);
        let expected = Trigger {
            namespace: "n".into(),
            topics: vec!["a".into(), "b".into()],
            metrics: &[Metric::Backlog, Metric::OldestAge],
            counted: Counted { ready: true, leased: false, scheduled: true },
            lookahead: Duration::ZERO,
            activation: 10.0,
            backlog: 0.5,
            oldest_age: 60.0,
        };
        assert_eq!(trigger, Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let many = ["t"; TOPICS_MAX + 1].join(",");
        for (key, value) in [
            ("namespace", "a b"),
            ("topic", ""),
            ("topics", "a"),
            ("Topic", "a"),
            ("scheduledLookahead", ""),
            ("scheduledLookahead", "5"),
            ("scheduledLookahead", "24h 1s"),
            ("metric", ""),
            ("metric", "age"),
            ("count", ""),
            ("count", "ready,dead"),
            ("targetBacklog", "0"),
            ("targetBacklog", ""),
            ("targetBacklog", "."),
            ("targetBacklog", "inf"),
            ("targetBacklog", "1e3"),
            ("targetOldestAge", "30s"),
            ("targetOldestAge", "-1"),
            ("activation", "NaN"),
            ("activation", "1000000000000001"),
        ] {
            let good = [("namespace", "n"), ("topic", "a")];
            let pairs: Vec<_> = good.into_iter().filter(|good| good.0 != key).chain([(key, value)]).collect();
            assert_eq!(read(&pairs).unwrap_err().field.as_deref(), Some(key), "{key}={value}");
        }
        let both = [("namespace", "n"), ("topic", "a"), ("count", "scheduled"), ("scheduledLookahead", "5m")];
        assert_eq!(read(&both).unwrap_err().field.as_deref(), Some("scheduledLookahead"));
        let soon = |span| read(&[("namespace", "n"), ("topic", "a"), ("scheduledLookahead", span)]);
        assert_eq!(soon("1h 30m").unwrap().lookahead, Duration::from_mins(90));
        assert_eq!(soon("0s").unwrap().lookahead, Duration::ZERO);
        for topics in ["a,a", "a,", many.as_str()] {
            let refused = read(&[("namespace", "n"), ("topics", topics)]).unwrap_err();
            assert_eq!(refused.field.as_deref(), Some("topics"), "{topics}");
        }
        assert_eq!(read(&[("namespace", "n")]).unwrap_err().field.unwrap(), "topic");
        assert_eq!(read(&[("topic", "a")]).unwrap_err().field.unwrap(), "namespace");
        let tokens = [("namespace", "n"), ("topic", "a"), ("token", "secret"), ("tokenFromEnv", "secret")];
        let refused = read(&tokens).unwrap_err();
        assert!(refused.field.as_deref() == Some("token") && !refused.message.contains("secret"));
        let long = "ä".repeat(1_000);
        let refused = read(&[("namespace", "n"), ("topic", "a"), (&long, "")]).unwrap_err();
        assert!(refused.field.unwrap().len() <= KEY_BYTES_MAX);
    }
}
