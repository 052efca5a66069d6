//! Where MySQL and MariaDB servers are, and the accounts for them.

pub(crate) mod options;
mod target;

pub(crate) use options::check_shard_url;
pub use options::{MySqlOptions, Password, Tls};
pub(crate) use target::Target;
