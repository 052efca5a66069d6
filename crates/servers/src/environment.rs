//! The environment variables that name running servers and say which kinds a test run requires.

use std::str::FromStr as _;

use anyhow::Context as _;

use crate::{
    handshake::{Handshake, read_handshake},
    kind::Kind,
};

/// Environment: the URL of a MariaDB server to test against, as in `mysql://root@127.0.0.1:3306`.
pub const MARIADB_URL: &str = "FOREBAY_TEST_MARIADB_URL";
/// Environment: the URL of a server of either kind to test against.
pub const MYSQL_URL: &str = "FOREBAY_TEST_MYSQL_URL";
/// Environment: the kinds of server that must be available, as in `mariadb,mysql`. A kind that is not
/// named may be replaced by the other one.
pub const REQUIRE: &str = "FOREBAY_TEST_REQUIRE";

impl Kind {
    /// The variable that names a running server of this kind.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::MariaDb => MARIADB_URL,
            Self::MySql => MYSQL_URL,
        }
    }
}

/// The kinds that `FOREBAY_TEST_REQUIRE` makes compulsory.
pub fn required() -> anyhow::Result<Vec<Kind>> {
    let text = std::env::var(REQUIRE).unwrap_or_default();
    text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(Kind::from_str).collect()
}

/// The URL and handshake of a running server of `kind` that the environment names. If that server does not
/// answer, the call fails: a named server is never skipped.
pub fn named_by_environment(kind: Kind) -> anyhow::Result<Option<(String, Handshake)>> {
    let must_match = required()?.contains(&kind);
    for variable in [kind.variable(), MYSQL_URL] {
        let Ok(url) = std::env::var(variable) else { continue };
        let handshake = read_handshake(&address_of(&url)?)
            .with_context(|| format!("{variable}: no server answers at {url}"))?;
        if handshake.kind == kind || (variable == kind.variable() && !must_match) {
            return Ok(Some((url, handshake)));
        }
    }
    Ok(None)
}

/// `host:port` of a `mysql://` URL.
fn address_of(url: &str) -> anyhow::Result<String> {
    let rest = url
        .strip_prefix("mysql://")
        .or_else(|| url.strip_prefix("mariadb://"))
        .with_context(|| format!("not a mysql:// URL: {url:?}"))?;
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
}
