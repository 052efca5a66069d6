//! How much a caller can have written. Each tenant and each holder of a token has so many bytes at once, and
//! gets some back every second. So a tenant fills neither the catalog nor the log, and has a few writes under
//! way at a time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use forebay_access::{Identity, Kind, Scope};
use forebay_engine::RETRY_AFTER;
use forebay_types::{Monotonic, Refusal};

use crate::grpc::overloaded;

/// So many accounts are kept at most. What is full again is forgotten.
const ACCOUNTS_MAX: usize = 4_096;
/// So many calls are written down at once, in all.
const CALLS_MAX: usize = 64;
/// Those of one account.
const CALLS_OF_ACCOUNT_MAX: usize = 8;
/// The account that all tenants pay from together.
const ALL_TENANTS: &str = "tenants";

/// How large an account is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    /// Bytes that can be written at once.
    bytes: u64,
    /// Bytes that come back in a second.
    per_second: u64,
    /// Calls that may be written down at once.
    calls: usize,
}

/// Of a tenant: some 2,500 calls at once, then one in three seconds, which are 4 GiB in 400 days.
const TENANT: Size = Size { bytes: 1 << 20, per_second: 128, calls: CALLS_OF_ACCOUNT_MAX };
/// Of those who run the cluster, and of everybody where there is no access control.
const OPERATOR: Size = Size { bytes: 16 << 20, per_second: 2 << 10, calls: CALLS_OF_ACCOUNT_MAX };
/// Of all tenants together: 68 GiB in 400 days, whatever number of them there is.
const TENANTS: Size = Size { bytes: 64 << 20, per_second: 2 << 10, calls: CALLS_MAX };

/// What an account has.
struct Account {
    /// Its size.
    size: Size,
    /// Bytes that it had left, and when that was.
    left: (u64, Monotonic),
    /// Its calls that are being written down.
    calls: usize,
}

impl Account {
    fn left(&self, now: Monotonic) -> u64 {
        let (left, since) = self.left;
        let back = now.since(since).as_millis() * u128::from(self.size.per_second) / 1_000;
        left.saturating_add(u64::try_from(back).unwrap_or(u64::MAX)).min(self.size.bytes)
    }

    fn is_full(&self, now: Monotonic) -> bool {
        self.calls == 0 && self.left(now) == self.size.bytes
    }
}

/// All accounts.
#[derive(Default)]
struct Accounts {
    /// By who has them.
    by_name: HashMap<String, Account>,
    /// Calls that are being written down.
    calls: usize,
}

/// All accounts of a node.
#[derive(Clone, Default)]
pub struct Budget(Arc<Mutex<Accounts>>);

/// A call's place among those that are being written down. It ends when it is dropped.
pub struct Place {
    /// All accounts.
    budget: Budget,
    /// Those that pay.
    names: Vec<String>,
}

impl Budget {
    /// Takes bytes for a call of a tenant, or refuses it.
    pub fn take(
        &self,
        caller: &Identity,
        namespace: &str,
        bytes: usize,
        now: Monotonic,
    ) -> Result<Place, Refusal> {
        let paying = paying(caller, namespace);
        let accounts = &mut *self.lock();
        // Tenants keep no operator from acting.
        let operates = caller.kind != Kind::Anyone && paying.iter().all(|(_, size)| *size == OPERATOR);
        if accounts.calls >= CALLS_MAX && !operates {
            return Err(refused("many calls are being written down in the audit log"));
        }
        if accounts.by_name.len() + paying.len() > ACCOUNTS_MAX {
            accounts.by_name.retain(|_, account| !account.is_full(now));
        }
        for (name, size) in &paying {
            let account = accounts.by_name.get(name);
            let is_full = accounts.by_name.len() + paying.len() > ACCOUNTS_MAX;
            if account.is_none() && is_full && !operates {
                return Err(refused("many tenants have calls written down in the audit log"));
            }
            let left = account.map_or(size.bytes, |account| account.left(now));
            let calls = account.map_or(0, |account| account.calls);
            if left < bytes as u64 || calls >= size.calls {
                return Err(refused("the caller, or the namespace, has had much written to the audit log"));
            }
        }
        accounts.calls += 1;
        for (name, size) in &paying {
            let new = || Account { size: *size, left: (size.bytes, now), calls: 0 };
            let account = accounts.by_name.entry(name.clone()).or_insert_with(new);
            account.left = (account.left(now).saturating_sub(bytes as u64), now);
            account.calls += 1;
        }
        let names = paying.into_iter().map(|(name, _)| name).collect();
        Ok(Place { budget: self.clone(), names })
    }

