//! The two families of server that Forebay runs on.

use std::{fmt, str::FromStr};

/// A family of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// MariaDB.
    MariaDb,
    /// Oracle's MySQL.
    MySql,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::MariaDb, Self::MySql];

    /// As written in `FOREBAY_TEST_REQUIRE`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb",
            Self::MySql => "mysql",
        }
    }

    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::MariaDb => Self::MySql,
            Self::MySql => Self::MariaDb,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| anyhow::anyhow!("unknown kind of server {text:?}: use mariadb or mysql"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_by_name() {
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse::<Kind>().unwrap(), kind);
        }
        assert!("oracle".parse::<Kind>().is_err());
    }
}
