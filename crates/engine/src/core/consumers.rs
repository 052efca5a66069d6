//! Consumers that asked for items lately, and how their deliveries ended. Names come from callers, so the
//! consumers of a namespace have a limit in bytes: the one seen longest ago is forgotten.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use forebay_types::{Monotonic, Namespace, Timestamp};

use crate::{
    api::{ConsumerFigures, ConsumersCall, DequeueCall},
    shard::{Flow, RecentFlow},
};

/// Bytes that the consumers of one namespace may take.
const NAMESPACE_BYTES_MAX: usize = 128 << 10;
/// Bytes that all of them may take. Then those of the namespace go in which nobody was seen for longest.
const BYTES_MAX: usize = 8 << 20;
/// Bytes of a consumer beside its texts, its part of the tables included.
const CONSUMER_BYTES: usize = 400;
/// Bytes of a namespace beside its consumers.
const NAMESPACE_BYTES: usize = 256;

/// The consumers that a node remembers.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    /// By namespace.
    namespaces: HashMap<Namespace, OfNamespace>,
    /// In which one somebody was seen longest ago.
    order: BTreeMap<u64, Namespace>,
    /// Bytes of all of them.
    bytes: usize,
    /// Numbers what is seen.
    clock: u64,
    /// Whole namespaces were forgotten.
    cut: bool,
}

/// The consumers of a namespace.
#[derive(Debug)]
struct OfNamespace {
    /// By name.
    by_name: HashMap<Arc<str>, Consumer>,
    /// The consumers, from the one that was seen longest ago.
    order: BTreeMap<u64, Arc<str>>,
    /// Bytes of all of them.
    bytes: usize,
    /// When somebody was seen last.
    seen: u64,
    /// Somebody was forgotten.
    cut: bool,
}

/// One of them.
#[derive(Debug, Default)]
struct Consumer {
    /// The figures that are told of it, but for leases and rates.
    figures: ConsumerFigures,
    /// How its deliveries ended.
    ends: RecentFlow<{ ConsumerFigures::WINDOW.as_secs() }>,
    /// When it was seen last.
    seen: u64,
}

impl Consumer {
    fn bytes(&self) -> usize {
        let from = self.figures.last_seen.as_ref().map_or(0, |(_, from)| from.peer.len() + from.client.len());
        let topics: usize = self.figures.topics.iter().map(|topic| topic.len() + 64).sum();
        CONSUMER_BYTES + 2 * self.figures.name.len() + from + topics
    }
}

impl Consumers {
    /// A consumer asks for items.
    pub fn asks(&mut self, call: &DequeueCall, now: Timestamp) {
        self.change(&call.namespace, &call.consumer, |consumer| {
            match &mut consumer.figures.last_seen {
                Some((at, from)) if *from == call.from => *at = now,
                last_seen => *last_seen = Some((now, call.from.clone())),
            }
            call.demands.iter().for_each(|demand| consumer.figures.add_topic(&demand.topic));
        });
    }

