//! A number of bytes, of which a tenant may have a part. Callers of the engine take from one before the event
//! loop is told; what they took goes with the event.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use forebay_types::Namespace;
use rustc_hash::FxHashMap;

/// A tenant has at most one part in this many.
const TENANT_PART: usize = 4;

/// A number of bytes, of which a tenant may have a quarter.
#[derive(Debug, Default)]
pub struct TenantBudget {
    /// The most bytes in all.
    max: usize,
    /// Who has how many.
    used: Mutex<Used>,
}

/// Bytes that are taken.
#[derive(Debug, Default)]
struct Used {
    /// By all tenants.
    all: usize,
    /// By each tenant that has any. Bounded by the calls that hold them.
    tenants: FxHashMap<Namespace, usize>,
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
    /// What they were taken from.
    budget: Arc<TenantBudget>,
    /// Who took them.
    namespace: Namespace,
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
        let mut used = self.lock();
        let of_tenant = used.tenants.get(namespace).copied().unwrap_or(0);
        if of_tenant > 0 && of_tenant + bytes > self.max / TENANT_PART {
            return Err(OverBudget::Tenant);
        }
        if used.all > 0 && used.all + bytes > self.max {
            return Err(OverBudget::Node);
        }
        used.all += bytes;
        *used.tenants.entry(namespace.clone()).or_default() += bytes;
        Ok(Charge { budget: self.clone(), namespace: namespace.clone(), bytes })
    }

    /// Bytes that are taken.
    pub fn used(&self) -> usize {
        self.lock().all
    }

    /// Nobody panics with the lock.
    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut used = self.budget.lock();
        used.all -= self.bytes;
        if let Some(bytes) = used.tenants.get_mut(&self.namespace) {
            *bytes -= self.bytes;
            if *bytes == 0 {
                used.tenants.remove(&self.namespace);
            }
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
}
