//! Renews many claims of a node on one server in one transaction.
//!
//! The transaction travels in one round trip, its COMMIT with it, so that a node that freezes leaves no row
//! locked. It waits for no row: a row that another transaction holds, which is that of a take-over, ends it,
//! and then the others are renewed without that one.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use async_trait::async_trait;
use forebay_types::{Incarnation, Timestamp};

use super::{
    error,
    links::{Link, Visit},
    together::{Answers, Question},
};
use crate::{
    error::{ErrorClass, StoreError},
    shard::Renewal,
    sql::{Row, Session as _, Statement, fence, int_of},
};

/// The most claims of one UPDATE. A server joins at most 61 tables.
const CLAIMS_MAX: usize = 32;

/// The server's clock.
const CLOCK: &str = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";

/// A claim that is to be renewed.
#[derive(Clone)]
pub(super) struct Renew {
    /// The shard's schema.
    pub(super) schema: Arc<str>,
    /// Whose claim it is.
    pub(super) owner: fence::Owner,
    /// The server that the owner's connections lead to.
    pub(super) server: Arc<str>,
}

#[async_trait]
impl Question for Renew {
    /// A connection that still works leads to the owner's server, wherever the address may lead by now.
    const AGE_MAX: Duration = Duration::MAX;

    fn schema(&self) -> &Arc<str> {
        &self.schema
    }

    fn is_for(&self, link: &Link) -> bool {
        *self.server == *link.identity
    }

    async fn ask_together(link: &mut Link, questions: &[Self]) -> Result<Answers<Self>, StoreError> {
        let mut answers: Answers<Self> =
            questions.iter().map(|claim| claim.check(link).err().map(Err)).collect();
        let open = |answers: &Answers<Self>| -> Vec<usize> {
            (0..questions.len()).filter(|at| answers[*at].is_none()).collect()
        };
        let mut claims = open(&answers);
        match renew(link, questions, &claims, &mut answers).await {
            Err(error) if error.class == ErrorClass::Replay => {
                claims = unlocked(link, questions, &claims).await?;
                renew(link, questions, &claims, &mut answers).await?;
            }
            // Where one claim of an UPDATE is lost, the others of it were not renewed.
            Ok(()) => {
                claims = open(&answers);
                renew(link, questions, &claims, &mut answers).await?;
            }
            Err(error) => return Err(error),
        }
        Ok(answers)
    }
}

#[async_trait]
impl Visit for Renew {
    type Answer = Renewal;

    async fn visit(&self, link: &mut Link) -> Result<Renewal, StoreError> {
        self.check(link)?;
        let sql = format!("/* forebay renewal */ {}", update(std::iter::once((0, self))));
        let clock = format!("SELECT {CLOCK}");
        let (ours, clock) = link.session.execute_and_fetch(Statement::new(sql, vec![]), clock).await?;
        Ok(match ours {
            0 => Renewal::Lost,
            _ => Renewal::Renewed { server_time: int_of(&clock)?.map(Timestamp::from_micros) },
        })
    }
}

impl Renew {
    /// Fails if a connection leads to another server than the owner's others.
    fn check(&self, link: &Link) -> Result<(), StoreError> {
        if self.is_for(link) {
            return Ok(());
        }
        Err(error::other_server(&self.server, &link.identity))
    }

    /// Tells by the row of the heartbeat whether the claim is renewed.
    fn judge(&self, row: &Row) -> Result<Renewal, StoreError> {
        let found = fence::Owner { epoch: row.u64(1)?, incarnation: Incarnation(row.hash(2)?) };
        let server_time = row.optional_int(3)?.map(Timestamp::from_micros);
        Ok(if found == self.owner { Renewal::Renewed { server_time } } else { Renewal::Lost })
    }
}

