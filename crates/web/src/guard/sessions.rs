//! Sessions of browsers: in the catalog, so that each node knows them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use forebay_access::{SecretHash, TokenId};
use forebay_edge::connections::Episodes;
use forebay_engine::RETRY_AFTER;
use forebay_store::{Catalog, NewSession, SessionBounds, SessionRow, StoreError};
use forebay_types::{Clock, Monotonic, Reason, Refusal, Timestamp};

use super::cookies::SessionId;

/// A session that is not used for so long is over.
const IDLE_MAX: Duration = Duration::from_mins(30);
/// A session is over so long after its login.
const AGE_MAX: Duration = Duration::from_hours(12);
/// Uses are noted once in this time.
const NOTE_EVERY: Duration = Duration::from_mins(1);
/// A session is read again after this time. A logout at another node takes effect within it.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// How long the catalog may take to answer.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(5);
/// While what was read before is known, it may take so long.
const AGAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// At most this many sessions are known at once. Those of the catalog are read again.
const KNOWN_MAX: usize = SessionBounds::DEFAULT.in_all as usize;

/// Keeps sessions. Clones share all of it.
#[derive(Clone)]
pub struct Sessions {
    /// The catalog.
    catalog: Arc<dyn Catalog>,
    /// Sessions that were read from it.
    known: Arc<Mutex<HashMap<SessionId, CachedSession>>>,
    /// Tells which are over.
    clock: Arc<dyn Clock>,
    /// The catalog did not answer.
    unanswered: Arc<Episodes>,
}

/// A session, as it was read last.
#[derive(Clone)]
struct CachedSession {
    /// The session. `None`: there is none.
    row: Option<SessionRow>,
    /// When it was read.
    read: Monotonic,
}

impl Sessions {
    /// In a catalog.
    pub fn new(catalog: Arc<dyn Catalog>, clock: Arc<dyn Clock>) -> Self {
        Self { catalog, known: Arc::default(), clock, unanswered: Arc::default() }
    }

    /// Begins a session of whoever has shown this secret of a token. `replaces`: the one that the browser had
    /// before.
    pub async fn begin(
        &self,
        id: SessionId,
        token: &TokenId,
        secret: &SecretHash,
        replaces: Option<SessionId>,
    ) -> Result<(), Refusal> {
        let now = self.clock.wall();
        let (token_id, secret) = (token.to_string(), *secret.as_bytes());
        let row = SessionRow { id, token_id, secret, made_at: now, used_at: now };
        let session = NewSession {
            row: row.clone(),
            replaces,
            made_before: now.minus(AGE_MAX),
            used_before: now.minus(IDLE_MAX),
            bounds: SessionBounds::DEFAULT,
        };
        self.within(CATALOG_TIMEOUT, self.catalog.add_session(&session)).await?;
        let mut known = self.lock();
        // One of the same token may have made room, and ends here at once.
        known.retain(|_, known| known.row.as_ref().is_none_or(|other| other.token_id != row.token_id));
        if let Some(before) = replaces {
            known.remove(&before);
        }
        self.keep(&mut known, id, Some(row));
        Ok(())
    }

    /// A session that is not over.
    pub async fn look(&self, id: &SessionId) -> Result<Option<SessionRow>, Refusal> {
        let row = self.read(id).await?;
        let now = self.clock.wall();
        Ok(row.filter(|row| !is_over(row, now)))
    }

    /// The same, and it is used now.
    pub async fn find(&self, id: &SessionId) -> Result<Option<SessionRow>, Refusal> {
        let Some(row) = self.look(id).await? else { return Ok(None) };
        let now = self.clock.wall();
        if now.since(row.used_at) >= NOTE_EVERY {
            self.note(id, now).await;
        }
        Ok(Some(row))
    }

    /// Ends a session.
    pub async fn end(&self, id: &SessionId) -> Result<(), Refusal> {
        self.lock().remove(id);
        let removed = self.within(CATALOG_TIMEOUT, self.catalog.remove_session(id)).await;
        // A reader that read it before that has put it back.
        let mut known = self.lock();
        match removed {
            Ok(()) => self.keep(&mut known, *id, None),
            Err(_) => drop(known.remove(id)),
        }
        removed
    }

