//! The servers of a client, and the choice among them.

use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed},
};

use tokio::{sync::watch, time::Instant};

use super::{
    choice::{self, Candidate, Choice},
    endpoint::Endpoint,
    origins::Origins,
    route::Route,
    sick_shards::SickShards,
};
use crate::{address::Address, rng::SharedRng, token::Link};

/// The servers that calls go to at present.
#[derive(Debug, Clone)]
pub(crate) struct InUse {
    /// Each of them.
    pub(crate) endpoints: Arc<[Arc<Endpoint>]>,
    /// Each hands out the items of all shards.
    pub(crate) each_delivers_all: bool,
}

/// The servers of a client, shared by its clones.
#[derive(Debug)]
pub(crate) struct Endpoints {
    /// Endpoints that the user named. They never leave: what is learnt may turn out to be of no use.
    given: Vec<Arc<Endpoint>>,
    /// Endpoints that calls go to: given ones, learnt ones, or both.
    in_use: watch::Sender<InUse>,
    /// Counts calls, so that they go to all servers in turn.
    turn: AtomicUsize,
    /// The id of the next endpoint.
    next_id: AtomicU32,
    /// Servers that handed out deliveries, by delivery.
    pub(crate) origins: Origins,
    /// Shards that do not answer for now.
    pub(crate) sick_shards: SickShards,
}

impl Endpoints {
    /// Of the servers that the user named: as written, checked, connection.
    pub(crate) fn given(
        given: impl IntoIterator<Item = (String, Option<Address>, Link)>,
        rng: &SharedRng,
    ) -> Self {
        let numbered = given.into_iter().zip(0..);
        let given: Vec<_> = numbered
            .map(|((address, at, channel), id)| Arc::new(Endpoint::new(id, address, at, channel)))
            .collect();
        Self {
            in_use: watch::Sender::new(InUse { endpoints: given.clone().into(), each_delivers_all: false }),
            // Clients that start together do not all begin with the first.
            turn: AtomicUsize::new(rng.turn()),
            next_id: AtomicU32::new(u32::try_from(given.len()).unwrap_or(u32::MAX)),
            given,
            origins: Origins::default(),
            sick_shards: SickShards::default(),
        }
    }

    /// An endpoint at an address that is not in use yet.
    pub(super) fn endpoint(&self, at: &Address, channel: Link) -> Arc<Endpoint> {
        let id = self.next_id.fetch_add(1, Relaxed);
        Arc::new(Endpoint::new(id, at.host_port().to_owned(), Some(at.clone()), channel))
    }

    /// Endpoints that the user named.
    pub(crate) fn all_given(&self) -> &[Arc<Endpoint>] {
        &self.given
    }

    /// Endpoints that calls go to.
    pub(crate) fn in_use(&self) -> Arc<[Arc<Endpoint>]> {
        self.in_use.borrow().endpoints.clone()
    }

    /// The same, and every change of them.
    pub(crate) fn watch(&self) -> watch::Receiver<InUse> {
        self.in_use.subscribe()
    }

    /// Whether a call may go to more than one.
    pub(crate) fn are_several(&self) -> bool {
        let is_learnt = |one: &Arc<Endpoint>| self.given.iter().all(|given| given.id() != one.id());
        self.given.len() > 1 || self.in_use().iter().any(is_learnt)
    }

    /// From now on calls go to these. `each_delivers_all`: each hands out the items of all shards.
    pub(super) fn use_these(&self, endpoints: Vec<Arc<Endpoint>>, each_delivers_all: bool) {
        self.in_use.send_if_modified(|in_use| {
            let ids = |list: &[Arc<Endpoint>]| list.iter().map(|one| one.id()).collect::<Vec<_>>();
            let changed = ids(&in_use.endpoints) != ids(&endpoints);
            if changed {
                let names: Vec<_> = endpoints.iter().map(|one| one.address()).collect();
                tracing::debug!(endpoints = ?names, "calls go to other endpoints");
                in_use.endpoints = endpoints.into();
            }
            let before = std::mem::replace(&mut in_use.each_delivers_all, each_delivers_all);
            changed || before != each_delivers_all
        });
    }

    /// The endpoint of a call's next attempt, which is marked as tried. `stay` is preferred to the route.
    pub(crate) fn choose(
        &self,
        route: &Route,
        stay: Option<u32>,
        tried: &mut Vec<u32>,
    ) -> Option<Arc<Endpoint>> {
        match route {
            Route::InTurn => self.pick(stay, tried),
            Route::To(id) => self.pick(stay.or(Some(*id)), tried),
            Route::Sticky(sticky) => {
                let mut current = sticky.lock();
                let picked = self.pick(stay.or(*current), tried)?;
                // A call that goes elsewhere because of its shard does not take the others along.
                if !current.is_some_and(|id| self.works(id)) {
                    *current = Some(picked.id());
                }
                Some(picked)
            }
        }
    }

    /// Whether a call that was at the `tried` ones can go to another one that works.
    pub(crate) fn has_fresh(&self, tried: &[u32]) -> bool {
        let candidates: Vec<_> = self.candidates(None, tried).into_iter().map(|(_, what)| what).collect();
        choice::choose(&candidates, 0).is_some_and(|choice| choice.fresh)
    }

    /// Whether there is an endpoint of this id that is not avoided.
    pub(crate) fn works(&self, id: u32) -> bool {
        let mut all = self.candidates(None, &[]).into_iter();
        all.any(|(one, what)| one.id() == id && what.avoided_until.is_none())
    }

    fn pick(&self, preferred: Option<u32>, tried: &mut Vec<u32>) -> Option<Arc<Endpoint>> {
        let candidates = self.candidates(preferred, tried);
        let what: Vec<_> = candidates.iter().map(|(_, what)| *what).collect();
        let Choice { index, .. } = choice::choose(&what, self.turn.fetch_add(1, Relaxed))?;
        let endpoint = candidates.into_iter().nth(index)?.0;
        if what[index].tried {
            // A new round begins.
            tried.clear();
        }
        tried.push(endpoint.id());
        endpoint.health().chosen(Instant::now());
        Some(endpoint)
    }

    /// Endpoints in use, then the spare ones.
    fn candidates(&self, preferred: Option<u32>, tried: &[u32]) -> Vec<(Arc<Endpoint>, Candidate)> {
        let (now, in_use) = (Instant::now(), self.in_use());
        let spare = self.given.iter().filter(|given| !in_use.iter().any(|one| one.id() == given.id()));
        let all = in_use.iter().map(|one| (one, false)).chain(spare.map(|one| (one, true)));
        all.map(|(one, spare)| {
            let what = Candidate {
                preferred: preferred == Some(one.id()),
                spare,
                tried: tried.contains(&one.id()),
                avoided_until: one.health().avoided_until(now),
            };
            (one.clone(), what)
        })
        .collect()
    }
}
