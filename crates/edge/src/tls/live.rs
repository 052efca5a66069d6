//! Settings of a port in use, and the files from which they may be renewed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use forebay_types::Timestamp;
use tokio::sync::watch;

use super::files::{Contents, Files, ParsedFiles, TlsError};

/// Makes the settings of the ports.
type Build<T> = dyn Fn(&Files, &ParsedFiles, Timestamp) -> Result<T, TlsError> + Send + Sync;

/// The settings of one or more ports, which follow their files. A handshake takes those that are in use when
/// it begins. Connections that are open stay open, but for those whose certificates have no authority any
/// more.
pub struct Live<T> {
    /// Where they come from.
    files: Files,
    /// The ports, as metrics name them.
    listeners: &'static [&'static str],
    /// Makes them.
    build: Box<Build<T>>,
    /// Settings in use.
    current: RwLock<Arc<T>>,
    /// State of the files at the last look.
    seen: Mutex<FilesState>,
    /// Changes with the authorities of those at the other end.
    authorities: watch::Sender<()>,
}

/// State of the files at the last look.
struct FilesState {
    /// The content of which the settings in use were made.
    contents: Contents,
    /// When the certificate in use ends.
    ends: Timestamp,
    /// Why what the files hold now is not in use.
    trouble: Option<TlsError>,
}

/// Outcome of a look at the files.
#[derive(Debug, PartialEq, Eq)]
pub enum Look {
    /// The same as the last look.
    Same,
    /// Something else, which is in use from now on.
    Renewed,
    /// Something that can't be used, for the first time.
    Failed(TlsError),
    /// The content in use, after something that could not be used.
    Restored,
}

/// Ports whose certificates come from files.
pub(crate) trait CertificateSource: Send + Sync {
    /// The ports, as metrics name them.
    fn listeners(&self) -> &'static [&'static str];
    /// Reads the files, and takes what they hold into use if it is something else, and sound.
    fn look(&self, now: Timestamp) -> Look;
    /// When the certificate in use ends.
    fn ends(&self) -> Timestamp;
    /// Why what the files hold is not in use.
    fn trouble(&self) -> Option<TlsError>;
}

impl<T> Live<T> {
    /// Reads the files for the first time.
    pub fn load(
        files: Files,
        listeners: &'static [&'static str],
        now: Timestamp,
        build: impl Fn(&Files, &ParsedFiles, Timestamp) -> Result<T, TlsError> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, TlsError> {
        let contents = files.read()?;
        let parsed = files.parse(&contents, now)?;
        let current = RwLock::new(Arc::new(build(&files, &parsed, now)?));
        let seen = Mutex::new(FilesState { contents, ends: parsed.ends, trouble: None });
        let (build, authorities) = (Box::new(build), watch::Sender::default());
        Ok(Arc::new(Self { files, listeners, build, current, seen, authorities }))
    }

    /// The settings in use.
    pub fn current(&self) -> Arc<T> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells of other authorities of those at the other end, once they are in use.
    pub fn authorities(&self) -> watch::Receiver<()> {
        self.authorities.subscribe()
    }

    fn seen(&self) -> MutexGuard<'_, FilesState> {
        // A panic while the lock is held leaves valid values.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the files, and makes settings of them if their content is not the one in use.
    fn changed(
        &self,
        seen: &FilesState,
        now: Timestamp,
    ) -> Result<Option<(Contents, Timestamp, T)>, TlsError> {
        let contents = self.files.read()?;
        if contents == seen.contents {
            return Ok(None);
        }
        let parsed = self.files.parse(&contents, now)?;
        Ok(Some((contents, parsed.ends, (self.build)(&self.files, &parsed, now)?)))
    }
}

impl<T: Send + Sync> CertificateSource for Live<T> {
    fn listeners(&self) -> &'static [&'static str] {
        self.listeners
    }

    fn look(&self, now: Timestamp) -> Look {
        let mut seen = self.seen();
        match self.changed(&seen, now) {
            Ok(None) if seen.trouble.take().is_some() => Look::Restored,
            Ok(None) => Look::Same,
            Ok(Some((contents, ends, renewed))) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(renewed);
                let others = !contents.has_authorities_of(&seen.contents);
                *seen = FilesState { contents, ends, trouble: None };
                if others {
                    self.authorities.send_replace(());
                }
                Look::Renewed
            }
            Err(error) if seen.trouble.as_ref() == Some(&error) => Look::Same,
            Err(error) => {
                seen.trouble = Some(error.clone());
                Look::Failed(error)
            }
        }
    }

    fn ends(&self) -> Timestamp {
        self.seen().ends
    }

    fn trouble(&self) -> Option<TlsError> {
        self.seen().trouble.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use forebay_testkit::certificates::Authority;

    use super::*;
    use crate::tls::{
        server::ServerTls,
        testing::{NOW, NOW_SECONDS, server_files},
    };

    #[test]
    fn only_what_is_sound_is_taken_into_use() {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("authority"));
        let first = authority.issue_valid(&["a"], 1_000, NOW_SECONDS + 100);
        let files = server_files(folder.path(), &first);
        let live = ServerTls::load(&files, NOW).unwrap();
        let first_in_use = live.current();
        assert_eq!(live.look(NOW), Look::Same);

        // A key of another certificate. The first look says so, and no other.
        let second = authority.issue_valid(&["a"], 1_000, NOW_SECONDS + 200);
        fs::write(&files.key, &second.key).unwrap();
        let Look::Failed(error) = live.look(NOW) else { panic!("a key that does not match") };
        assert!(error.to_string().starts_with("tls.key_file: "), "{error}");
        assert_eq!((live.look(NOW), live.trouble()), (Look::Same, Some(error)));
        assert!(Arc::ptr_eq(&live.current(), &first_in_use));

        // With the certificate of that key.
        fs::write(&files.cert, &second.cert).unwrap();
        assert_eq!((live.look(NOW), live.trouble()), (Look::Renewed, None));
        assert!(!Arc::ptr_eq(&live.current(), &first_in_use));
        assert_eq!(live.ends(), NOW.plus(Duration::from_secs(200)));

        // One that has expired, and then no file at all.
        let second_in_use = live.current();
        authority.issue_valid(&["a"], 1_000, 2_000).write(folder.path(), "server");
        assert!(matches!(live.look(NOW), Look::Failed(_)));
        fs::remove_file(&files.cert).unwrap();
        assert!(matches!(live.look(NOW), Look::Failed(_)), "that is another reason");
        assert_eq!(live.look(NOW), Look::Same);
        second.write(folder.path(), "server");
        assert_eq!((live.look(NOW), live.trouble()), (Look::Restored, None));
        assert!(Arc::ptr_eq(&live.current(), &second_in_use));
    }

    #[test]
    fn the_authorities_of_clients_are_renewed_too() {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("authority"));
        let mut files = server_files(folder.path(), &authority.issue(&["a"]));
        files.client_ca = Some(authority.write(folder.path(), "ca"));
        let live = ServerTls::load(&files, NOW).unwrap();
        Authority::new("another").write(folder.path(), "ca");
        assert_eq!(live.look(NOW), Look::Renewed);
    }
}
