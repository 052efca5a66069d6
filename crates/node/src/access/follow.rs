//! Follows the file of tokens. It is the one writer of the table.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use forebay_access::Table;
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
};

use super::{
    settings::AccessSettings,
    tokens::{self, AccessError},
};

/// How often the file is looked at. A token that is revoked there is of no use after this time, and calls
/// that wait end within a second of that.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Whether the file of tokens can be used.
#[derive(Debug, Clone, Default)]
pub struct TokensState(Arc<Mutex<Option<AccessError>>>);

impl TokensState {
    /// Why what the file holds now is not in use. `None`: it is.
    pub fn trouble(&self) -> Option<AccessError> {
        self.get().clone()
    }

    fn get(&self) -> MutexGuard<'_, Option<AccessError>> {
        // A panic while the lock is held leaves a valid value.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The table's writer.
pub struct Writer {
    /// What the table is made of.
    settings: AccessSettings,
    /// The file's content of which the table in use was made.
    content: Vec<u8>,
    /// Those who look things up have the other end.
    table: watch::Sender<Arc<Table>>,
    /// Whether the file can be used.
    state: TokensState,
}

impl Writer {
    /// Reads the file for the first time.
    pub fn begin(settings: AccessSettings) -> Result<Self, AccessError> {
        let content = tokens::read(&settings)?;
        let table = watch::Sender::new(Arc::new(tokens::table(&settings, &content)?));
        Ok(Self { settings, content, table, state: TokensState::default() })
    }

    /// Sees the newest table.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Table>> {
        self.table.subscribe()
    }

    /// Whether the file can be used, from now on.
    pub fn state(&self) -> TokensState {
        self.state.clone()
    }

    /// Reads the file, and takes what it holds into use if that is something else and sound.
    fn look(&mut self) {
        let found = tokens::read(&self.settings).and_then(|content| {
            let changed = content != self.content;
            let table = changed.then(|| tokens::table(&self.settings, &content)).transpose()?;
            Ok(table.map(|table| (content, table)))
        });
        let mut trouble = self.state.get();
        match found {
            Ok(None) if trouble.take().is_some() => tracing::info!("the file of tokens is as before"),
            Ok(None) => {}
            Ok(Some((content, table))) => {
                self.content = content;
                self.table.send_replace(Arc::new(table));
                *trouble = None;
                tracing::info!("the file of tokens has changed, and is in use");
            }
            Err(error) => {
                if trouble.as_ref() != Some(&error) {
                    tracing::error!("the file of tokens is not in use; the tokens before stay: {error}");
                }
                *trouble = Some(error);
            }
        }
    }
}

/// Looks at the file from time to time. Ends when it is dropped.
pub struct Following {
    /// Makes it look at once.
    now: Arc<Notify>,
    /// Looks.
    task: JoinHandle<()>,
}

impl Following {
    /// Looks from now on.
    pub fn start(mut writer: Writer) -> Self {
        let now = Arc::new(Notify::new());
        let asked = now.clone();
        let task = tokio::spawn(async move {
            while writer.settings.tokens_file.is_some() {
                tokio::select! {
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                    () = asked.notified() => {}
                }
                // Reading a file may take long, if it is on a disk that hangs.
                let looked = tokio::task::spawn_blocking(move || {
                    writer.look();
                    writer
                });
                match looked.await {
                    Ok(after) => writer = after,
                    Err(_) => return,
                }
            }
            // The certificates of the configuration stay as they are.
            std::future::pending::<()>().await;
        });
        Self { now, task }
    }

    /// Looks at once.
    pub fn look_now(&self) {
        self.now.notify_one();
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use forebay_access::{Credential, RANDOM_BYTES, Record, Token, append};
    use forebay_types::Timestamp;

    use super::*;

    #[test]
    fn a_file_that_is_wrong_leaves_the_tokens_before_in_use() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let settings = AccessSettings { tokens_file: Some(path.clone()), certificates: Vec::new() };
        let error = Writer::begin(settings.clone()).err().unwrap().to_string();
        assert!(error.starts_with("access.tokens_file: cannot read "), "{error}");

        let token = Token::of_random(&[7; RANDOM_BYTES]);
        let (id, hashes) = (token.id().clone(), vec![token.hash()]);
        let (name, grants, ends, overlap_ends) = Default::default();
        let record = Record { id, name, hashes, grants, ends, overlap_ends, revoked: false };
        let text = append("", &record).unwrap();
        fs::write(&path, &text).unwrap();
        let mut writer = Writer::begin(settings).unwrap();
        let (table, state) = (writer.subscribe(), writer.state());
        let credential = Credential::of_token(&token.reveal()).unwrap();
        let accepted =
            || table.borrow().authenticate(&credential, Timestamp::from_micros(0)).map(drop).is_ok();
        assert!(accepted() && state.trouble().is_none());

        fs::write(&path, "nonsense").unwrap();
        writer.look();
        let trouble = state.trouble().unwrap().to_string();
        assert!(accepted() && trouble.contains("tokens.toml is wrong: "), "{trouble}");
        fs::remove_file(&path).unwrap();
        writer.look();
        assert!(accepted() && state.trouble().unwrap().to_string().contains("cannot read"));
        fs::write(&path, &text).unwrap();
        writer.look();
        assert!(accepted() && state.trouble().is_none());
        fs::write(&path, "").unwrap();
        writer.look();
        assert!(!accepted() && state.trouble().is_none());
    }
}
