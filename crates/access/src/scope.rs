//! Scopes: the rights of a credential.

use std::fmt;

/// One right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Store items.
    Produce,
    /// Lease items, and end their deliveries.
    Consume,
    /// See topics, counts and states, but nothing that tenants have stored.
    Observe,
    /// See payloads, metadata and headers without leasing.
    Inspect,
    /// Pause, purge, redrive, cancel.
    Operate,
    /// Change settings, tokens and the cluster.
    Admin,
    /// Read the metrics.
    Metrics,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 7] = [
        Self::Produce,
        Self::Consume,
        Self::Observe,
        Self::Inspect,
        Self::Operate,
        Self::Admin,
        Self::Metrics,
    ];

    /// Its name in grants and errors.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Produce => "produce",
            Self::Consume => "consume",
            Self::Observe => "observe",
            Self::Inspect => "inspect",
            Self::Operate => "operate",
            Self::Admin => "admin",
            Self::Metrics => "metrics",
        }
    }

    /// Reads what [`Scope::as_str`] wrote.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name)
    }
}

/// Any number of scopes. None of them includes another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// All of them.
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }

    /// Whether a scope is one of them.
    pub const fn has(self, scope: Scope) -> bool {
        self.0 & 1 << scope as u8 != 0
    }

    /// Each of them, in order.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.has(*scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<T: IntoIterator<Item = Scope>>(scopes: T) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | 1 << scope as u8))
    }
}

/// Their names, with commas.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "," })?;
            f.write_str(scope.as_str())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_apart() {
        for scope in Scope::ALL {
            assert_eq!(Scope::from_name(scope.as_str()), Some(scope));
            let one: Scopes = [scope].into_iter().collect();
            assert_eq!(one.iter().collect::<Vec<_>>(), [scope]);
            assert!(Scopes::all().has(scope));
        }
        assert_eq!(Scope::from_name("all"), None);
        assert_eq!(Scopes::all().to_string(), "produce,consume,observe,inspect,operate,admin,metrics");
        assert_eq!(Scopes::default().to_string(), "");
    }
}
