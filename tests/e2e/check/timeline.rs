//! A history grouped by item, with each delivery's settlements.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use crate::history::{Call, Event, Outcome, SettlementEnd, Verb};

/// Durations that a client measures and durations that the server counts differ by at most this.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(50);

/// One delivery with its settlements.
pub struct Delivery<'a> {
    /// The dequeue that returned it.
    pub call: Call,
    /// Identifies the delivery in settlements.
    pub receipt: &'a str,
    /// Orders the deliveries of an item.
    pub attempt: u32,
    /// The lease that the dequeue asked for.
    pub lease: Duration,
    /// Every ack, nack and extension of it.
    pub settlements: Vec<(Call, Verb, &'a SettlementEnd)>,
}

/// A history, grouped by item.
pub struct Timeline<'a> {
    /// By the number in the payload: every outcome of its enqueue.
    pub enqueues: BTreeMap<u64, Vec<&'a Outcome<String>>>,
    /// By item id, in order of attempts.
    pub items: BTreeMap<&'a str, Vec<Delivery<'a>>>,
    /// By the number in the payload: the ids under which it was delivered.
    pub ids: BTreeMap<u64, HashSet<&'a str>>,
    /// Ids of deliveries whose payload was damaged.
    pub damaged: Vec<&'a str>,
}

impl<'a> Timeline<'a> {
    /// Groups these events.
    pub fn new(events: &'a [Event]) -> Self {
        let mut timeline = Self {
            enqueues: BTreeMap::new(),
            items: BTreeMap::new(),
            ids: BTreeMap::new(),
            damaged: Vec::new(),
        };
        let mut settlements: HashMap<&str, Vec<(Call, Verb, &SettlementEnd)>> = HashMap::new();
        for event in events {
            if let Event::Settle { call, verb, receipt, settled } = event {
                settlements.entry(receipt).or_default().push((*call, *verb, settled));
            }
        }
        for event in events {
            match event {
                Event::Enqueue { item, outcome, .. } => {
                    timeline.enqueues.entry(*item).or_default().push(outcome)
                }
                Event::Delivery { call, item, id, receipt, attempt, lease } => {
                    match item {
                        Some(item) => drop(timeline.ids.entry(*item).or_default().insert(id)),
                        None => timeline.damaged.push(id),
                    }
                    let settlements = settlements.remove(receipt.as_str()).unwrap_or_default();
                    let delivery =
                        Delivery { call: *call, receipt, attempt: *attempt, lease: *lease, settlements };
                    timeline.items.entry(id).or_default().push(delivery);
                }
                Event::Settle { .. } => {}
            }
        }
        for deliveries in timeline.items.values_mut() {
            deliveries.sort_by_key(|delivery| delivery.attempt);
        }
        timeline
    }
}

impl Delivery<'_> {
    /// Settlements that were answered OK and ended this delivery.
    pub fn ends(&self) -> impl Iterator<Item = Call> {
        let ends = self.settlements.iter().filter(|(_, verb, settled)| {
            matches!(verb, Verb::Ack | Verb::Nack) && **settled == SettlementEnd::Ok
        });
        ends.map(|(call, ..)| *call)
    }

    /// The end of this lease, if it was certainly live at `time`: no call to end it had begun, and the lease,
    /// counted from its earliest possible start, had not ended.
    pub fn certainly_live_until(&self, time: Duration) -> Option<Duration> {
        let ended = self.settlements.iter().any(|(call, verb, settled)| {
            let may_end =
                matches!(verb, Verb::Ack | Verb::Nack) && !matches!(settled, SettlementEnd::Failed(_));
            let may_shorten = matches!(verb, Verb::Extend(_));
            call.began <= time && (may_end || (may_shorten && **settled != SettlementEnd::Ok))
        });
        if ended {
            return None;
        }
        let extension = self.settlements.iter().filter_map(|(call, verb, settled)| match (verb, settled) {
            (Verb::Extend(span), SettlementEnd::Ok) if call.began <= time => Some((call.began, *span)),
            _ => None,
        });
        let (from, span) = extension.max().unwrap_or((self.call.began, self.lease));
        // A shard's clock is slewed by at most a tenth.
        let end = (from + span * 9 / 10).checked_sub(CLOCK_TOLERANCE)?;
        (time < end).then_some(end)
    }
}
