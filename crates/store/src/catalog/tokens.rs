//! Tokens are read, added and changed.

use std::collections::BTreeSet;

use async_trait::async_trait;
use forebay_types::Timestamp;

use super::{
    call::{Call, Change, End, Failure},
    session::CatalogSession,
    token_rows::{
        NewToken, TokenAddOutcome, TokenChange, TokenChangeOutcome, TokenMaker, TokenRow, Tokens, descendants,
    },
};
use crate::{
    error::StoreError,
    sql::{Row, Session, Statement, Value, corrupt, int_of, scalar},
};

/// Tokens that one statement revokes.
const REVOKED_AT_ONCE: usize = 500;
/// The columns, in the order of [`values`].
const COLUMNS: [&str; 16] = [
    "id",
    "namespace",
    "name",
    "secret",
    "older_secret",
    "grants",
    "made_by",
    "made_at",
    "ends_at",
    "overlap_ends_at",
    "revoked_at",
    "last_used_at",
    "is_admin",
    "made_by_id",
    "root",
    "rotation",
];

fn values(row: &TokenRow) -> Vec<Value> {
    let time = |time: Option<Timestamp>| time.map_or(Value::Null, Value::from);
    let hash = |hash: Option<[u8; 32]>| hash.map_or(Value::Null, |hash| hash.as_slice().into());
    vec![
        row.id.as_str().into(),
        row.namespace.as_str().into(),
        row.name.as_str().into(),
        row.secret.as_slice().into(),
        hash(row.older_secret),
        row.grants.as_str().into(),
        row.made_by.as_str().into(),
        row.made_at.into(),
        time(row.ends),
        time(row.overlap_ends),
        time(row.revoked),
        time(row.last_used),
        i64::from(row.is_admin).into(),
        row.made_by_id.as_str().into(),
        row.root.as_str().into(),
        hash(row.rotation),
    ]
}

fn token(row: &Row) -> Result<TokenRow, StoreError> {
    let hash = |bytes: &[u8]| <[u8; 32]>::try_from(bytes).map_err(|_| corrupt("a hash should be 32 bytes"));
    Ok(TokenRow {
        id: row.text(0)?,
        namespace: row.text(1)?,
        name: row.text(2)?,
        secret: hash(&row.bytes(3)?)?,
        older_secret: row.optional_bytes(4)?.map(|bytes| hash(&bytes)).transpose()?,
        grants: row.text(5)?,
        made_by: row.text(6)?,
        made_at: row.time(7)?,
        ends: row.optional_time(8)?,
        overlap_ends: row.optional_time(9)?,
        revoked: row.optional_time(10)?,
        last_used: row.optional_time(11)?,
        is_admin: row.int(12)? != 0,
        made_by_id: row.text(13)?,
        root: row.text(14)?,
        rotation: row.optional_bytes(15)?.map(|bytes| hash(&bytes)).transpose()?,
    })
}

/// Reads all tokens, if they have another version.
pub(super) struct ReadTokens(pub(super) u64);

#[async_trait]
impl Call for ReadTokens {
    type Answer = Tokens;

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<Tokens, Failure> {
        let columns = COLUMNS.map(|column| format!("t.{column}")).join(", ");
        let rows = format!(
            "SELECT {columns} FROM cluster c, token t WHERE c.id = 1 AND c.tokens_version <> ? ORDER BY t.id"
        );
        let queries = vec![
            Statement::new("SELECT tokens_version FROM cluster WHERE id = 1", vec![]),
            Statement::new(rows, vec![self.0.into()]),
        ];
        let Ok([version, rows]) = <[Vec<Row>; 2]>::try_from(session.snapshot(queries).await?) else {
            return Err(corrupt("a query of the catalog has no answer").into());
        };
        let version = scalar(version, "the cluster")?.u64(0)?;
        let rows = rows.iter().map(token).collect::<Result<_, _>>()?;
        Ok(Tokens { version, rows: (version != self.0).then_some(rows) })
    }
}

/// Reads tokens by id.
pub(super) struct ReadTokenPage<'a> {
    /// From this one on.
    pub(super) from: &'a str,
    /// At most this many tokens are read.
    pub(super) limit: u32,
}

#[async_trait]
impl Call for ReadTokenPage<'_> {
    type Answer = Vec<TokenRow>;

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<Vec<TokenRow>, Failure> {
        let sql = format!("SELECT {} FROM token WHERE id >= ? ORDER BY id LIMIT ?", COLUMNS.join(", "));
        let query = Statement::new(sql, vec![self.from.into(), self.limit.into()]);
        let answers = session.snapshot(vec![query]).await?;
        let rows = answers.into_iter().next().unwrap_or_default();
        Ok(rows.iter().map(token).collect::<Result<_, _>>()?)
    }
}