    /// Deliveries to consumers have ended. Those of one consumer that follow each other are noted at once.
    pub fn ended<'a>(&mut self, ends: impl Iterator<Item = (&'a Namespace, &'a str, Flow)>, at: Monotonic) {
        let mut ends = ends.peekable();
        while let Some((namespace, name, mut sum)) = ends.next() {
            while let Some((_, _, flow)) = ends.next_if(|end| end.0 == namespace && end.1 == name) {
                sum.iter_mut().zip(flow).for_each(|(sum, count)| *sum += count);
            }
            self.change(namespace, name, |consumer| consumer.ends.add(sum, at));
        }
    }

    /// The first ones of a page, without their leases, and whether some may have been forgotten. Those of a
    /// namespace come together, so there may be more than are asked for.
    pub fn of(&self, call: &ConsumersCall, at: Monotonic) -> (Vec<ConsumerFigures>, bool) {
        let mut namespaces: Vec<_> = match &call.namespace {
            Some(namespace) => self.namespaces.get_key_value(namespace).into_iter().collect(),
            None => self.namespaces.iter().filter(|(name, _)| call.has_namespace(name)).collect(),
        };
        namespaces.sort_unstable_by_key(|(name, _)| *name);
        // A namespace that is there was not forgotten since.
        let mut cut = self.cut && (call.namespace.is_none() || namespaces.is_empty());
        let mut found = Vec::new();
        for (namespace, known) in namespaces {
            if found.len() > call.limit {
                break;
            }
            let of_page = known.by_name.values().filter(|it| call.has(namespace, &it.figures.name));
            found.extend(of_page.map(|consumer| {
                let [_, _, acked, failed, _] = consumer.ends.per_second(at);
                ConsumerFigures { acked, failed, ..consumer.figures.clone() }
            }));
            cut |= known.cut;
        }
        (found, cut)
    }

    fn change(&mut self, namespace: &Namespace, name: &str, change: impl FnOnce(&mut Consumer)) {
        self.clock += 1;
        let now = self.clock;
        if !self.namespaces.contains_key(namespace) {
            self.namespaces.insert(namespace.clone(), OfNamespace::new(namespace));
            self.bytes += NAMESPACE_BYTES + namespace.len();
        }
        let Some(known) = self.namespaces.get_mut(namespace) else { return };
        self.order.remove(&known.seen);
        self.order.insert(now, namespace.clone());
        known.seen = now;
        let before = known.bytes;
        known.change(namespace, name, now, change);
        self.bytes = self.bytes + known.bytes - before;
        while self.bytes > BYTES_MAX
            && self.order.len() > 1
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.bytes -= self.namespaces.remove(&oldest).map_or(0, |gone| gone.bytes);
            self.cut = true;
        }
    }
}

impl OfNamespace {
    fn new(namespace: &Namespace) -> Self {
        let bytes = NAMESPACE_BYTES + namespace.len();
        Self { by_name: HashMap::new(), order: BTreeMap::new(), bytes, seen: 0, cut: false }
    }