    fn lock(&self) -> MutexGuard<'_, Accounts> {
        // A panic while the lock is held leaves valid values.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Takes bytes that are written anyway, as far as they are there.
    pub fn charge(&self, bytes: usize, now: Monotonic) {
        let accounts = &mut *self.budget.lock();
        for name in &self.names {
            if let Some(account) = accounts.by_name.get_mut(name) {
                account.left = (account.left(now).saturating_sub(bytes as u64), now);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let accounts = &mut *self.budget.lock();
        accounts.calls = accounts.calls.saturating_sub(1);
        for name in &self.names {
            if let Some(account) = accounts.by_name.get_mut(name) {
                account.calls = account.calls.saturating_sub(1);
            }
        }
    }
}

/// Whose accounts a call is charged to. Whoever runs the cluster does not use up what a tenant has, nor is
/// kept from acting by it.
fn paying(caller: &Identity, namespace: &str) -> Vec<(String, Size)> {
    let holder = || format!("caller {}", caller.id);
    let tenant = || format!("namespace {namespace}");
    let runs_it = [Scope::Admin, Scope::Operate, Scope::Inspect].into_iter();
    if caller.kind == Kind::Anyone {
        return vec![(tenant(), OPERATOR)];
    }
    if runs_it.clone().any(|scope| caller.may_everywhere(scope)) {
        return vec![(holder(), OPERATOR)];
    }
    // What is about no namespace, as a login, is no tenant's: with an account of all of them one could keep
    // others out.
    let all = || (ALL_TENANTS.to_owned(), TENANTS);
    if namespace.is_empty() {
        return vec![(holder(), TENANT), all()];
    }
    vec![(holder(), TENANT), (tenant(), TENANT), all()]
}

fn refused(why: &str) -> Refusal {
    overloaded("audit", &format!("{why}; retry later")).retry_after(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const KIB: usize = 1 << 10;

    fn holder(id: &str, grant: &str) -> Identity {
        let grants = vec![grant.parse().unwrap()];
        Identity { kind: Kind::Token, id: id.to_owned(), name: String::new(), grants, ends: None }
    }

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    #[test]
    fn a_tenant_gets_bytes_back_and_takes_none_of_others() {
        let budget = Budget::default();
        let (one, other) = (holder("1", "a:operate"), holder("2", "a:operate"));
        for _ in 0..1_024 {
            budget.take(&one, "a", KIB, at(0)).unwrap();
        }
        assert!(budget.take(&one, "a", KIB, at(0)).is_err());
        assert!(budget.take(&other, "a", KIB, at(0)).is_err(), "it is the same tenant");
        assert!(budget.take(&holder("1", "b:operate"), "b", KIB, at(0)).is_err(), "it is the same caller");
        assert!(budget.take(&holder("3", "b:operate"), "b", KIB, at(0)).is_ok());
        assert!(budget.take(&holder("4", "*:operate"), "a", KIB, at(0)).is_ok(), "an operator may act");
        assert!(budget.take(&one, "a", KIB, at(7)).is_err());
        assert!(budget.take(&one, "a", KIB, at(8)).is_ok());
        assert!(budget.take(&one, "a", KIB, at(8)).is_err());
    }

    #[test]
    fn what_is_about_no_namespace_is_charged_to_its_caller_alone() {
        let budget = Budget::default();
        let (one, other) = (holder("1", "a:operate"), holder("2", "b:operate"));
        for _ in 0..1_024 {
            budget.take(&one, "", KIB, at(0)).unwrap();
        }
        assert!(budget.take(&one, "", KIB, at(0)).is_err());
        let places: Vec<Place> =
            (0..CALLS_OF_ACCOUNT_MAX).map(|_| budget.take(&other, "", KIB, at(0)).unwrap()).collect();
        assert!(budget.take(&other, "", KIB, at(0)).is_err());
        assert!(budget.take(&holder("3", "c:operate"), "", KIB, at(0)).is_ok());
        drop(places);
        assert!(budget.take(&Identity::anyone(), "", KIB, at(0)).is_ok());
    }

    #[test]
    fn few_calls_are_written_down_at_once() {
        let budget = Budget::default();
        let take = |id: &str| budget.take(&holder(id, "a:operate"), id, 1, at(0));
        let mut places: Vec<Place> = (0..CALLS_OF_ACCOUNT_MAX).map(|_| take("0").unwrap()).collect();
        assert!(take("0").is_err());
        for id in 1..CALLS_MAX / CALLS_OF_ACCOUNT_MAX {
            places.extend((0..CALLS_OF_ACCOUNT_MAX).map(|_| take(&id.to_string()).unwrap()));
        }
        assert!(take("another").is_err());
        places.remove(0);
        assert!(take("0").is_ok());
    }

    #[test]
    fn all_tenants_together_have_bytes_and_operators_have_their_own() {
        let budget = Budget::default();
        let take = |id: &str, now| budget.take(&holder(id, "a:operate"), id, 64 << 10, at(now)).map(drop);
        for tenant in 0..64 {
            for _ in 0..16 {
                take(&tenant.to_string(), 0).unwrap();
            }
        }
        assert!(take("another", 0).is_err());
        assert!(budget.take(&holder("ops", "*:operate"), "another", 64 << 10, at(0)).is_ok());
        assert!(take("another", 31).is_err());
        assert!(take("another", 32).is_ok(), "2 KiB come back in a second");
    }

    #[test]
    fn what_is_kept_beside_a_record_is_charged_too() {
        let budget = Budget::default();
        let one = holder("1", "a:operate");
        budget.take(&one, "a", KIB, at(0)).unwrap().charge(1_022 * KIB, at(0));
        budget.take(&one, "a", KIB, at(0)).unwrap().charge(100 * KIB, at(0));
        assert!(budget.take(&one, "a", 1, at(0)).is_err());
        assert!(budget.take(&one, "a", KIB, at(8)).is_ok(), "nobody owes anything");
    }

    #[test]
    fn names_that_are_made_up_fill_no_memory() {
        let budget = Budget::default();
        let anyone = Identity::anyone();
        for number in 0..ACCOUNTS_MAX {
            budget.take(&anyone, &number.to_string(), 4_096, at(0)).unwrap();
        }
        assert!(budget.take(&anyone, "one more", 1, at(0)).is_err());
        assert!(budget.take(&anyone, "1", 1, at(0)).is_ok(), "who is known goes on");
        assert!(budget.take(&anyone, "one more", 1, at(10)).is_ok());
        assert!(budget.lock().by_name.len() < 10);
    }

    #[test]
    fn tenants_keep_no_operator_from_acting() {
        let budget = Budget::default();
        let tenants: Vec<Place> = (0..CALLS_MAX)
            .map(|number| {
                budget.take(&holder(&number.to_string(), "*:produce"), &number.to_string(), 1, at(0))
            })
            .map(Result::unwrap)
            .collect();
        assert!(budget.take(&holder("t", "a:operate"), "a", 1, at(0)).is_err());
        assert!(budget.take(&holder("ops", "*:operate"), "a", 1, at(0)).is_ok());
        drop(tenants);
        assert!(budget.take(&holder("t", "a:operate"), "a", 1, at(0)).is_ok());
    }
}
