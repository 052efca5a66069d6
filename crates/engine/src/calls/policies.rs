//! Policies and settings change: by what the node hears of the catalog, and at the end of a pause.

use std::collections::{BTreeSet, HashSet};

use forebay_types::{Namespace, Policy, PolicyChanges, PolicyRow, SettingsRow, Side, TopicName};

use crate::{
    api::{DesiredSettings, VersionedSettings},
    core::{Core, timers::Timer},
};

/// Topics of a namespace whose polls one turn wakes.
const WOKEN_PER_TURN: usize = 1_024;

/// Takes over what has changed.
pub(crate) fn set(core: &mut Core, changes: PolicyChanges) {
    let PolicyChanges { whole, rows, settings } = changes;
    let mut reweighted = BTreeSet::new();
    if whole {
        tracing::debug!(policies = rows.len(), settings = settings.len(), "all policies are read");
        let kept: HashSet<&TopicName> = rows.iter().map(|row| &row.name).collect();
        let gone: Vec<TopicName> =
            core.policies.names().into_iter().filter(|name| !kept.contains(name)).collect();
        gone.into_iter().for_each(|name| change(core, name, Policy::default()));
        let kept: HashSet<&TopicName> = settings.iter().map(|row| &row.name).collect();
        let gone: Vec<TopicName> =
            core.policies.settings.names().into_iter().filter(|name| !kept.contains(name)).collect();
        gone.iter().for_each(|name| set_one(core, name, VersionedSettings::default(), &mut reweighted));
    }
    for SettingsRow { name, version, settings } in settings {
        set_one(core, &name, VersionedSettings { settings, version }, &mut reweighted);
    }
    reweighted.iter().for_each(|namespace| core.prefixes.begin_anew(namespace));
    for PolicyRow { name, policy, .. } in rows {
        change(core, name, policy);
    }
}

/// This is set for a topic or a namespace from now on. Each setting is looked up when it is needed, but for
/// the weight of topics. `reweighted` gets the namespace of a pattern whose weight is another one.
fn set_one(core: &mut Core, name: &TopicName, new: VersionedSettings, reweighted: &mut BTreeSet<Namespace>) {
    let before = core.policies.set(name, new).unwrap_or_default();
    if before.settings != new.settings {
        if before.settings.weight != new.settings.weight && !name.topic.is_empty() {
            match name.prefix() {
                None => core.touch(name),
                Some(_) => drop(reweighted.insert(name.namespace.clone())),
            }
        }
        let TopicName { namespace, topic } = name;
        let VersionedSettings { settings, version } = new;
        tracing::info!(%namespace, %topic, version, ?settings, "settings changed");
    }
}

/// The timer of a policy: some of its pauses may be over.
pub(crate) fn end(core: &mut Core, name: TopicName) {
    let policy = core.policies.get(&name).cloned().unwrap_or_default();
    change(core, name, policy);
}

/// This is wanted from now on, as far as it is not over.
fn change(core: &mut Core, name: TopicName, mut policy: Policy) {
    let moment = core.time.moment();
    policy.drop_ended(moment.now);
    match policy.next_end() {
        Some(end) => core.timers.set(moment.at.plus(end.since(moment.now)), Timer::Policy(name.clone())),
        None => core.timers.cancel(&Timer::Policy(name.clone())),
    }
    let before = core.policies.replace(&name, policy);
    for side in Side::BOTH {
        let after = core.policies.get(&name).and_then(|policy| policy.pause(side));
        let TopicName { namespace, topic } = &name;
        match (before.pause(side), after) {
            (old, Some(new)) if old != Some(new) => {
                let (by, note) = (&new.by, &new.note);
                let side = side.as_str();
                tracing::info!(%namespace, %topic, side, by, note, "paused");
            }
            (Some(_), None) => tracing::info!(%namespace, %topic, side = side.as_str(), "resumed"),
            _ => {}
        }
    }
    let is_paused = core.policies.get(&name).is_some_and(|policy| policy.dequeue.is_some());
    match (before.dequeue.is_some(), is_paused) {
        (true, false) if name.topic.is_empty() => core.policies.resume(name.namespace, None),
        (was_paused, is_paused) if was_paused != is_paused && !name.topic.is_empty() => {
            core.touch(&name);
        }
        // A page of a paused namespace is empty.
        _ => {}
    }
}

/// Wakes the polls of namespaces that are not paused any more: those of so many topics in a turn.
pub(crate) fn wake_resumed(core: &mut Core) {
    let Some((namespace, after)) = core.policies.next_resumed() else { return };
    let topics = core.topics.of_namespace(&namespace, after.as_ref()).take(WOKEN_PER_TURN);
    let names: Vec<TopicName> = topics.cloned().collect();
    let prefixes = if after.is_none() { core.prefixes.of_namespace(&namespace).to_vec() } else { Vec::new() };
    for name in names.iter().chain(&prefixes) {
        core.topics.wake_if_waiting(name);
        core.watchers.touch(name);
    }
    if names.len() == WOKEN_PER_TURN {
        core.policies.resume(namespace, names.last().map(|name| name.topic.clone()));
    }
}

/// The policies and settings of topics and namespaces, in the order of the names.
pub(crate) fn look(core: &Core, names: &[TopicName]) -> Vec<DesiredSettings> {
    names.iter().map(|name| core.policies.wanted(name)).collect()
}
