//! The address of a shard's server, and the credentials for it.

use std::{fmt, path::PathBuf, str::FromStr as _};

use sqlx::{
    ConnectOptions as _,
    mysql::{MySqlConnectOptions, MySqlSslMode},
};

use crate::error::{ErrorClass, StoreError};

/// Connection options beside the URL.
#[derive(Clone, Default)]
pub struct MySqlOptions {
    /// The account's password. It overrides one in the URL. Never logged.
    pub password: Option<String>,
    /// A file with the certificates of trusted authorities. With it, connections are encrypted and the
    /// server's identity is verified.
    pub tls_ca: Option<PathBuf>,
}

impl fmt::Debug for MySqlOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlOptions").field("tls_ca", &self.tls_ca).finish_non_exhaustive()
    }
}

/// Parses a shard's URL. It must name a schema.
pub(super) fn parse(url: &str, options: &MySqlOptions) -> Result<MySqlConnectOptions, StoreError> {
    // The URL may contain a password, so no message repeats it.
    let wrong = |what: &str| {
        let message = format!("not the URL of a shard (mysql://user@host:3306/schema): {what}");
        StoreError::new(ErrorClass::Disconnected, message)
    };
    if !url.starts_with("mysql://") && !url.starts_with("mariadb://") {
        return Err(wrong("it must begin with mysql://"));
    }
    let mut parsed = MySqlConnectOptions::from_str(url).map_err(|error| wrong(&error.to_string()))?;
    match parsed.get_database() {
        None | Some("") => return Err(wrong("it names no schema")),
        Some(schema) if schema.contains('`') => return Err(wrong("the schema's name contains a `")),
        Some(_) => {}
    }
    if let Some(password) = &options.password {
        parsed = parsed.password(password);
    }
    if let Some(ca) = &options.tls_ca {
        parsed = parsed.ssl_mode(MySqlSslMode::VerifyIdentity).ssl_ca(ca);
    } else if options.password.is_none() && !url.contains("ssl-mode") && !url.contains("sslmode") {
        // Nothing to protect: TLS without a trusted authority only hides a password. And the driver leaves
        // Nagle's algorithm on, which delays each statement of more than one TLS record by 40 ms.
        parsed = parsed.ssl_mode(MySqlSslMode::Disabled);
    }
    // connect.rs sets the session variables in one statement.
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
    fn the_error_for_a_wrong_url_hides_the_password() {
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
