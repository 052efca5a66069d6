//! What the end of a delivery does to the item. One function a verb; `lifecycle.rs` in `types` decides
//! between again, dead and expired.

use std::time::Duration;

use forebay_store::{DeadLetter, DueKey, LeaseEntry, Requeue};
use forebay_types::{Ending, Key, State, Timestamp, after_failure};

use crate::{
    NackAction,
    form::Former,
    op::SettleKind,
    planted::{Bug, on},
    window::Entry,
};

/// What becomes of a leased item.
#[derive(Debug)]
pub(crate) enum Effect {
    /// Acked or expired: its row goes.
    Gone,
    /// To the dead letters.
    Dead,
    /// Back into the delivery order.
    Ready(Key, Entry),
    /// Back, once its time has come.
    Scheduled,
    /// The same delivery, with another end.
    Extended(Timestamp),
}

impl Former<'_, '_> {
    pub fn settle_effect(&mut self, kind: &SettleKind, lease: &LeaseEntry) -> Effect {
        match kind {
            SettleKind::Ack => self.ack(lease),
            SettleKind::Nack { action, metadata, reason } => {
                self.nack(lease, *action, metadata.as_deref(), reason)
            }
            SettleKind::Extend { lease: span } => self.extend(lease, *span),
            SettleKind::Lapse => self.lapse(lease),
        }
    }

    fn ack(&mut self, lease: &LeaseEntry) -> Effect {
        self.delete(lease.topic, lease.seq, lease.attributes.expires_at);
        Effect::Gone
    }

    fn nack(
        &mut self,
        lease: &LeaseEntry,
        action: NackAction,
        metadata: Option<&[u8]>,
        reason: &str,
    ) -> Effect {
        let now = self.context.now;
        let back = |delay: Duration| now.plus(delay);
        match action {
            NackAction::Fail(delay) => {
                let failures = lease.attributes.failures + 1;
                match after_failure(failures, lease.attributes.max_attempts, lease.attributes.expires_at, now)
                {
                    Ending::Again => self.again(lease, failures, back(delay).as_micros(), metadata),
                    Ending::Dead => self.bury(lease, failures, "nacked", reason, metadata),
                    Ending::Expired => self.ack(lease),
                }
            }
            NackAction::Release(delay) if lease.attributes.expires_at.is_none_or(|end| end > now) => {
                let rank = if delay.is_zero() { lease.rank } else { back(delay).as_micros() };
                self.again(lease, lease.attributes.failures, rank, metadata)
            }
            NackAction::DeadLetter if lease.attributes.expires_at.is_none_or(|end| end > now) => {
                self.bury(lease, lease.attributes.failures + 1, "dead-lettered", reason, metadata)
            }
            NackAction::Release(_) | NackAction::DeadLetter => self.ack(lease),
        }
    }

    fn lapse(&mut self, lease: &LeaseEntry) -> Effect {
        let failures = lease.attributes.failures + 1;
        match after_failure(
            failures,
            lease.attributes.max_attempts,
            lease.attributes.expires_at,
            self.context.now,
        ) {
            Ending::Again => self.again(lease, failures, lease.deadline.as_micros(), None),
            Ending::Dead => self.bury(lease, failures, "lease ended", "", None),
            Ending::Expired => self.ack(lease),
        }
    }

    fn extend(&mut self, lease: &LeaseEntry, span: Option<Duration>) -> Effect {
        let span = span.unwrap_or(Duration::from_millis(u64::from(lease.attributes.lease_ms)));
        let deadline = self.context.now.plus(span);
        self.batch.leases.push(LeaseEntry { deadline, ..lease.clone() });
        Effect::Extended(deadline)
    }

    /// Back to its topic: ready if the rank's time has come, else scheduled.
    fn again(&mut self, lease: &LeaseEntry, failures: u32, rank: i64, metadata: Option<&[u8]>) -> Effect {
        let waits = Timestamp::from_micros(rank) > self.context.now && rank != lease.rank;
        let state = if waits { State::Scheduled } else { State::Ready };
        self.batch.requeues.push(Requeue {
            seq: lease.seq,
            state,
            rank,
            deliveries: lease.delivery() - u32::from(on(Bug::DeliveryNotCounted)),
            failures,
            metadata: metadata.map(<[u8]>::to_vec),
        });
        if waits {
            self.count(lease.topic, -1, 1, 0);
            self.schedules(Timestamp::from_micros(rank));
            return Effect::Scheduled;
        }
        let mut entry = Entry::from_lease(lease, failures);
        entry.deliveries -= u32::from(on(Bug::DeliveryNotCounted));
        let added = metadata.map_or(0, <[u8]>::len);
        entry.bytes = entry.bytes.saturating_add(u32::try_from(added).unwrap_or(u32::MAX));
        Effect::Ready(Key { priority: lease.priority, rank, seq: lease.seq }, entry)
    }

    fn bury(
        &mut self,
        lease: &LeaseEntry,
        failures: u32,
        why: &str,
        last_error: &str,
        metadata: Option<&[u8]>,
    ) -> Effect {
        self.batch.dead_letters.push(DeadLetter {
            seq: lease.seq,
            deliveries: lease.delivery(),
            failures,
            reason: why.to_owned(),
            last_error: last_error.to_owned(),
            died_at: self.context.now,
            metadata: metadata.map(<[u8]>::to_vec),
        });
        if let Some(at) = lease.attributes.expires_at {
            self.batch.expiry_deletes.push(DueKey { at, seq: lease.seq });
        }
        self.count(lease.topic, -1, 0, 1);
        Effect::Dead
    }
}
