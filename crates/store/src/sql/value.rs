//! The three kinds of value in a shard's columns.

use bytes::Bytes;
use forebay_types::{Seq, State, Timestamp, TopicId};

use crate::error::{ErrorClass, StoreError};

/// A column's value. Unsigned numbers are below 2^63, so signed columns keep their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// No value.
    Null,
    /// A number.
    Int(i64),
    /// Bytes or text.
    Bytes(Bytes),
}

impl Value {
    /// The approximate number of bytes that it takes in a statement.
    pub(crate) fn encoded_len(&self) -> usize {
        match self {
            Self::Null => 1,
            Self::Int(_) => 8,
            Self::Bytes(bytes) => 9 + bytes.len(),
        }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Int(number.into())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Int(number.into())
    }
}

impl From<u64> for Value {
    /// Batches, epochs and seqs count from 1 and never reach 2^63, so the sign is always positive.
    fn from(number: u64) -> Self {
        Self::Int(number.cast_signed())
    }
}

impl From<Seq> for Value {
    fn from(seq: Seq) -> Self {
        seq.0.into()
    }
}

impl From<TopicId> for Value {
    fn from(topic: TopicId) -> Self {
        topic.0.into()
    }
}

impl From<Timestamp> for Value {
    fn from(time: Timestamp) -> Self {
        Self::Int(time.as_micros())
    }
}

impl From<State> for Value {
    fn from(state: State) -> Self {
        Self::Int(match state {
            State::Ready => 0,
            State::Scheduled => 1,
        })
    }
}

impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(Bytes::copy_from_slice(bytes))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

/// The columns of one row, by position.
#[derive(Debug)]
pub(crate) struct Row(pub(crate) Vec<Value>);

impl Row {
    /// A signed number.
    pub(crate) fn int(&self, column: usize) -> Result<i64, StoreError> {
        match self.0.get(column) {
            Some(Value::Int(number)) => Ok(*number),
            other => Err(corrupt(format!("column {column} should be a number and is {}", kind(other)))),
        }
    }

    /// A signed number or NULL.
    pub(crate) fn optional_int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        match self.0.get(column) {
            Some(Value::Null) => Ok(None),
            _ => self.int(column).map(Some),
        }
    }

    /// An unsigned number.
    pub(crate) fn u64(&self, column: usize) -> Result<u64, StoreError> {
        self.int(column).map(i64::cast_unsigned)
    }

    /// An unsigned column of four bytes. The drivers return its 32 bits with or without a sign.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the column has 32 bits")]
    pub(crate) fn u32(&self, column: usize) -> Result<u32, StoreError> {
        self.int(column).map(|number| number as u32)
    }

    /// A signed number of four bytes.
    pub(crate) fn i32(&self, column: usize) -> Result<i32, StoreError> {
        let number = self.int(column)?;
        number.try_into().map_err(|_| corrupt(format!("column {column} is out of range: {number}")))
    }

    /// An item number.
    pub(crate) fn seq(&self, column: usize) -> Result<Seq, StoreError> {
        self.u64(column).map(Seq)
    }

    /// A topic number.
    pub(crate) fn topic(&self, column: usize) -> Result<TopicId, StoreError> {
        self.u32(column).map(TopicId)
    }

    /// A time.
    pub(crate) fn optional_time(&self, column: usize) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.optional_int(column)?.map(Timestamp::from_micros))
    }

    pub(crate) fn time(&self, column: usize) -> Result<Timestamp, StoreError> {
        self.int(column).map(Timestamp::from_micros)
    }

    /// Bytes.
    pub(crate) fn bytes(&self, column: usize) -> Result<Bytes, StoreError> {
        self.bytes_ref(column).cloned()
    }

    fn bytes_ref(&self, column: usize) -> Result<&Bytes, StoreError> {
        match self.0.get(column) {
            Some(Value::Bytes(bytes)) => Ok(bytes),
            other => Err(corrupt(format!("column {column} should be bytes and is {}", kind(other)))),
        }
    }

    /// Bytes or NULL.
    pub(crate) fn optional_bytes(&self, column: usize) -> Result<Option<Bytes>, StoreError> {
        match self.0.get(column) {
            Some(Value::Null) => Ok(None),
            _ => self.bytes(column).map(Some),
        }
    }

    /// Bytes of a fixed length.
    pub(crate) fn hash<const N: usize>(&self, column: usize) -> Result<[u8; N], StoreError> {
        let bytes = self.bytes(column)?;
        bytes.as_ref().try_into().map_err(|_| corrupt(format!("column {column} should be {N} bytes")))
    }

    /// The beginning of bytes. SQLite answers NULL for that of none.
    pub(crate) fn cut_bytes(&self, column: usize) -> Result<Bytes, StoreError> {
        Ok(self.optional_bytes(column)?.unwrap_or_default())
    }

    /// Text of callers, perhaps cut inside its last character. Whatever it is, it is shown.
    pub(crate) fn cut_text(&self, column: usize) -> Result<String, StoreError> {
        let bytes = self.cut_bytes(column)?;
        Ok(match std::str::from_utf8(&bytes) {
            Err(error) if error.error_len().is_none() => {
                String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned()
            }
            _ => String::from_utf8_lossy(&bytes).into_owned(),
        })
    }

    /// UTF-8 text.
    pub(crate) fn text(&self, column: usize) -> Result<String, StoreError> {
        self.str(column).map(str::to_owned)
    }

    /// The same, where it is.
    pub(crate) fn str(&self, column: usize) -> Result<&str, StoreError> {
        str::from_utf8(self.bytes_ref(column)?)
            .map_err(|_| corrupt(format!("column {column} should be UTF-8")))
    }
}

/// Kind of a column's value, without the bytes of callers.
fn kind(value: Option<&Value>) -> String {
    match value {
        None => "not there".to_owned(),
        Some(Value::Null) => "NULL".to_owned(),
        Some(Value::Int(number)) => format!("the number {number}"),
        Some(Value::Bytes(bytes)) => format!("{} bytes", bytes.len()),
    }
}

/// The shard holds a row that this program never writes.
pub(crate) fn corrupt(message: impl Into<String>) -> StoreError {
    StoreError::new(ErrorClass::Schema, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_is_read_whatever_it_is() {
        let row = |value: Value| Row(vec![value]);
        let text = |bytes: &[u8]| row(bytes.into()).cut_text(0).unwrap();
        assert_eq!(text("größe".as_bytes()), "größe");
        assert_eq!(text(&"größe".as_bytes()[..3]), "gr");
        assert_eq!(text(b"a\xffb"), "a\u{fffd}b");
        assert_eq!(row(Value::Null).cut_text(0).unwrap(), "");
        assert_eq!(row(Value::Null).cut_bytes(0).unwrap(), "");
        assert!(row(Value::Int(1)).cut_bytes(0).is_err());
    }
}
