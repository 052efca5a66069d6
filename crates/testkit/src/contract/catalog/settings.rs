//! Settings of topics and namespaces: written by compare-and-set, removed together with policies.

use std::time::Duration;

use forebay_store::{
    Catalog, PolicyBounds, PolicyOutcome, PolicyRemoval, PolicyWish, SettingsDocument, SettingsWish, Versions,
};
use forebay_types::{Pause, Policy, PolicyChanges, SettingsRow, Timestamp, TopicName, TopicSettings};

use super::{
    CatalogSubject, all,
    policies::{BOUNDS, SHARED, SHARED_OUT},
};

fn topic(topic: &str) -> TopicName {
    TopicName::new("ns", topic)
}

fn attempts(number: u32) -> TopicSettings {
    TopicSettings { default_max_attempts: Some(number), ..TopicSettings::default() }
}

fn wish(name: &TopicName, from_version: u64, settings: TopicSettings) -> SettingsWish {
    SettingsWish { name: name.clone(), from_version, settings, root: String::new(), bounds: BOUNDS }
}

/// Writes settings over those that are there.
async fn put(catalog: &dyn Catalog, name: &TopicName, settings: TopicSettings) -> PolicyOutcome {
    let from = catalog.settings(name).await.expect("reads").version;
    catalog.put_settings(&wish(name, from, settings)).await.expect("is written")
}

/// The same where there is room. Returns the version.
async fn put_version(catalog: &dyn Catalog, name: &TopicName, settings: TopicSettings) -> u64 {
    match put(catalog, name, settings).await {
        PolicyOutcome::Yes(version) => version,
        refused => panic!("{refused:?}"),
    }
}

/// Pauses a topic.
async fn pause(catalog: &dyn Catalog, name: &TopicName) {
    let (by, since, note) = ("ops".to_owned(), Timestamp::from_micros(5), String::new());
    let policy = Policy { dequeue: Some(Pause { by, since, until: None, note }), ..Policy::default() };
    let from_version = catalog.policy(name).await.expect("reads").version;
    let wish = PolicyWish {
        name: name.clone(),
        from_version,
        policy,
        ended_before: Timestamp::from_micros(1),
        root: String::new(),
        bounds: BOUNDS,
    };
    assert!(matches!(catalog.put_policy(&wish).await.expect("is written"), PolicyOutcome::Yes(_)));
}

/// Reads the changes since a version.
async fn since(catalog: &dyn Catalog, policies: u64) -> PolicyChanges {
    let known = Versions { policies, ..all(catalog).await.versions };
    catalog.read(known).await.expect("reads").policies
}

fn names(rows: &[SettingsRow]) -> Vec<&str> {
    rows.iter().map(|row| &*row.name.topic).collect()
}

/// Also those of the namespace itself, the greatest values, and zeros, which are not the same as nothing.
pub async fn settings_are_read_as_they_were_written(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let none = catalog.settings(&topic("t")).await.expect("reads");
    assert_eq!((none.version, none.settings.is_nothing()), (0, true));
    let days = |days: u64| Some(Duration::from_secs(days * 86_400) + Duration::from_micros(1));
    let great = TopicSettings {
        default_lease: days(1),
        default_max_attempts: Some(u32::MAX),
        retry_delay: days(366),
        dead_letter_retention: days(3_660),
        dedupe_window: days(2),
        weight: Some(100),
    };
    let zero = Some(Duration::ZERO);
    let zeros = TopicSettings { retry_delay: zero, dead_letter_retention: zero, ..TopicSettings::default() };
    for (name, settings) in [(topic("t"), great), (topic(""), zeros), (topic("T"), attempts(1))] {
        let version = put_version(&*catalog, &name, settings).await;
        let row = catalog.settings(&name).await.expect("reads");
        assert_eq!((&row.name, row.version, row.settings), (&name, version, settings));
        let changes = since(&*catalog, version - 1).await;
        assert_eq!((changes.whole, changes.rows.len(), changes.settings), (false, 0, vec![row]));
    }
    let whole = all(&*catalog).await.policies;
    assert_eq!((whole.whole, names(&whole.settings)), (true, vec!["t", "", "T"]));
}

