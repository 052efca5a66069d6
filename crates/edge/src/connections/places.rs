//! The places of a port. Whoever has shown a credential that was accepted keeps its place. The others, the
//! guests, have a bound for each address, and make room for those that come.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, AtomicUsize, Ordering},
    },
};

use tokio::{sync::oneshot, time::Instant};

use super::{
    address::{Address, Network},
    count_closed,
    crowd::{Crowd, Id, Member, Stage},
    episodes::Minutes,
};

/// TLS handshakes under way at a port. Each takes up to some ten KiB.
pub const HANDSHAKES_MAX: usize = 256;
/// Places beyond those of the HTTP port that only a probe can use, while all others are taken.
pub const PROBES: usize = 16;
/// An address has this part of a port by default, and in any case so many places.
const ADDRESS_PART: usize = 4;
const ADDRESS_MIN: usize = 8;

/// The rules by which all ports give places.
#[derive(Debug, Clone, Default)]
pub struct PlaceRules {
    /// Guests of one address. `None`: a quarter of the port.
    pub per_address: Option<usize>,
    /// Where balancers are, behind which are many.
    pub balancers: Vec<Network>,
}

/// The places of one port.
#[derive(Debug)]
pub struct Places {
    /// The port's name in metrics and in the key of the limit: `grpc`, `http` or `peer`.
    port: &'static str,
    /// How they are given.
    rules: PlaceRules,
    /// Their holders.
    state: Mutex<State>,
    /// How many have one, for calls, which look at it again and again.
    open: AtomicUsize,
}

/// The holders of a port's places.
#[derive(Debug)]
struct State {
    /// How many there are.
    max: usize,
    /// Taken by connections with a credential.
    accepted: usize,
    /// The others.
    guests: Crowd,
    /// Of these, those with a TLS handshake under way.
    handshakes: Crowd,
    /// Tell guests that they make room.
    ends: HashMap<Id, oneshot::Sender<&'static str>>,
    /// The number of the next connection.
    next: Id,
    /// Tells the log of connections that make room.
    displaced: Minutes,
    /// And of connections that find none.
    refused: Minutes,
}

impl Places {
    /// Nobody has one yet.
    pub fn new(port: &'static str, max: usize, rules: &PlaceRules) -> Arc<Self> {
        let state = State {
            max,
            accepted: 0,
            guests: Crowd::default(),
            handshakes: Crowd::default(),
            ends: HashMap::new(),
            next: 0,
            displaced: Minutes::default(),
            refused: Minutes::default(),
        };
        let (state, open) = (Mutex::new(state), AtomicUsize::new(0));
        Arc::new(Self { port, rules: rules.clone(), state, open })
    }

    /// How many there are from now on. Those who have one keep it.
    pub fn set_max(&self, max: usize) {
        self.lock().max = max;
    }

    /// A place for a new connection, and what tells it to make room. `None`: all are taken by connections
    /// with a credential.
    pub fn enter(self: &Arc<Self>, client: IpAddr) -> Option<(Place, EvictionSignal)> {
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        let balancer = self.rules.balancers.iter().any(|network| network.has(client.to_canonical()));
        let address = if balancer { Address::Alone(id) } else { Address::of(client) };
        if state.guests.of(address) >= self.per_address(state.max)
            && let Some(first) = state.guests.first_of(address)
        {
            self.displace(&mut state, address, first, "address");
        }
        // Of the HTTP port a few are left for probes.
        let for_probes = self.port == "http" && state.accepted >= state.max;
        let room = if for_probes { state.accepted + PROBES } else { state.max };
        if state.open() >= room {
            match state.guests.first() {
                Some((address, first)) => self.displace(&mut state, address, first, "port"),
                None => {
                    self.refuse(&mut state);
                    return None;
                }
            }
        }
        let (end, ended) = oneshot::channel();
        let came = Instant::now();
        state.guests.add(address, (Stage::Silent, id, came));
        state.ends.insert(id, end);
        self.open.store(state.open(), Ordering::Release);
        drop(state);
        let stage = AtomicU8::new(Stage::Silent as u8);
        Some((
            Place { places: self.clone(), address, id, came, stage, for_probes },
            EvictionSignal(Some(ended)),
        ))
    }

    /// Guests of one address.
    fn per_address(&self, max: usize) -> usize {
        self.rules.per_address.unwrap_or_else(|| (max / ADDRESS_PART).max(ADDRESS_MIN))
    }

