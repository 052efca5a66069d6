//! A shard or a catalog in a SQLite file. `forebay dev` uses it because it needs no server.

mod catalog;
mod error;
mod files;
mod heartbeat;
mod lock;
mod migrate;
mod open;
mod reader;
mod session;
mod shard;
mod writer;

pub use catalog::SqliteCatalog;
pub use shard::SqliteShard;
