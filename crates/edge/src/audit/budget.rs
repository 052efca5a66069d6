//! How much a caller can have written. All that descends from one root of rights has one account: so many
//! bytes at once, and some back every second. Beside that all tenants of a node pay from a common pool. What
//! each root keeps when the pool is empty is its own, so that no tenant keeps another from acting.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use forebay_access::{Identity, Kind};
use forebay_engine::RETRY_AFTER;
use forebay_types::{Monotonic, Refusal};

use crate::rpc::overloaded;

/// At most this many accounts are kept where names are made up. One that is full again is forgotten.
const ACCOUNTS_MAX: usize = 4_096;
/// At most this many calls are written down at once, in all.
const CALLS_MAX: usize = 64;
/// At most this many calls of one account are written down at once.
const CALLS_OF_ACCOUNT_MAX: usize = 8;

/// Bytes that can be written at once, and that come back in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    /// At once.
    bytes: u64,
    /// Back in a second.
    per_second: u64,
}

/// Of a root: some 2,500 calls at once, then one in three seconds, which are 4 GiB in 400 days.
const ROOT: Size = Size { bytes: 1 << 20, per_second: 128 };
/// The part of it that needs nothing of the pool: some 150 calls at once, then one in half a minute.
const KEPT: Size = Size { bytes: 64 << 10, per_second: 16 };
/// Of those who run the cluster, and of everybody where there is no access control.
const OPERATOR: Size = Size { bytes: 16 << 20, per_second: 2 << 10 };
/// The pool of all tenants: 68 GiB in 400 days, whatever number of them there is.
const POOL: Size = Size { bytes: 64 << 20, per_second: 2 << 10 };

/// Bytes that are taken, and come back.
#[derive(Debug, Clone, Copy)]
struct Level {
    /// How many there are, and how they come back.
    size: Size,
    /// Bytes that were left, and when that was.
    left: (u64, Monotonic),
}

impl Level {
    const fn full(size: Size, now: Monotonic) -> Self {
        Self { size, left: (size.bytes, now) }
    }

    fn left(&self, now: Monotonic) -> u64 {
        let (left, since) = self.left;
        let back = now.since(since).as_millis() * u128::from(self.size.per_second) / 1_000;
        left.saturating_add(u64::try_from(back).unwrap_or(u64::MAX)).min(self.size.bytes)
    }

    fn take(&mut self, bytes: u64, now: Monotonic) {
        self.left = (self.left(now).saturating_sub(bytes), now);
    }

    fn give_back(&mut self, bytes: u64, now: Monotonic) {
        self.left = (self.left(now).saturating_add(bytes).min(self.size.bytes), now);
    }
}

/// Bytes and calls of an account.
struct Account {
    /// All of it.
    own: Level,
    /// The part that needs nothing of the pool.
    kept: Level,
    /// Its calls that are being written down.
    calls: usize,
}

impl Account {
    fn is_full(&self, now: Monotonic) -> bool {
        let is_full = |level: &Level| level.left(now) == level.size.bytes;
        self.calls == 0 && is_full(&self.own) && is_full(&self.kept)
    }
}

/// All accounts.
#[derive(Default)]
struct Accounts {
    /// By who has them.
    by_name: HashMap<String, Account>,
    /// The pool that all tenants pay from. `None`: it is full.
    pool: Option<Level>,
    /// Calls that are being written down.
    calls: usize,
}

/// All accounts of a node.
#[derive(Clone, Default)]
pub struct Budget(Arc<Mutex<Accounts>>);

/// From what a call was paid, beside its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PaymentSource {
    /// Nothing.
    Alone,
    /// The pool.
    Pool,
    /// The part that its root keeps.
    Kept,
}

/// A call's place among those that are being written down. It ends when it is dropped.
pub struct Place {
    /// All accounts.
    budget: Budget,
    /// The account that pays.
    name: String,
    /// The source that pays with it.
    paid: PaymentSource,
}

/// The account that pays, and its kind.
struct Payer {
    /// The account.
    name: String,
    /// Its size.
    size: Size,
    /// Whether it pays from the pool too.
    is_tenant: bool,
    /// Whether nobody but operators makes such names.
    is_known: bool,
}

/// Kind of the call for which bytes are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A call that is about to be made.
    Made,
    /// A call to which its caller had no right. It leaves half of everything, so that whoever tries what it
    /// must not keeps nobody from what it may.
    Denied,
}

