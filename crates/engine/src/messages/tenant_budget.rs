//! A number of bytes, of which a tenant may have a part. Callers of the engine take from one before the event
//! loop is told; what they took goes with the event.
//!
//! A tenant is a namespace. But one that has rights in names that begin alike has any number of these. So
//! what is taken also counts for whoever pays: the root of the caller's rights, of which operators alone make
//! more. The last part of all is for payers that have little, so that none is shut out by what others take.

use std::{
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use forebay_types::Namespace;
use rustc_hash::FxHashMap;

/// A tenant has at most one part in this many.
const TENANT_PART: usize = 4;
/// One part in this many is for payers that have no more than they leave to others.
const KEPT_PART: usize = 8;

tokio::task_local! {
    /// The payer of the bytes that this task takes. Not set, or nobody: the namespace.
    static PAYER: Option<Arc<str>>;
}

/// Does something for which this payer pays. `None`: the namespace does.
pub fn paid_by<T>(payer: Option<Arc<str>>, work: impl Future<Output = T>) -> impl Future<Output = T> {
    PAYER.scope(payer, work)
}

/// The payer of what this task takes. `None`: the namespace.
pub fn payer() -> Option<Arc<str>> {
    PAYER.try_with(Clone::clone).ok().flatten()
}

/// The same of what is done at once.
pub fn paid_at_once_by<T>(payer: Option<Arc<str>>, work: impl FnOnce() -> T) -> T {
    PAYER.sync_scope(payer, work)
}

/// A number of bytes, of which a tenant may have a quarter.
#[derive(Debug, Default)]
pub struct TenantBudget {
    /// The most bytes in all.
    max: usize,
    /// The bytes that tenants and payers have.
    used: Mutex<UsedBytes>,
}

/// Bytes that are taken.
#[derive(Debug, Default)]
struct UsedBytes {
    /// By all tenants.
    all: usize,
    /// By each tenant that has any. Bounded by the calls that hold them.
    tenants: FxHashMap<Namespace, usize>,
    /// By each payer that has any, where they are known.
    payers: FxHashMap<Arc<str>, usize>,
}

/// Why bytes cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverBudget {
    /// The tenant has its part.
    Tenant,
    /// All are taken.
    Node,
}

/// Bytes that a call has taken. Dropped with the call, whatever becomes of it.
#[derive(Debug)]
pub struct Charge {
    /// The budget that they were taken from.
    budget: Arc<TenantBudget>,
    /// The tenant that took them.
    namespace: Namespace,
    /// The payer. `None`: the namespace.
    payer: Option<Arc<str>>,
    /// How many.
    bytes: usize,
}

impl TenantBudget {
    /// Nothing taken.
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, used: Mutex::default() })
    }

    /// Takes bytes for a tenant. A tenant that has none may take any number, as long as there are some.
    pub fn take(self: &Arc<Self>, namespace: &Namespace, bytes: usize) -> Result<Charge, OverBudget> {
        let payer = payer();
        let mut used = self.lock();
        let of_tenant = used.tenants.get(namespace).copied().unwrap_or(0);
        if of_tenant > 0 && of_tenant + bytes > self.max / TENANT_PART {
            return Err(OverBudget::Tenant);
        }
        let (free, after) = (self.max.saturating_sub(used.all), used.all.saturating_add(bytes));
        // Where nobody is known names are made up, and to keep something for each would keep nothing.
        let of_payer = payer.as_ref().and_then(|payer| used.payers.get(payer)).copied().unwrap_or(0);
        let kept = (self.max / KEPT_PART).max(1);
        let is_kept = after > self.max.saturating_sub(kept) && of_payer > 0;
        if used.all > 0 && (after > self.max || is_kept && of_payer + bytes > free) {
            return Err(OverBudget::Node);
        }
        used.all = after;
        *used.tenants.entry(namespace.clone()).or_default() += bytes;
        if let Some(payer) = &payer {
            *used.payers.entry(payer.clone()).or_default() += bytes;
        }
        Ok(Charge { budget: self.clone(), namespace: namespace.clone(), payer, bytes })
    }

    /// Bytes that are taken.
    pub fn used(&self) -> usize {
        self.lock().all
    }

    /// Nobody panics with the lock.
    fn lock(&self) -> MutexGuard<'_, UsedBytes> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Charge {
    /// The payer. `None`: the namespace.
    pub const fn payer(&self) -> Option<&Arc<str>> {
        self.payer.as_ref()
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut used = self.budget.lock();
        used.all -= self.bytes;
        give_back(&mut used.tenants, &self.namespace, self.bytes);
        if let Some(payer) = &self.payer {
            give_back(&mut used.payers, payer, self.bytes);
        }
    }
}

fn give_back<K: Hash + Eq>(used: &mut FxHashMap<K, usize>, by: &K, bytes: usize) {
    if let Some(left) = used.get_mut(by) {
        *left = left.saturating_sub(bytes);
        if *left == 0 {
            used.remove(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_takes_at_most_its_part() {
        let budget = TenantBudget::new(400);
        let (a, b) = (Namespace::from("a"), Namespace::from("b"));
        let held = budget.take(&a, 60).unwrap();
        assert_eq!(budget.take(&a, 41).unwrap_err(), OverBudget::Tenant);
        let more = budget.take(&a, 40).unwrap();
        budget.take(&b, 100).expect("another tenant is not affected");
        assert_eq!(budget.used(), 100, "what was taken by `b` is free again");
        drop((held, more));
        assert!(budget.used() == 0 && budget.lock().tenants.is_empty());
    }

    #[test]
    fn all_tenants_together_take_at_most_everything() {
        let budget = TenantBudget::new(400);
        let names = ["a", "b", "c", "d", "e"].map(Namespace::from);
        let held: Vec<_> = names[..4].iter().map(|name| budget.take(name, 100).unwrap()).collect();
        assert_eq!(budget.take(&names[4], 1).unwrap_err(), OverBudget::Node);
        drop(held);
        budget.take(&names[4], 900).expect("a call that is alone");
    }

    /// Takes for a payer, in a namespace, as much as there is.
    async fn fill(budget: &Arc<TenantBudget>, payer: &str, name: &str, bytes: usize) -> Vec<Charge> {
        let name = Namespace::from(name);
        let all = async { std::iter::from_fn(|| budget.take(&name, bytes).ok()).collect() };
        paid_by(Some(payer.into()), all).await
    }

    #[tokio::test]
    async fn a_root_with_any_number_of_namespaces_leaves_room_for_others() {
        let budget = TenantBudget::new(800);
        let mut held = Vec::new();
        for number in 0..100 {
            held.extend(fill(&budget, "greedy", &format!("team-{number}"), 1).await);
        }
        assert_eq!(budget.used(), 700, "one in eight is kept");
        let two = fill(&budget, "second", "b", 1).await;
        assert_eq!(two.len(), 50, "no more than it leaves to others");
        let three = fill(&budget, "third", "c", 1).await;
        assert_eq!(three.len(), 25);
        assert!(!fill(&budget, "fourth", "d", 1).await.is_empty());
        drop((held, two, three));
        let used = budget.lock();
        assert!(used.all == 0 && used.payers.is_empty() && used.tenants.is_empty());
    }

    #[tokio::test]
    async fn the_last_place_of_a_few_is_for_whoever_has_none() {
        let budget = TenantBudget::new(4);
        let mut held = Vec::new();
        for name in ["a", "b", "c", "d"] {
            held.extend(fill(&budget, "greedy", name, 1).await);
        }
        assert_eq!(held.len(), 3);
        assert_eq!(fill(&budget, "other", "e", 1).await.len(), 1);
    }
}
