//! How many parts of operations may be unfinished in a shard: of a root, and of all.

use forebay_store::{OperationRow, OperationSpec, RootBounds};

/// The most parts that have not ended, of operations that have their home in the shard.
pub(in crate::shard) const HOME_BOUNDS: RootBounds =
    RootBounds { per_root: 160, in_all: 256, for_operators: 32, for_few: (32, 4) };
/// The same of all operations.
pub(in crate::shard) const SHARD_BOUNDS: RootBounds =
    RootBounds { per_root: 320, in_all: 512, for_operators: 64, for_few: (64, 8) };

/// Parts that have not ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::shard) struct OpenParts {
    /// Of a namespace.
    pub namespace: usize,
    /// Of a root.
    pub root: u64,
    /// Of all.
    pub all: u64,
}

impl OpenParts {
    /// Counts those beside which a new one would be.
    pub fn beside<'a>(spec: &OperationSpec, open: impl Iterator<Item = &'a OperationRow>) -> Self {
        open.fold(Self::default(), |parts, row| Self {
            namespace: parts.namespace + usize::from(row.spec.namespace == spec.namespace),
            root: parts.root + u64::from(row.spec.root() == spec.root()),
            all: parts.all + 1,
        })
    }

    /// The bound that one more would pass, if any.
    pub fn full(self, spec: &OperationSpec, bounds: &RootBounds) -> Option<String> {
        let is_operator = spec.root() == 0;
        match () {
            () if !is_operator && self.root >= bounds.per_root => {
                Some(format!("{} operations of one token and those made with it", bounds.per_root))
            }
            () if self.all >= bounds.in_all_for(is_operator, self.root) => {
                Some(format!("{} operations", self.all))
            }
            () => None,
        }
    }
}
