//! A shard or a catalog in a schema of MySQL (8.0 or later) or MariaDB (10.6 or later).

mod catalog;
mod connect;
mod error;
mod generation;
mod heartbeat;
mod lock;
mod migrate;
mod options;
mod product;
mod reader;
mod server;
mod session;
mod settings;
mod shard;
mod take_over;
mod writer;

pub use catalog::MySqlCatalog;
pub(crate) use options::check_shard_url;
pub use options::{MySqlOptions, Tls};
pub use shard::MySqlShard;
