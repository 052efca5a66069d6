//! Policies of topics and namespaces: written by compare-and-set, read as far as they changed, and bounded.

use forebay_store::{Catalog, PolicyBounds, PolicyOutcome, PolicyWish, RootBounds, Versions};
use forebay_types::{Pause, Policy, PolicyChanges, Timestamp, TopicName};

use super::{CatalogSubject, all};

/// Few, to reach them.
pub(super) const BOUNDS: PolicyBounds = PolicyBounds {
    per_namespace: 3,
    by_root: RootBounds { per_root: 4, in_all: 5, for_operators: 0, for_few: (0, 0) },
    removed: 2,
};
/// Nothing ends before it.
const BEGINNING: Timestamp = Timestamp::from_micros(1);

fn pause(note: &str, until: Option<i64>) -> Pause {
    let (by, note) = ("ops".to_owned(), note.to_owned());
    Pause { by, since: Timestamp::from_micros(5), until: until.map(Timestamp::from_micros), note }
}

fn paused(note: &str) -> Policy {
    Policy { dequeue: Some(pause(note, None)), ..Policy::default() }
}

fn wish(name: &TopicName, from_version: u64, policy: Policy) -> PolicyWish {
    PolicyWish {
        name: name.clone(),
        from_version,
        policy,
        ended_before: BEGINNING,
        root: String::new(),
        bounds: BOUNDS,
    }
}

fn topic(topic: &str) -> TopicName {
    TopicName::new("ns", topic)
}

/// Writes a policy over the one that is there.
async fn put(catalog: &dyn Catalog, name: &TopicName, policy: Policy) -> PolicyOutcome {
    let from = catalog.policy(name).await.expect("reads").version;
    catalog.put_policy(&wish(name, from, policy)).await.expect("is written")
}

/// The policies that have changed since a version of them.
async fn since(catalog: &dyn Catalog, policies: u64) -> PolicyChanges {
    let known = Versions { policies, ..all(catalog).await.versions };
    catalog.read(known).await.expect("reads").policies
}

fn names(changes: &PolicyChanges) -> Vec<&str> {
    changes.rows.iter().map(|row| &*row.name.topic).collect()
}

/// Also the longest texts, of which only bytes matter, and the namespace itself.
pub async fn a_policy_is_read_as_it_was_written(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let long = Policy {
        enqueue: Some(Pause { by: "ö".repeat(100), ..pause(&"ö".repeat(512), Some(9)) }),
        dequeue: Some(pause("", None)),
    };
    let none = catalog.policy(&topic("t")).await.expect("reads");
    assert_eq!((none.version, none.policy.is_nothing()), (0, true));
    for (name, policy) in [(topic("t"), long), (topic(""), paused("all")), (topic("T"), paused("T"))] {
        let PolicyOutcome::Yes(version) = put(&*catalog, &name, policy.clone()).await else {
            panic!("there is room")
        };
        let row = catalog.policy(&name).await.expect("reads");
        assert_eq!((&row.name, row.version, &row.policy), (&name, version, &policy));
        let changes = since(&*catalog, version - 1).await;
        assert_eq!((changes.whole, changes.rows), (false, vec![row]));
    }
    let whole = all(&*catalog).await.policies;
    assert_eq!((whole.whole, names(&whole)), (true, vec!["t", "", "T"]));
}

/// A node that has read something reads only what came after that.
pub async fn only_policies_that_changed_are_read(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    put(&*catalog, &topic("a"), paused("")).await;
    put(&*catalog, &topic("b"), paused("")).await;
    let known = all(&*catalog).await.versions;
    assert!(catalog.read(known).await.expect("reads").policies.is_nothing());
    put(&*catalog, &topic("a"), paused("again")).await;
    let changes = catalog.read(known).await.expect("reads");
    assert_eq!((changes.policies.whole, names(&changes.policies)), (false, vec!["a"]));
    assert_eq!(changes.versions.policies, changes.policies.rows[0].version);
}

