//! Follows the file of tokens, and the tokens of the catalog.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use forebay_access::{Grant, Table};
use forebay_store::{Catalog, Tokens};
use forebay_types::Clock;
use tokio::{
    sync::{Notify, watch},
    task::JoinHandle,
};

use super::{
    book::TokenBook,
    catalog::{self, CatalogTokens},
    settings::AccessSettings,
    sources::{Sources, UsedTokens},
    tokens::{self, AccessError},
};
use crate::turns::Turns;

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

/// Followers of the file and of the catalog, which make the table.
pub struct Writer {
    /// Follows the file.
    file: FileTokens,
    /// Follows the catalog. `None`: its tokens are not accepted.
    catalog: Option<CatalogTokens>,
    /// Tokens that were used.
    used: UsedTokens,
}

impl Writer {
    /// Reads the file and the catalog for the first time. Waits until the catalog answers, unless there are
    /// the tokens of an `image` of it.
    pub async fn begin(
        settings: AccessSettings,
        catalog: Arc<dyn Catalog>,
        image: Option<Tokens>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, AccessError> {
        let (used, mut follows) = (UsedTokens::default(), None);
        let file = FileTokens::begin(settings)?;
        if file.settings.catalog_tokens {
            let (sources, is_away) = (file.sources.clone(), image.is_some());
            let (of_catalog, clock) = (catalog.clone(), clock.clone());
            let begun = CatalogTokens::begin(of_catalog, clock.clone(), sources, used.clone(), image).await?;
            match is_away {
                true => tracing::info!("the first token is not looked for: the catalog is away"),
                false => first_token(&file.settings, &*catalog, &*clock).await?,
            }
            follows = Some(begun);
        }
        Ok(Self { file, catalog: follows, used })
    }

    /// Sees the newest table.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Table>> {
        self.file.sources.subscribe()
    }

    /// Whether the file can be used, from now on.
    pub fn state(&self) -> TokensState {
        self.file.state.clone()
    }

    /// Receives which tokens were used.
    pub fn used(&self) -> UsedTokens {
        self.used.clone()
    }

    /// Changes tokens in the catalog. `None`: its tokens are not accepted.
    pub fn book(&self, catalog: Arc<dyn Catalog>, clock: &Arc<dyn Clock>) -> Option<TokenBook> {
        let (look, told) = self.catalog.as_ref()?.handles();
        Some(TokenBook { catalog, look, told, clock: clock.clone(), turns: Turns::default() })
    }
}

/// Puts the first token into the catalog, if a file has one and it is needed.
async fn first_token(
    settings: &AccessSettings,
    catalog: &dyn Catalog,
    clock: &dyn Clock,
) -> Result<(), AccessError> {
    let Some(path) = &settings.bootstrap_token_file else { return Ok(()) };
    let unreadable = |error| AccessError::bootstrap(&format!("cannot read {}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let added = catalog::bootstrap(catalog, clock, &text, "bootstrap", true).await?;
    tracing::info!(?added, "the first token of the catalog: {}", path.display());
    Ok(())
}

/// Follows the file.
struct FileTokens {
    /// Settings: the file, and the certificates.
    settings: AccessSettings,
    /// The file's content of which the table in use was made.
    content: Vec<u8>,
    /// Sources of the table.
    sources: Arc<Sources>,
    /// Whether the file can be used.
    state: TokensState,
}

impl FileTokens {
    /// Reads the file for the first time.
    fn begin(settings: AccessSettings) -> Result<Self, AccessError> {
        let content = tokens::read(&settings)?;
        let sources = Arc::new(Sources::new(settings.certificates.clone()));
        sources.set_file(tokens::records(&settings, &content)?);
        Ok(Self { settings, content, sources, state: TokensState::default() })
    }

    /// Reads the file, and takes what it holds into use if that is something else and sound.
    fn look(&mut self) {
        let found = tokens::read(&self.settings).and_then(|content| {
            let changed = content != self.content;
            let records = changed.then(|| tokens::records(&self.settings, &content)).transpose()?;
            Ok(records.map(|records| (content, records)))
        });
        let mut trouble = self.state.get();
        match found {
            Ok(None) if trouble.take().is_some() => tracing::info!("the file of tokens is as before"),
            Ok(None) => {}
            Ok(Some((content, records))) => {
                self.content = content;
                self.sources.set_file(records);
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

/// Looks at the file and the catalog from time to time. Ends when it is dropped.
pub struct FollowTask {
    /// Sources of the table.
    sources: Arc<Sources>,
    /// Makes it look at the file at once.
    now: Arc<Notify>,
    /// They look.
    tasks: Vec<JoinHandle<()>>,
}

impl FollowTask {
    /// Looks from now on.
    pub fn start(writer: Writer) -> Self {
        let Writer { file: mut writer, catalog, .. } = writer;
        let (now, sources) = (Arc::new(Notify::new()), writer.sources.clone());
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
            // There is no file to look at.
            std::future::pending::<()>().await;
        });
        let follow = |catalog: CatalogTokens| tokio::spawn(catalog.follow());
        Self { sources, now, tasks: std::iter::once(task).chain(catalog.map(follow)).collect() }
    }

    /// The configuration, which was read again, has these certificates.
    pub fn set_certificates(&self, certificates: Vec<(String, Vec<Grant>)>) {
        self.sources.set_certificates(certificates);
    }

    /// Looks at once.
    pub fn look_now(&self) {
        self.now.notify_one();
    }
}

impl Drop for FollowTask {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
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
        let settings = AccessSettings { tokens_file: Some(path.clone()), ..AccessSettings::default() };
        let error = FileTokens::begin(settings.clone()).err().unwrap().to_string();
        assert!(error.starts_with("access.tokens_file: cannot read "), "{error}");

        let token = Token::of_random(&[7; RANDOM_BYTES]);
        let (id, hashes) = (token.id().clone(), vec![token.hash()]);
        let (name, grants, ends, overlap_ends, root) = Default::default();
        let record = Record { id, name, hashes, grants, ends, overlap_ends, revoked: false, root };
        let text = append("", &record).unwrap();
        fs::write(&path, &text).unwrap();
        let mut writer = FileTokens::begin(settings).unwrap();
        let (table, state) = (writer.sources.subscribe(), writer.state.clone());
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
