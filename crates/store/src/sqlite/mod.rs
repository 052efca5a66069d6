//! A shard in a SQLite file: what `forebay dev` runs on, without any server.

mod error;
mod heartbeat;
mod lock;
mod migrate;
mod open;
mod reader;
mod session;
mod shard;
mod writer;

pub use shard::SqliteShard;

/// A batch is bounded only by what is sensible to hold in memory.
const BATCH_BYTES: usize = 16 << 20;
/// A statement is copied on its way to SQLite's thread, so it stays smaller.
const STATEMENT_BYTES: usize = 4 << 20;