/// Begins a change: all changes lock the cluster's row first. Returns the new version.
async fn next_version(session: &mut dyn Session) -> Result<u64, StoreError> {
    let next = "UPDATE cluster SET tokens_version = tokens_version + 1 WHERE id = 1";
    session.execute(Statement::new(next, vec![])).await?;
    let version = Statement::new("SELECT tokens_version FROM cluster WHERE id = 1", vec![]);
    scalar(session.fetch(version).await?, "the cluster")?.u64(0)
}

async fn found(session: &mut dyn Session, id: &str) -> Result<Option<TokenRow>, StoreError> {
    let sql = format!("SELECT {} FROM token WHERE id = ?", COLUMNS.join(", "));
    let rows = session.fetch(Statement::new(sql, vec![id.into()])).await?;
    rows.first().map(token).transpose()
}

/// Which tokens have the right `admin` in all namespaces, and are of use.
async fn admins(session: &mut dyn Session, now: Timestamp) -> Result<BTreeSet<String>, StoreError> {
    let sql = "SELECT id FROM token WHERE is_admin = 1 AND revoked_at IS NULL \
               AND (ends_at IS NULL OR ends_at > ?)";
    let rows = session.fetch(Statement::new(sql, vec![now.into()])).await?;
    rows.iter().map(|row| row.text(0)).collect()
}

/// The tokens that descend from one and are of use.
async fn live_descendants(
    session: &mut dyn Session,
    of: &str,
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT id, made_by_id, root, revoked_at, ends_at FROM token";
    let rows = session.fetch(Statement::new(sql, vec![])).await?;
    let (mut known, mut live) = (Vec::with_capacity(rows.len()), BTreeSet::new());
    for row in &rows {
        let (id, ends) = (row.text(0)?, row.optional_time(4)?);
        if row.optional_time(3)?.is_none() && ends.is_none_or(|ends| ends > now) {
            live.insert(id.clone());
        }
        known.push((id, row.text(1)?, row.text(2)?));
    }
    let found = descendants(&known, of);
    Ok(found.into_iter().filter(|id| live.contains(*id)).map(str::to_owned).collect())
}

/// Adds a token.
pub(super) struct AddToken<'a>(pub(super) &'a NewToken);

impl AddToken<'_> {
    /// From which token the new one descends.
    async fn root(&self, session: &mut dyn Session) -> Result<String, StoreError> {
        let id = match &self.0.maker {
            TokenMaker::Operator => return Ok(self.0.row.id.clone()),
            TokenMaker::Other(name) => return Ok(name.clone()),
            TokenMaker::Token(id) => id,
        };
        let root = Statement::new("SELECT root FROM token WHERE id = ?", vec![id.as_str().into()]);
        let root = session.fetch(root).await?.first().map(|row| row.text(0)).transpose()?;
        // Of a file, or made by a program that writes no roots: it is one itself.
        Ok(root.filter(|root| !root.is_empty()).unwrap_or_else(|| id.clone()))
    }

    async fn refusal(
        &self,
        session: &mut dyn Session,
        root: &str,
    ) -> Result<Option<TokenAddOutcome>, StoreError> {
        let NewToken { row, maker, if_no_admin_at, bounds, .. } = self.0;
        if found(session, &row.id).await?.is_some() {
            return Ok(Some(TokenAddOutcome::IdTaken));
        }
        if let Some(now) = if_no_admin_at
            && admins(session, *now).await?.iter().any(|id| *id != row.id)
        {
            return Ok(Some(TokenAddOutcome::HasAdmin));
        }
        let count = "SELECT COUNT(*) FROM token";
        let of = |column: &str, value: &str| {
            Statement::new(format!("{count} WHERE {column} = ?"), vec![value.into()])
        };
        let mut counts = [0; 3];
        let all = Statement::new(count, vec![]);
        for (found, statement) in
            counts.iter_mut().zip([of("namespace", &row.namespace), of("root", root), all])
        {
            *found = int_of(&session.fetch(statement).await?)?.unwrap_or(0).cast_unsigned();
        }
        let [of_namespace, of_root, in_all] = counts;
        for (found, most, full) in [
            (of_namespace, bounds.per_namespace, TokenAddOutcome::NamespaceFull),
            (of_root, bounds.by_root.per_root, TokenAddOutcome::RootFull),
            (in_all, bounds.by_root.in_all_for(maker.is_operator(), of_root), TokenAddOutcome::Full),
        ] {
            if found >= most {
                return Ok(Some(full));
            }
        }
        Ok(None)
    }
}

