//! Sessions of browsers are added, read, used and removed.

use async_trait::async_trait;
use forebay_types::Timestamp;

use super::{
    call::{Call, Change, End, Failure},
    session::CatalogSession,
    session_rows::{NewSession, SessionRow},
};
use crate::{
    error::StoreError,
    sql::{Row, Session, Statement, int_of},
};

/// The columns, in the order of [`SessionRow`].
const COLUMNS: &str = "id, token_id, secret, made_at, used_at";
/// Rows removed at once where there are too many: as many as nodes may have added at one moment.
const REMOVED_AT_ONCE: i64 = 100;

fn row(row: &Row) -> Result<SessionRow, StoreError> {
    Ok(SessionRow {
        id: row.hash(0)?,
        token_id: row.text(1)?,
        secret: row.hash(2)?,
        made_at: row.time(3)?,
        used_at: row.time(4)?,
    })
}

/// Reads a session.
pub(super) struct ReadSession<'a>(pub(super) &'a [u8; 32]);

#[async_trait]
impl Call for ReadSession<'_> {
    type Answer = Option<SessionRow>;

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<Option<SessionRow>, Failure> {
        let sql = format!("SELECT {COLUMNS} FROM session WHERE id = ?");
        let query = Statement::new(sql, vec![self.0.as_slice().into()]);
        let answers = session.snapshot(vec![query]).await?;
        let rows = answers.into_iter().next().unwrap_or_default();
        Ok(rows.first().map(row).transpose()?)
    }
}

/// Adds a session, and removes those that are over or too many. To do it twice is harmless.
pub(super) struct AddSession<'a>(pub(super) &'a NewSession);

async fn remove(session: &mut dyn Session, id: &[u8]) -> Result<(), StoreError> {
    let delete = Statement::new("DELETE FROM session WHERE id = ?", vec![id.into()]);
    session.execute(delete).await.map(drop)
}

/// Removes what these rows name.
async fn remove_all(session: &mut dyn Session, ids: Statement) -> Result<(), StoreError> {
    for row in session.fetch(ids).await? {
        remove(session, &row.bytes(0)?).await?;
    }
    Ok(())
}

impl AddSession<'_> {
    /// Makes room for one more of its token.
    async fn make_room_of_token(&self, session: &mut dyn Session) -> Result<(), StoreError> {
        let NewSession { row, bounds, .. } = self.0;
        let ids = "SELECT id FROM session WHERE token_id = ? AND id <> ? ORDER BY used_at DESC, id \
                   LIMIT ? OFFSET ?";
        let kept = bounds.per_token.saturating_sub(1);
        let (token, id) = (row.token_id.as_str().into(), row.id.as_slice().into());
        remove_all(session, Statement::new(ids, vec![token, id, REMOVED_AT_ONCE.into(), kept.into()])).await
    }

    /// Makes room for one more in all.
    async fn make_room(&self, session: &mut dyn Session) -> Result<(), StoreError> {
        let count = "SELECT COUNT(*) FROM session WHERE id <> ?";
        let count = Statement::new(count, vec![self.0.row.id.as_slice().into()]);
        let found = int_of(&session.fetch(count).await?)?.unwrap_or(0);
        let too_many = found + 1 - i64::from(self.0.bounds.in_all);
        for _ in 0..too_many.min(REMOVED_AT_ONCE) {
            let most = "SELECT token_id FROM session GROUP BY token_id \
                        ORDER BY COUNT(*) DESC, MIN(used_at) LIMIT 1";
            let most = session.fetch(Statement::new(most, vec![])).await?;
            let Some(most) = most.first() else { return Ok(()) };
            let oldest = "SELECT id FROM session WHERE token_id = ? ORDER BY used_at, id LIMIT 1";
            remove_all(session, Statement::new(oldest, vec![most.bytes(0)?.into()])).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Change for AddSession<'_> {
    type Answer = ();
    const REPEATABLE: bool = true;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<()>, StoreError> {
        let NewSession { row, replaces, made_before, used_before, .. } = self.0;
        let over = "DELETE FROM session WHERE used_at < ? OR made_at < ?";
        session.execute(Statement::new(over, vec![(*used_before).into(), (*made_before).into()])).await?;
        if let Some(id) = replaces {
            remove(session, id).await?;
        }
        self.make_room_of_token(session).await?;
        self.make_room(session).await?;
        let SessionRow { id, token_id, secret, made_at, used_at } = row;
        let values = vec![
            id.as_slice().into(),
            token_id.as_str().into(),
            secret.as_slice().into(),
            (*made_at).into(),
            (*used_at).into(),
        ];
        let sql = format!("REPLACE INTO session ({COLUMNS}) VALUES (?, ?, ?, ?, ?)");
        session.execute(Statement::new(sql, values)).await?;
        Ok(End::Commit(()))
    }
}

/// Notes that a session is used.
pub(super) struct NoteSessionUse<'a> {
    /// The session.
    pub(super) id: &'a [u8; 32],
    /// When.
    pub(super) now: Timestamp,
}

#[async_trait]
impl Call for NoteSessionUse<'_> {
    type Answer = ();

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<(), Failure> {
        let sql = "UPDATE session SET used_at = ? WHERE id = ? AND used_at < ?";
        let values = vec![self.now.into(), self.id.as_slice().into(), self.now.into()];
        Ok(session.execute_alone(Statement::new(sql, values)).await.map(drop)?)
    }
}

/// Removes a session.
pub(super) struct RemoveSession<'a>(pub(super) &'a [u8; 32]);

#[async_trait]
impl Call for RemoveSession<'_> {
    type Answer = ();

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<(), Failure> {
        let sql = "DELETE FROM session WHERE id = ?";
        let delete = Statement::new(sql, vec![self.0.as_slice().into()]);
        Ok(session.execute_alone(delete).await.map(drop)?)
    }
}
