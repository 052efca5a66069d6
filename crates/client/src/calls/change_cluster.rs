//! AddShard, DrainShard, RemoveShard, MoveShard, DrainNode. Each call has an id and is made once, so it is
//! retried.

use forebay_proto::v1;

use super::{
    cluster::{Node, Shard, node, shard},
    topic_settings::ChangeNote,
};
use crate::{client::Client, error::Error};

impl Client {
    /// Adds a shard, `mysql://USER@HOST:PORT/SCHEMA` without a password. A schema without tables gets them.
    /// Tried without effect, a new shard has the number 0.
    pub async fn add_shard(&self, url: &str, note: ChangeNote) -> Result<Option<Shard>, Error> {
        let request = v1::AddShardRequest {
            url: url.to_owned(),
            request_id: self.rng.request_id(),
            reason: note.reason,
            dry_run: note.dry_run,
        };
        let answer = self.ask(|mut admin| {
            let request = request.clone();
            async move { admin.add_shard(request).await }
        });
        Ok(answer.await?.shard.map(shard))
    }

    /// Lets a shard take no new items, or, to undo that, take them again.
    pub async fn drain_shard(&self, id: u32, undo: bool, note: ChangeNote) -> Result<Option<Shard>, Error> {
        let request = v1::DrainShardRequest {
            shard_id: id,
            undo,
            request_id: self.rng.request_id(),
            reason: note.reason,
            dry_run: note.dry_run,
        };
        let answer = self.ask(|mut admin| {
            let request = request.clone();
            async move { admin.drain_shard(request).await }
        });
        Ok(answer.await?.shard.map(shard))
    }

    /// Removes a shard that drains and has run empty, or one that is lost, with all that is in it. Returns it
    /// as it last was.
    pub async fn remove_shard(&self, id: u32, lost: bool, note: ChangeNote) -> Result<Option<Shard>, Error> {
        let request = v1::RemoveShardRequest {
            shard_id: id,
            lost,
            request_id: self.rng.request_id(),
            reason: note.reason,
            dry_run: note.dry_run,
        };
        let answer = self.ask(|mut admin| {
            let request = request.clone();
            async move { admin.remove_shard(request).await }
        });
        Ok(answer.await?.shard.map(shard))
    }

    /// Pins a shard to a node, to which it moves. Without a node its pin ends.
    pub async fn move_shard(
        &self,
        id: u32,
        to: Option<&str>,
        note: ChangeNote,
    ) -> Result<Option<Shard>, Error> {
        let request = v1::MoveShardRequest {
            shard_id: id,
            node: to.unwrap_or_default().to_owned(),
            request_id: self.rng.request_id(),
            reason: note.reason,
            dry_run: note.dry_run,
        };
        let answer = self.ask(|mut admin| {
            let request = request.clone();
            async move { admin.move_shard(request).await }
        });
        Ok(answer.await?.shard.map(shard))
    }

    /// Moves all shards away from a node, or lets it own shards again.
    pub async fn drain_node(&self, name: &str, undo: bool, note: ChangeNote) -> Result<Option<Node>, Error> {
        let request = v1::DrainNodeRequest {
            node: name.to_owned(),
            undo,
            request_id: self.rng.request_id(),
            reason: note.reason,
            dry_run: note.dry_run,
        };
        let answer = self.ask(|mut admin| {
            let request = request.clone();
            async move { admin.drain_node(request).await }
        });
        Ok(answer.await?.node.map(node))
    }
}
