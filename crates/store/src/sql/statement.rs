//! One statement, and the connections that execute it.

use std::borrow::Cow;

use async_trait::async_trait;

use super::{
    dialect::Dialect,
    value::{Row, Value, corrupt},
};
use crate::error::{CommitError, StoreError};

/// SQL text with its values. The text never contains data from users.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    /// The text, with a `?` for each value.
    pub(crate) sql: Cow<'static, str>,
    /// The values, in the order of their marks.
    pub(crate) values: Vec<Value>,
}

impl Statement {
    /// A statement with its values.
    pub(crate) fn new(sql: impl Into<Cow<'static, str>>, values: Vec<Value>) -> Self {
        Self { sql: sql.into(), values }
    }

    /// The approximate number of bytes that its values take.
    pub(crate) fn encoded_len(&self) -> usize {
        self.values.iter().map(Value::encoded_len).sum()
    }

    /// The approximate length of the statement as text.
    pub(crate) fn text_len(&self) -> usize {
        self.sql.len() + 2 * self.encoded_len()
    }

    /// Appends the text with its values. Bytes are written in hexadecimal, so that data from users is never
    /// parsed as SQL. Every `?` marks a value: no text of this crate has one in another role.
    pub(crate) fn write_whole(&self, text: &mut String) {
        use std::fmt::Write as _;
        let mut values = self.values.iter();
        let mut parts = self.sql.split('?');
        text.push_str(parts.next().unwrap_or_default());
        for part in parts {
            // Writing to a String cannot fail.
            let _ = match values.next() {
                Some(Value::Int(number)) => write!(text, "{number}"),
                Some(Value::Bytes(bytes)) => write!(text, "X'{}'", Hex(bytes)),
                Some(Value::Null) | None => write!(text, "NULL"),
            };
            text.push_str(part);
        }
    }
}

/// Bytes, displayed in hexadecimal.
struct Hex<'a>(&'a [u8]);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        // Bodies are written so: by the character this took 2 % of a node's processor time.
        let mut text = [0; 128];
        for bytes in self.0.chunks(text.len() / 2) {
            for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
                pair[0] = DIGITS[usize::from(byte >> 4)];
                pair[1] = DIGITS[usize::from(byte & 15)];
            }
            f.write_str(std::str::from_utf8(&text[..2 * bytes.len()]).map_err(|_| std::fmt::Error)?)?;
        }
        Ok(())
    }
}

/// A connection that writes.
#[async_trait]
pub(crate) trait Session: Send {
    /// Opens a transaction, unless the first statement does.
    async fn begin(&mut self) -> Result<(), StoreError>;
    /// Executes a statement. Returns how many rows matched.
    async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError>;
    /// Runs a transaction: the statements in order, then the fence's, then COMMIT, up to the first failure.
    /// It sends about `bytes_max` at once. After a failure the transaction is still open, unless the
    /// connection is lost.
    async fn transact(
        &mut self,
        statements: Vec<Statement>,
        fence: Statement,
        bytes_max: usize,
    ) -> Result<(), CommitError>;
    /// Executes a query. Returns every row.
    async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError>;
    /// Commits the open transaction.
    async fn commit(&mut self) -> Result<(), StoreError>;
    /// Rolls the open transaction back. If that fails, the connection is dropped and its transaction with it.
    async fn rollback(&mut self) -> Result<(), StoreError>;
}

/// Connections that only read. Calls may run concurrently.
#[async_trait]
pub(crate) trait ReadConnection: Send + Sync + 'static {
    /// The kind of SQL to use.
    fn dialect(&self) -> Dialect;
    /// The server that is read, as it names itself. Empty where there is none.
    fn server(&self) -> &str;
    /// Executes a query. Returns every row.
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
    fn values_are_written_as_numbers_and_hexadecimal_digits() {
        let values = vec![7.into(), Value::Null, Value::from(&b"'; DROP"[..]), Value::from(-1_i64)];
        let mut text = String::new();
        Statement::new("INSERT INTO t VALUES (?,?,?,0),(?)", values).write_whole(&mut text);
        assert_eq!(text, "INSERT INTO t VALUES (7,NULL,X'273B2044524F50',0),(-1)");
        let long: Vec<u8> = (0..200).collect();
        let digits: String = long.iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(Hex(&long).to_string(), digits);
        assert_eq!(Hex(&[]).to_string(), "");
    }
}
