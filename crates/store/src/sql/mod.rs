//! Code that MySQL and SQLite share: a batch's statements, a reader's queries, and the packed columns.

mod attributes;
pub(crate) mod commit;
mod dialect;
mod failures;
pub(crate) mod fence;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod highest;
pub(crate) mod identity;
mod pack;
pub(crate) mod read;
pub(crate) mod row_counts;
mod statement;
mod value;
pub(crate) mod version;
mod write;

pub(crate) use dialect::Dialect;
pub(crate) use pack::pack;
pub(crate) use statement::{ReadConnection, Session, Statement, int_of, scalar};
pub(crate) use value::{Row, Value, corrupt};
