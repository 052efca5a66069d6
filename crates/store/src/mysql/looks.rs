//! Looks at many shards of a server with one query.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{
    links::{self, Link, Visit},
    together::{Answers, Question},
};
use crate::{
    error::StoreError,
    rows::Observation,
    sql::{Row, Statement, fence},
};

/// The most shards of one SELECT. A longer one takes the server more time for each of them.
const SHARDS_MAX: usize = 64;

/// A question for an observation of one shard.
#[derive(Clone)]
pub(super) struct Look {
    /// The shard's schema.
    pub(super) schema: Arc<str>,
}

#[async_trait]
impl Question for Look {
    const AGE_MAX: Duration = links::AGE_MAX;

    fn schema(&self) -> &Arc<str> {
        &self.schema
    }

    fn is_for(&self, _link: &Link) -> bool {
        // It shows whatever server the address leads to.
        true
    }

    async fn ask_together(link: &mut Link, questions: &[Self]) -> Result<Answers<Self>, StoreError> {
        let mut answers: Answers<Self> = Vec::new();
        answers.resize_with(questions.len(), || None);
        for rows in link.session.fetch_each(queries(questions)).await? {
            for row in rows {
                let at = usize::try_from(row.u64(fence::OBSERVED)?).unwrap_or(usize::MAX);
                if let Some(answer) = answers.get_mut(at) {
                    *answer = Some(fence::decode_observation(vec![row]));
                }
            }
        }
        // A shard without a row is asked for alone, and says what is wrong.
        Ok(answers)
    }
}

#[async_trait]
impl Visit for Look {
    type Answer = Observation;

    async fn visit(&self, link: &mut Link) -> Result<Observation, StoreError> {
        let rows: Vec<Row> = link
            .session
            .fetch_each(queries(std::slice::from_ref(self)))
            .await?
            .into_iter()
            .flatten()
            .collect();
        fence::decode_observation(rows)
    }
}

/// Each row names its question's place in the list.
fn queries(questions: &[Look]) -> Vec<Statement> {
    let mut statements = Vec::new();
    for (chunk, looks) in questions.chunks(SHARDS_MAX).enumerate() {
        let mut sql = String::new();
        for (at, Look { schema }) in looks.iter().enumerate() {
            let (before, place) =
                (if at == 0 { "/* forebay look */ " } else { " UNION ALL " }, chunk * SHARDS_MAX + at);
            // Writing to a String cannot fail.
            let _ = write!(sql, "{before}{}", fence::observe_among(schema, place));
        }
        statements.push(Statement::new(sql, vec![]));
    }
    statements
}
