//! How those share a table of the catalog whose rights descend from different tokens.
//!
//! Whoever has `admin` in names that begin alike has as many namespaces and tokens as it makes. So rows
//! count among the root of whoever wrote them: the token of an operator's making from which all these rights
//! descend.

/// How many rows of a table there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RootBounds {
    /// Of one root.
    pub per_root: u64,
    /// In all.
    pub in_all: u64,
    /// Of them, those that operators alone may add.
    pub for_operators: u64,
    /// Of the rest, those that are left to roots that have few, and how many are few. So none is shut out by
    /// what others have.
    pub for_few: (u64, u64),
}

impl RootBounds {
    /// Bounds of a catalog.
    pub const DEFAULT: Self =
        Self { per_root: 2_000, in_all: 10_000, for_operators: 1_000, for_few: (1_000, 10) };

    /// How many there may be in all once one more is added: by an operator, or for a root that has so many.
    pub fn in_all_for(&self, is_operator: bool, of_root: u64) -> u64 {
        let (for_few, few) = self.for_few;
        match () {
            () if is_operator => self.in_all,
            () if of_root < few => self.in_all - self.for_operators,
            () => self.in_all - self.for_operators - for_few,
        }
    }
}
