//! Why a change of the shards is refused.

use forebay_types::ShardId;

use crate::error::StoreError;

/// A change of the catalog's shards was refused, or failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CatalogError {
    /// The database reported an error.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A catalog keeps no passwords. The message repeats nothing of the URL.
    #[error("the URL of a shard contains a password: leave it out, nodes have their own")]
    Password,
    /// The URL can't be that of a shard.
    #[error("{0}")]
    Url(String),
    /// Another shard has this number.
    #[error("shard {0} exists already")]
    NumberTaken(ShardId),
    /// Another shard has this URL.
    #[error("shard {0} has this URL already")]
    UrlTaken(ShardId),
    /// The shards have changed since they were read: read them again.
    #[error("the catalog's shards are changed by others at the moment: try again")]
    Stale,
    /// There is no such shard.
    #[error("the catalog has no shard {0}")]
    NoShard(ShardId),
}
