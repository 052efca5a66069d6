//! Planted bugs of the catalog. They show that the checker notices them.

/// A planted bug of a fake catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CatalogBug {
    /// The assignment is written whatever its version is: a change overwrites what it has not seen.
    AssignsWithoutCompare,
}
