//! Where a connection leads, and with which account.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use sqlx::mysql::MySqlConnectOptions;

/// A server, or a schema of it, and the account for it.
#[derive(Clone)]
pub(crate) struct Target {
    /// All but a password that stands in a file.
    options: MySqlConnectOptions,
    /// The file with the password.
    password: Option<Arc<PasswordFile>>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the options: they contain the password.
        f.debug_tuple("Target").field(&self.address()).finish()
    }
}

impl Target {
    /// The password is that of the options, or what the file says.
    pub(crate) fn new(options: MySqlConnectOptions, password: Option<PasswordFile>) -> Self {
        Self { options, password: password.map(Arc::new) }
    }

    /// For a connection that is made now: its password is what the file says now.
    pub(crate) fn options(&self) -> MySqlConnectOptions {
        match self.password() {
            Some(password) => self.options.clone().password(&password),
            None => self.options.clone(),
        }
    }

    /// Returns the password that the file holds now. `None`: there is no file.
    pub(crate) fn password(&self) -> Option<Arc<str>> {
        self.password.as_ref().map(|file| file.now())
    }

    /// The server alone.
    pub(crate) fn without_schema(&self) -> Self {
        Self { options: self.options.clone().database(""), password: self.password.clone() }
    }

    /// The schema's name.
    pub(crate) fn schema(&self) -> &str {
        self.options.get_database().unwrap_or_default()
    }

    /// The server's address, as in `db1:3306`.
    pub(crate) fn server(&self) -> String {
        format!("{}:{}", self.options.get_host(), self.options.get_port())
    }

    /// The schema's address for messages, as in `db1:3306/forebay_0001`, or that of the server.
    pub(crate) fn address(&self) -> String {
        let server = self.server();
        match self.schema() {
            "" => server,
            schema => format!("{server}/{schema}"),
        }
    }

    /// All that a connection depends on. It contains the password, so it must not be shown.
    pub(crate) fn key(&self) -> String {
        format!("{:?} {:?}", self.options, self.password.as_ref().map(|file| &file.path))
    }
}

/// A file that holds a password. Whoever changes the password at the server changes the file.
pub(crate) struct PasswordFile {
    /// Where it is.
    path: PathBuf,
    /// Its last text, and its stamp then.
    last: Mutex<(Option<Stamp>, Arc<str>)>,
}

/// When a file was changed last, and how long it was. It is read again once one of them differs.
type Stamp = (SystemTime, u64);

impl fmt::Debug for PasswordFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PasswordFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl PasswordFile {
    /// Reads it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let stamp = stamp(path);
        Ok(Self { path: path.to_owned(), last: Mutex::new((stamp, read(path)?)) })
    }

    /// Returns its text now. If it can't be read: its last text.
    fn now(&self) -> Arc<str> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.path);
        if last.0 != stamp {
            last.0 = stamp;
            let path = self.path.display();
            match read(&self.path) {
                Ok(text) if text == last.1 => {}
                Ok(text) => {
                    last.1 = text;
                    tracing::info!("the database password in {path} has changed: new connections use it");
                }
                Err(error) => {
                    tracing::warn!(
                        "the database password in {path} can't be read, connections use the last one: {error}"
                    );
                }
            }
        }
        last.1.clone()
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let file = std::fs::metadata(path).ok()?;
    Some((file.modified().ok()?, file.len()))
}

fn read(path: &Path) -> io::Result<Arc<str>> {
    std::fs::read_to_string(path).map(|text| text.trim_end_matches(['\r', '\n']).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_connection_has_the_password_that_the_file_says_then() {
        let folder = std::env::temp_dir().join(format!("forebay-target-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("password");
        std::fs::write(&path, "first\n").unwrap();
        let file = PasswordFile::open(&path).unwrap();
        assert!(!format!("{file:?}").contains("first"));
        let target = Target::new(MySqlConnectOptions::new(), Some(file));
        assert_eq!(target.password().as_deref(), Some("first"));
        std::fs::write(&path, "the second\r\n").unwrap();
        let server = target.without_schema();
        assert_eq!(server.password().as_deref(), Some("the second"));
        assert!(format!("{:?}", server.options()).contains("the second"));
        assert!(!target.key().contains("second"));
        // While it is written anew it may be away.
        std::fs::remove_file(&path).unwrap();
        assert_eq!(target.password().as_deref(), Some("the second"));
        std::fs::write(&path, "3").unwrap();
        assert_eq!(target.password().as_deref(), Some("3"));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(PasswordFile::open(&path).is_err());
    }
}