/// Renews these claims in one transaction. Those that it renewed or that are lost have their answers then.
async fn renew(
    link: &mut Link,
    questions: &[Renew],
    claims: &[usize],
    answers: &mut Answers<Renew>,
) -> Result<(), StoreError> {
    if claims.is_empty() {
        return Ok(());
    }
    let chunks: Vec<&[usize]> = claims.chunks(CLAIMS_MAX).collect();
    let mut sql = vec!["/* forebay renewal */ BEGIN".to_owned()];
    for chunk in &chunks {
        sql.push(lock(questions, chunk, "NOWAIT"));
        sql.push(update(chunk.iter().map(|at| (*at, &questions[*at]))));
    }
    sql.push("COMMIT".to_owned());
    let statements = sql.into_iter().map(|sql| Statement::new(sql, vec![]));
    let done = link.session.run_each(statements).await;
    if done.is_err() && link.session.is_usable() {
        // Rows that the transaction has locked so far stay locked until then.
        link.session.rollback().await?;
    }
    for (chunk, results) in chunks.iter().zip(done?[1..].chunks(2)) {
        let [(_, rows), (matched, _)] = results else { continue };
        let mut found = vec![];
        for row in rows {
            found.push(usize::try_from(row.u64(0)?).unwrap_or(usize::MAX));
        }
        for at in *chunk {
            let row = found.iter().position(|found| found == at);
            let judged = row.map_or(Ok(Renewal::Lost), |row| questions[*at].judge(&rows[row]));
            // The UPDATE matches all of its claims or none.
            if *matched > 0 || !matches!(judged, Ok(Renewal::Renewed { .. })) {
                answers[*at] = Some(judged);
            }
        }
    }
    Ok(())
}

/// Returns the claims whose rows nobody holds.
async fn unlocked(link: &mut Link, questions: &[Renew], claims: &[usize]) -> Result<Vec<usize>, StoreError> {
    // Each is a transaction of its own, so it holds no row when it has ended.
    let probes =
        claims.chunks(CLAIMS_MAX).map(|chunk| Statement::new(lock(questions, chunk, "SKIP LOCKED"), vec![]));
    let mut free = Vec::new();
    for row in link.session.fetch_each(probes).await?.iter().flatten() {
        free.push(usize::try_from(row.u64(0)?).unwrap_or(usize::MAX));
    }
    free.retain(|at| claims.contains(at));
    free.sort_unstable();
    Ok(free)
}

/// Locks the rows of these claims. Each row that it returns begins with the claim's place in the list.
fn lock(questions: &[Renew], claims: &[usize], how: &str) -> String {
    let mut sql = String::new();
    for (nth, at) in claims.iter().enumerate() {
        let (before, schema) = (if nth == 0 { "" } else { " UNION ALL " }, &questions[*at].schema);
        // Writing to a String cannot fail.
        let _ = write!(
            sql,
            "{before}(SELECT {at}, epoch, incarnation, {CLOCK} FROM `{schema}`.heartbeat WHERE id = 1 \
             FOR UPDATE {how})"
        );
    }
    sql
}

/// Renews claims, all of them or none: it joins their rows.
fn update<'a>(claims: impl Iterator<Item = (usize, &'a Renew)>) -> String {
    let (mut tables, mut set, mut condition) = (String::new(), String::new(), String::new());
    for (at, Renew { schema, owner, .. }) in claims {
        let (comma, and) = if tables.is_empty() { ("", "") } else { (", ", " AND ") };
        let (epoch, incarnation) = (owner.epoch, u128::from_be_bytes(owner.incarnation.0));
        let _ = write!(tables, "{comma}`{schema}`.heartbeat h{at}");
        let _ = write!(set, "{comma}h{at}.renewals = h{at}.renewals + 1");
        let _ = write!(
            condition,
            "{and}h{at}.id = 1 AND h{at}.epoch = {epoch} AND h{at}.incarnation = X'{incarnation:032X}'"
        );
    }
    format!("UPDATE {tables} SET {set} WHERE {condition}")
}