#[async_trait]
impl Change for AddToken<'_> {
    type Answer = TokenAddOutcome;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<TokenAddOutcome>, StoreError> {
        let version = next_version(session).await?;
        let root = self.root(session).await?;
        let before = self.0.forget_before;
        // A revoked one without an end stays: where a file of tokens has it too, its row alone keeps it out.
        let forget = "DELETE FROM token WHERE (revoked_at < ? AND ends_at IS NOT NULL) OR ends_at < ?";
        session.execute(Statement::new(forget, vec![before.into(), before.into()])).await?;
        if let Some(refusal) = self.refusal(session, &root).await? {
            return Ok(End::RollBack(refusal));
        }
        let sql = format!(
            "INSERT INTO token ({}) VALUES ({})",
            COLUMNS.join(", "),
            ["?"; COLUMNS.len()].join(", ")
        );
        let values = values(&TokenRow { root, ..self.0.row.clone() });
        session.execute(Statement::new(sql, values)).await?;
        Ok(End::Commit(TokenAddOutcome::Yes(version)))
    }
}

/// Changes a token.
pub(super) struct ChangeToken<'a> {
    /// The token.
    pub(super) id: &'a str,
    /// The change.
    pub(super) change: &'a TokenChange,
}

#[async_trait]
impl Change for ChangeToken<'_> {
    type Answer = TokenChangeOutcome;

    async fn execute(&self, session: &mut dyn Session) -> Result<End<TokenChangeOutcome>, StoreError> {
        let version = next_version(session).await?;
        let Some(row) = found(session, self.id).await? else {
            return Ok(End::RollBack(TokenChangeOutcome::NoToken));
        };
        let (set, values) = match self.change {
            TokenChange::Rotate { from, .. } if row.revoked.is_some() || row.secret != *from => {
                return Ok(End::RollBack(TokenChangeOutcome::Stale));
            }
            TokenChange::Rotate { from, secret, rotation, overlap_ends } => {
                let older = overlap_ends.map_or(Value::Null, |_| from.as_slice().into());
                let ends = overlap_ends.map_or(Value::Null, Value::from);
                let rotation = rotation.map_or(Value::Null, |hash| hash.as_slice().into());
                (
                    "secret = ?, older_secret = ?, rotation = ?, overlap_ends_at = ?",
                    vec![secret.as_slice().into(), older, rotation, ends],
                )
            }
            TokenChange::Revoke { at, with_descendants } => {
                return self.revoke(session, &row, *at, *with_descendants, version).await;
            }
        };
        let sql = format!("UPDATE token SET {set} WHERE id = ?");
        let values = values.into_iter().chain([self.id.into()]).collect();
        session.execute(Statement::new(sql, values)).await?;
        Ok(End::Commit(TokenChangeOutcome::Yes(version)))
    }
}

impl ChangeToken<'_> {
    async fn revoke(
        &self,
        session: &mut dyn Session,
        row: &TokenRow,
        at: Timestamp,
        with_descendants: bool,
        version: u64,
    ) -> Result<End<TokenChangeOutcome>, StoreError> {
        let below = live_descendants(session, self.id, at).await?;
        let descendants = u32::try_from(below.len()).unwrap_or(u32::MAX);
        let mut ids = if with_descendants { below } else { Vec::new() };
        if row.revoked.is_none() {
            ids.push(self.id.to_owned());
        }
        let admins = admins(session, at).await?;
        if admins.iter().any(|id| ids.contains(id)) && admins.iter().all(|id| ids.contains(id)) {
            return Ok(End::RollBack(TokenChangeOutcome::LastAdmin));
        }
        if ids.is_empty() {
            return Ok(End::RollBack(TokenChangeOutcome::Revoked { version: version - 1, descendants }));
        }
        for ids in ids.chunks(REVOKED_AT_ONCE) {
            let marks = vec!["?"; ids.len()].join(", ");
            let values = [at.into()].into_iter().chain(ids.iter().map(|id| id.as_str().into())).collect();
            let sql = format!("UPDATE token SET revoked_at = ? WHERE id IN ({marks})");
            session.execute(Statement::new(sql, values)).await?;
        }
        Ok(End::Commit(TokenChangeOutcome::Revoked { version, descendants }))
    }
}

/// Notes that a token was used in an hour.
pub(super) struct NoteUse<'a> {
    /// The token.
    pub(super) id: &'a str,
    /// The hour.
    pub(super) hour: Timestamp,
}

#[async_trait]
impl Call for NoteUse<'_> {
    type Answer = ();

    async fn run(&self, session: &mut dyn CatalogSession) -> Result<(), Failure> {
        let sql = "UPDATE token SET last_used_at = ? WHERE id = ? \
                   AND (last_used_at IS NULL OR last_used_at < ?)";
        let values = vec![self.hour.into(), self.id.into(), self.hour.into()];
        Ok(session.execute_alone(Statement::new(sql, values)).await.map(drop)?)
    }
}
