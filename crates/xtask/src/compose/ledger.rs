//! Ledger of what was promised of each item, and of what became of it.

use std::{collections::BTreeMap, fmt};

use anyhow::bail;

use super::queue::{Delivery, Outcome};

/// All items, by payload: each has one of its own.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The items.
    items: BTreeMap<String, Item>,
}

/// One item.
#[derive(Debug, Default)]
struct Item {
    /// It was answered without an error, so it must be delivered. The others may be.
    stored: bool,
    /// The highest attempt at which it came. 0: it did not.
    attempt: u64,
    /// It was acked without an error, so it must not be delivered.
    acked: bool,
}

impl Ledger {
    /// Notes the answers to enqueues.
    pub fn enqueued(&mut self, outcomes: impl IntoIterator<Item = (String, Outcome)>) {
        for (payload, outcome) in outcomes {
            self.items.entry(payload).or_default().stored |= outcome == Outcome::Done;
        }
    }

    /// Notes deliveries. Fails if one must not be.
    pub fn delivered(&mut self, deliveries: &[Delivery]) -> anyhow::Result<()> {
        for Delivery { payload, attempt, .. } in deliveries {
            let Some(item) = self.items.get_mut(payload) else {
                bail!("{payload:?} was delivered, and never enqueued");
            };
            if item.acked {
                bail!("{payload:?} was delivered after its ack");
            }
            if *attempt <= item.attempt {
                bail!("{payload:?} was delivered at attempt {attempt} after attempt {}", item.attempt);
            }
            item.attempt = *attempt;
        }
        Ok(())
    }

    /// Notes the answers to acks.
    pub fn acked(&mut self, outcomes: impl IntoIterator<Item = (String, Outcome)>) {
        for (payload, outcome) in outcomes {
            self.items.entry(payload).or_default().acked |= outcome == Outcome::Done;
        }
    }

    /// How many were stored for sure.
    pub fn stored(&self) -> usize {
        self.items.values().filter(|item| item.stored).count()
    }

    /// How many were acked.
    pub fn done(&self) -> usize {
        self.items.values().filter(|item| item.acked).count()
    }

    /// Items that were stored and are not acked.
    pub fn missing(&self) -> Vec<&str> {
        let missing = self.items.iter().filter(|(_, item)| item.stored && !item.acked);
        missing.map(|(payload, _)| payload.as_str()).collect()
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let again = self.items.values().filter(|item| item.attempt > 1).count();
        let unknown = self.items.len() - self.stored();
        let (stored, done) = (self.stored(), self.done());
        write!(f, "{stored} items stored, {unknown} not for sure, {done} acked, {again} delivered again")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(payload: &str, attempt: u64) -> [Delivery; 1] {
        [Delivery { payload: payload.to_owned(), receipt: String::new(), attempt }]
    }

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        ledger.enqueued([("a".to_owned(), Outcome::Done), ("b".to_owned(), Outcome::Failed)]);
        ledger
    }

    #[test]
    fn what_was_stored_is_missing_until_it_is_acked() {
        let mut ledger = ledger();
        assert_eq!((ledger.stored(), ledger.missing()), (1, vec!["a"]));
        ledger.delivered(&delivery("a", 1)).unwrap();
        ledger.acked([("a".to_owned(), Outcome::Failed)]);
        assert_eq!(ledger.missing(), ["a"]);
        ledger.delivered(&delivery("a", 2)).unwrap();
        ledger.acked([("a".to_owned(), Outcome::Done)]);
        assert!(ledger.missing().is_empty());
        assert_eq!(ledger.to_string(), "1 items stored, 1 not for sure, 1 acked, 1 delivered again");
    }

    #[test]
    fn an_item_that_was_not_stored_for_sure_may_come() {
        let mut ledger = ledger();
        ledger.delivered(&delivery("b", 1)).unwrap();
        ledger.acked([("b".to_owned(), Outcome::Done)]);
        assert_eq!((ledger.missing(), ledger.done()), (vec!["a"], 1));
    }

    #[test]
    fn deliveries_that_must_not_be_are_found() {
        let wrong = |ledger: &mut Ledger, payload, attempt| {
            ledger.delivered(&delivery(payload, attempt)).unwrap_err().to_string()
        };
        let mut ledger = ledger();
        assert_eq!(wrong(&mut ledger, "c", 1), "\"c\" was delivered, and never enqueued");
        ledger.delivered(&delivery("a", 1)).unwrap();
        assert_eq!(wrong(&mut ledger, "a", 1), "\"a\" was delivered at attempt 1 after attempt 1");
        ledger.acked([("a".to_owned(), Outcome::Done)]);
        assert_eq!(wrong(&mut ledger, "a", 2), "\"a\" was delivered after its ack");
    }
}
