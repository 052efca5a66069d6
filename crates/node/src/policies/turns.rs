//! Who may change a policy now: one call of a tenant, and a few in all. The catalog has one connection for
//! changes, which moves of shards need as well.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use forebay_engine::RETRY_AFTER;
use forebay_types::{Namespace, Reason, Refusal};

/// So many tenants change policies at once.
const TENANTS_MAX: usize = 8;

/// Tenants that change a policy at the moment.
#[derive(Clone, Default)]
pub struct Turns(Arc<Mutex<HashSet<Namespace>>>);

impl Turns {
    /// Begins the turn of a tenant. It ends when the value is dropped.
    pub fn take(&self, namespace: &Namespace) -> Result<Turn, Refusal> {
        let mut tenants = self.lock();
        if tenants.len() >= TENANTS_MAX || !tenants.insert(namespace.clone()) {
            let message =
                "policies or tokens are being changed: one call a namespace at a time, and a few in all";
            return Err(Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER));
        }
        Ok(Turn { turns: self.clone(), namespace: namespace.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Namespace>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn of a tenant.
pub struct Turn {
    /// All turns.
    turns: Turns,
    /// The tenant.
    namespace: Namespace,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.lock().remove(&self.namespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_one_turn_at_a_time_and_few_have_one() {
        let turns = Turns::default();
        let names: Vec<Namespace> =
            (0..=TENANTS_MAX).map(|number| format!("n{number}").as_str().into()).collect();
        let mut taken: Vec<Turn> = names[1..].iter().map(|name| turns.take(name).unwrap()).collect();
        let refused = |name: &Namespace| turns.take(name).err().map(|refusal| refusal.reason);
        assert_eq!(refused(&names[0]), Some(Reason::Overloaded), "too many others");
        taken.pop();
        assert_eq!(refused(&names[1]), Some(Reason::Overloaded), "it has one");
        assert_eq!(refused(&names[0]), None);
    }
}
