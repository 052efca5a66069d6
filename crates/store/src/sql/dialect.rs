//! Where the two kinds of SQL differ.

/// Which SQL to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    MySql,
    Sqlite,
}

impl Dialect {
    /// The end of an UPDATE or DELETE by a list of keys. Without it MariaDB scans a small table, and two
    /// overlapping batches deadlock at nearly every commit.
    pub(crate) fn bound(self, key: &str, count: usize) -> String {
        match self {
            Self::MySql => format!(" ORDER BY {key} LIMIT {count}"),
            Self::Sqlite => String::new(),
        }
    }

    /// LockNames the index that a SELECT from `item` walks along, so that no statistics lead it astray.
    pub(crate) fn item_in_delivery_order(self) -> &'static str {
        match self {
            Self::MySql => "item i FORCE INDEX (delivery)",
            Self::Sqlite => "item AS i INDEXED BY delivery",
        }
    }

    /// A join that reads the left table first.
    pub(crate) fn join_in_order(self) -> &'static str {
        match self {
            Self::MySql => "STRAIGHT_JOIN",
            Self::Sqlite => "CROSS JOIN",
        }
    }

    /// LockNames the generations of the dedupe table.
    pub(crate) fn generations(self) -> &'static str {
        match self {
            Self::MySql => {
                "SELECT table_name FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_name LIKE 'dedupe\\_%'"
            }
            Self::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'dedupe_*'",
        }
    }
}