/// Settings that somebody else has written meanwhile are not overwritten.
pub async fn settings_are_written_from_their_last_version(subject: CatalogSubject) {
    let (catalog, other) = (subject.migrated().await, (subject.open)());
    let first = put_version(&*catalog, &topic("t"), attempts(1)).await;
    let before = all(&*catalog).await;
    for from in [0, first - 1, first + 1] {
        let written = catalog.put_settings(&wish(&topic("t"), from, attempts(2))).await.expect("answers");
        assert_eq!(written, PolicyOutcome::Stale);
    }
    assert_eq!(all(&*catalog).await, before);
    for (name, from) in [("t", first), ("new", 0)] {
        let (a, b) = (wish(&topic(name), from, attempts(3)), wish(&topic(name), from, attempts(4)));
        let (a, b) = tokio::join!(catalog.put_settings(&a), other.put_settings(&b));
        let answers = [a.expect("answers"), b.expect("answers")];
        let won = answers.iter().filter(|answer| matches!(answer, PolicyOutcome::Yes(_))).count();
        assert_eq!((won, answers.contains(&PolicyOutcome::Stale)), (1, true), "{answers:?}");
    }
}

/// A pause changes no settings, and settings end no pause: neither has the version of the other.
pub async fn settings_and_pauses_leave_each_other_alone(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let version = put_version(&*catalog, &topic("t"), attempts(1)).await;
    pause(&*catalog, &topic("t")).await;
    pause(&*catalog, &topic("other")).await;
    let row = catalog.settings(&topic("t")).await.expect("reads");
    assert_eq!((row.version, row.settings), (version, attempts(1)));
    let paused = catalog.policy(&topic("t")).await.expect("reads");
    put_version(&*catalog, &topic("t"), attempts(2)).await;
    assert_eq!(catalog.policy(&topic("t")).await.expect("reads"), paused);
}

/// Policies and settings of one topic, or all of a namespace: nodes hear of both.
pub async fn policies_and_settings_are_removed_together(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let removal = |topic: Option<&str>| PolicyRemoval {
        namespace: "ns".into(),
        topic: topic.map(Into::into),
        bounds: PolicyBounds::DEFAULT,
    };
    let foreign = TopicName::new("n2", "t");
    for name in [topic(""), topic("t"), topic("u"), foreign.clone()] {
        pause(&*catalog, &name).await;
    }
    for name in [topic("t"), topic("v"), foreign.clone()] {
        put_version(&*catalog, &name, attempts(1)).await;
    }
    let before = all(&*catalog).await;
    assert_eq!(catalog.remove_policies(&removal(Some("w"))).await.expect("answers"), None);
    assert_eq!(all(&*catalog).await, before, "there was nothing");
    let known = before.versions.policies;
    let version = catalog.remove_policies(&removal(Some("t"))).await.expect("answers").expect("had both");
    let changes = since(&*catalog, known).await;
    assert_eq!((changes.whole, changes.rows.len(), names(&changes.settings)), (false, 1, vec!["t"]));
    assert!(changes.rows[0].policy.is_nothing() && changes.settings[0].settings.is_nothing());
    assert_eq!((changes.rows[0].version, changes.settings[0].version), (version, version));
    catalog.remove_policies(&removal(None)).await.expect("answers").expect("had some");
    let changes = since(&*catalog, version).await;
    let mut paused: Vec<&str> = changes.rows.iter().map(|row| &*row.name.topic).collect();
    paused.sort_unstable();
    assert_eq!((paused, names(&changes.settings)), (vec!["", "u"], vec!["v"]));
    let kept = catalog.settings(&foreign).await.expect("reads");
    assert_eq!(kept.settings, attempts(1));
    assert!(!catalog.policy(&foreign).await.expect("reads").policy.is_nothing());
    // A row that was removed is written again from the version of its removal.
    put_version(&*catalog, &topic("t"), attempts(3)).await;
}

/// A reader that has not heard of a removal that is forgotten reads everything.
pub async fn removed_settings_are_told_and_then_forgotten(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    put_version(&*catalog, &topic("stays"), attempts(1)).await;
    pause(&*catalog, &topic("paused")).await;
    let begin = all(&*catalog).await.versions.policies;
    for name in ["a", "b", "c"] {
        let known = put_version(&*catalog, &topic(name), attempts(1)).await;
        put_version(&*catalog, &topic(name), TopicSettings::default()).await;
        let changes = since(&*catalog, known).await;
        assert_eq!((changes.whole, names(&changes.settings)), (false, vec![name]));
        assert!(changes.settings[0].settings.is_nothing());
    }
    let after = since(&*catalog, begin).await;
    assert_eq!((after.whole, names(&after.settings)), (true, vec!["stays", "b", "c"]), "two are kept");
    assert_eq!(after.rows.len(), 1, "the policies are read again, too");
    assert_eq!(catalog.settings(&topic("a")).await.expect("reads").version, 0);
}