    fn change(&mut self, namespace: &Namespace, name: &str, now: u64, change: impl FnOnce(&mut Consumer)) {
        if !self.by_name.contains_key(name) {
            let (of, figures) = (namespace.clone(), ConsumerFigures::default());
            let figures = ConsumerFigures { namespace: of, name: name.to_owned(), ..figures };
            let consumer = Consumer { figures, seen: now, ..Consumer::default() };
            let name: Arc<str> = name.into();
            self.bytes += consumer.bytes();
            self.order.insert(now, name.clone());
            self.by_name.insert(name, consumer);
        }
        let Some(consumer) = self.by_name.get_mut(name) else { return };
        let before = consumer.bytes();
        change(consumer);
        self.bytes = self.bytes + consumer.bytes() - before;
        if let Some(name) = self.order.remove(&std::mem::replace(&mut consumer.seen, now)) {
            self.order.insert(now, name);
        }
        while self.bytes > NAMESPACE_BYTES_MAX
            && self.order.len() > 1
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.bytes -= self.by_name.remove(&oldest).map_or(0, |gone| gone.bytes());
            self.cut = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::api::{CallerFrom, Demand};

    fn call(namespace: &str, consumer: &str, topic: &str) -> DequeueCall {
        DequeueCall {
            namespace: namespace.into(),
            demands: vec![Demand { topic: topic.into(), max_items: 1 }],
            consumer: consumer.to_owned(),
            from: CallerFrom { peer: "10.0.0.1:1".to_owned(), client: "c".to_owned() },
            ..DequeueCall::default()
        }
    }

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    fn time(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn page(namespace: Option<&str>) -> ConsumersCall {
        ConsumersCall { namespace: namespace.map(Into::into), after: None, limit: 1_000 }
    }

    fn of(consumers: &Consumers, namespace: &str, seconds: u64) -> Vec<ConsumerFigures> {
        let mut found = consumers.of(&page(Some(namespace)), at(seconds)).0;
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }

    #[test]
    fn a_consumer_is_known_by_what_it_asks_for_and_how_its_deliveries_end() {
        let mut consumers = Consumers::default();
        consumers.asks(&call("a", "w1", "mail"), time(1));
        consumers.asks(&call("a", "w1", "jobs"), time(2));
        consumers.asks(&call("a", "w2", "mail"), time(3));
        consumers.asks(&call("b", "w1", "secret"), time(4));
        let a = Namespace::from("a");
        let (acked, failed) = ((&a, "w1", [0, 0, 1, 0, 0]), (&a, "w1", [0, 0, 0, 1, 0]));
        let other = (&a, "w2", [0, 0, 1, 0, 0]);
        let ends = std::iter::repeat_n(acked, 29).chain([failed; 6]).chain([other, acked]);
        consumers.ended(ends, at(61));
        let found = of(&consumers, "a", 62);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].name.as_str(), found[0].acked, found[0].failed), ("w1", 0.5, 0.1));
        assert_eq!(found[0].topics.iter().map(|it| &**it).collect::<Vec<_>>(), ["jobs", "mail"]);
        let (seen, from) = found[0].last_seen.as_ref().unwrap();
        assert_eq!((*seen, from.peer.as_str()), (time(2), "10.0.0.1:1"));
        assert!(of(&consumers, "a", 300).iter().all(|it| (it.acked, it.failed) == (0.0, 0.0)));
    }

    #[test]
    fn random_names_take_so_many_bytes_and_push_out_their_own() {
        let mut consumers = Consumers::default();
        consumers.asks(&call("calm", "w", "mail"), time(0));
        for number in 0..20_000 {
            consumers.asks(&call("hostile", &format!("{number:0200}"), "mail"), time(number));
        }
        assert!(consumers.bytes <= 2 * NAMESPACE_BYTES_MAX, "{}", consumers.bytes);
        let (kept, cut) = consumers.of(&page(Some("hostile")), at(0));
        assert!(
            cut && kept.len() > 100 && kept.iter().any(|it| it.name.ends_with("19999")),
            "{}",
            kept.len()
        );
        assert_eq!(of(&consumers, "calm", 0).len(), 1);
        assert!(!consumers.of(&page(Some("calm")), at(0)).1);
    }

    #[test]
    fn many_namespaces_take_so_many_bytes_and_no_account_is_wrong() {
        let mut consumers = Consumers::default();
        for number in 0..100_000 {
            let topic = format!("t{}", number % 7);
            consumers.asks(&call(&format!("n{}", number % 30_000), "w", &topic), time(0));
        }
        assert!(consumers.bytes <= BYTES_MAX && consumers.namespaces.len() > 5_000);
        assert!(consumers.of(&page(Some("forgotten")), at(0)).1, "of none it is known that all are there");
        assert_eq!(consumers.namespaces.len(), consumers.order.len());
        let counted = |(name, known): (&Namespace, &OfNamespace)| {
            NAMESPACE_BYTES + name.len() + known.by_name.values().map(Consumer::bytes).sum::<usize>()
        };
        assert!(consumers.namespaces.iter().all(|it| it.1.bytes == counted(it)));
        assert_eq!(consumers.bytes, consumers.namespaces.iter().map(counted).sum::<usize>());
    }

    #[test]
    fn a_consumer_of_many_topics_has_the_first_ones() {
        let mut consumers = Consumers::default();
        (0..9).for_each(|number| consumers.asks(&call("a", "w", &format!("t{number}")), time(0)));
        let found = of(&consumers, "a", 0);
        assert!(found[0].topics.len() == ConsumerFigures::TOPICS_MAX && found[0].topics_cut);
    }

    #[test]
    fn pages_follow_one_another_over_namespaces() {
        let mut consumers = Consumers::default();
        for (namespace, name) in [("b", "x"), ("a", "y"), ("c", "z"), ("a", "x"), ("b", "y")] {
            consumers.asks(&call(namespace, name, "t"), time(1));
        }
        let mut asked = ConsumersCall { limit: 2, ..page(None) };
        let mut seen = Vec::new();
        loop {
            let (mut found, _) = consumers.of(&asked, at(1));
            found.sort_by(|one, other| (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name)));
            let Some(last) = found.get(found.len().min(2).wrapping_sub(1)) else { break };
            asked.after = Some((last.namespace.clone(), last.name.clone()));
            seen.extend(found.into_iter().take(2).map(|it| format!("{}/{}", it.namespace, it.name)));
        }
        assert_eq!(seen, ["a/x", "a/y", "b/x", "b/y", "c/z"]);
        asked.after = Some(("a".into(), "x".to_owned()));
        asked.namespace = Some("a".into());
        assert_eq!(consumers.of(&asked, at(1)).0.len(), 1);
    }
}
