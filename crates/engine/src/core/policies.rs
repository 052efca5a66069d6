//! The policies of topics and namespaces, as the node has heard of them.

use std::collections::{BTreeMap, HashMap, VecDeque};

use forebay_types::{Namespace, Pause, Policy, Side, Topic, TopicName};

use crate::api::{DesiredSettings, SettingsTable, VersionedSettings};

/// Whether items of a topic may be handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eligible {
    /// All that is ready.
    All,
    /// Nothing: the topic itself is paused.
    TopicPaused,
    /// Nothing: its namespace is paused.
    NamespacePaused,
}

/// The policies.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    /// Policies of topics.
    topics: HashMap<TopicName, Policy>,
    /// Policies of namespaces, each for all of its topics.
    namespaces: HashMap<Namespace, Policy>,
    /// Their settings.
    pub settings: SettingsTable,
    /// How many policies and settings each namespace has, its own included.
    named: BTreeMap<Namespace, usize>,
    /// Namespaces that are not paused any more, and up to which topic their polls were woken.
    resumed: VecDeque<(Namespace, Option<Topic>)>,
}

impl Policies {
    /// The policy of a topic; with an empty topic, of the namespace itself.
    pub fn get(&self, name: &TopicName) -> Option<&Policy> {
        if name.topic.is_empty() { self.namespaces.get(&name.namespace) } else { self.topics.get(name) }
    }

    /// The policy and the settings of a topic; with an empty topic, of the namespace itself.
    pub fn wanted(&self, name: &TopicName) -> DesiredSettings {
        let VersionedSettings { settings, version } = self.settings.own(name);
        let (policy, inherited) =
            (self.get(name).cloned().unwrap_or_default(), self.settings.inherited(name));
        DesiredSettings { policy, settings, inherited, version }
    }

    /// This is set from now on. Returns what was set before.
    pub fn set(&mut self, name: &TopicName, new: VersionedSettings) -> Option<VersionedSettings> {
        let before = self.settings.replace(name, new);
        self.count(&name.namespace, before.is_some(), !new.settings.is_nothing());
        before
    }

    /// Namespaces from one on, in order, of which something is wanted, or for which something is set.
    pub fn namespaces(&self, from: &Namespace, limit: usize) -> Vec<Namespace> {
        self.named.range::<Namespace, _>(from..).take(limit).map(|(namespace, _)| namespace.clone()).collect()
    }

    /// One more of a namespace, or one less.
    fn count(&mut self, namespace: &Namespace, was_there: bool, is_there: bool) {
        let count = self.named.entry(namespace.clone()).or_default();
        *count = (*count + usize::from(is_there)).saturating_sub(usize::from(was_there));
        if *count == 0 {
            self.named.remove(namespace);
        }
    }

    /// This is wanted from now on. Returns what was wanted before.
    pub fn replace(&mut self, name: &TopicName, policy: Policy) -> Policy {
        let is_there = !policy.is_nothing();
        let before = match (name.topic.is_empty(), policy.is_nothing()) {
            (true, true) => self.namespaces.remove(&name.namespace),
            (true, false) => self.namespaces.insert(name.namespace.clone(), policy),
            (false, true) => self.topics.remove(name),
            (false, false) => self.topics.insert(name.clone(), policy),
        };
        self.count(&name.namespace, before.is_some(), is_there);
        before.unwrap_or_default()
    }

    /// Every name of which something is wanted.
    pub fn names(&self) -> Vec<TopicName> {
        let namespaces = self.namespaces.keys().map(|namespace| TopicName::new(namespace.clone(), ""));
        namespaces.chain(self.topics.keys().cloned()).collect()
    }

    /// The pause of a side of a topic: its own, or that of its namespace.
    pub fn pause(&self, namespace: &Namespace, topic: &Topic, side: Side) -> Option<&Pause> {
        // Mostly there is none at all.
        let of_topic = || {
            let name = TopicName { namespace: namespace.clone(), topic: topic.clone() };
            self.topics.get(&name)?.pause(side)
        };
        let own = if self.topics.is_empty() { None } else { of_topic() };
        own.or_else(|| self.namespaces.get(namespace)?.pause(side))
    }