    /// Returns the session with an id, be it over or not. While the catalog does not answer, the one that was
    /// read before holds.
    pub async fn read(&self, id: &SessionId) -> Result<Option<SessionRow>, Refusal> {
        match self.seen(id) {
            Some(known) if self.clock.monotonic().since(known.read) < FRESH_FOR => Ok(known.row),
            Some(known) => {
                let (sessions, id) = (self.clone(), *id);
                // To its end, though the browser goes away: others take what is known as fresh until
                // then, and it may have ended at another node.
                let again = async move { sessions.read_from(&id, AGAIN_TIMEOUT).await };
                match tokio::spawn(again).await {
                    Ok(Ok(row)) => Ok(row),
                    Ok(Err(_)) | Err(_) => Ok(known.row),
                }
            }
            None => self.read_from(id, CATALOG_TIMEOUT).await,
        }
    }

    /// Reads the session with an id from the catalog. From then on it is known.
    async fn read_from(&self, id: &SessionId, timeout: Duration) -> Result<Option<SessionRow>, Refusal> {
        let mut row = self.within(timeout, self.catalog.session(id)).await?;
        let mut known = self.lock();
        // A use that could not be noted counts all the same.
        let used = known.get(id).and_then(|known| known.row.as_ref()).map(|row| row.used_at);
        if let (Some(row), Some(used)) = (&mut row, used) {
            row.used_at = row.used_at.max(used);
        }
        self.keep(&mut known, *id, row.clone());
        Ok(row)
    }

    /// The session with an id, as this node knows it. One that is not fresh is left to one reader: the others
    /// take it as it is.
    fn seen(&self, id: &SessionId) -> Option<CachedSession> {
        let now = self.clock.monotonic();
        let mut known = self.lock();
        let found = known.get_mut(id)?;
        let before = found.clone();
        if now.since(found.read) >= FRESH_FOR {
            found.read = now;
        }
        Some(before)
    }

    /// Notes a use. What can't be noted is left out, and this node alone knows it: a use a minute later is
    /// noted.
    async fn note(&self, id: &SessionId, now: Timestamp) {
        if let Some(row) = self.lock().get_mut(id).and_then(|known| known.row.as_mut()) {
            row.used_at = row.used_at.max(now);
        }
        let _ = self.within(AGAIN_TIMEOUT, self.catalog.note_session_use(id, now)).await;
    }

    fn keep(&self, known: &mut HashMap<SessionId, CachedSession>, id: SessionId, row: Option<SessionRow>) {
        if known.len() >= KNOWN_MAX {
            let now = self.clock.monotonic();
            known.retain(|_, known| now.since(known.read) < NOTE_EVERY);
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
        }
        known.insert(id, CachedSession { row, read: self.clock.monotonic() });
    }

