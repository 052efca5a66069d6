//! The digest of a call with a request id: another call under the same id is refused.

use std::time::Duration;

use forebay_types::{DeliveryPolicy, Schedule, TRACE_HEADERS};
use xxhash_rust::xxh3::Xxh3Default;

use super::NewItem;

/// A fast hash over all that a caller says of items. Rows keep it, so it must stay as it is. What differs at
/// each try is left out: the headers that name a trace, and the rank that a node gives. So is what a caller
/// leaves to the settings, which may change between two tries. Nobody is protected by it but from oneself: a
/// tenant that finds two calls of one hash loses the second of them.
pub fn content_of(items: &[NewItem]) -> [u8; 16] {
    let mut content = Content(Xxh3Default::new());
    content.number(items.len() as u64);
    items.iter().for_each(|item| content.item(item));
    content.0.digest128().to_be_bytes()
}

struct Content(Xxh3Default);

impl Content {
    fn number(&mut self, number: u64) {
        self.0.update(&number.to_be_bytes());
    }

    /// Each text is preceded by its length, so that no two lists of texts run together.
    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    /// A number that may be absent.
    fn optional(&mut self, number: Option<u64>) {
        self.number(u64::from(number.is_some()));
        self.number(number.unwrap_or(0));
    }

    fn item(&mut self, item: &NewItem) {
        self.bytes(item.topic.as_bytes());
        self.bytes(&item.body.payload);
        self.bytes(&item.body.metadata);
        let mut headers: Vec<&(String, String)> =
            item.body.headers.iter().filter(|(name, _)| !TRACE_HEADERS.contains(&&**name)).collect();
        headers.sort_unstable();
        self.number(headers.len() as u64);
        for (name, value) in headers {
            self.bytes(name.as_bytes());
            self.bytes(value.as_bytes());
        }
        let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        let (schedule, when) = match item.schedule {
            Schedule::Now => (0, 0),
            Schedule::Delay(delay) => (1, micros(delay)),
            Schedule::After(time) => (2, time.as_micros().cast_unsigned()),
        };
        self.number(schedule);
        self.number(when);
        self.number(u64::from(item.priority.cast_unsigned()));
        self.number(u64::from(item.policy == DeliveryPolicy::AtMostOnce));
        self.optional(item.ttl.map(micros));
        self.optional((!item.lease_is_default).then(|| micros(item.lease)));
        self.optional((!item.attempts_are_default).then(|| u64::from(item.max_attempts)));
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::{Body, Timestamp};

    use super::*;

    fn item() -> NewItem {
        let header = |name: &str| (name.to_owned(), "1".to_owned());
        NewItem {
            topic: "t".into(),
            priority: -1,
            body: Body {
                payload: "p".into(),
                metadata: "m".into(),
                headers: vec![header("a"), header("traceparent"), header("z")],
            },
            schedule: Schedule::Now,
            lease: Duration::from_secs(30),
            lease_is_default: true,
            ttl: None,
            policy: DeliveryPolicy::AtLeastOnce,
            max_attempts: 16,
            attempts_are_default: true,
            dedupe_key: None,
            shard: None,
            rank: None,
        }
    }

    /// Rows keep it.
    #[test]
    fn the_hash_stays_as_it_is() {
        let hash = u128::from_be_bytes(content_of(&[item()]));
        assert_eq!(format!("{hash:032x}"), "3ea7e231b8311c8a07efc7af254fcccf");
    }

    #[test]
    fn what_differs_at_each_try_does_not_count() {
        let mut again = item();
        again.rank = Some(7);
        again.lease = Duration::from_secs(60);
        again.max_attempts = 3;
        again.body.headers.reverse();
        again.body.headers[1].1 = "another trace".to_owned();
        again.body.headers.push(("tracestate".to_owned(), "x=1".to_owned()));
        assert_eq!(content_of(&[again]), content_of(&[item()]));
        let mut untraced = item();
        untraced.body.headers.retain(|(name, _)| name != "traceparent");
        assert_eq!(content_of(&[untraced]), content_of(&[item()]));
    }

    #[test]
    fn all_that_a_caller_says_counts() {
        let changes: [fn(&mut NewItem); 16] = [
            |item| item.topic = "u".into(),
            |item| item.priority = 1,
            |item| item.body.payload = "q".into(),
            |item| item.body.metadata = "q".into(),
            |item| (item.body.payload, item.body.metadata) = ("".into(), "pm".into()),
            |item| item.body.headers[0].0 = "b".to_owned(),
            |item| item.body.headers[0].1 = "2".to_owned(),
            |item| drop(item.body.headers.remove(0)),
            |item| item.schedule = Schedule::Delay(Duration::from_secs(1)),
            |item| item.schedule = Schedule::After(Timestamp::from_micros(1_000_000)),
            |item| item.ttl = Some(Duration::from_secs(1)),
            |item| item.ttl = Some(Duration::ZERO),
            |item| item.policy = DeliveryPolicy::AtMostOnce,
            |item| item.lease_is_default = false,
            |item| item.attempts_are_default = false,
            |item| (item.attempts_are_default, item.max_attempts) = (false, 3),
        ];
        let mut seen = std::collections::HashSet::from([content_of(&[item()]), content_of(&[])]);
        for change in changes {
            let mut other = item();
            change(&mut other);
            assert!(seen.insert(content_of(&[other.clone()])), "{other:?}");
        }
        let mut other = item();
        other.topic = "u".into();
        assert!(seen.insert(content_of(&[item(), other.clone()])));
        assert!(seen.insert(content_of(&[other, item()])), "the order of the items counts");
        assert!(seen.insert(content_of(&[item(), item()])));
    }
}
