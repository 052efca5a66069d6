//! The nodes and operators that change the catalog's assignment.
//!
//! Each node plans by what it read ([`forebay_cluster::plan`]), and writes its changes at any later time, by
//! compare-and-set on the version. Meanwhile nodes join and die, and operators pin shards.

mod calm;
mod catalog;

use std::collections::{BTreeMap, BTreeSet};

use forebay_cluster::{ClusterView, NodeView, ShardView, changes, plan};
use forebay_store::{CatalogShardState, Home};
use forebay_types::{NodeName, ShardId};
use stateright::{Model, Property};

use self::catalog::{Catalog, Draft, at, name};
use crate::Mistake;

/// Beginning and bounds of a check.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Nodes that are there at first.
    pub nodes: usize,
    /// Nodes that may join.
    pub joiners: usize,
    /// Shards, of one server.
    pub shards: usize,
    /// Nodes that may die.
    pub deaths: u8,
    /// Shards that operators may pin.
    pub pins: u8,
    /// How often half a minute may pass.
    pub ticks: u8,
    /// A planted mistake.
    pub mistake: Option<Mistake>,
}

/// One moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// How often half a minute has passed.
    now: u8,
    /// The catalog.
    catalog: Catalog,
    /// Owner of each shard.
    owners: Vec<Option<usize>>,
    /// Draft that each node is about to write.
    drafts: Vec<Option<Draft>>,
    /// How many nodes may still die.
    deaths: u8,
    /// Pins that operators were told are done: shard and node.
    pins: Vec<(usize, usize)>,
    /// Changes were written to an assignment that they were not made from.
    mixed: bool,
    /// The end was reached.
    over: bool,
    /// Nobody wants any change more.
    settled: bool,
}

/// One thing that happens. The first number is a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A node reads the catalog and plans.
    Plan(usize),
    /// It writes what it has planned.
    Write(usize),
    /// A shard's owner gives it to the node that should own it. The number is the shard's.
    Move(usize),
    /// A node joins.
    Join(usize),
    /// A node dies.
    Die(usize),
    /// An operator pins a shard to a node.
    Pin(usize, usize),
    /// Half a minute passes.
    Tick,
    /// Nothing happens any more but what nodes do about it.
    End,
}

impl State {
    fn first(scenario: &Scenario) -> Self {
        let all = scenario.nodes + scenario.joiners;
        Self {
            now: 0,
            catalog: Catalog::first(scenario.nodes, scenario.joiners, scenario.shards),
            owners: (0..scenario.shards).map(|shard| Some(shard % scenario.nodes)).collect(),
            drafts: vec![None; all],
            deaths: scenario.deaths,
            pins: Vec::new(),
            mixed: false,
            over: false,
            settled: true,
        }
    }

    /// The cluster as a node sees it that has just read the catalog.
    fn view(&self) -> ClusterView {
        let Catalog { alive, joined, homes, since, .. } = &self.catalog;
        let node = |node: usize| NodeView {
            live: alive[node],
            late: false,
            draining: false,
            joined_since: at(joined[node]),
            servers: BTreeSet::from(["db".to_owned()]),
            grey_since: None,
        };
        let shard = |shard: usize| ShardView {
            server: "db".to_owned(),
            state: CatalogShardState::Active,
            home: homes[shard].map(|(node, pinned)| Home { node: name(node), pinned }),
            home_since: Some(at(since[shard])),
            owner: self.owners[shard].map(name),
            silent: false,
            stuck: false,
            steady: true,
        };
        let there = (0..alive.len()).filter(|node| self.catalog.is_there(*node));
        ClusterView {
            now: at(self.now),
            nodes: there.map(|it| (name(it), node(it))).collect(),
            shards: (0..homes.len()).map(|it| (ShardId(it as u32), shard(it))).collect(),
        }
    }

    /// Returns the draft of a node that has just read the catalog.
    fn draft(&self) -> Option<Draft> {
        let moves: BTreeMap<ShardId, Option<Home>> = changes(&plan(&self.view()));
        let node = |name: &NodeName| catalog::node(name);
        let homes =
            moves.into_iter().map(|(id, home)| (id.0 as usize, home.map(|it| (node(&it.node), it.pinned))));
        let homes: Vec<_> = homes.collect();
        (!homes.is_empty()).then(|| Draft {
            from: self.catalog.version,
            base: self.catalog.homes.clone(),
            homes,
        })
    }

    /// A node writes what it has planned.
    fn write(&mut self, scenario: &Scenario, draft: Draft) {
        let blindly = scenario.mistake == Some(Mistake::AssignedBlindly);
        if draft.from != self.catalog.version && !blindly {
            return;
        }
        self.mixed |= draft.base != self.catalog.homes;
        self.catalog.assign(&draft.homes, self.now);
    }
}

impl Model for Scenario {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::first(self)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.over {
            return;
        }
        let Catalog { alive, homes, .. } = &state.catalog;
        let living = alive.iter().filter(|alive| **alive).count();
        for (node, lives) in alive.iter().enumerate() {
            if !lives {
                actions.extend((!state.catalog.is_there(node)).then_some(Action::Join(node)));
                continue;
            }
            actions.push(if state.drafts[node].is_some() { Action::Write(node) } else { Action::Plan(node) });
            actions.extend((state.deaths > 0 && living > 1).then_some(Action::Die(node)));
            if state.pins.len() < usize::from(self.pins) {
                actions.extend((0..homes.len()).map(|shard| Action::Pin(shard, node)));
            }
        }
        let moves = |shard: &usize| {
            let home = homes[*shard].map(|(node, _)| node).filter(|node| alive[*node]);
            home.is_some() && state.owners[*shard] != home
        };
        actions.extend((0..homes.len()).filter(moves).map(Action::Move));
        actions.push(if state.now < self.ticks { Action::Tick } else { Action::End });
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Plan(node) => state.drafts[node] = state.draft(),
            Action::Write(node) => {
                let draft = state.drafts[node].take()?;
                state.write(self, draft);
            }
            Action::Move(shard) => state.owners[shard] = state.catalog.homes[shard].map(|(node, _)| node),
            Action::Join(node) => state.catalog.join(node, state.now),
            Action::Die(node) => {
                state.deaths -= 1;
                state.catalog.alive[node] = false;
                state.drafts[node] = None;
            }
            Action::Pin(shard, node) => {
                state.catalog.assign(&[(shard, Some((node, true)))], state.now);
                state.pins.retain(|(pinned, _)| *pinned != shard);
                state.pins.push((shard, node));
            }
            Action::Tick => state.now += 1,
            Action::End => state.end(self),
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no change of the assignment is lost", |_, state: &State| !state.mixed),
            Property::always("a pinned shard stays where it was put", |_, state: &State| state.keeps_pins()),
            Property::always("changes come to an end", |_, state: &State| state.settled),
            Property::always("at the end shards are even, and their homes own them", |_, state: &State| {
                !state.over || state.is_even() && state.is_at_home()
            }),
        ]
    }
}
