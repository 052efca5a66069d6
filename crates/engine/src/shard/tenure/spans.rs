//! Steps of the shard's time, and the spans that began before them: they last as long as they were to. Points
//! in time that callers named stay.
//!
//! Leases are in memory, and move at once (`contents/leases/ends.rs`). What waits in the store for a delay
//! does not: its row says when it would have been due without the step. The sweep that finds it puts it off
//! (`batch/sweep_due.rs`). A later owner knows nothing of the step: what was not put off by then ends early.

use std::time::Duration;

use forebay_store::{Batch, DueItem, DueRow};
use forebay_types::{ItemAttributes, Seq, State, Timestamp, Waits};
use rustc_hash::FxHashMap;

/// The most items scheduled since a step that are remembered. Beyond that the shard forgets its
/// steps.
const SCHEDULED_MAX: usize = 500_000;
/// The most steps.
const STEPS_MAX: usize = 1_000;

/// A step of the shard's time.
#[derive(Debug, Clone, Copy)]
pub(in crate::shard) struct Step {
    /// The shard's time before it.
    pub before: Timestamp,
    /// How far it was.
    pub by: Duration,
    /// The last item that was stored before it.
    pub seq: Seq,
}

/// Tells whether a span of the store began before a step.
#[derive(Debug, Default)]
pub(in crate::shard) struct Spans {
    /// In order.
    steps: Vec<Step>,
    /// Items that were scheduled anew since the first of these steps: how many there were then. What was
    /// stored since then is known by its number.
    scheduled: FxHashMap<Seq, usize>,
}

impl Spans {
    /// The shard's time before the last step.
    pub fn stepped_at(&self) -> Option<Timestamp> {
        self.steps.last().map(|step| step.before)
    }

    /// How long it is from one time to a later one, without what was stepped over.
    pub fn elapsed(&self, from: Timestamp, to: Timestamp) -> Duration {
        let over = self.steps.iter().filter(|step| from <= step.before && to > step.before);
        to.since(from).saturating_sub(over.map(|step| step.by).sum())
    }

    /// How many steps there are.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// The shard's time has stepped.
    pub fn step(&mut self, step: Step) {
        if self.steps.len() == STEPS_MAX {
            self.forget();
        }
        self.steps.push(step);
    }

    /// Numbers above this one are given out again.
    pub fn given_out_again(&mut self, last: Seq) {
        let above = self.steps.iter_mut().rev().take_while(|step| step.seq > last);
        above.for_each(|step| step.seq = last);
    }

    /// Items were scheduled by a batch that was built after so many steps.
    pub fn scheduled(&mut self, seqs: &[Seq], steps: usize) {
        if self.steps.is_empty() {
            return;
        }
        self.scheduled.extend(seqs.iter().map(|seq| (*seq, steps)));
        if self.scheduled.len() > SCHEDULED_MAX {
            self.forget();
        }
    }

    /// An item is scheduled no more, or anew.
    pub fn left(&mut self, seq: Seq) {
        if !self.scheduled.is_empty() {
            self.scheduled.remove(&seq);
        }
    }

    fn forget(&mut self) {
        tracing::warn!("too much was scheduled since the time has stepped: delays of before may end early");
        *self = Self::default();
    }

    /// When an item of the schedule is due, if that is later than its row says.
    pub fn moved(&self, row: &DueRow) -> Option<Timestamp> {
        let (first, DueItem::Scheduled(item)) = (self.steps.first()?, &row.item) else { return None };
        if !is_span(&item.attributes) || row.at <= first.before {
            return None;
        }
        let known = || self.steps.iter().take_while(|step| row.seq > step.seq).count();
        let since = self.scheduled.get(&row.seq).copied().unwrap_or_else(known);
        let moved = |due: Timestamp, step: &Step| if due > step.before { due.plus(step.by) } else { due };
        let due = self.steps[since..].iter().fold(row.at, moved);
        (due > row.at).then_some(due)
    }
}

/// Whether a scheduled item waits for the end of a span. After a delivery it does, unless somebody has named
/// a time since.
fn is_span(attributes: &ItemAttributes) -> bool {
    match attributes.waits {
        Waits::Span => true,
        Waits::Point => false,
        Waits::Unsaid => attributes.deliveries > 0,
    }
}

/// Items that a batch schedules anew. New ones are known by their numbers.
pub(in crate::shard) fn scheduled(batch: &Batch, spans: &Spans) -> (Vec<Seq>, usize) {
    let steps = spans.steps();
    if steps == 0 {
        return (Vec::new(), 0);
    }
    let returned = batch.requeues.iter().filter(|row| row.state == State::Scheduled).map(|row| row.seq);
    let updated = batch.updates.iter().filter(|row| row.schedules).map(|row| row.key.seq);
    let put_off = batch.put_offs.iter().map(|row| row.seq);
    (returned.chain(updated).chain(put_off).collect(), steps)
}
