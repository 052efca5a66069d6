//! Calls that change shards and nodes say how these are to be: whoever has lost an answer repeats the call.

use forebay_proto::v1::{
    AddShardRequest, DrainNodeRequest, DrainShardRequest, MoveShardRequest, RemoveShardRequest, Shard,
    admin_service_client::AdminServiceClient,
};
use forebay_testkit::servers::{self, Kind};
use tonic::transport::Channel;

use super::nodes::Nodes;
use crate::node::Node;

fn admin(node: &Node) -> AdminServiceClient<Channel> {
    AdminServiceClient::new(node.channel())
}

/// The state, the pin and the node of a shard.
fn told(shard: Option<Shard>) -> (i32, bool, String) {
    let shard = shard.expect("it is there");
    (shard.state, shard.pinned, shard.wished_owner)
}

/// At another node each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_shards_or_nodes_that_is_repeated_succeeds_and_changes_nothing() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 2).await;
    let nodes = cluster.start_all().await;
    let url = servers::shared(Kind::MariaDb).await.fresh_url().await;
    for node in &nodes {
        let add = AddShardRequest { url: url.clone(), ..Default::default() };
        let added = admin(node).add_shard(add).await.unwrap().into_inner().shard.unwrap();
        assert_eq!(added.id, 3);
    }
    let mut moved = Vec::new();
    for node in &nodes {
        let to = MoveShardRequest { shard_id: 3, node: "node1".into(), ..Default::default() };
        moved.push(told(admin(node).move_shard(to).await.unwrap().into_inner().shard));
    }
    assert_eq!((moved[0].1, moved[0].2.as_str()), (true, "node1"));
    assert_eq!(moved[0], moved[1]);
    for undo in [false, true] {
        for node in &nodes {
            let drain = DrainNodeRequest { node: "node1".into(), undo, ..Default::default() };
            let drains = admin(node).drain_node(drain).await.unwrap().into_inner().node.unwrap();
            assert_eq!(drains.draining, !undo);
        }
    }
    for undo in [false, true, false] {
        let mut states = Vec::new();
        for node in &nodes {
            let drain = DrainShardRequest { shard_id: 3, undo, ..Default::default() };
            states.push(told(admin(node).drain_shard(drain).await.unwrap().into_inner().shard).0);
        }
        assert_eq!(states[0], states[1]);
    }
    let mut removed = Vec::new();
    for node in &nodes {
        let remove = RemoveShardRequest { shard_id: 3, lost: true, ..Default::default() };
        removed.push(admin(node).remove_shard(remove).await.unwrap().into_inner().shard.map(|it| it.id));
    }
    assert_eq!(removed, [Some(3), None], "there is nothing left to do");
}
