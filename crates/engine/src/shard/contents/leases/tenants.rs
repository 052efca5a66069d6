//! Each tenant's items of a shard: items that are leased, and items on their way there with their bodies.

use forebay_types::Namespace;
use rustc_hash::FxHashMap;

use crate::shard::work::LEASE_BYTES;

/// The items of one tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::shard) struct TenantItems {
    /// Items that are leased.
    pub leased: usize,
    /// Items that are reserved.
    pub reserved: usize,
    /// Bytes of those.
    pub reserved_bytes: usize,
}

/// All tenants that hold something.
#[derive(Debug, Default)]
pub(in crate::shard) struct Tenants {
    /// By their names.
    by_name: FxHashMap<Namespace, TenantItems>,
    /// Bytes of reserved items, of all tenants.
    reserved_bytes: usize,
}

impl Tenants {
    /// The items of a tenant.
    pub fn of(&self, namespace: &str) -> TenantItems {
        self.by_name.get(namespace).copied().unwrap_or_default()
    }

    /// Bytes of reserved items, of all tenants.
    pub fn reserved_bytes(&self) -> usize {
        self.reserved_bytes
    }

    /// Deliveries of a tenant begin.
    pub fn leased(&mut self, namespace: &Namespace, items: usize) {
        self.entry(namespace).leased += items;
    }

    /// A delivery of a tenant ended.
    pub fn ended(&mut self, namespace: &Namespace) {
        self.leave(namespace, |held| held.leased = held.leased.saturating_sub(1));
    }

    /// An item with a body of so many bytes is reserved.
    pub fn reserved(&mut self, namespace: &Namespace, bytes: u32) {
        let bytes = bytes as usize + LEASE_BYTES;
        let held = self.entry(namespace);
        held.reserved += 1;
        held.reserved_bytes += bytes;
        self.reserved_bytes += bytes;
    }

    /// It is reserved no more.
    pub fn unreserved(&mut self, namespace: &Namespace, bytes: u32) {
        let bytes = bytes as usize + LEASE_BYTES;
        self.reserved_bytes = self.reserved_bytes.saturating_sub(bytes);
        self.leave(namespace, |held| {
            held.reserved = held.reserved.saturating_sub(1);
            held.reserved_bytes = held.reserved_bytes.saturating_sub(bytes);
        });
    }

    fn entry(&mut self, namespace: &Namespace) -> &mut TenantItems {
        if !self.by_name.contains_key(namespace) {
            self.by_name.insert(namespace.clone(), TenantItems::default());
        }
        self.by_name.get_mut(namespace).expect("it was just looked for")
    }

    /// A tenant holds less. One that holds nothing is forgotten.
    fn leave(&mut self, namespace: &Namespace, change: impl FnOnce(&mut TenantItems)) {
        if let Some(held) = self.by_name.get_mut(namespace) {
            change(held);
            if *held == TenantItems::default() {
                self.by_name.remove(namespace);
            }
        }
    }

    /// Whether the accounts are these. Checked in tests.
    pub fn check(&self, held: &FxHashMap<Namespace, TenantItems>) -> Result<(), String> {
        let bytes: usize = held.values().map(|held| held.reserved_bytes).sum();
        match *held == self.by_name && bytes == self.reserved_bytes {
            true => Ok(()),
            false => Err(format!("tenants hold {held:?}, their accounts say {:?}", self.by_name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::tests::check::wrong;

    #[test]
    fn a_tenant_that_holds_nothing_is_forgotten() {
        let mut tenants = Tenants::default();
        tenants.leased(&"a".into(), 2);
        tenants.reserved(&"a".into(), 10);
        assert_eq!(tenants.of("a"), TenantItems { leased: 2, reserved: 1, reserved_bytes: 10 + LEASE_BYTES });
        tenants.ended(&"a".into());
        tenants.ended(&"a".into());
        tenants.unreserved(&"a".into(), 10);
        assert_eq!((tenants.by_name.len(), tenants.reserved_bytes()), (0, 0));
    }

    #[test]
    fn an_account_that_is_wrong_is_found() {
        let what = wrong(|shard| shard.contents.tenants.by_name.get_mut("ns").unwrap().leased += 1);
        assert!(what.starts_with("tenants hold") && what.contains("their accounts say"), "{what}");
    }
}
