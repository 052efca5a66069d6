//! Properties that must hold in every state.

use stateright::Property;

use super::{
    scenario::{Scenario, at},
    state::{CallerAnswer, Node, State},
};

type Check = fn(&Scenario, &State) -> bool;

/// Properties that must hold at each moment.
const SAFE: [(&str, Check); 5] = [
    ("a batch that was answered OK is stored", stays_ok),
    ("a batch of which nothing happened is never stored", stays_refused),
    ("every batch is its owner's", is_owners),
    ("an owner that trusts its claim owns the shard", trusts_rightly),
    ("who said no serves nobody", no_is_no),
];

/// All of it, for the checker.
pub(super) fn all() -> Vec<Property<Scenario>> {
    let mut all: Vec<_> =
        SAFE.iter().map(|(name, check)| Property::<Scenario>::always(name, *check)).collect();
    all.push(Property::<Scenario>::always("nothing is broken at the end", |_, state| state.broken.is_none()));
    all.push(Property::<Scenario>::always("the shard is served at the end", is_served));
    all.push(Property::<Scenario>::always("a slow server moves no shard", stays_where_it_is));
    all
}

/// The first that does not hold.
pub(super) fn broken(scenario: &Scenario, state: &State) -> Option<&'static str> {
    SAFE.iter().find(|(_, check)| !check(scenario, state)).map(|(name, _)| *name)
}

/// The numbers of the calls that were told this, as bits.
fn told(state: &State, what: CallerAnswer) -> u8 {
    let calls = state.told.iter().enumerate().filter(|(_, told)| **told == what);
    calls.map(|(call, _)| 1 << call).sum()
}

/// A server that forgets undoes what it has answered: nobody can do anything about that.
fn stays_ok(scenario: &Scenario, state: &State) -> bool {
    scenario.faults.forgets > 0 || told(state, CallerAnswer::Ok) & !state.rows.stored == 0
}

fn stays_refused(_: &Scenario, state: &State) -> bool {
    told(state, CallerAnswer::No) & state.rows.stored == 0
}

fn is_owners(_: &Scenario, state: &State) -> bool {
    !state.rows.foreign
}

/// It may give answers that write nothing.
fn answers_from_memory(state: &State, node: &Node) -> bool {
    let owner = node.owner().filter(|_| node.alive && !node.paused);
    owner.is_some_and(|owner| owner.trust.holds(at(state.now)))
}

fn trusts_rightly(scenario: &Scenario, state: &State) -> bool {
    let owns = |node: &Node| {
        let is_owner = node.owner().is_some_and(|owner| owner.tenure == state.rows.tenure());
        is_owner && !state.rows.seen.address.is_empty()
    };
    // The server may have forgotten the claim of which it told the node.
    let forgets = scenario.faults.forgets > 0;
    forgets || state.nodes.iter().filter(|node| answers_from_memory(state, node)).all(owns)
}

fn no_is_no(_: &Scenario, state: &State) -> bool {
    state.denied.iter().all(|(node, tenure)| state.nodes[*node].owner().is_none_or(|it| it.tenure != *tenure))
}

fn is_served(_: &Scenario, state: &State) -> bool {
    let is_own = |node: &Node| node.owner().is_some_and(|owner| owner.tenure == state.rows.tenure());
    let serves = |node: &Node| answers_from_memory(state, node) && is_own(node);
    !state.over || state.nodes.iter().any(serves)
}

/// Where nothing else goes wrong.
fn stays_where_it_is(scenario: &Scenario, state: &State) -> bool {
    scenario.faults.slows == 0 || state.rows.seen.epoch <= 1
}