impl Budget {
    /// Takes bytes for a call, or refuses it. `namespace`: what it is about.
    pub fn take(
        &self,
        caller: &Identity,
        namespace: &str,
        purpose: Purpose,
        bytes: usize,
        now: Monotonic,
    ) -> Result<Place, Refusal> {
        let Payer { name, size, is_tenant, is_known } = payer(caller, namespace);
        let bytes = bytes as u64;
        let accounts = &mut *self.lock();
        if accounts.by_name.len() >= ACCOUNTS_MAX {
            accounts.by_name.retain(|_, account| !account.is_full(now));
            if accounts.by_name.len() >= ACCOUNTS_MAX && !is_known && !accounts.by_name.contains_key(&name) {
                return Err(refused("many tenants have calls written down in the audit log"));
            }
        }
        let fits = |level: &Level| {
            let kept = if purpose == Purpose::Denied { level.size.bytes / 2 } else { 0 };
            level.left(now) >= bytes + kept
        };
        let new = || Account { own: Level::full(size, now), kept: Level::full(KEPT, now), calls: 0 };
        let account = accounts.by_name.entry(name.clone()).or_insert_with(new);
        if !fits(&account.own) || account.calls >= CALLS_OF_ACCOUNT_MAX {
            return Err(refused(
                "the caller, or whoever gave it its rights, has had much written to the audit log",
            ));
        }
        let pool = accounts.pool.get_or_insert_with(|| Level::full(POOL, now));
        let is_crowded = accounts.calls >= CALLS_MAX;
        let paid = match is_tenant {
            // Tenants keep no operator from acting.
            false if is_crowded && !is_known => {
                return Err(refused("many calls are being written down in the audit log"));
            }
            false => PaymentSource::Alone,
            true if !is_crowded && fits(pool) => PaymentSource::Pool,
            true if account.calls == 0 && fits(&account.kept) => PaymentSource::Kept,
            true => return Err(refused("all tenants have had much written to the audit log")),
        };
        account.own.take(bytes, now);
        match paid {
            PaymentSource::Alone => {}
            PaymentSource::Pool => pool.take(bytes, now),
            PaymentSource::Kept => account.kept.take(bytes, now),
        }
        account.calls += 1;
        accounts.calls += 1;
        Ok(Place { budget: self.clone(), name, paid })
    }

    fn lock(&self) -> MutexGuard<'_, Accounts> {
        // A panic while the lock is held leaves valid values.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Gives bytes back that are not kept.
    pub fn give_back(&self, bytes: usize, now: Monotonic) {
        self.with_levels(|level| level.give_back(bytes as u64, now));
    }

    fn with_levels(&self, change: impl Fn(&mut Level)) {
        let accounts = &mut *self.budget.lock();
        let Some(account) = accounts.by_name.get_mut(&self.name) else { return };
        change(&mut account.own);
        match self.paid {
            PaymentSource::Alone => {}
            PaymentSource::Pool => accounts.pool.iter_mut().for_each(change),
            PaymentSource::Kept => change(&mut account.kept),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let accounts = &mut *self.budget.lock();
        accounts.calls = accounts.calls.saturating_sub(1);
        if let Some(account) = accounts.by_name.get_mut(&self.name) {
            account.calls = account.calls.saturating_sub(1);
        }
    }
}

/// Whose account a call is charged to.
fn payer(caller: &Identity, namespace: &str) -> Payer {
    let root = || format!("root {}", caller.root());
    match caller.kind {
        // Nobody is known, so that only names tell tenants apart.
        Kind::Anyone => {
            let name = format!("namespace {namespace}");
            Payer { name, size: OPERATOR, is_tenant: false, is_known: false }
        }
        _ if caller.is_operator() => Payer { name: root(), size: OPERATOR, is_tenant: false, is_known: true },
        _ => Payer { name: root(), size: ROOT, is_tenant: true, is_known: true },
    }
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
        let (grants, id) = (vec![grant.parse().unwrap()], id.to_owned());
        Identity { kind: Kind::Token, id, grants, ..Identity::anyone() }
    }

    fn at(seconds: u64) -> Monotonic {
        Monotonic::from_start(Duration::from_secs(seconds))
    }

    fn take(budget: &Budget, who: &Identity, bytes: usize, seconds: u64) -> Result<Place, Refusal> {
        budget.take(who, "a", Purpose::Made, bytes, at(seconds))
    }