/// A policy that somebody else has written meanwhile is not overwritten.
pub async fn a_policy_is_written_from_its_last_version(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let PolicyOutcome::Yes(first) = put(&*catalog, &topic("t"), paused("one")).await else { panic!("room") };
    let before = all(&*catalog).await;
    for from in [0, first - 1, first + 1] {
        let written = catalog.put_policy(&wish(&topic("t"), from, paused("two"))).await.expect("answers");
        assert_eq!(written, PolicyOutcome::Stale);
    }
    assert_eq!(all(&*catalog).await, before);
    let written = catalog.put_policy(&wish(&topic("t"), first, paused("two"))).await.expect("answers");
    assert!(matches!(written, PolicyOutcome::Yes(version) if version > first), "{written:?}");
}

/// Both have read the same.
pub async fn of_two_policies_from_one_version_one_wins(subject: CatalogSubject) {
    let one = subject.migrated().await;
    let other = (subject.open)();
    for from in [0, put_version(&*one, "t").await] {
        let name = topic(if from == 0 { "new" } else { "t" });
        let (a, b) = (wish(&name, from, paused("a")), wish(&name, from, paused("b")));
        let (a, b) = tokio::join!(one.put_policy(&a), other.put_policy(&b));
        let answers = [a.expect("answers"), b.expect("answers")];
        let won = answers.iter().filter(|answer| matches!(answer, PolicyOutcome::Yes(_))).count();
        assert_eq!((won, answers.contains(&PolicyOutcome::Stale)), (1, true), "{answers:?}");
    }
}

async fn put_version(catalog: &dyn Catalog, name: &str) -> u64 {
    match put(catalog, &topic(name), paused("")).await {
        PolicyOutcome::Yes(version) => version,
        refused => panic!("{refused:?}"),
    }
}

/// A reader that has not heard of a removal that is forgotten reads everything.
pub async fn a_removed_policy_is_told_and_then_forgotten(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    put(&*catalog, &topic("stays"), paused("")).await;
    let begin = all(&*catalog).await.versions.policies;
    for name in ["a", "b", "c"] {
        put(&*catalog, &topic(name), paused("")).await;
        let known = all(&*catalog).await.versions.policies;
        put(&*catalog, &topic(name), Policy::default()).await;
        let changes = since(&*catalog, known).await;
        assert_eq!((changes.whole, names(&changes)), (false, vec![name]));
        assert!(changes.rows[0].policy.is_nothing());
    }
    let after = since(&*catalog, begin).await;
    assert_eq!((after.whole, names(&after)), (true, vec!["stays", "b", "c"]), "two removed ones are kept");
    assert_eq!(catalog.policy(&topic("a")).await.expect("reads").version, 0);
    let removed = catalog.policy(&topic("c")).await.expect("reads");
    assert!(removed.version > 0 && removed.policy.is_nothing());
    put(&*catalog, &topic("c"), paused("again")).await;
    assert_eq!(names(&all(&*catalog).await.policies), ["stays", "b", "c"]);
}

/// Of a namespace, and in all. What is there can still be changed and removed.
pub async fn policies_have_bounds(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    for name in ["", "a", "b"] {
        put(&*catalog, &topic(name), paused("")).await;
    }
    let before = all(&*catalog).await;
    assert_eq!(put(&*catalog, &topic("c"), paused("")).await, PolicyOutcome::NamespaceFull);
    assert_eq!(all(&*catalog).await, before);
    put(&*catalog, &TopicName::new("n2", "a"), paused("")).await;
    put(&*catalog, &TopicName::new("n2", "b"), paused("")).await;
    assert_eq!(put(&*catalog, &TopicName::new("n3", "a"), paused("")).await, PolicyOutcome::Full);
    assert!(matches!(put(&*catalog, &topic("a"), paused("changed")).await, PolicyOutcome::Yes(_)));
    assert!(matches!(put(&*catalog, &topic("a"), Policy::default()).await, PolicyOutcome::Yes(_)));
    assert!(matches!(put(&*catalog, &topic("c"), paused("")).await, PolicyOutcome::Yes(_)));
}

