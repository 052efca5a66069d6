//! Which database product a server runs, and whether it is new enough.

use crate::error::{ErrorClass, StoreError};

/// The oldest versions on which the tests run.
const MYSQL_MIN: (u32, u32) = (8, 0);
const MARIADB_MIN: (u32, u32) = (10, 6);

/// The product of a server's `version`, as in `MariaDB 10.11.14`.
pub(super) fn name(version: &str) -> String {
    match version.split_once("-MariaDB") {
        Some((number, _)) => format!("MariaDB {number}"),
        None => format!("MySQL {version}"),
    }
}

/// Fails if the server is too old.
pub(super) fn check(version: &str) -> Result<(), StoreError> {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return Ok(()) };
    let (product, min) =
        if version.contains("-MariaDB") { ("MariaDB", MARIADB_MIN) } else { ("MySQL", MYSQL_MIN) };
    if (major, minor) >= min {
        return Ok(());
    }
    let message = format!(
        "the server runs {}, which is too old: Forebay needs {product} {}.{} or newer",
        name(version),
        min.0,
        min.1
    );
    Err(StoreError::new(ErrorClass::Schema, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_are_refused_by_name() {
        for version in [
            "8.0.11",
            "8.4.3-commercial",
            "9.7.0",
            "10.6.0-MariaDB",
            "12.0.2-MariaDB-log",
            "8.0.mysql_aurora.3.08.0",
        ] {
            check(version).unwrap();
        }
        for (version, product) in [
            ("5.7.44-log", "MySQL 5.7.44-log"),
            ("10.5.28-MariaDB-0+deb11u2", "MariaDB 10.5.28"),
            ("5.5.5-10.3.39-MariaDB", "MariaDB 5.5.5-10.3.39"),
        ] {
            let error = check(version).unwrap_err();
            assert!(error.message.contains(product) && error.message.contains("too old"), "{error}");
        }
    }
}