/// Of a namespace, and in all. What is there can still be changed and removed. Pauses have bounds of their
/// own.
pub async fn settings_have_bounds(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    for name in ["", "a", "b"] {
        put_version(&*catalog, &topic(name), attempts(1)).await;
    }
    pause(&*catalog, &topic("c")).await;
    let before = all(&*catalog).await;
    assert_eq!(put(&*catalog, &topic("c"), attempts(1)).await, PolicyOutcome::NamespaceFull);
    assert_eq!(all(&*catalog).await, before);
    put_version(&*catalog, &TopicName::new("n2", "a"), attempts(1)).await;
    put_version(&*catalog, &TopicName::new("n2", "b"), attempts(1)).await;
    assert_eq!(put(&*catalog, &TopicName::new("n3", "a"), attempts(1)).await, PolicyOutcome::Full);
    put_version(&*catalog, &topic("a"), attempts(2)).await;
    put_version(&*catalog, &topic("a"), TopicSettings::default()).await;
    put_version(&*catalog, &topic("c"), attempts(1)).await;
}

/// No tenant takes the room of the others, and none that of operators: name by name, and by a document.
pub async fn settings_are_shared_out_by_root(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    for (number, (root, refused)) in SHARED_OUT.into_iter().enumerate() {
        let name = TopicName::new(root.to_owned() + "-ns", number.to_string());
        let written = if number % 2 == 0 {
            let wish = SettingsWish { root: root.into(), bounds: SHARED, ..wish(&name, 0, attempts(1)) };
            catalog.put_settings(&wish).await
        } else {
            let document = SettingsDocument {
                namespace: None,
                from_version: catalog.all_settings(None).await.expect("reads").version,
                wanted: [(name, attempts(1))].into(),
                root: root.into(),
                bounds: SHARED,
            };
            catalog.put_all_settings(&document).await
        };
        match (written.expect("is written"), refused) {
            (written, Some(refused)) => assert_eq!(written, refused, "{number}"),
            (written, None) => assert!(matches!(written, PolicyOutcome::Yes(_)), "{number}: {written:?}"),
        }
    }
    // A document without a new name takes no room.
    let document = SettingsDocument {
        namespace: None,
        from_version: catalog.all_settings(None).await.expect("reads").version,
        wanted: [(TopicName::new("two-ns", "4"), attempts(2))].into(),
        root: "two".into(),
        bounds: SHARED,
    };
    let written = catalog.put_all_settings(&document).await.expect("is written");
    assert!(matches!(written, PolicyOutcome::Yes(_)), "{written:?}");
}

/// Many names in one change, unless any settings have changed or there are too many then.
pub async fn a_document_of_settings_is_written_whole(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let catalog = &*catalog;
    put_version(catalog, &topic("a"), attempts(1)).await;
    let version = put_version(catalog, &topic("b"), attempts(2)).await;
    let document = |from_version, wanted: &[(&str, u32)]| SettingsDocument {
        namespace: None,
        from_version,
        wanted: wanted
            .iter()
            .map(|(name, number)| {
                let settings = if *number == 0 { TopicSettings::default() } else { attempts(*number) };
                (topic(name), settings)
            })
            .collect(),
        root: String::new(),
        bounds: BOUNDS,
    };
    let put = async |document| catalog.put_all_settings(&document).await.expect("is written");
    let set = async || -> Vec<(String, u32)> {
        let rows = catalog.all_settings(None).await.expect("reads").rows;
        assert!(rows.is_sorted_by(|one, other| one.name < other.name));
        rows.into_iter()
            .map(|row| (row.name.topic.to_string(), row.settings.default_max_attempts.unwrap_or(0)))
            .collect()
    };
    let named = |set: &[(&str, u32)]| -> Vec<(String, u32)> {
        set.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
    };
    assert_eq!(put(document(version - 1, &[("a", 9)])).await, PolicyOutcome::Stale);
    // One goes and two come: there is room for three.
    let PolicyOutcome::Yes(next) = put(document(version, &[("a", 0), ("b", 5), ("c", 3), ("d", 4)])).await
    else {
        panic!("is not written")
    };
    assert!(next > version);
    assert_eq!(set().await, named(&[("b", 5), ("c", 3), ("d", 4)]));
    let known = since(catalog, version).await.settings;
    assert_eq!(known.len(), 4, "readers hear of all of them, removed ones included");
    assert_eq!(put(document(next, &[("b", 6), ("e", 1)])).await, PolicyOutcome::NamespaceFull);
    assert_eq!(set().await, named(&[("b", 5), ("c", 3), ("d", 4)]), "nothing of it was done");
    pause(catalog, &topic("b")).await;
    assert!(matches!(put(document(next, &[("b", 7)])).await, PolicyOutcome::Yes(_)), "a pause is no setting");
}

