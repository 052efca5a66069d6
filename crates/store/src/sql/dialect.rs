//! The differences between the two kinds of SQL.

/// A kind of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// MySQL and MariaDB.
    MySql,
    /// SQLite.
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

    /// Names the index that a SELECT from `item` must use, whatever the table's statistics suggest.
    pub(crate) const fn item_in_delivery_order(self) -> &'static str {
        match self {
            Self::MySql => "item i FORCE INDEX (delivery)",
            Self::Sqlite => "item AS i INDEXED BY delivery",
        }
    }

    /// The same for a SELECT of dead letters by their end: they may be large, and many may be due.
    pub(crate) const fn dead_letters_by_end(self) -> &'static str {
        match self {
            Self::MySql => "dead_letter d FORCE INDEX (retention)",
            Self::Sqlite => "dead_letter AS d INDEXED BY retention",
        }
    }

    /// The same for a SELECT of topics by namespace and name.
    pub(crate) const fn topics_by_name(self) -> &'static str {
        match self {
            Self::MySql => "topic FORCE INDEX (by_name)",
            Self::Sqlite => "topic INDEXED BY by_name",
        }
    }

    /// The same for a SELECT of a topic's dead letters by their deaths.
    pub(crate) const fn dead_letters_by_death(self) -> &'static str {
        match self {
            Self::MySql => "dead_letter d FORCE INDEX (deaths)",
            Self::Sqlite => "dead_letter AS d INDEXED BY deaths",
        }
    }

    /// Bytes behind bytes.
    pub(crate) fn concat_bytes(self, first: &str, second: &str) -> String {
        match self {
            Self::MySql => format!("CONCAT({first}, {second})"),
            // The operator makes text of them.
            Self::Sqlite => format!("CAST({first} || {second} AS BLOB)"),
        }
    }

    /// A join that reads the left table first.
    pub(crate) const fn join_in_order(self) -> &'static str {
        match self {
            Self::MySql => "STRAIGHT_JOIN",
            Self::Sqlite => "CROSS JOIN",
        }
    }

    /// A query for the names of the dedupe tables.
    pub(crate) const fn generations(self) -> &'static str {
        match self {
            Self::MySql => {
                "SELECT table_name FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_name LIKE 'dedupe\\_%'"
            }
            Self::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'dedupe_*'",
        }
    }
}