/// Bounds that the rows of a few roots reach.
pub(super) const SHARED: PolicyBounds = PolicyBounds {
    per_namespace: 9,
    by_root: RootBounds { per_root: 3, in_all: 8, for_operators: 1, for_few: (2, 1) },
    removed: 2,
};

/// The writers of rows, and the answers: whoever has rights gets a share, and operators the last one.
pub(super) const SHARED_OUT: [(&str, Option<PolicyOutcome>); 12] = [
    ("one", None),
    ("one", None),
    ("one", None),
    ("one", Some(PolicyOutcome::RootFull)),
    ("two", None),
    ("two", None),
    ("two", Some(PolicyOutcome::Full)),
    ("three", None),
    ("four", None),
    ("five", Some(PolicyOutcome::Full)),
    ("", None),
    ("", Some(PolicyOutcome::Full)),
];

/// No tenant takes the room of the others, and none that of operators.
pub async fn policies_are_shared_out_by_root(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    for (number, (root, refused)) in SHARED_OUT.into_iter().enumerate() {
        let name = TopicName::new(root.to_owned() + "-ns", number.to_string());
        let wish = PolicyWish { root: root.into(), bounds: SHARED, ..wish(&name, 0, paused("")) };
        let written = catalog.put_policy(&wish).await.expect("is written");
        match refused {
            Some(refused) => assert_eq!(written, refused, "{number}"),
            None => assert!(matches!(written, PolicyOutcome::Yes(_)), "{number}: {written:?}"),
        }
    }
    let own = TopicName::new("one-ns", "0");
    let version = catalog.policy(&own).await.expect("reads").version;
    let wish = PolicyWish { root: "one".into(), bounds: SHARED, ..wish(&own, version, paused("changed")) };
    assert!(matches!(catalog.put_policy(&wish).await.expect("is written"), PolicyOutcome::Yes(_)));
}

/// Pauses that ended by themselves are removed by the next change, whosever it is.
pub async fn a_policy_that_has_ended_makes_room(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let ends = |end| Policy { enqueue: Some(pause("", Some(end))), ..Policy::default() };
    let mixed = Policy { dequeue: Some(pause("", None)), ..ends(10) };
    put(&*catalog, &topic("over"), ends(10)).await;
    put(&*catalog, &topic("later"), ends(20)).await;
    put(&*catalog, &topic("mixed"), mixed).await;
    let known = all(&*catalog).await.versions.policies;
    let late = |name, from, policy| PolicyWish {
        ended_before: Timestamp::from_micros(11),
        ..wish(name, from, policy)
    };
    let new = topic("new");
    let written = catalog.put_policy(&late(&new, 0, paused(""))).await.expect("answers");
    assert!(matches!(written, PolicyOutcome::Yes(_)), "{written:?}");
    let changes = since(&*catalog, known).await;
    let mut told = names(&changes);
    told.sort_unstable();
    assert_eq!(told, ["new", "over"]);
    let over = changes.rows.iter().find(|row| &*row.name.topic == "over").expect("is told");
    assert!(over.policy.is_nothing());
}

/// A change of a policy moves no other version, and others do not move that of the policies.
pub async fn policies_do_not_touch_the_rest(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let before = all(&*catalog).await;
    put(&*catalog, &topic("t"), paused("")).await;
    let after = all(&*catalog).await;
    let policies = before.versions.policies;
    assert_eq!(Versions { policies, ..after.versions }, before.versions);
    catalog.add_shard("mysql://forebay@db1:3306/forebay", None).await.expect("is added");
    assert_eq!(all(&*catalog).await.versions.policies, after.versions.policies);
}
