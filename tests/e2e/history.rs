//! What clients saw: every call with its times and its outcome.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

/// When a call was made and when its answer was there, since the history began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub began: Duration,
    pub ended: Duration,
}

/// How one member of a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<T> {
    Ok(T),
    /// Certainly not done, with the reason.
    Failed(String),
    /// Done or not: a lost answer, a deadline, `OUTCOME_UNKNOWN`.
    Unknown(String),
}

/// What can be done with a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Ack,
    Nack,
    /// To this span from now.
    Extend(Duration),
}

/// How a settlement ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    Ok,
    /// `LEASE_LOST`, with where the item is.
    Lost(String),
    Failed(String),
    Unknown(String),
}

/// One member of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// `item` is the number that the payload carries. An enqueue that is repeated with its request id is
    /// recorded once for each time.
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
        settled: Settled,
    },
}

/// How much of what has been seen so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub enqueued: u64,
    pub delivered: u64,
    pub redelivered: u64,
    pub acked: u64,
    /// Settlements that were answered `LEASE_LOST`.
    pub lost: u64,
    /// Calls' members with an unknown outcome.
    pub unknown: u64,
    /// Calls' members that certainly were not done.
    pub failed: u64,
}

/// Collects events from many tasks.
pub struct History {
    start: Instant,
    events: Mutex<Vec<Event>>,
    counts: watch::Sender<Counts>,
}

impl History {
    pub fn new() -> Self {
        Self { start: Instant::now(), events: Mutex::default(), counts: watch::Sender::default() }
    }

    /// The time now, as in a [`Call`].
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub fn record(&self, event: Event) {
        self.counts.send_modify(|counts| match &event {
            Event::Enqueue { outcome: Outcome::Ok(_), .. } => counts.enqueued += 1,
            Event::Delivery { attempt, .. } => {
                counts.delivered += 1;
                counts.redelivered += u64::from(*attempt > 1);
            }
            Event::Settle { settled: Settled::Ok, verb, .. } => counts.acked += u64::from(*verb == Verb::Ack),
            Event::Settle { settled: Settled::Lost(_), .. } => counts.lost += 1,
            Event::Enqueue { outcome: Outcome::Unknown(_), .. }
            | Event::Settle { settled: Settled::Unknown(_), .. } => counts.unknown += 1,
            Event::Enqueue { outcome: Outcome::Failed(_), .. }
            | Event::Settle { settled: Settled::Failed(_), .. } => counts.failed += 1,
        });
        self.lock().push(event);
    }

    /// Has a look at everything so far; nothing is recorded meanwhile.
    pub fn look<T>(&self, look: impl FnOnce(&[Event]) -> T) -> T {
        look(&self.lock())
    }

    pub fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    /// Waits until `enough`; panics with what was seen if that takes longer than `patience`.
    pub async fn wait(&self, what: &str, patience: Duration, enough: impl FnMut(&Counts) -> bool) -> Counts {
        let mut counts = self.counts.subscribe();
        let waited = tokio::time::timeout(patience, counts.wait_for(enough)).await;
        match waited {
            Ok(Ok(counts)) => *counts,
            _ => panic!("{what}: not within {patience:?}; seen: {:?}\n{}", self.counts(), self.excuses()),
        }
    }

    /// The reasons of the last failures, for people who look for one.
    pub fn excuses(&self) -> String {
        let events = self.lock();
        let mut seen = HashSet::new();
        let excuses = events.iter().rev().filter_map(|event| match event {
            Event::Enqueue { outcome: Outcome::Failed(why) | Outcome::Unknown(why), .. }
            | Event::Settle { settled: Settled::Failed(why) | Settled::Unknown(why), .. } => {
                Some(why.as_str())
            }
            _ => None,
        });
        let lines: Vec<&str> = excuses.filter(|why| seen.insert(*why)).take(10).collect();
        lines.join("\n")
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().expect("no task panics while it holds this")
    }
}
