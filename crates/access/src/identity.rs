//! Maker of a request, and its rights.

use forebay_types::Timestamp;

use crate::{
    grant::{Grant, Namespaces},
    scope::{Scope, Scopes},
};

/// The bytes of a root that the catalog stores.
const CATALOG_BYTES_MAX: usize = 255;

/// How it is known who makes a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is not: there is no access control.
    Anyone,
    /// By a token.
    Token,
    /// By the certificate of its connection.
    Certificate,
}

/// Maker of a request, and its rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// How it is known.
    pub kind: Kind,
    /// The id of the token, or the name of the certificate.
    pub id: String,
    /// The name for people. It may be empty.
    pub name: String,
    /// Its rights.
    pub grants: Vec<Grant>,
    /// When its rights end.
    pub ends: Option<Timestamp>,
    /// The token, or the certificate, of an operator's making from which its rights descend. Empty: it is
    /// that itself.
    pub root: String,
}

impl Identity {
    /// Whoever it is, where there is no access control. May do everything.
    pub fn anyone() -> Self {
        let grants = vec![Grant { namespaces: Namespaces::All, scopes: Scopes::all() }];
        let (id, name, root) = Default::default();
        Self { kind: Kind::Anyone, id, name, grants, ends: None, root }
    }

    /// From whom its rights descend. What all tenants share is shared out by this: whoever has rights may
    /// make any number of tokens, but only operators make roots.
    pub fn root(&self) -> &str {
        if self.root.is_empty() { &self.id } else { &self.root }
    }

    /// The same as far as a column of the catalog takes it. Names of certificates may be longer.
    pub fn root_in_catalog(&self) -> &str {
        let root = self.root();
        &root[..root.floor_char_boundary(CATALOG_BYTES_MAX)]
    }

    /// Whether it runs the cluster, so that tenants must not keep it from that.
    pub fn is_operator(&self) -> bool {
        let scopes = [Scope::Admin, Scope::Operate, Scope::Inspect, Scope::Observe];
        scopes.into_iter().any(|scope| self.may_everywhere(scope))
    }

    /// Whether it has a scope in a namespace.
    pub fn may(&self, scope: Scope, namespace: &str) -> bool {
        self.grants.iter().any(|grant| grant.scopes.has(scope) && grant.namespaces.has(namespace))
    }

    /// Whether it has a scope in all of these namespaces, so that it may give it to others there.
    pub fn may_give(&self, scope: Scope, namespaces: &Namespaces) -> bool {
        self.grants.iter().any(|grant| grant.scopes.has(scope) && grant.namespaces.cover(namespaces))
    }

    /// Whether it has a scope in all namespaces, and for what belongs to none of them.
    pub fn may_everywhere(&self, scope: Scope) -> bool {
        self.may(scope, "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_as_long_as_the_catalog_takes() {
        let certificate = |id: String| Identity { kind: Kind::Certificate, id, ..Identity::anyone() };
        let long = certificate(format!("spiffe://prod/{}", "é".repeat(200)));
        assert_eq!(long.root_in_catalog().len(), 254, "cut at a character");
        let made = Identity { root: long.root_in_catalog().to_owned(), ..certificate("token".to_owned()) };
        assert_eq!(made.root_in_catalog(), long.root_in_catalog(), "they count together");
    }
}
