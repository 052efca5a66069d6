//! Rules for a shard's URL in a catalog, where everybody with an account can read it.

use super::error::CatalogError;
use crate::mysql_address;

/// The most bytes of a URL: as many as an index takes.
const BYTES_MAX: usize = 700;

/// Fails if a URL contains a password, or can't be that of a shard.
pub fn check(url: &str) -> Result<(), CatalogError> {
    if url.len() > BYTES_MAX {
        let message = format!("the URL has {} bytes, and at most {BYTES_MAX} are stored", url.len());
        return Err(CatalogError::Url(message));
    }
    match url.strip_prefix("sqlite://") {
        Some("") => Err(CatalogError::Url("the URL must name a file, as in sqlite:///1.db".to_owned())),
        Some(_) => Ok(()),
        None if has_password(url) => Err(CatalogError::Password),
        None => mysql_address::check_shard_url(url).map_err(|error| CatalogError::Url(error.message)),
    }
}

/// Whether there is a colon before the last `@`. A password may itself contain an `@` or a `/`.
fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.rsplit_once('@').is_some_and(|(account, _)| account.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_refused_wherever_it_ends() {
        for account in ["u:secret", "u:", ":secret", "u:sec@ret", "u:sec/ret", "u:1/secret", "u:sec?ret"] {
            let error = check(&format!("mysql://{account}@db1:3306/s")).unwrap_err();
            assert!(matches!(error, CatalogError::Password), "{account}: {error}");
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn urls_of_shards_pass_and_others_do_not() {
        for url in ["mysql://forebay@db1:3306/s", "mariadb://db1/s?ssl-mode=REQUIRED", "sqlite:///x/1.db"] {
            check(url).unwrap();
        }
        let long = format!("sqlite:///{}", "x".repeat(BYTES_MAX));
        for url in ["", "sqlite://", "mysql://db1", "postgres://db1/s", &long] {
            assert!(matches!(check(url), Err(CatalogError::Url(_))), "{url}");
        }
    }
}
