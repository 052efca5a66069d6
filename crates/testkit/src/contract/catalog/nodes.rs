//! Nodes join, beat, drain and leave.

use forebay_store::{Beat, Catalog, CatalogNode, JoinOutcome, NodeReport, Sighting, Versions};
use forebay_types::Incarnation;

use super::{CatalogSubject, all, name, node};

async fn join(catalog: &dyn Catalog, node: &CatalogNode, expected: Option<Sighting>) -> JoinOutcome {
    catalog.join(node, expected).await.expect("joins")
}

async fn beat(catalog: &dyn Catalog, node: &CatalogNode) -> Beat {
    catalog.beat(&node.name, node.incarnation, &node.report).await.expect("beats")
}

fn sighting(node: &CatalogNode) -> Sighting {
    Sighting { incarnation: node.incarnation, beats: node.beats }
}

/// Every field, with values at their ends.
pub async fn a_node_is_read_as_it_joined(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let mut extreme = node(&"n".repeat(100), 0xff);
    extreme.format = u32::MAX;
    extreme.draining = true;
    extreme.report.servers = (0..500).map(|n| format!("db{n}.example.org:3306")).collect();
    extreme.report.unreachable = (0..500).map(|n| name(&format!("node-{n}"))).collect();
    let mut empty = node("Z", 0);
    (empty.peer_address, empty.release) = (String::new(), String::new());
    empty.report = NodeReport::default();
    for node in [&extreme, &empty] {
        assert_eq!(join(&*catalog, node, None).await, JoinOutcome::Yes);
    }
    // Names compare as bytes: Z is before n.
    assert_eq!(all(&*catalog).await.nodes, [empty, extreme]);
}

/// A beat changes the counter and the report, and no version.
pub async fn beats_move_the_counter_alone(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let mut node = node("a", 1);
    join(&*catalog, &node, None).await;
    let before = all(&*catalog).await;
    node.report = NodeReport { servers: vec!["db2:3307".to_owned()], unreachable: vec![name("b")] };
    for beats in 2..=4 {
        assert_eq!(beat(&*catalog, &node).await, Beat::Ok);
        node.beats = beats;
        assert_eq!(all(&*catalog).await.nodes, [node.clone()]);
    }
    assert_eq!(all(&*catalog).await.versions, before.versions);
}

/// The caller has watched the other process: its name is free only while its counter stands still.
pub async fn a_name_is_taken_only_when_dead(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let (old, new) = (node("a", 1), node("a", 2));
    assert_eq!(join(&*catalog, &old, None).await, JoinOutcome::Yes);
    assert_eq!(join(&*catalog, &old, None).await, JoinOutcome::Yes, "it may not know that it has joined");
    let seen = sighting(&all(&*catalog).await.nodes[0]);
    assert_eq!(join(&*catalog, &new, None).await, JoinOutcome::NameTaken(seen));
    beat(&*catalog, &old).await;
    let moved = Sighting { beats: seen.beats + 1, ..seen };
    assert_eq!(join(&*catalog, &new, Some(seen)).await, JoinOutcome::NameTaken(moved), "it lives");
    let other = Sighting { incarnation: Incarnation([9; 16]), ..moved };
    assert_eq!(
        join(&*catalog, &new, Some(other)).await,
        JoinOutcome::NameTaken(moved),
        "it is another process"
    );
    let before = all(&*catalog).await.versions;
    assert_eq!(join(&*catalog, &new, Some(moved)).await, JoinOutcome::Yes);
    let after = all(&*catalog).await;
    let [now] = &after.nodes[..] else { panic!("{after:?}") };
    assert_eq!(now.incarnation, new.incarnation);
    assert!(now.beats > moved.beats, "the counter never goes back");
    assert!(after.versions.nodes > before.nodes);
}

/// Two processes with one name.
pub async fn of_two_joins_of_one_name_one_wins(subject: CatalogSubject) {
    subject.migrated().await;
    race(&subject, None).await;
}

