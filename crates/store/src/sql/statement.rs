//! One statement, and what can execute it.

use std::borrow::Cow;

use async_trait::async_trait;

use super::{Dialect, Row, Value, nonsense};
use crate::StoreError;

/// SQL text with its values. The text never holds what users gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) sql: Cow<'static, str>,
    pub(crate) values: Vec<Value>,
}

impl Statement {
    pub(crate) fn new(sql: impl Into<Cow<'static, str>>, values: Vec<Value>) -> Self {
        Self { sql: sql.into(), values }
    }
}

/// One connection that writes.
#[async_trait]
pub(crate) trait Session: Send {
    /// Opens a transaction, where one isn't open by itself.
    async fn begin(&mut self) -> Result<(), StoreError>;
    /// Returns how many rows matched.
    async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError>;
    /// Returns every row.
    async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError>;
    async fn commit(&mut self) -> Result<(), StoreError>;
    /// After an error of its own the connection is of no use any more, and its transaction ends with it.
    async fn rollback(&mut self) -> Result<(), StoreError>;
}

/// What can be asked, from many places at once.
#[async_trait]
pub(crate) trait Source: Send + Sync + 'static {
    fn dialect(&self) -> Dialect;
    async fn fetch(&self, statement: Statement) -> Result<Vec<Row>, StoreError>;
}

/// The number in the first column of the only row, if there is a row.
pub(crate) fn int_of(rows: &[Row]) -> Result<Option<i64>, StoreError> {
    match rows.first() {
        Some(row) => row.optional_int(0),
        None => Ok(None),
    }
}

/// The only row.
pub(crate) fn scalar(rows: Vec<Row>, what: &str) -> Result<Row, StoreError> {
    rows.into_iter().next().ok_or_else(|| nonsense(format!("no row: {what}")))
}
