//! A shard or a catalog in a schema of MySQL (8.0 or later) or MariaDB (10.6 or later).

mod catalog;
mod connect;
mod error;
mod generation;
mod heartbeat;
mod links;
mod lock;
mod looks;
mod migrate;
mod product;
mod reader;
mod renewals;
mod server;
mod servers;
mod session;
mod settings;
mod shard;
mod shared_server;
mod take_over;
mod together;
mod writer;

pub use catalog::MySqlCatalog;
pub use servers::MySqlServers;
pub use shard::MySqlShard;