    /// A guest makes room.
    fn displace(&self, state: &mut State, address: Address, member: Member, why: &'static str) {
        state.leave(address, member);
        self.open.store(state.open(), Ordering::Release);
        if let Some(end) = state.ends.remove(&member.1) {
            // Whoever has gone already needs no word.
            let _ = end.send(why);
        }
        count_closed(self.port, why);
        if let Some(number) = state.displaced.count() {
            let (port, max) = (self.port, state.max);
            tracing::warn!(
                max,
                number,
                "connections at the {port} port without a credential made room for others ({why}), {number} \
                 since the last such line: its addresses have too many \
                 (`connections_per_address` under [node])"
            );
        }
    }

    fn refuse(&self, state: &mut State) {
        metrics::counter!("forebay_connections_refused_total", "port" => self.port).increment(1);
        if let Some(number) = state.refused.count() {
            let (port, max) = (self.port, state.max);
            tracing::warn!(
                max,
                number,
                "too many connections at the {port} port; {number} were closed since the last such line"
            );
        }
    }

    /// Whether connections with a credential have left only the last eighth of them.
    pub fn is_crowded(&self) -> bool {
        let state = self.lock();
        state.accepted > state.max - state.max / 8
    }

    /// The port's name in metrics.
    pub fn port(&self) -> &'static str {
        self.port
    }

    /// Connections that are open.
    pub fn in_use(&self) -> usize {
        self.open.load(Ordering::Acquire)
    }

    /// Open connections that have shown no credential.
    pub fn guests(&self) -> usize {
        self.lock().guests.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nobody panics with the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Connections that have a place.
    fn open(&self) -> usize {
        self.accepted + self.guests.len()
    }

    /// A guest is gone.
    fn leave(&mut self, address: Address, member: Member) {
        self.guests.remove(address, member);
        if member.0 == Stage::Handshake {
            self.handshakes.remove(address, member);
        }
    }
}

/// The place of a connection, until it is dropped.
#[derive(Debug)]
pub struct Place {
    /// All of the port.
    places: Arc<Places>,
    /// The other end.
    address: Address,
    /// Its number.
    id: Id,
    /// When it came.
    came: Instant,
    /// How far its connection is.
    stage: AtomicU8,
    /// All others were taken when it came.
    for_probes: bool,
}

impl Place {
    /// The port's name in metrics.
    pub fn port(&self) -> &'static str {
        self.places.port
    }

    /// Whether only probes are served from it.
    pub fn is_for_probes(&self) -> bool {
        self.for_probes
    }

    /// Whether a credential was accepted.
    pub fn is_accepted(&self) -> bool {
        self.has_reached(Stage::Accepted)
    }

    /// Whether the connection is that far.
    pub(crate) fn has_reached(&self, stage: Stage) -> bool {
        self.stage.load(Ordering::Acquire) >= stage as u8
    }

    /// The connection is that far now. It never goes back.
    pub fn reach(&self, stage: Stage) {
        if self.has_reached(stage) {
            return;
        }
        let mut state = self.places.lock();
        // Another call of the connection may have been faster, and it may have made room.
        if self.has_reached(stage) || !state.ends.contains_key(&self.id) {
            return;
        }
        state.leave(self.address, self.member());
        self.stage.store(stage as u8, Ordering::Release);
        if stage == Stage::Accepted {
            state.ends.remove(&self.id);
            state.accepted += 1;
            return;
        }
        let member = (stage, self.id, self.came);
        state.guests.add(self.address, member);
        if stage == Stage::Handshake {
            state.handshakes.add(self.address, member);
            if state.handshakes.len() > HANDSHAKES_MAX
                && let Some((address, first)) = state.handshakes.first()
            {
                self.places.displace(&mut state, address, first, "handshakes");
            }
        }
    }

    /// As it is kept. Only with the lock.
    fn member(&self) -> Member {
        let stages = [Stage::Silent, Stage::Handshake, Stage::Begun, Stage::Called, Stage::Accepted];
        let stage = usize::from(self.stage.load(Ordering::Acquire));
        (stages.get(stage).copied().unwrap_or(Stage::Accepted), self.id, self.came)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.places.lock();
        let member = self.member();
        if member.0 == Stage::Accepted {
            state.accepted -= 1;
        } else if state.ends.remove(&self.id).is_some() {
            state.leave(self.address, member);
        }
        self.places.open.store(state.open(), Ordering::Release);
    }
}

/// Tells a guest that it makes room. `None`: it never will.
#[derive(Debug)]
pub struct EvictionSignal(pub(super) Option<oneshot::Receiver<&'static str>>);