/// Both have seen the same dead process.
pub async fn of_two_that_take_a_dead_name_one_wins(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    join(&*catalog, &node("a", 1), None).await;
    let seen = sighting(&all(&*catalog).await.nodes[0]);
    race(&subject, Some(seen)).await;
}

async fn race(subject: &CatalogSubject, expected: Option<Sighting>) {
    let mut tasks = tokio::task::JoinSet::new();
    for process in 10..14 {
        let catalog = (subject.open)();
        tasks.spawn(async move { (process, join(&*catalog, &node("a", process), expected).await) });
    }
    let joined = tasks.join_all().await;
    let winners: Vec<u8> = joined
        .iter()
        .filter(|(_, joined)| *joined == JoinOutcome::Yes)
        .map(|(process, _)| *process)
        .collect();
    assert_eq!(winners.len(), 1, "{joined:?}");
    let winner = Incarnation([winners[0]; 16]);
    for (_, joined) in joined {
        assert!(
            matches!(joined, JoinOutcome::Yes)
                || matches!(joined, JoinOutcome::NameTaken(s) if s.incarnation == winner)
        );
    }
    assert_eq!(all(&*(subject.open)()).await.nodes[0].incarnation, winner);
}

/// The process that took the name keeps it.
pub async fn a_replaced_process_neither_beats_nor_leaves(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let (old, new) = (node("a", 1), node("a", 2));
    assert_eq!(beat(&*catalog, &old).await, Beat::Replaced, "nobody has joined");
    join(&*catalog, &old, None).await;
    let seen = sighting(&all(&*catalog).await.nodes[0]);
    join(&*catalog, &new, Some(seen)).await;
    let before = all(&*catalog).await;
    assert_eq!(beat(&*catalog, &old).await, Beat::Replaced);
    assert!(!catalog.leave(&old.name, old.incarnation).await.expect("answers"));
    assert_eq!(all(&*catalog).await, before);
    assert!(catalog.leave(&new.name, new.incarnation).await.expect("answers"));
    let after = all(&*catalog).await;
    assert!(after.nodes.is_empty() && after.versions.nodes > before.versions.nodes);
}

/// Also if the node's process is replaced by the next one.
pub async fn a_node_drains_until_that_is_undone(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    assert!(!catalog.set_draining(&name("a"), true).await.expect("answers"), "there is no such node");
    join(&*catalog, &node("a", 1), None).await;
    let before = all(&*catalog).await.versions;
    assert!(catalog.set_draining(&name("a"), true).await.expect("answers"));
    let after = all(&*catalog).await;
    assert!(after.nodes[0].draining && after.versions.nodes > before.nodes);
    join(&*catalog, &node("a", 2), Some(sighting(&after.nodes[0]))).await;
    assert!(all(&*catalog).await.nodes[0].draining);
    assert!(catalog.set_draining(&name("a"), false).await.expect("answers"));
    assert!(!all(&*catalog).await.nodes[0].draining);
}

/// Nodes beat at the same time as others join, and none of it is lost.
pub async fn beats_of_many_nodes_are_all_counted(subject: CatalogSubject) {
    subject.migrated().await;
    let mut tasks = tokio::task::JoinSet::new();
    for process in 1..=4 {
        let catalog = (subject.open)();
        tasks.spawn(async move {
            let node = node(&format!("node-{process}"), process);
            assert_eq!(join(&*catalog, &node, None).await, JoinOutcome::Yes);
            for _ in 0..10 {
                assert_eq!(beat(&*catalog, &node).await, Beat::Ok);
                catalog.read(Versions::default()).await.expect("reads");
            }
        });
    }
    tasks.join_all().await;
    let beats: Vec<u64> = all(&*(subject.open)()).await.nodes.iter().map(|node| node.beats).collect();
    assert_eq!(beats, [11; 4]);
}
