//! One statement, and what can execute it.

use std::borrow::Cow;

use async_trait::async_trait;

use super::{Dialect, Row, Value, corrupt};
use crate::{CommitError, StoreError};

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

    /// About how many bytes its values take.
    pub(crate) fn encoded_len(&self) -> usize {
        self.values.iter().map(Value::encoded_len).sum()
    }

    /// About how long it is as text.
    pub(crate) fn text_len(&self) -> usize {
        self.sql.len() + 2 * self.encoded_len()
    }

    /// Appends the text with its values written into it: numbers, and bytes in hexadecimal, so that nothing that users
    /// gave can be read as SQL. A `?` stands for a value wherever it stands; no text of ours has one elsewhere.
    pub(crate) fn write_whole(&self, text: &mut String) {
        use std::fmt::Write as _;
        let mut values = self.values.iter();
        let mut parts = self.sql.split('?');
        text.push_str(parts.next().unwrap_or_default());
        for part in parts {
            // Writing to a String can't fail.
            let _ = match values.next() {
                Some(Value::Int(number)) => write!(text, "{number}"),
                Some(Value::Bytes(bytes)) => write!(text, "X'{}'", Hex(bytes)),
                Some(Value::Null) | None => write!(text, "NULL"),
            };
            text.push_str(part);
        }
    }
}

struct Hex<'a>(&'a [u8]);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write as _;
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        for byte in self.0 {
            f.write_char(DIGITS[usize::from(byte >> 4)].into())?;
            f.write_char(DIGITS[usize::from(byte & 15)].into())?;
        }
        Ok(())
    }
}

/// One connection that writes.
#[async_trait]
pub(crate) trait Session: Send {
    /// Opens a transaction, where one isn't open by itself.
    async fn begin(&mut self) -> Result<(), StoreError>;
    /// Returns how many rows matched.
    async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError>;
    /// A whole transaction: the statements one after the other, then the fence's, then COMMIT, up to the first that fails.
    /// No more than about `bytes_max` are sent at once. Anything but success leaves the transaction open, unless the
    /// connection is lost.
    async fn transact(
        &mut self,
        statements: Vec<Statement>,
        fence: Statement,
        bytes_max: usize,
    ) -> Result<(), CommitError>;
    /// Returns every row.
    async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError>;
    async fn commit(&mut self) -> Result<(), StoreError>;
    /// After an error of its own the connection is of no use any more, and its transaction ends with it.
    async fn rollback(&mut self) -> Result<(), StoreError>;
}

/// What can be asked, from many places at once.
#[async_trait]
pub(crate) trait ReadConnection: Send + Sync + 'static {
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
    rows.into_iter().next().ok_or_else(|| corrupt(format!("no row: {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_numbers_and_digits() {
        let values = vec![7.into(), Value::Null, Value::from(&b"'; DROP"[..]), Value::from(-1_i64)];
        let mut text = String::new();
        Statement::new("INSERT INTO t VALUES (?,?,?,0),(?)", values).write_whole(&mut text);
        assert_eq!(text, "INSERT INTO t VALUES (7,NULL,X'273B2044524F50',0),(-1)");
    }
}