    /// Whether items of a topic may be handed out; with an empty topic, of all topics of the namespace.
    pub fn eligible(&self, name: &TopicName) -> Eligible {
        let is_paused = |policy: &Policy| policy.dequeue.is_some();
        // Mostly there is no policy at all.
        if !self.topics.is_empty() && self.topics.get(name).is_some_and(is_paused) {
            Eligible::TopicPaused
        } else if self.namespaces.get(&name.namespace).is_some_and(is_paused) {
            Eligible::NamespacePaused
        } else {
            Eligible::All
        }
    }

    /// How many topics and namespaces are paused on a side.
    pub fn paused(&self, side: Side) -> usize {
        let all = self.topics.values().chain(self.namespaces.values());
        all.filter(|policy| policy.pause(side).is_some()).count()
    }

    /// The polls of a namespace's topics may be served again. They are woken in slices.
    pub fn resume(&mut self, namespace: Namespace, after: Option<Topic>) {
        // One walk a namespace, however often its pause ends.
        self.resumed.retain(|(other, _)| *other != namespace);
        self.resumed.push_back((namespace, after));
    }

    /// Takes a namespace whose polls are to be woken, and the topic behind which to go on.
    pub fn next_resumed(&mut self) -> Option<(Namespace, Option<Topic>)> {
        self.resumed.pop_front()
    }

    /// Polls are to be woken.
    pub fn has_resumed(&self) -> bool {
        !self.resumed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_types::{Timestamp, TopicSettings};

    use super::*;

    #[test]
    fn a_pause_of_a_topic_goes_before_that_of_its_namespace() {
        let pause = Pause { by: String::new(), since: Timestamp::MIN, until: None, note: String::new() };
        let paused = Policy { dequeue: Some(pause.clone()), ..Policy::default() };
        let (own, other, all) = (TopicName::new("a", "t"), TopicName::new("a", "u"), TopicName::new("a", ""));
        let mut policies = Policies::default();
        policies.replace(&own, Policy { enqueue: Some(pause), ..Policy::default() });
        assert_eq!(policies.eligible(&own), Eligible::All, "only enqueues are paused");
        policies.replace(&own, paused.clone());
        assert_eq!(
            [&own, &other].map(|name| policies.eligible(name)),
            [Eligible::TopicPaused, Eligible::All]
        );
        policies.replace(&all, paused);
        let found = [&own, &other, &all].map(|name| policies.eligible(name));
        assert_eq!(found, [Eligible::TopicPaused, Eligible::NamespacePaused, Eligible::NamespacePaused]);
    }

    #[test]
    fn a_namespace_is_named_as_long_as_something_is_wanted_in_it() {
        let pause = Pause { by: String::new(), since: Timestamp::MIN, until: None, note: String::new() };
        let paused = Policy { dequeue: Some(pause), ..Policy::default() };
        let lease = Some(Duration::from_secs(5));
        let settings = TopicSettings { default_lease: lease, ..TopicSettings::default() };
        let set = VersionedSettings { settings, version: 1 };
        let mut policies = Policies::default();
        policies.replace(&TopicName::new("b", "t"), paused.clone());
        policies.replace(&TopicName::new("b", "t"), paused.clone());
        policies.set(&TopicName::new("b", ""), set);
        policies.set(&TopicName::new("c", "t"), set);
        policies.replace(&TopicName::new("a", ""), paused);
        let named = |policies: &Policies, from: &str, limit| -> Vec<String> {
            policies.namespaces(&from.into(), limit).iter().map(ToString::to_string).collect()
        };
        assert_eq!(named(&policies, "", 10), ["a", "b", "c"]);
        assert_eq!(
            (named(&policies, "b", 1), named(&policies, "b\0", 9)),
            (vec!["b".into()], vec!["c".into()])
        );
        policies.replace(&TopicName::new("b", "t"), Policy::default());
        policies.set(&TopicName::new("c", "t"), VersionedSettings::default());
        policies.set(&TopicName::new("c", "t"), VersionedSettings::default());
        assert_eq!(named(&policies, "", 10), ["a", "b"], "the settings of b are left");
        policies.set(&TopicName::new("b", ""), VersionedSettings::default());
        assert_eq!(named(&policies, "", 10), ["a"]);
    }
}
