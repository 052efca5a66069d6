//! Events that clients saw: every call with its times and its outcome.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

/// When a call began and when it was answered, counted from the start of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Before the request was sent.
    pub began: Duration,
    /// After the answer arrived.
    pub ended: Duration,
}

/// How one member of a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<T> {
    Ok(T),
    /// Certainly without effect, with the reason.
    Failed(String),
    /// Possibly with effect: a lost answer, a deadline, `OUTCOME_UNKNOWN`.
    Unknown(String),
}

/// Act of a consumer on a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Ack,
    Nack,
    /// The lease ends this long from now.
    Extend(Duration),
}

/// How a settlement ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettlementEnd {
    Ok,
    /// `LEASE_LOST`, with where the item is.
    Lost(String),
    Failed(String),
    Unknown(String),
}

/// One member of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// `item` is the number in the payload. A retried enqueue is recorded once for each attempt.
    Enqueue {
        call: Call,
        item: u64,
        outcome: Outcome<String>,
    },
    /// `item` is absent if the payload was damaged.
    Delivery {
        call: Call,
        item: Option<u64>,
        id: String,
        receipt: String,
        attempt: u32,
        lease: Duration,
    },
    Settle {
        call: Call,
        verb: Verb,
        receipt: String,
        settled: SettlementEnd,
    },
}

/// Counts of events so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Items that were stored.
    pub enqueued: u64,
    /// Deliveries.
    pub delivered: u64,
    /// Deliveries after an item's first.
    pub redelivered: u64,
    /// Acks that were answered OK.
    pub acked: u64,
    /// Settlements that were answered `LEASE_LOST`.
    pub lost: u64,
    /// Members whose outcome is unknown.
    pub unknown: u64,
    /// Members that certainly had no effect.
    pub failed: u64,
}

/// Collects events from many tasks.
pub struct History {
    /// Times count from here.
    start: Instant,
    /// Everything that was recorded.
    events: Mutex<Vec<Event>>,
    /// Items that were stored: a repeated call counts once.
    stored: Mutex<HashSet<u64>>,
    /// Wakes those who wait for progress.
    counts: watch::Sender<Counts>,
}

impl History {
    pub fn new() -> Self {
        let (events, stored) = (Mutex::default(), Mutex::default());
        Self { start: Instant::now(), events, stored, counts: watch::Sender::default() }
    }

    /// The time now, as in a [`Call`].
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub fn record(&self, event: Event) {
        self.counts.send_modify(|counts| match &event {
            Event::Enqueue { outcome: Outcome::Ok(_), item, .. } => {
                let is_new = self.stored.lock().expect("no task panics while it holds this").insert(*item);
                counts.enqueued += u64::from(is_new);
            }
            Event::Delivery { attempt, .. } => {
                counts.delivered += 1;
                counts.redelivered += u64::from(*attempt > 1);
            }
            Event::Settle { settled: SettlementEnd::Ok, verb, .. } => {
                counts.acked += u64::from(*verb == Verb::Ack)
            }
            Event::Settle { settled: SettlementEnd::Lost(_), .. } => counts.lost += 1,
            Event::Enqueue { outcome: Outcome::Unknown(_), .. }
            | Event::Settle { settled: SettlementEnd::Unknown(_), .. } => counts.unknown += 1,
            Event::Enqueue { outcome: Outcome::Failed(_), .. }
            | Event::Settle { settled: SettlementEnd::Failed(_), .. } => counts.failed += 1,
        });
        self.lock().push(event);
    }

    /// Inspects all events so far. Nothing is recorded until it returns.
    pub fn inspect<T>(&self, inspect: impl FnOnce(&[Event]) -> T) -> T {
        inspect(&self.lock())
    }

    pub fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    /// Waits until `enough`. Panics with the counts if that takes longer than `timeout`.
    pub async fn wait(&self, what: &str, timeout: Duration, enough: impl FnMut(&Counts) -> bool) -> Counts {
        let mut counts = self.counts.subscribe();
        let waited = tokio::time::timeout(timeout, counts.wait_for(enough)).await;
        match waited {
            Ok(Ok(counts)) => *counts,
            _ => panic!(
                "{what}: not within {timeout:?}; seen: {:?}\n{}",
                self.counts(),
                self.failure_reasons()
            ),
        }
    }

    /// The latest distinct reasons of failures, for panic messages.
    pub fn failure_reasons(&self) -> String {
        let events = self.lock();
        let mut seen = HashSet::new();
        let reasons = events.iter().rev().filter_map(|event| match event {
            Event::Enqueue { outcome: Outcome::Failed(why) | Outcome::Unknown(why), .. }
            | Event::Settle { settled: SettlementEnd::Failed(why) | SettlementEnd::Unknown(why), .. } => {
                Some(why.as_str())
            }
            _ => None,
        });
        let lines: Vec<&str> = reasons.filter(|why| seen.insert(*why)).take(10).collect();
        lines.join("\n")
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().expect("no task panics while it holds this")
    }
}
