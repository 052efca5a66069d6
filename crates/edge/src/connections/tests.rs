//! Places: how they are given, and how room is made.

use std::{future::poll_fn, net::IpAddr, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use tokio::time::Instant;

use super::{
    Lifetime, Place, PlaceRules, Places, Stage,
    places::{EvictionSignal, HANDSHAKES_MAX, PROBES},
};

fn places(port: &'static str, max: usize, per_address: usize) -> Arc<Places> {
    Places::new(port, max, &PlaceRules { per_address: Some(per_address), balancers: Vec::new() })
}

/// A guest of an address that has got this far.
struct Guest {
    place: Arc<Place>,
    lifetime: Lifetime,
}

impl Guest {
    fn of((place, displaced): (Place, EvictionSignal), stage: Stage) -> Self {
        let place = Arc::new(place);
        place.reach(stage);
        Self { lifetime: Lifetime::new(place.clone(), displaced), place }
    }

    /// Why it makes room, if it does.
    fn end(&mut self) -> Option<&'static str> {
        poll_fn(|context| self.lifetime.poll_end(context)).now_or_never()
    }
}

fn address(number: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, number])
}

fn guest(places: &Arc<Places>, number: u8, stage: Stage) -> Guest {
    Guest::of(places.enter(address(number)).expect("room"), stage)
}

