//! Each rule, on what it is about.

use forebay_client::{
    Timestamp,
    v1::{Node, Operation, OperationKind, OperationState, Shard, WhoAmIResponse},
};
use forebay_proto::time::to_timestamp;

use super::*;

fn picture() -> Picture {
    let caller = WhoAmIResponse { kind: PrincipalKind::Anyone.into(), ..Default::default() };
    Picture {
        now: at(1_000),
        plain: vec!["127.0.0.1:7420".to_owned()],
        caller,
        nodes: vec![node("a", NodeState::Live), node("b", NodeState::Draining)],
        shards: Some(vec![shard(1, "a", ""), shard(2, "b", "")]),
        old: Vec::new(),
        dead: Vec::new(),
        incomplete: Vec::new(),
        stuck: Vec::new(),
        all_namespaces: false,
        not_seen: Vec::new(),
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

fn node(name: &str, state: NodeState) -> Node {
    let (name, clients_address) = (name.to_owned(), "127.0.0.1:7420".to_owned());
    Node { name, clients_address, state: state.into(), shards: 2, ..Default::default() }
}

fn shard(id: u32, owner: &str, trouble: &str) -> Shard {
    let (owner, trouble) = (owner.to_owned(), trouble.to_owned());
    Shard { id, state: ShardState::Active.into(), owner, trouble, epoch: 1, ..Default::default() }
}

fn topic(name: &str, [ready_count, leased_count, dead_count, waiting_calls]: [u64; 4]) -> Topic {
    Topic {
        namespace: "default".to_owned(),
        topic: name.to_owned(),
        ready_count,
        leased_count,
        dead_count,
        waiting_calls,
        oldest_ready_at: Some(to_timestamp(at(400))),
        ..Default::default()
    }
}

fn kinds(seen: &Picture) -> Vec<(&'static str, &'static str)> {
    of(seen).iter().map(|finding| (finding.severity.name(), finding.kind)).collect()
}

#[test]
fn what_is_well_is_not_said() {
    assert_eq!(of(&picture()), []);
}

#[test]
fn the_most_severe_comes_first() {
    let seen = Picture {
        nodes: vec![node("a", NodeState::Live), node("c", NodeState::Silent)],
        shards: Some(vec![shard(1, "a", "the disk is full"), shard(2, "", "")]),
        old: vec![topic("slow", [9, 4, 0, 0]), topic("stuck", [3, 0, 0, 0])],
        dead: vec![topic("mail", [0, 0, 40, 0]), topic("sms", [0, 0, 8, 0])],
        incomplete: vec![2],
        ..picture()
    };
    let found = of(&seen);
    let expected = [
        ("critical", "shard_trouble"),
        ("critical", "shard_unserved"),
        ("critical", "old_items"),
        ("warning", "old_items"),
        ("warning", "node_silent"),
        ("warning", "shards_not_asked"),
        ("warning", "dead_letters"),
    ];
    assert_eq!(kinds(&seen), expected);
    let said: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
    assert_eq!(said[0], "shard 1 of a: the disk is full");
    assert_eq!(said[2], "stuck: the oldest of 3 ready items waits for 10m; nobody takes any");
    assert_eq!(
        said[3],
        "slow: the oldest of 9 ready items waits for 10m; 4 are leased: the consumers fall behind"
    );
    assert_eq!(said[6], "48 dead letters in 2 topics; mail has the most");
    assert_eq!(found[2].look, "forebay topic get stuck");
    let all = Picture { all_namespaces: true, ..seen };
    assert_eq!(of(&all)[2].look, "forebay topic get stuck --namespace default");
}

#[test]
fn who_sees_no_topics_is_not_told_that_all_is_well() {
    assert_eq!(of(&Picture { not_seen: vec!["nodes and shards", "operations"], ..picture() }), []);
    let blind = Picture { not_seen: vec!["topics"], ..picture() };
    assert_eq!(kinds(&blind), [("warning", "topics_not_seen")]);
}

#[test]
fn of_one_kind_a_few_are_named() {
    let old = (0..50).map(|n| topic(&format!("t{n}"), [1, 0, 0, 0])).collect();
    let found = of(&Picture { old, ..picture() });
    assert_eq!((found.len(), found[4].what.as_str()), (5, "46 more like these"));
}

#[test]
fn who_is_open_to_others_is_told() {
    let open = Node { clients_address: "10.0.0.1:7420".to_owned(), ..node("a", NodeState::Live) };
    let seen = Picture { nodes: vec![open.clone()], ..picture() };
    assert_eq!(kinds(&seen), [("warning", "no_access_control")]);
    let token = WhoAmIResponse {
        kind: PrincipalKind::Token.into(),
        ends_at: Some(to_timestamp(at(90_000))),
        ..picture().caller
    };
    let seen =
        Picture { nodes: vec![open], caller: token, plain: vec!["queue1:7420".to_owned()], ..picture() };
    assert_eq!(kinds(&seen), [("warning", "no_tls"), ("warning", "token_ends")]);
    for (addr, expected) in [
        ("127.0.0.1:1", true),
        ("http://localhost:1", true),
        ("[::1]:1", true),
        ("https://10.0.0.1:1", false),
        ("localhost.example:1", false),
        ("0.0.0.0:1", false),
    ] {
        assert_eq!(is_loopback(addr), expected, "{addr}");
    }
}

#[test]
fn an_operation_in_which_nothing_happens_is_named_with_what_is_left() {
    let part = |shard, ended| OperationShard { shard, begun: true, ended, ..Default::default() };
    let stuck = Operation {
        id: "0f".to_owned(),
        kind: OperationKind::Purge.into(),
        topic: "mail".to_owned(),
        state: OperationState::Running.into(),
        shards: vec![part(1, true), part(2, false)],
        ..Default::default()
    };
    let found = of(&Picture { stuck: vec![stuck], ..picture() });
    assert_eq!(found[0].what, "nothing happens in a purge of mail; left: shards 2");
    assert_eq!(found[0].look, "forebay operation get 0f");
}
