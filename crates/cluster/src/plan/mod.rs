//! Which shards should have another home now.
//!
//! Any node may plan. It writes the moves to the catalog by compare-and-set on the assignment's version, so
//! two plans of one version never mix. A plan changes the wish only: a healthy owner gives its shard itself.
//!
//! 1. `standing.rs`: which nodes may take shards, which keep theirs, which should lose them.
//! 2. `parts.rs`: which shards take part, and where those go that lost their home.
//! 3. `balance.rs`: evenness, per database server first, then in all.
//! 4. `limits.rs`: which of the moves may begin now.

mod balance;
mod limits;
mod moves;
mod parts;
mod rendezvous;
mod standing;
#[cfg(test)]
mod tests;

use forebay_store::CatalogShardState;
pub use moves::{
    FIRST_JOINERS_WAIT, JOINER_WAITS, MOVED_STAYS, MOVES_MAX, Move, NEW_HOME_STAYS, OUTVOTED_AFTER, Reason,
    changes,
};
pub use rendezvous::weight;
use standing::Standing;

use crate::view::ClusterView;

/// The moves that should begin now, those that wait for nothing first. The same view gives the same moves.
pub fn plan(view: &ClusterView) -> Vec<Move> {
    let standings = standing::standings(view);
    let mut parts = parts::Parts::new(view, &standings);
    balance::balance(&mut parts);
    let mut moves = offline(view);
    moves.extend(parts.moves());
    // With a node that is about to take its share, another plan is even: what moves now might move again.
    if standings.values().any(|it| *it == Standing::Joins) {
        moves.retain(|it| it.reason != Reason::Balance);
    }
    limits::begin_now(view, moves)
}

/// Takes the homes of offline shards away.
fn offline(view: &ClusterView) -> Vec<Move> {
    let offline = view.shards.iter().filter(|(_, shard)| shard.state == CatalogShardState::Offline);
    let moves = offline.filter_map(|(id, shard)| {
        let from = Some(shard.home.as_ref()?.node.clone());
        Some(Move { shard: *id, from, to: None, reason: Reason::Offline })
    });
    moves.collect()
}
