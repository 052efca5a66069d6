//! The budget of enqueues that wait for a shard's batches: bytes in all, and of each tenant.

use std::collections::HashMap;

use forebay_types::{Monotonic, Namespace, Reason, Refusal, ShardId};

use crate::{
    api::{RETRY_AFTER, Settings},
    planted::{Bug, on},
    shard::commit::disk_room::disk_full,
};

/// Bytes of enqueues that wait for their commit in one shard.
#[derive(Debug, Default)]
pub(in crate::shard) struct Budget {
    /// Of all tenants.
    bytes: usize,
    /// Of each tenant.
    by_tenant: HashMap<Namespace, usize>,
    /// The disk was full: enqueues are refused until then.
    disk_full_until: Monotonic,
}

impl Budget {
    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Why `bytes` more of a tenant are not taken, if they are not.
    pub fn refusal(
        &self,
        id: ShardId,
        settings: &Settings,
        namespace: &str,
        bytes: usize,
        at: Monotonic,
    ) -> Option<Refusal> {
        if at < self.disk_full_until {
            return Some(disk_full(id));
        }
        let mine = self.by_tenant.get(namespace).copied().unwrap_or(0);
        let whose = if mine > 0 && mine + bytes > settings.admit_tenant_bytes {
            " of this namespace"
        } else if self.bytes > 0 && self.bytes + bytes > settings.admit_shard_bytes && !on(Bug::NoShardBudget)
        {
            ""
        } else {
            return None;
        };
        let message = format!("too many bytes{whose} are waiting to be stored in shard {id}");
        Some(Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER))
    }

    pub fn charge(&mut self, namespace: &Namespace, bytes: usize) {
        self.bytes += bytes;
        *self.by_tenant.entry(namespace.clone()).or_default() += bytes;
    }

    pub fn release(&mut self, namespace: &Namespace, bytes: usize) {
        if on(Bug::ChargesKept) {
            return;
        }
        debug_assert!(bytes <= self.bytes, "{bytes} of {} bytes are released", self.bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        if let Some(charge) = self.by_tenant.get_mut(namespace) {
            *charge = charge.saturating_sub(bytes);
            if *charge == 0 {
                self.by_tenant.remove(namespace);
            }
        }
    }

    /// The disk is full: refuses enqueues until then.
    pub fn set_disk_full(&mut self, until: Monotonic) {
        self.disk_full_until = until;
    }

    /// Whether the sum over tenants is the whole. Checked in tests.
    pub fn check(&self, charged: usize) -> Result<(), String> {
        let tenants: usize = self.by_tenant.values().sum();
        match tenants == self.bytes && charged == self.bytes {
            true => Ok(()),
            false => Err(format!("{charged} bytes wait; budget {}, tenants {tenants}", self.bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::shard::tests::check::wrong;

    fn settings() -> Settings {
        Settings { admit_shard_bytes: 100, admit_tenant_bytes: 60, ..Settings::default() }
    }

    fn reason(budget: &Budget, namespace: &str, bytes: usize) -> Option<String> {
        let refusal = budget.refusal(ShardId(1), &settings(), namespace, bytes, Monotonic::default());
        refusal.map(|refusal| refusal.message)
    }

    #[test]
    fn a_tenant_and_a_shard_take_so_many_bytes() {
        let mut budget = Budget::default();
        budget.charge(&"a".into(), 40);
        assert_eq!(reason(&budget, "a", 20), None);
        assert!(reason(&budget, "a", 21).unwrap().contains("of this namespace"));
        assert_eq!(reason(&budget, "b", 60), None);
        assert!(reason(&budget, "b", 61).unwrap().contains("too many bytes are waiting"));
        budget.release(&"a".into(), 40);
        assert_eq!((budget.bytes(), reason(&budget, "a", 999)), (0, None), "one call is always taken");
    }

    #[test]
    fn a_full_disk_comes_before_everything() {
        let mut budget = Budget::default();
        let until = Monotonic::from_start(Duration::from_secs(1));
        budget.set_disk_full(until);
        let refusal = |at| budget.refusal(ShardId(1), &settings(), "a", 1, at);
        let refused = refusal(Monotonic::default()).unwrap();
        assert_eq!((refused.reason, refused.retry_after), (Reason::DiskFull, Some(RETRY_AFTER)));
        assert!(refusal(until).is_none());
    }

    #[test]
    fn a_tenant_that_has_nothing_waiting_is_forgotten() {
        let mut budget = Budget::default();
        budget.charge(&"a".into(), 40);
        budget.release(&"a".into(), 15);
        assert_eq!(budget.check(25), Ok(()));
        budget.release(&"a".into(), 25);
        assert!(budget.by_tenant.is_empty());
    }

    #[test]
    fn tenants_that_do_not_add_up_to_the_whole_are_found() {
        let what = wrong(|shard| *shard.intake.budget.by_tenant.get_mut("ns").unwrap() -= 1);
        assert_eq!(what, "1032 bytes wait; budget 1032, tenants 1031");
    }
}
