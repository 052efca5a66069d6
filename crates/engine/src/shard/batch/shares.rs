//! How the classes of work share a batch: each has its part, however much of the others waits, and what one
//! does not use goes to the others.
//!
//! A call with a request id is not cut, so it may be longer than the share of the enqueues. Then it has the
//! batch nearly to itself, and the next such call waits until the enqueues' shares have paid for it.

use super::{builder::BatchBuilder, change, enqueue, operation, settle};
use crate::shard::commit::row_costs::RowKind;

/// A class of work, in the order in which they are added to a batch. A sweep's page, changes of single items
/// and an operation's page are the last: the sweep's is not cut, so the others leave room for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Acks, nacks, extensions.
    Settlement,
    /// Leases that ended without an ack.
    Timeout,
    /// At-most-once items that are inserted again.
    Restore,
    /// Leases.
    Lease,
    /// New items.
    Enqueue,
}

/// How many classes there are, with the two pages and the changes.
const CLASSES: usize = 8;
/// The batches of a round of turns: a prime, or work that comes with every second batch would keep step with
/// the turns of its class.
const TURNS: u64 = 11;
/// How the classes share the rows where several tenants enqueue: evenly.
const EVEN: [usize; CLASSES] = [1; CLASSES];
/// How they share them where one tenant enqueues. Work that empties the queue comes before work that fills
/// it: as long as consumers keep up, new items meet polls that wait, and take one commit instead of two.
const DRAINING: [usize; CLASSES] = [2, 2, 2, 2, 1, 2, 2, 2];

/// How much of the batch is for each class: rows, or what rows cost where others wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shares {
    /// By class.
    parts: [usize; CLASSES],
    /// A call with a request id may be in the batch beside them.
    pub long_call: bool,
}

impl Shares {
    /// By what waits of each class.
    pub fn of(builder: &mut BatchBuilder<'_>) -> Self {
        let operation = operation::wanted(builder);
        let (shard, prices) = (&builder.shard, builder.prices);
        let sweep = shard.upkeep.sweeps.page_sweep().map_or(RowKind::Other, RowKind::of_sweep);
        // Of what may cost more or less: as if all of it were of the dearest kind. What is not used goes to
        // the others.
        let wanted = [
            shard.intake.settles.sum().rows * prices.of_settlement(),
            settle::timeouts_due(builder) * prices.of(RowKind::Return),
            shard.intake.restores.sum().rows * prices.of(RowKind::Item),
            shard.intake.leasing.sum().rows * prices.of(RowKind::Lease),
            enqueue::price_at_most(&prices, shard.intake.enqueues.sum()),
            shard.upkeep.sweeps.page_rows() * prices.of(sweep),
            change::wanted(builder),
            operation,
        ];
        // Where not every class has a row, they take turns from batch to batch.
        let first = (builder.batch.number % TURNS) as usize % CLASSES;
        let rows = builder.left(builder.rows_max);
        let weights = if shard.intake.enqueues.tenants() > 1 { EVEN } else { DRAINING };
        let shares = split(rows, wanted, weights, first);
        let mine = shares[Class::Enqueue as usize];
        let dearest = prices.of(RowKind::Item) + prices.of_new_topic();
        builder.shard.intake.enqueues.begin_by_weight(mine / dearest, builder.set);
        let long = enqueue::price_of_first_call(builder);
        let long_calls_owe = &mut builder.shard.commit.long_calls_owe;
        let paid = *long_calls_owe == 0 || shares.iter().sum::<usize>() == mine;
        *long_calls_owe = long_calls_owe.saturating_sub(mine);
        if long <= mine || !paid {
            return Self { parts: shares, long_call: false };
        }
        if builder.is_bisecting() {
            // A bad row is searched. The call goes once it is alone.
            return Self { parts: shares, long_call: true };
        }
        builder.shard.commit.long_calls_owe = long;
        let rest = rows.saturating_sub(long).max(rows / 8).max(CLASSES);
        Self { parts: split(rest, wanted, weights, first), long_call: true }
    }

    /// How much changes of single items may cost.
    pub fn changes(&self) -> usize {
        self.parts[CLASSES - 2]
    }

    /// How much of it an operation may have.
    pub fn operation(&self) -> usize {
        self.parts[CLASSES - 1]
    }

    /// How much of it is for a class, whatever others use.
    pub fn own(&self, class: Class) -> usize {
        self.parts[class as usize]
    }

    /// How much the batch may have once this class is added: the shares up to here. So what an earlier
    /// class did not use is there for this one.
    pub fn up_to(&self, class: Class) -> usize {
        self.parts[..=class as usize].iter().sum()
    }
}

/// Splits rows among those who want some: by weight, and all of them if there are enough. `first` comes first
/// where some remain.
fn split(rows: usize, wanted: [usize; CLASSES], weights: [usize; CLASSES], first: usize) -> [usize; CLASSES] {
    let mut shares = [0; CLASSES];
    let mut left = rows;
    while left > 0 {
        let open = (0..CLASSES).filter(|class| shares[*class] < wanted[*class]);
        let weight: usize = open.map(|class| weights[class]).sum();
        if weight == 0 {
            break;
        }
        let unit = left / weight;
        for class in (first..CLASSES).chain(0..first) {
            let mine = (unit * weights[class]).max(1);
            let more = mine.min(wanted[class] - shares[class]).min(left);
            shares[class] += more;
            left -= more;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_class_alone_has_the_whole_batch() {
        assert_eq!(split(1_000, [5_000, 0, 0, 0, 0, 0, 0, 0], EVEN, 3), [1_000, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn who_wants_little_has_it_and_the_rest_is_split_by_weight() {
        let wanted = [5_000, 250, 1, 90_000, 2_000, 0, 0, 0];
        assert_eq!(split(1_000, wanted, EVEN, 0), [250, 250, 1, 250, 249, 0, 0, 0]);
        assert_eq!(split(1_000, wanted, DRAINING, 0), [300, 250, 1, 299, 150, 0, 0, 0]);
        assert_eq!(split(100, [10, 20, 0, 0, 30, 5, 0, 4], EVEN, 0), [10, 20, 0, 0, 30, 5, 0, 4]);
    }

    #[test]
    fn where_rows_are_few_the_classes_take_turns() {
        let first =
            |first| split(1, [9, 0, 0, 9, 9, 0, 0, 0], EVEN, first).iter().position(|share| *share == 1);
        assert_eq!([0, 1, 3, 4, 5, 6].map(first), [0, 3, 3, 4, 0, 0].map(Some));
    }
}