/// A change by one tenant changes no version of another one. Settings that had a version once have it again
/// only if all is as it was, also after a removed row was deleted that had the highest version.
pub async fn the_settings_of_a_namespace_have_a_version(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let catalog = &*catalog;
    let foreign = TopicName::new("n2", "t");
    put_version(catalog, &topic("a"), attempts(1)).await;
    let last = put_version(catalog, &topic("b"), attempts(2)).await;
    let other = put_version(catalog, &foreign, attempts(3)).await;
    let read = async |namespace: &str| catalog.all_settings(Some(&namespace.into())).await.expect("reads");
    let (own, all) = (read("ns").await, catalog.all_settings(None).await.expect("reads"));
    assert_eq!((own.version, names(&own.rows)), (last, vec!["a", "b"]));
    assert_eq!((read("n2").await.version, all.version, all.rows.len()), (other, other, 3));
    let document = |namespace: Option<&str>, from_version| SettingsDocument {
        namespace: namespace.map(Into::into),
        from_version,
        wanted: [(topic("b"), attempts(4))].into(),
        root: String::new(),
        bounds: BOUNDS,
    };
    let put = async |document| catalog.put_all_settings(&document).await.expect("is written");
    assert_eq!(put(document(None, last)).await, PolicyOutcome::Stale);
    let PolicyOutcome::Yes(version) = put(document(Some("ns"), last)).await else {
        panic!("what another tenant has set is in the way")
    };
    assert_eq!((read("ns").await.version, read("n2").await.version), (version, other));
    // The row of `a` goes, and then the only sign of that.
    put_version(catalog, &topic("a"), TopicSettings::default()).await;
    for _ in 0..BOUNDS.removed {
        put_version(catalog, &TopicName::new("n3", "t"), attempts(1)).await;
        put_version(catalog, &TopicName::new("n3", "t"), TopicSettings::default()).await;
        put_version(catalog, &TopicName::new("n4", "t"), attempts(1)).await;
        put_version(catalog, &TopicName::new("n4", "t"), TopicSettings::default()).await;
    }
    assert_eq!(catalog.settings(&topic("a")).await.expect("reads").version, 0, "its row is deleted");
    let now = read("ns").await;
    assert!(now.version > version, "{now:?}");
    assert_eq!(names(&now.rows), vec!["b"]);
    assert_eq!(put(document(Some("ns"), version)).await, PolicyOutcome::Stale);
}

/// More rows than fit into one statement.
pub async fn a_long_document_of_settings_is_written_whole(subject: CatalogSubject) {
    let catalog = subject.migrated().await;
    let name = |number: u32| topic(&format!("{number:0>190}"));
    let wanted: std::collections::BTreeMap<_, _> = (1..=1_500).map(|it| (name(it), attempts(it))).collect();
    let document = SettingsDocument {
        namespace: Some("ns".into()),
        from_version: 0,
        wanted: wanted.clone(),
        root: String::new(),
        bounds: PolicyBounds { per_namespace: 1_500, ..PolicyBounds::DEFAULT },
    };
    let written = catalog.put_all_settings(&document).await.expect("is written");
    assert!(matches!(written, PolicyOutcome::Yes(_)), "{written:?}");
    let rows = catalog.all_settings(Some(&"ns".into())).await.expect("reads").rows;
    assert!(rows.into_iter().map(|row| (row.name, row.settings)).eq(wanted));
}
