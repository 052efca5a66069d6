//! The address of a shard's server, and the credentials for it.

use std::{fmt, path::PathBuf, str::FromStr as _};

use sqlx::{
    ConnectOptions as _,
    mysql::{MySqlConnectOptions, MySqlSslMode},
};

use super::target::{PasswordFile, Target};
use crate::error::{ErrorClass, StoreError};

/// Connection options beside the URL.
#[derive(Clone, Default)]
pub struct MySqlOptions {
    /// The account's password. It overrides one in the URL. Never logged.
    pub password: Option<Password>,
    /// A file with the certificates of trusted authorities. With it, connections are encrypted and the
    /// server's identity is verified.
    pub tls_ca: Option<PathBuf>,
    /// Whether connections are encrypted.
    pub tls: Tls,
}

/// An account's password.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// This one.
    Text(String),
    /// The text of this file when a connection is made.
    File(PathBuf),
}

/// Whether connections to a server are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tls {
    /// If the server can. Without a trusted authority that protects against those who listen, not against
    /// those who answer in the server's place.
    #[default]
    Auto,
    /// Always: a server that can't is refused.
    Required,
    /// Never.
    Off,
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("Text"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

impl fmt::Debug for MySqlOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySqlOptions")
            .field("tls_ca", &self.tls_ca)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

/// Fails if a URL can't be that of a shard. The error never repeats a password.
pub(crate) fn check_shard_url(url: &str) -> Result<(), StoreError> {
    parse(url, "shard", &MySqlOptions::default()).map(drop)
}

/// Parses the URL of a shard or a catalog, as `role` says. It must name a schema.
pub(crate) fn parse(url: &str, role: &str, options: &MySqlOptions) -> Result<Target, StoreError> {
    // The URL may contain a password, so no message repeats it.
    let wrong = |what: &str| {
        let message = format!("not the URL of a {role} (mysql://user@host:3306/schema): {what}");
        StoreError::new(ErrorClass::Disconnected, message)
    };
    if !url.starts_with("mysql://") && !url.starts_with("mariadb://") {
        return Err(wrong("it must begin with mysql://"));
    }
    let mut parsed = MySqlConnectOptions::from_str(url).map_err(|error| wrong(&error.to_string()))?;
    match parsed.get_database() {
        None | Some("") => return Err(wrong("it names no schema")),
        // It stands between backticks in statements, in which a question mark stands for a value.
        Some(schema) if schema.contains(['`', '?']) => {
            return Err(wrong("the schema's name contains a ` or a ?"));
        }
        Some(_) => {}
    }
    let mut file = None;
    match &options.password {
        Some(Password::Text(password)) => parsed = parsed.password(password),
        Some(Password::File(path)) => {
            let opened = PasswordFile::open(path);
            file = Some(opened.map_err(|error| {
                let message = format!("cannot read the password in {}: {error}", path.display());
                StoreError::new(ErrorClass::Disconnected, message)
            })?);
        }
        None => {}
    }
    parsed = match (options.tls, &options.tls_ca) {
        (Tls::Off, Some(_)) => return Err(wrong("TLS is off, and a file of trusted authorities is given")),
        (Tls::Off, None) => parsed.ssl_mode(MySqlSslMode::Disabled),
        (_, Some(ca)) => parsed.ssl_mode(MySqlSslMode::VerifyIdentity).ssl_ca(ca),
        (Tls::Required, None) => parsed.ssl_mode(MySqlSslMode::Required),
        // The mode in the URL, else TLS if the server can.
        (Tls::Auto, None) => parsed,
    };
    // connect.rs sets the session variables in one statement.
    let parsed = parsed
        .pipes_as_concat(false)
        .no_engine_substitution(false)
        .timezone(None)
        .set_names(false)
        .statement_cache_capacity(100)
        .disable_statement_logging();
    Ok(Target::new(parsed, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_for_a_wrong_url_hides_the_password() {
        for url in ["", "postgres://u:secret@h/s", "mysql://u:secret@h", "mysql://u:secret@h:port/s"] {
            let error = parse(url, "shard", &MySqlOptions::default()).unwrap_err();
            assert!(error.message.contains("mysql://user@host"), "{error}");
            assert!(!error.message.contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_password_is_not_shown() {
        let options =
            MySqlOptions { password: Some(Password::Text("secret".to_owned())), ..MySqlOptions::default() };
        assert!(!format!("{options:?}").contains("secret"));
        parse("mysql://forebay@db1:3306/forebay_0001", "shard", &options).unwrap();
    }

    #[test]
    fn connections_are_encrypted_unless_that_is_switched_off() {
        let ca = || Some(PathBuf::from("ca.pem"));
        let mode = |url, tls, tls_ca| {
            let parsed = parse(url, "shard", &MySqlOptions { tls, tls_ca, ..MySqlOptions::default() });
            parsed.map(|parsed| format!("{:?}", parsed.options().get_ssl_mode()))
        };
        for url in ["mysql://forebay@db1/s", "mysql://forebay:secret@db1/s"] {
            for (tls, tls_ca, expected) in [
                (Tls::Auto, None, "Preferred"),
                (Tls::Required, None, "Required"),
                (Tls::Auto, ca(), "VerifyIdentity"),
                (Tls::Required, ca(), "VerifyIdentity"),
                (Tls::Off, None, "Disabled"),
            ] {
                assert_eq!(mode(url, tls, tls_ca).unwrap(), expected, "{url} {tls:?}");
            }
            mode(url, Tls::Off, ca()).unwrap_err();
        }
    }
}
