//! The settings of topics and namespaces, as the node has heard of them.

use std::{collections::HashMap, time::Duration};

use forebay_types::{Namespace, Policy, Topic, TopicName, TopicSettings};

/// The policy and the settings of a topic or a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DesiredSettings {
    /// Its pauses.
    pub policy: Policy,
    /// Its own settings.
    pub settings: TopicSettings,
    /// The version of the settings. 0: there are none.
    pub version: u64,
}

/// Settings with their version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct VersionedSettings {
    /// The settings.
    pub settings: TopicSettings,
    /// Their version.
    pub version: u64,
}

/// The settings of topics and namespaces.
#[derive(Debug, Default)]
pub(crate) struct SettingsTable {
    /// The settings of topics.
    topics: HashMap<TopicName, VersionedSettings>,
    /// The settings of namespaces.
    namespaces: HashMap<Namespace, VersionedSettings>,
    /// The weights of namespaces that have one.
    weights: HashMap<Namespace, u32>,
}

impl SettingsTable {
    /// The own settings of a topic; with an empty topic, of the namespace itself.
    pub fn own(&self, name: &TopicName) -> VersionedSettings {
        let found = match name.topic.is_empty() {
            true => self.namespaces.get(&name.namespace),
            false => self.topics.get(name),
        };
        found.copied().unwrap_or_default()
    }

    /// This is set from now on. Returns what was set before, if anything was.
    pub fn replace(&mut self, name: &TopicName, new: VersionedSettings) -> Option<VersionedSettings> {
        if name.topic.is_empty() {
            match new.settings.weight {
                Some(weight) => self.weights.insert(name.namespace.clone(), weight),
                None => self.weights.remove(&name.namespace),
            };
        }
        match (name.topic.is_empty(), new.settings.is_nothing()) {
            (true, true) => self.namespaces.remove(&name.namespace),
            (true, false) => self.namespaces.insert(name.namespace.clone(), new),
            (false, true) => self.topics.remove(name),
            (false, false) => self.topics.insert(name.clone(), new),
        }
    }

    /// Every name of which something is set.
    pub fn names(&self) -> Vec<TopicName> {
        let namespaces = self.namespaces.keys().map(|namespace| TopicName::new(namespace.clone(), ""));
        namespaces.chain(self.topics.keys().cloned()).collect()
    }

    /// The settings that count for a topic: its own, and those of its namespace where it has none. An absent
    /// one is as the node has it.
    pub fn of_topic(&self, name: &TopicName) -> TopicSettings {
        let own = self.topics.get(name).map(|own| own.settings).unwrap_or_default();
        own.or(self.of_namespace(&name.namespace))
    }

    /// The same by the two parts of its name.
    pub fn of(&self, namespace: &Namespace, topic: &Topic) -> TopicSettings {
        // Mostly no topic has settings.
        match self.topics.is_empty() {
            true => self.of_namespace(namespace),
            false => self.of_topic(&TopicName { namespace: namespace.clone(), topic: topic.clone() }),
        }
    }

    /// Whether any namespace has a weight.
    pub fn has_weights(&self) -> bool {
        !self.weights.is_empty()
    }

    /// The weight of a namespace among others.
    pub fn weight_of_namespace(&self, namespace: &Namespace) -> u32 {
        self.weights.get(namespace).copied().unwrap_or(1)
    }

    /// The weight of a topic among those of a prefix.
    pub fn weight_of_topic(&self, name: &TopicName) -> u32 {
        // Mostly no topic has settings.
        let own = if self.topics.is_empty() { None } else { self.topics.get(name) };
        own.map_or(1, |own| own.settings.weight())
    }

    /// How long the keys of a namespace are remembered, where that is set.
    pub fn dedupe_window(&self, namespace: &Namespace) -> Option<Duration> {
        self.of_namespace(namespace).dedupe_window
    }

    fn of_namespace(&self, namespace: &Namespace) -> TopicSettings {
        self.namespaces.get(namespace).map(|own| own.settings).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts(number: u32) -> VersionedSettings {
        let settings = TopicSettings { default_max_attempts: Some(number), ..TopicSettings::default() };
        VersionedSettings { settings, version: u64::from(number) }
    }

    #[test]
    fn a_topic_has_its_own_settings_and_then_those_of_its_namespace() {
        let (name, namespace) = (TopicName::new("ns", "t"), TopicName::new("ns", ""));
        let mut table = SettingsTable::default();
        let counts = |table: &SettingsTable| table.of(&name.namespace, &name.topic).default_max_attempts;
        assert_eq!(counts(&table), None);
        assert_eq!(table.replace(&namespace, attempts(2)), None);
        assert_eq!(counts(&table), Some(2));
        table.replace(&name, attempts(3));
        assert_eq!((counts(&table), table.of_topic(&name).default_max_attempts), (Some(3), Some(3)));
        assert_eq!(table.of_topic(&TopicName::new("ns", "u")).default_max_attempts, Some(2));
        assert_eq!(table.of_topic(&TopicName::new("other", "t")), TopicSettings::default());
        assert_eq!((table.own(&name), table.own(&namespace)), (attempts(3), attempts(2)));
        assert_eq!(table.replace(&name, VersionedSettings::default()), Some(attempts(3)));
        assert_eq!((counts(&table), table.names().len()), (Some(2), 1));
    }

    #[test]
    fn the_window_of_keys_is_that_of_the_namespace() {
        let window = Some(Duration::from_secs(5));
        let settings = TopicSettings { dedupe_window: window, ..TopicSettings::default() };
        let mut table = SettingsTable::default();
        table.replace(&TopicName::new("ns", ""), VersionedSettings { settings, version: 1 });
        assert_eq!(table.dedupe_window(&"ns".into()), window);
        assert_eq!(table.dedupe_window(&"other".into()), None);
    }
}