    async fn within<T>(
        &self,
        timeout: Duration,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, Refusal> {
        let why = match tokio::time::timeout(timeout, answer).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {timeout:?}"),
        };
        if self.unanswered.begins() {
            tracing::warn!(error = why, "sessions of browsers can't be read or changed in the catalog");
        }
        let message = "the catalog, which has the sessions, does not answer";
        Err(Refusal::new(Reason::CatalogUnavailable, message).retry_after(RETRY_AFTER))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, CachedSession>> {
        // A panic while the lock is held leaves valid values.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_over(row: &SessionRow, now: Timestamp) -> bool {
    now.since(row.used_at) >= IDLE_MAX || now.since(row.made_at) >= AGE_MAX
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use forebay_access::{RANDOM_BYTES, Token};

    use super::*;

    /// A clock that stands where a test puts it.
    #[derive(Default)]
    struct Hand(AtomicI64);

    impl Hand {
        fn advance(&self, span: Duration) {
            self.0.fetch_add(span.as_micros().try_into().unwrap(), Ordering::Relaxed);
        }
    }

    impl Clock for Hand {
        fn wall(&self) -> Timestamp {
            Timestamp::from_micros(1_700_000_000_000_000 + self.0.load(Ordering::Relaxed))
        }

        fn monotonic(&self) -> Monotonic {
            let micros = self.0.load(Ordering::Relaxed).try_into().unwrap();
            Monotonic::default().plus(Duration::from_micros(micros))
        }
    }

    fn token(seed: u8) -> Token {
        Token::of_random(&[seed; RANDOM_BYTES])
    }

    async fn begin(sessions: &Sessions, id: u8, token: &Token) {
        sessions.begin([id; 32], token.id(), &token.hash(), None).await.unwrap();
    }

    async fn is_there(sessions: &Sessions, id: u8) -> bool {
        sessions.find(&[id; 32]).await.unwrap().is_some()
    }

    #[tokio::test]
    async fn a_session_ends_when_it_is_idle_old_replaced_or_ended() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(Hand::default()));
        let [sessions, _] = two_nodes(&folder, &clock).await;
        let (one, minute) = (token(1), Duration::from_mins(1));
        begin(&sessions, 1, &one).await;
        let row = sessions.find(&[1; 32]).await.unwrap().unwrap();
        assert_eq!((&*row.token_id, &row.secret), (one.id().as_str(), one.hash().as_bytes()));
        assert!(!is_there(&sessions, 2).await);

        clock.advance(29 * minute);
        assert!(is_there(&sessions, 1).await);
        clock.advance(29 * minute);
        assert!(is_there(&sessions, 1).await, "it was used");
        clock.advance(30 * minute);
        assert!(!is_there(&sessions, 1).await, "it was not used");

        begin(&sessions, 2, &one).await;
        for _ in 0..71 {
            clock.advance(10 * minute);
            assert!(is_there(&sessions, 2).await);
        }
        clock.advance(10 * minute);
        assert!(!is_there(&sessions, 2).await, "12 h after the login");

        begin(&sessions, 3, &one).await;
        sessions.begin([4; 32], one.id(), &one.hash(), Some([3; 32])).await.unwrap();
        assert!(!is_there(&sessions, 3).await && is_there(&sessions, 4).await);
        sessions.end(&[4; 32]).await.unwrap();
        assert!(!is_there(&sessions, 4).await);
    }

    /// Two nodes with one catalog.
    async fn two_nodes(folder: &tempfile::TempDir, clock: &Arc<Hand>) -> [Sessions; 2] {
        let path = folder.path().join("catalog.db");
        let catalog = forebay_store::SqliteCatalog::new(&path);
        catalog.migrate(forebay_types::ClusterId::default()).await.unwrap();
        let catalog: Arc<dyn Catalog> = Arc::new(catalog);
        [(), ()].map(|()| Sessions::new(catalog.clone(), clock.clone()))
    }

    /// Each reader goes away before the catalog answers.
    #[tokio::test]
    async fn a_session_that_ended_elsewhere_ends_though_its_readers_go_away() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(Hand::default()));
        let [here, elsewhere] = two_nodes(&folder, &clock).await;
        begin(&here, 1, &token(1)).await;
        elsewhere.end(&[1; 32]).await.unwrap();
        assert!(is_there(&here, 1).await, "it was read a moment ago");
        clock.advance(FRESH_FOR);
        let read = here.look(&[1; 32]);
        assert!(futures_util::FutureExt::now_or_never(read).is_none(), "the catalog is asked");
        let gone = async {
            while is_there(&here, 1).await {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
    }

    #[tokio::test]
    async fn a_use_that_could_not_be_noted_counts() {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(Hand::default()));
        let [here, _] = two_nodes(&folder, &clock).await;
        begin(&here, 1, &token(1)).await;
        clock.advance(Duration::from_mins(29));
        let used = clock.wall();
        here.lock().get_mut(&[1; 32]).unwrap().row.as_mut().unwrap().used_at = used;
        clock.advance(Duration::from_mins(2));
        let row = here.look(&[1; 32]).await.unwrap().expect("it was used two minutes ago");
        assert_eq!(row.used_at, used);
    }
}