    #[test]
    fn all_that_descends_from_one_root_has_one_account() {
        let budget = Budget::default();
        let child = |id: &str| Identity { root: "root".to_owned(), ..holder(id, "team-*:operate") };
        for number in 0..1_024 {
            take(&budget, &child(&number.to_string()), KIB, 0).unwrap();
        }
        assert!(take(&budget, &child("another"), KIB, 0).is_err());
        assert!(take(&budget, &holder("root", "team-*:all"), KIB, 0).is_err(), "it is the root itself");
        assert!(take(&budget, &holder("2", "a:operate"), KIB, 0).is_ok(), "another root");
        assert!(take(&budget, &holder("ops", "*:operate"), KIB, 0).is_ok(), "an operator may act");
        assert!(take(&budget, &child("1"), KIB, 7).is_err());
        assert!(take(&budget, &child("1"), KIB, 8).is_ok());
        assert!(take(&budget, &child("1"), KIB, 8).is_err());
    }

    #[test]
    fn few_calls_are_written_down_at_once_and_each_root_has_one() {
        let budget = Budget::default();
        let take = |id: &str| take(&budget, &holder(id, "a:operate"), 1, 0);
        let mut places: Vec<Place> = (0..CALLS_OF_ACCOUNT_MAX).map(|_| take("0").unwrap()).collect();
        assert!(take("0").is_err());
        for id in 1..CALLS_MAX / CALLS_OF_ACCOUNT_MAX {
            places.extend((0..CALLS_OF_ACCOUNT_MAX).map(|_| take(&id.to_string()).unwrap()));
        }
        let _first = take("another").expect("each root keeps one");
        assert!(take("another").is_err());
        places.truncate(10);
        assert!(take("another").is_ok());
    }

    #[test]
    fn each_root_keeps_some_when_the_pool_is_empty() {
        let budget = Budget::default();
        let many = |id: &str, seconds| take(&budget, &holder(id, "a:operate"), 64 * KIB, seconds).map(drop);
        for root in 0..64 {
            for _ in 0..16 {
                many(&root.to_string(), 0).unwrap();
            }
        }
        let other = holder("other", "b:operate");
        for number in 0..64 {
            assert!(take(&budget, &other, KIB, 0).is_ok(), "{number}");
        }
        assert!(take(&budget, &other, KIB, 0).is_err());
        assert!(take(&budget, &other, 16, 1).is_ok(), "16 bytes come back in a second to itself");
        assert!(take(&budget, &holder("ops", "*:operate"), 64 * KIB, 0).is_ok());
        assert!(many("late", 33).is_ok(), "2 KiB come back to the pool in a second");
    }

    #[test]
    fn what_is_not_kept_comes_back() {
        let budget = Budget::default();
        let one = holder("1", "a:operate");
        let _all_but_one = take(&budget, &one, 1_023 * KIB, 0).unwrap();
        let place = take(&budget, &one, KIB, 0).unwrap();
        assert!(take(&budget, &one, 1, 0).is_err());
        place.give_back(900, at(0));
        assert!(take(&budget, &one, 900, 0).is_ok());
        assert!(take(&budget, &one, 1, 0).is_err());
    }

    #[test]
    fn refused_attempts_leave_half_for_what_may_be_done() {
        let budget = Budget::default();
        let one = holder("1", "a:operate");
        let denied = || budget.take(&one, "b", Purpose::Denied, KIB, at(0)).is_ok();
        assert_eq!((0..2_000).filter(|_| denied()).count(), 512);
        assert_eq!((0..2_000).filter(|_| take(&budget, &one, KIB, 0).is_ok()).count(), 512);
    }

    #[test]
    fn names_that_are_made_up_fill_no_memory() {
        let budget = Budget::default();
        let anyone = Identity::anyone();
        let take = |name: &str, bytes, seconds| budget.take(&anyone, name, Purpose::Made, bytes, at(seconds));
        for number in 0..ACCOUNTS_MAX {
            take(&number.to_string(), 4_096, 0).unwrap();
        }
        assert!(take("one more", 1, 0).is_err());
        assert!(take("1", 1, 0).is_ok(), "who is known goes on");
        let tenant = budget.take(&holder("t", "a:operate"), "a", Purpose::Made, 1, at(0));
        assert!(tenant.is_ok(), "its root is none that is made up");
        assert!(take("one more", 1, 10).is_ok());
        assert!(budget.lock().by_name.len() < 10);
    }

    #[test]
    fn tenants_keep_no_operator_from_acting() {
        let budget = Budget::default();
        let tenants: Vec<Place> = (0..CALLS_MAX)
            .map(|number| take(&budget, &holder(&number.to_string(), "*:produce"), 1, 0).unwrap())
            .collect();
        assert!(take(&budget, &holder("ops", "*:operate"), 1, 0).is_ok());
        drop(tenants);
        assert_eq!(budget.lock().calls, 0);
    }
}
