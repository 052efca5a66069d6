//! Fates of items and deliveries beside being stored, delivered and acked, as metrics of a namespace count
//! them.

use forebay_types::DeathCause;
use metrics::{Counter, Label, counter};

use crate::{
    api::NackAction,
    shard::{SettleEffect, work::SettleKind},
};

/// The fate of an item, or of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// A delivery is nacked, whatever becomes of its item.
    Nacked,
    /// A delivery is released.
    Released,
    /// The lease of a delivery runs out.
    Lapsed,
    /// The ttl of an item is over.
    Expired,
    /// A dead letter is an item again.
    Redriven,
    /// A purge removes an item.
    Purged,
    /// An item or a dead letter is cancelled.
    Cancelled,
    /// An item is not stored, since one is stored under its key.
    Duplicate,
    /// An item becomes a dead letter.
    Died(DeathCause),
}

impl Fate {
    /// All of them. Each has its place here.
    const ALL: [Self; 12] = [
        Self::Nacked,
        Self::Released,
        Self::Lapsed,
        Self::Expired,
        Self::Redriven,
        Self::Purged,
        Self::Cancelled,
        Self::Duplicate,
        Self::Died(DeathCause::ALL[0]),
        Self::Died(DeathCause::ALL[1]),
        Self::Died(DeathCause::ALL[2]),
        Self::Died(DeathCause::ALL[3]),
    ];

    /// The fates that the end of a delivery counts as: the delivery's and the item's. An ack is counted by
    /// topic; a purge or a cancel of a leased item counts that by itself.
    pub fn of_end(kind: &SettleKind, effect: &SettleEffect) -> impl Iterator<Item = Self> + use<> {
        let end = match kind {
            SettleKind::Nack { action: NackAction::Release(_), .. }
            | SettleKind::Reset
            | SettleKind::FetchTimeout => Some(Self::Released),
            SettleKind::Nack { action: NackAction::Fail(_) | NackAction::DeadLetter, .. } => {
                Some(Self::Nacked)
            }
            SettleKind::LeaseTimeout => Some(Self::Lapsed),
            SettleKind::Ack | SettleKind::Extend { .. } | SettleKind::Purge | SettleKind::Cancel => None,
        };
        let of_item = match effect {
            SettleEffect::Deleted => end.map(|_| Self::Expired),
            SettleEffect::DeadLettered(cause) => Some(Self::Died(*cause)),
            SettleEffect::Ready(..) | SettleEffect::Scheduled(_) | SettleEffect::Extended(_) => None,
        };
        end.into_iter().chain(of_item)
    }

    /// The counter.
    const fn name(self) -> &'static str {
        match self {
            Self::Nacked => "forebay_nacked_total",
            Self::Released => "forebay_released_total",
            Self::Lapsed => "forebay_lapsed_total",
            Self::Expired => "forebay_expired_total",
            Self::Redriven => "forebay_redriven_total",
            Self::Purged => "forebay_purged_total",
            Self::Cancelled => "forebay_cancelled_total",
            Self::Duplicate => "forebay_duplicates_total",
            Self::Died(_) => "forebay_dead_lettered_total",
        }
    }
}

/// The counters of a namespace.
pub(crate) struct Fates([(Fate, Counter); Fate::ALL.len()]);

impl Fates {
    /// They begin at 0 together: one that is born at 3 has no increase.
    pub fn new(namespace: &Label) -> Self {
        Self(Fate::ALL.map(|fate| {
            let mut labels = vec![namespace.clone()];
            if let Fate::Died(cause) = fate {
                labels.push(Label::new("cause", cause.as_str()));
            }
            let counter = counter!(fate.name(), labels);
            counter.increment(0);
            (fate, counter)
        }))
    }

    /// It became this of so many.
    pub fn count(&self, fate: Fate, count: u64) {
        self.0.iter().filter(|(of, _)| *of == fate).for_each(|(_, counter)| counter.increment(count));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::api::Settlement;

    fn of(kind: SettleKind, effect: SettleEffect) -> Vec<Fate> {
        Fate::of_end(&kind, &effect).collect()
    }

    fn nack(action: NackAction) -> SettleKind {
        SettleKind::Nack { action, metadata: None, reason: String::new() }
    }

    #[test]
    fn a_delivery_that_fails_counts_whatever_becomes_of_its_item() {
        let cause = DeathCause::ExpiredFailing;
        let scheduled = || SettleEffect::Scheduled(Settlement::default());
        let (fail, release) = (NackAction::Fail(None), NackAction::Release(Duration::ZERO));
        assert_eq!(of(nack(fail), scheduled()), [Fate::Nacked]);
        assert_eq!(of(nack(release), scheduled()), [Fate::Released]);
        assert_eq!(of(SettleKind::Reset, SettleEffect::Deleted), [Fate::Released, Fate::Expired]);
        assert_eq!(of(nack(fail), SettleEffect::Deleted), [Fate::Nacked, Fate::Expired]);
        let died = SettleEffect::DeadLettered(cause);
        assert_eq!(of(SettleKind::LeaseTimeout, died), [Fate::Lapsed, Fate::Died(cause)]);
    }

    #[test]
    fn what_is_counted_elsewhere_counts_once() {
        for kind in [SettleKind::Ack, SettleKind::Purge, SettleKind::Cancel] {
            assert_eq!(of(kind, SettleEffect::Deleted), []);
        }
    }

    #[test]
    fn each_fate_has_a_counter() {
        for cause in DeathCause::ALL {
            assert!(Fate::ALL.contains(&Fate::Died(cause)), "{cause:?}");
        }
        let names: std::collections::BTreeSet<_> = Fate::ALL.map(Fate::name).into_iter().collect();
        assert_eq!(names.len(), Fate::ALL.len() - 3, "four of them have one name");
    }
}
