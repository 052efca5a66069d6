//! Whether tenants share the batches of a shard. Who is alone there holds up nobody.

use std::time::Duration;

use forebay_types::{Monotonic, Namespace};

/// How long after another tenant had something in a shard nobody is alone there.
const COMPANY: Duration = Duration::from_secs(10);

/// The tenants that have had something for the batches of a shard.
#[derive(Debug, Default)]
pub(in crate::shard) struct Company {
    /// The one that had something last.
    last: Option<Namespace>,
    /// Until then more than one tenant counts as there.
    until: Option<Monotonic>,
}

impl Company {
    /// A tenant has something for the next batch.
    pub fn meets(&mut self, tenant: &Namespace, at: Monotonic) {
        if self.last.as_ref() == Some(tenant) {
            return;
        }
        if self.last.replace(tenant.clone()).is_some() {
            self.until = Some(at.plus(COMPANY));
        }
    }

    /// Several tenants may have something for the next batch, `first` among them.
    pub fn meets_all(&mut self, tenants: usize, first: Option<&Namespace>, at: Monotonic) {
        if let Some(first) = first {
            self.meets(first, at);
        }
        if tenants > 1 {
            self.until = Some(at.plus(COMPANY));
        }
    }

    /// Whether a batch that is built now is shared.
    pub fn is_there(&self, at: Monotonic) -> bool {
        self.until.is_some_and(|until| at < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_alone_for_a_while_after_another_tenant_was_there() {
        let at = |ms| Monotonic::from_start(Duration::from_millis(ms));
        let (mine, other) = (Namespace::from("mine"), Namespace::from("other"));
        let mut company = Company::default();
        company.meets_all(1, Some(&mine), at(0));
        company.meets_all(1, Some(&mine), at(1));
        assert!(!company.is_there(at(1)));
        company.meets_all(1, Some(&other), at(2));
        company.meets_all(1, Some(&mine), at(3));
        assert!(company.is_there(at(10_002)) && !company.is_there(at(10_003)));
        company.meets_all(2, Some(&mine), at(20_000));
        assert!(company.is_there(at(20_000)));
    }
}
