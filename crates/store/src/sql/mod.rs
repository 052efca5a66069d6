//! What MySQL and SQLite share: the statements of a batch, the questions of a reader, and how rows are packed.

mod attributes;
pub(crate) mod commit;
mod dialect;
pub(crate) mod fence;
mod pack;
pub(crate) mod read;
mod row_counts;
mod statement;
mod value;
pub(crate) mod version;
mod write;

pub(crate) use attributes::Attributes;
pub(crate) use dialect::Dialect;
pub(crate) use statement::{ReadConnection, Session, Statement, int_of, scalar};
pub(crate) use value::{Row, Value, corrupt};
