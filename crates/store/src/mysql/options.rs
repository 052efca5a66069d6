//! Where a shard's server is, and what it takes to get in.

use std::{fmt, path::PathBuf, str::FromStr as _};

use sqlx::{
    ConnectOptions as _,
    mysql::{MySqlConnectOptions, MySqlSslMode},
};

use crate::{ErrorClass, StoreError};

/// What does not stand in the URL.
#[derive(Clone, Default)]
pub struct MySqlOptions {
    /// The account's password; takes the place of one in the URL. Never logged.
    pub password: Option<String>,
    /// A file with the certificates of the authorities that may vouch for the server. With it every
    /// connection is encrypted and the server's identity is verified.
    pub tls_ca: Option<PathBuf>,
}

impl fmt::Debug for MySqlOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlOptions").field("tls_ca", &self.tls_ca).finish_non_exhaustive()
    }
}

/// How to reach the schema. The URL must name one.
pub(super) fn parse(url: &str, options: &MySqlOptions) -> Result<MySqlConnectOptions, StoreError> {
    // The URL may hold a password, so that no message repeats it.
    let wrong = |what: &str| {
        let message = format!("not the URL of a shard (mysql://user@host:3306/schema): {what}");
        StoreError::new(ErrorClass::Other, message)
    };
    if !url.starts_with("mysql://") && !url.starts_with("mariadb://") {
        return Err(wrong("it must begin with mysql://"));
    }
    let mut parsed = MySqlConnectOptions::from_str(url).map_err(|error| wrong(&error.to_string()))?;
    match parsed.get_database() {
        None | Some("") => return Err(wrong("it names no schema")),
        Some(schema) if schema.contains('`') => return Err(wrong("the schema's name holds a `")),
        Some(_) => {}
    }
    if let Some(password) = &options.password {
        parsed = parsed.password(password);
    }
    if let Some(ca) = &options.tls_ca {
        parsed = parsed.ssl_mode(MySqlSslMode::VerifyIdentity).ssl_ca(ca);
    } else if options.password.is_none() && !url.contains("ssl-mode") && !url.contains("sslmode") {
        // The driver leaves Nagle's algorithm on, which costs an encrypted connection 40 ms at every
        // statement of more than one TLS record; and TLS that trusts anybody guards nothing but a password.
        parsed = parsed.ssl_mode(MySqlSslMode::Disabled);
    }
    // The session's settings are set in one statement, see connect.rs.
    Ok(parsed
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        .timezone(None)
        .set_names(false)
        .statement_cache_capacity(100)
        .disable_statement_logging())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_url_is_told_without_its_password() {
        for url in ["", "postgres://u:secret@h/s", "mysql://u:secret@h", "mysql://u:secret@h:port/s"] {
            let error = parse(url, &MySqlOptions::default()).unwrap_err();
            assert!(error.message.contains("mysql://user@host"), "{error}");
            assert!(!error.message.contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_password_is_not_shown() {
        let options = MySqlOptions { password: Some("secret".to_owned()), tls_ca: None };
        assert!(!format!("{options:?}").contains("secret"));
        parse("mysql://forebay@db1:3306/forebay_0001", &options).unwrap();
    }
}
