//! Turns to change a policy: one call of a tenant at a time, and a few in all. The catalog has one connection
//! for changes, which moves of shards need as well.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use forebay_engine::{Charge, RETRY_AFTER, TenantBudget};
use forebay_types::{Namespace, Reason, Refusal};

/// At most this many tenants change policies at once. Tenants of one root leave one place to others.
const TENANTS_MAX: usize = 8;

/// Tenants that change a policy at the moment.
#[derive(Clone)]
pub struct Turns {
    /// Their names.
    tenants: Arc<Mutex<HashSet<Namespace>>>,
    /// Their number.
    places: Arc<TenantBudget>,
}

impl Default for Turns {
    fn default() -> Self {
        Self { tenants: Arc::default(), places: TenantBudget::new(TENANTS_MAX) }
    }
}

impl Turns {
    /// Begins the turn of a tenant. It ends when the value is dropped.
    pub fn take(&self, namespace: &Namespace) -> Result<Turn, Refusal> {
        let place = self.places.take(namespace, 1);
        match place {
            Ok(place) if self.lock().insert(namespace.clone()) => {
                Ok(Turn { turns: self.clone(), namespace: namespace.clone(), _place: place })
            }
            _ => {
                let message =
                    "policies or tokens are being changed: one call a namespace at a time, and a few in all";
                Err(Refusal::new(Reason::Overloaded, message).retry_after(RETRY_AFTER))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Namespace>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The turn of a tenant.
pub struct Turn {
    /// All turns.
    turns: Turns,
    /// The tenant.
    namespace: Namespace,
    /// Its place among them.
    _place: Charge,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.lock().remove(&self.namespace);
    }
}

#[cfg(test)]
mod tests {
    use forebay_engine::paid_by;

    use super::*;

    fn names() -> Vec<Namespace> {
        (0..=TENANTS_MAX).map(|number| format!("n{number}").as_str().into()).collect()
    }

    #[test]
    fn a_tenant_has_one_turn_at_a_time_and_few_have_one() {
        let (turns, names) = (Turns::default(), names());
        let mut taken: Vec<Turn> = names[1..].iter().map(|name| turns.take(name).unwrap()).collect();
        let refused = |name: &Namespace| turns.take(name).err().map(|refusal| refusal.reason);
        assert_eq!(refused(&names[0]), Some(Reason::Overloaded), "too many others");
        taken.pop();
        assert_eq!(refused(&names[1]), Some(Reason::Overloaded), "it has one");
        assert_eq!(refused(&names[0]), None);
    }

    #[tokio::test]
    async fn a_root_with_many_namespaces_leaves_a_turn_to_others() {
        let (turns, names) = (Turns::default(), names());
        let all = async { names[1..].iter().map_while(|name| turns.take(name).ok()).collect::<Vec<_>>() };
        assert_eq!(paid_by(Some("greedy".into()), all).await.len(), TENANTS_MAX - 1);
        assert!(paid_by(Some("other".into()), async { turns.take(&names[0]).is_ok() }).await);
    }
}
