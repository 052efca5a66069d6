//! SHARD-SERVED: the shards of a node that fails are served again within 3 s, if all else is well. Where only
//! its event loop stands still, one or two more renewals come first: the time is 750 ms longer.
//!
//! That is so if nothing disturbed the cluster for 15 s before, and nothing else does meanwhile: the catalog
//! and the servers answer, no way is cut, no other node fails, joins or leaves, and operators change
//! nothing. And there must be another node that may own the shards.

use std::time::Duration;

use forebay_types::ShardId;

use crate::{
    fake::Db,
    sim::{process::Node, world::World},
};

/// So soon the shards are served.
pub const SERVED_WITHIN: Duration = Duration::from_secs(3);
/// At this time the owner of a shard has seen that it should go to a node that has died, and nobody has seen
/// yet that that one is dead.
pub const KEPT_FOR: Duration = Duration::from_millis(1_700);
/// The same as [`SERVED_WITHIN`] where the event loop of the node stands still: two renewals of its shard
/// leases later.
pub const HUNG_SERVED_WITHIN: Duration = Duration::from_millis(3_750);
/// The same while the catalog does not answer. A turn of the membership task waits 2 s for it, and a node
/// that is not the first to take a shard takes it in its next turn.
pub const WITHOUT_CATALOG_WITHIN: Duration = Duration::from_millis(7_500);
/// The same where all others do not reach a node, nor it them: they find that out after 3 s, vote it out 8 s
/// later, and its shards go two at a time.
pub const OUTVOTED_WITHIN: Duration = Duration::from_millis(15_500);
/// For so long nothing must have disturbed the cluster.
pub const CALM_FOR: Duration = Duration::from_secs(15);

/// Waits until nothing has disturbed the cluster for long enough.
pub async fn wait_for_calm(world: &World) {
    while !world.cluster().troubles.is_calm(&world.journal, CALM_FOR) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Whether nothing has disturbed the cluster for long enough, but for what does now.
pub fn is_calm_but_for_this(world: &World) -> bool {
    let troubles = world.cluster().troubles.all();
    let [earlier @ .., _] = &troubles[..] else { return true };
    let now = world.journal.last();
    !earlier.iter().any(|trouble| trouble.is_felt(now, CALM_FOR))
}

/// The shards of a node that is about to fail, if they are to be looked at.
pub struct Look {
    /// The shards.
    shards: Vec<ShardId>,
    /// The process.
    process: usize,
    /// How many disturbances there are, this one included.
    troubles: usize,
}

impl Look {
    /// The shards of a node that is about to fail, if all else is well.
    pub fn begin(world: &World, node: &Node) -> Self {
        Self::at(world, node, is_calm_but_for_this(world) && others(world, &[node]))
    }

    /// The same beside a node whose event loop has stood still for a while, and nothing else.
    pub fn beside(world: &World, node: &Node, hung: &Node) -> Self {
        Self::at(world, node, is_calm_but_for_this(world) && others(world, &[node, hung]))
    }

    /// The same while the catalog is out of reach, and nothing else. `calm`: it was so at the beginning.
    pub fn without_catalog(world: &World, node: &Node, calm: bool) -> Self {
        Self::at(world, node, calm && others(world, &[node]))
    }

    /// A shard of another node that is to go to a node that is about to fail, if all else is well.
    pub fn beside_dying(world: &World, dying: &Node, shard: ShardId) -> Self {
        let shards = if is_calm_but_for_this(world) { vec![shard] } else { Vec::new() };
        Self { shards, process: dying.process.number, troubles: world.cluster().troubles.count() }
    }

    fn at(world: &World, node: &Node, looks: bool) -> Self {
        let process = node.process.number;
        let owned = world.dbs.iter().filter(|db| looks && owner(db) == Some(process));
        let shards = owned.map(|db| db.id).collect();
        Self { shards, process, troubles: world.cluster().troubles.count() }
    }

    /// Waits, and looks again.
    pub async fn end(self, world: &World, within: Duration) {
        tokio::time::sleep(within).await;
        if self.shards.is_empty() || world.cluster().troubles.count() > self.troubles {
            return;
        }
        {
            let coverage = &mut *world.cluster().coverage();
            coverage.failures += 1;
            coverage.shards_failed += self.shards.len() as u64;
        }
        for id in &self.shards {
            if let Some(why) = self.unserved(world, *id).await {
                let what =
                    format!("shard {id} of process {} is not served {within:?} later: {why}", self.process);
                world.blame("SHARD-SERVED", what);
            }
        }
    }

    /// Why a shard is not served.
    async fn unserved(&self, world: &World, id: ShardId) -> Option<String> {
        let owner = world.dbs.iter().find(|db| db.id == id).and_then(owner);
        let is_it = |node: &Node| Some(node.process.number) == owner && node.process.number != self.process;
        let node = world.alive().into_iter().find(is_it);
        let Some(node) = node else { return Some(format!("its owner is process {owner:?}")) };
        let owner = node.process.number;
        let sights = tokio::time::timeout(Duration::from_millis(100), node.engine.sights()).await;
        let owned = sights.ok().flatten().is_some_and(|all| all.iter().any(|it| it.id == id && it.owned));
        (!owned).then(|| format!("process {owner} has taken it over, and does not serve it"))
    }
}

/// The process that owns a shard, or did until it was given up.
pub fn owner(db: &Db) -> Option<usize> {
    let state = db.lock();
    state.owners.last().filter(|_| !state.tables.address.is_empty()).map(|owner| owner.process)
}

/// Whether a node that is none of these may own shards.
fn others(world: &World, but: &[&Node]) -> bool {
    let Some(view) = world.cluster().catalog.lock().view() else { return false };
    let may = |node: &Node| {
        let row = view.nodes.iter().find(|row| row.peer_address == node.address);
        node.member.as_ref().is_some_and(super::state::MemberOf::has_joined)
            && row.is_some_and(|row| !row.draining)
            && but.iter().all(|it| it.address != node.address)
    };
    world.alive().iter().any(may)
}