/// From now on nobody is young.
async fn grow_up() {
    tokio::time::advance(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn an_address_at_its_bound_loses_its_silent_ones_first() {
    let places = places("grpc", 100, 3);
    let mut one = [Stage::Called, Stage::Begun, Stage::Silent].map(|stage| guest(&places, 1, stage));
    grow_up().await;
    let mut other = guest(&places, 2, Stage::Silent);
    let mut more: Vec<Guest> = Vec::new();
    for (newest, gone) in [(Stage::Called, 2), (Stage::Called, 1), (Stage::Called, 0)] {
        more.push(guest(&places, 1, newest));
        assert_eq!(one[gone].end(), Some("address"), "{gone}");
        assert_eq!((places.in_use(), other.end()), (4, None));
    }
    assert!(more.iter_mut().all(|guest| guest.end().is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_is_not_put_out_by_the_next_one() {
    let places = places("grpc", 100, 3);
    let mut held = [0, 1, 2].map(|_| guest(&places, 1, Stage::Called));
    grow_up().await;
    let (mut honest, _next) = (guest(&places, 1, Stage::Silent), guest(&places, 1, Stage::Silent));
    assert_eq!((held[0].end(), held[1].end(), honest.end()), (Some("address"), Some("address"), None));
    // A client that stays silent is the first again.
    grow_up().await;
    let _one_more = guest(&places, 1, Stage::Silent);
    assert_eq!((honest.end(), held[2].end()), (Some("address"), None));
}

#[tokio::test(start_paused = true)]
async fn those_with_a_credential_do_not_count_and_make_no_room() {
    let places = places("grpc", 6, 2);
    let mut known: Vec<_> = (0..4).map(|_| guest(&places, 1, Stage::Accepted)).collect();
    let (mut first, mut second) = (guest(&places, 1, Stage::Begun), guest(&places, 2, Stage::Silent));
    grow_up().await;
    // The port is full: of two addresses with one each, the silent one goes.
    let mut third = guest(&places, 3, Stage::Silent);
    assert_eq!((second.end(), first.end(), third.end()), (Some("port"), None, None));
    first.place.reach(Stage::Accepted);
    third.place.reach(Stage::Accepted);
    assert!(places.enter(address(4)).is_none(), "nobody makes room");
    assert!(known.iter_mut().chain([&mut first, &mut third]).all(|guest| guest.end().is_none()));
    drop(known.pop());
    assert_eq!((places.in_use(), places.guests()), (5, 0));
    assert!(places.enter(address(4)).is_some());
}

#[test]
fn a_full_port_takes_a_place_of_the_address_with_the_most() {
    let places = places("grpc", 8, 8);
    let mut modest = guest(&places, 2, Stage::Silent);
    let mut greedy: Vec<_> = (0..7).map(|_| guest(&places, 1, Stage::Called)).collect();
    let mut honest = Vec::new();
    for number in 3..8 {
        honest.push(guest(&places, number, Stage::Silent));
    }
    let gone = greedy.iter_mut().map(Guest::end).take_while(|end| *end == Some("port")).count();
    assert_eq!((gone, modest.end(), places.in_use()), (5, None, 8));
    assert!(honest.iter_mut().all(|guest| guest.end().is_none()));
}

#[test]
fn probes_have_places_of_their_own() {
    let places = places("http", 4, 100);
    let known: Vec<_> = (0..4).map(|_| guest(&places, 1, Stage::Accepted)).collect();
    assert!(known.iter().all(|guest| !guest.place.is_for_probes()));
    let mut probes: Vec<_> = (0..PROBES).map(|_| guest(&places, 1, Stage::Called)).collect();
    assert!(probes.iter_mut().all(|probe| probe.place.is_for_probes() && probe.end().is_none()));
    // A client that takes these too loses them.
    let last = guest(&places, 2, Stage::Silent);
    assert!(last.place.is_for_probes() && probes[0].end() == Some("port"));
    drop(known);
    assert!(!guest(&places, 2, Stage::Silent).place.is_for_probes());
    let full = Places::new("grpc", 0, &PlaceRules::default());
    assert!(full.enter(address(1)).is_none(), "other ports have none");
}

#[test]
fn connections_of_a_balancer_are_not_of_one_address() {
    let balancers = vec!["10.0.0.0/24".parse().unwrap()];
    let places = Places::new("grpc", 100, &PlaceRules { per_address: Some(2), balancers });
    let mut behind: Vec<_> = (0..50).map(|_| guest(&places, 1, Stage::Silent)).collect();
    let others: Vec<_> = (0..3).filter_map(|_| places.enter("192.0.2.1".parse().unwrap())).collect();
    assert_eq!((others.len(), places.in_use()), (3, 52));
    assert!(behind.iter_mut().all(|guest| guest.end().is_none()));
}

#[test]
fn an_address_has_a_quarter_by_default() {
    let places = Places::new("grpc", 100, &PlaceRules::default());
    let _guests: Vec<_> = (0..60).map(|_| guest(&places, 1, Stage::Silent)).collect();
    assert_eq!(places.in_use(), 25);
    places.set_max(16);
    let _more: Vec<_> = (0..60).map(|_| guest(&places, 2, Stage::Silent)).collect();
    assert_eq!(places.in_use(), 16, "of a small port it has eight");
}

#[test]
fn one_handshake_too_many_ends_one_of_the_address_with_the_most() {
    let places = places("grpc", 1_000, 500);
    let mut honest = guest(&places, 2, Stage::Handshake);
    let mut stalled: Vec<_> = (0..HANDSHAKES_MAX).map(|_| guest(&places, 1, Stage::Handshake)).collect();
    assert_eq!((stalled[0].end(), stalled[1].end()), (Some("handshakes"), None));
    assert_eq!((honest.end(), places.in_use()), (None, HANDSHAKES_MAX));
    // Whoever is done with it leaves room.
    honest.place.reach(Stage::Begun);
    let _one_more = guest(&places, 3, Stage::Handshake);
    assert_eq!(stalled[1].end(), None);
}

#[tokio::test(start_paused = true)]
async fn a_connection_has_some_seconds_until_a_credential_is_accepted() {
    let places = places("grpc", 10, 10);
    let began = Instant::now();
    for (stage, why) in [(Stage::Begun, "handshake"), (Stage::Called, "credential")] {
        let mut guest = guest(&places, 1, stage);
        guest.lifetime.begin(Duration::from_secs(10));
        let end = poll_fn(|context| guest.lifetime.poll_end(context));
        assert_eq!(tokio::time::timeout(Duration::from_secs(60), end).await, Ok(why));
    }
    assert_eq!(began.elapsed(), Duration::from_secs(20));
    let mut known = guest(&places, 1, Stage::Accepted);
    known.lifetime.begin(Duration::from_secs(10));
    tokio::time::advance(Duration::from_secs(3_600)).await;
    assert_eq!(known.end(), None);
}

#[test]
fn what_has_made_room_can_not_come_back() {
    let places = places("grpc", 10, 1);
    let gone = guest(&places, 1, Stage::Silent);
    let _newest = guest(&places, 1, Stage::Silent);
    gone.place.reach(Stage::Accepted);
    assert!(!gone.place.is_accepted());
    drop(gone);
    assert_eq!((places.in_use(), places.guests()), (1, 1));
}

/// How long it takes to take and give places as fast as a flood does, at a port of so many: the least of
/// three tries.
fn flood(max: usize) -> Duration {
    let try_once = || {
        let places = Places::new("grpc", max, &PlaceRules::default());
        let mut open = std::collections::VecDeque::new();
        let began = Instant::now();
        for number in 0..20_000_u32 {
            open.push_back(places.enter(IpAddr::from((number % 5_000).to_be_bytes())));
            if open.len() > max {
                open.pop_front();
            }
        }
        assert!(places.in_use() <= max);
        began.elapsed()
    };
    (0..3).map(|_| try_once()).min().unwrap_or_default()
}

/// Nothing looks at all places: a port of 64 times as many costs some more steps of a tree.
#[test]
fn a_flood_costs_little() {
    let (few, many) = (flood(128), flood(8_192));
    assert!(many < 16 * few, "{many:?} instead of {few:?}");
}
