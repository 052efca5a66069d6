//! Private MariaDB and MySQL servers for tests: where to find one, how to run it, how to end it.
//!
//! A server comes from the PATH, else from the distribution's packages, unpacked under `target/servers`
//! and installed nowhere ([`locate`]). It runs in a temporary folder, listens on 127.0.0.1 alone, and ends
//! with the process that started it, however that one ends ([`Process`]).

#[cfg(feature = "docker")]
pub mod docker;
mod find;
mod greeting;
mod kept;
mod process;
mod template;
mod unpack;

use std::{fmt, str::FromStr};

pub use find::{Install, locate};
pub use greeting::{Greeting, greet};
pub use kept::Kept;
pub use process::{Process, free_port, random};

/// Environment: the URL of a MariaDB server to test against, as in `mysql://root@127.0.0.1:3306`.
pub const MARIADB_URL: &str = "FOREBAY_TEST_MARIADB_URL";
/// Environment: the URL of a server of either kind to test against.
pub const MYSQL_URL: &str = "FOREBAY_TEST_MYSQL_URL";
/// Environment: the kinds of server that must be there, as in `mariadb,mysql`. A kind that is not named
/// may be stood in for by the other one.
pub const REQUIRE: &str = "FOREBAY_TEST_REQUIRE";

/// The two families of server that Forebay runs on.
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

    /// The variable that names a running server of this kind.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::MariaDb => MARIADB_URL,
            Self::MySql => MYSQL_URL,
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
            .ok_or_else(|| anyhow::anyhow!("no kind of server: {text:?} (mariadb, mysql)"))
    }
}

/// The kinds that `FOREBAY_TEST_REQUIRE` makes compulsory.
pub fn required() -> anyhow::Result<Vec<Kind>> {
    let text = std::env::var(REQUIRE).unwrap_or_default();
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(Kind::from_str).collect()
}

/// A running server of `kind` that the environment names, with its greeting. A variable whose server does
/// not answer, or has the wrong kind where that is not allowed, is an error rather than skipped.
pub fn named_by_environment(kind: Kind) -> anyhow::Result<Option<(String, Greeting)>> {
    use anyhow::Context as _;
    let must_match = required()?.contains(&kind);
    for variable in [kind.variable(), MYSQL_URL] {
        let Ok(url) = std::env::var(variable) else { continue };
        let greeting =
            greet(&address_of(&url)?).with_context(|| format!("{variable}: {url} does not answer"))?;
        if greeting.kind == kind || (variable == kind.variable() && !must_match) {
            return Ok(Some((url, greeting)));
        }
    }
    Ok(None)
}

/// `host:port` of a `mysql://` URL.
fn address_of(url: &str) -> anyhow::Result<String> {
    let rest = url
        .strip_prefix("mysql://")
        .or_else(|| url.strip_prefix("mariadb://"))
        .ok_or_else(|| anyhow::anyhow!("not a mysql:// URL: {url:?}"))?;
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Ok(if has_port { host.to_owned() } else { format!("{host}:3306") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_urls() {
        for (url, address) in [
            ("mysql://root@127.0.0.1:3307/db", "127.0.0.1:3307"),
            ("mysql://a:p%40ss@db1", "db1:3306"),
            ("mariadb://db2:1?x=y", "db2:1"),
            ("mysql://[::1]/db", "[::1]:3306"),
        ] {
            assert_eq!(address_of(url).unwrap(), address, "{url}");
        }
        assert!(address_of("postgres://x").is_err());
    }

    #[test]
    fn kinds_are_read_by_name() {
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse::<Kind>().unwrap(), kind);
        }
        assert!("oracle".parse::<Kind>().is_err());
    }
}
