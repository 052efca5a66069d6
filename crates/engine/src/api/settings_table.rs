//! The settings of topics, patterns and namespaces, as the node has heard of them.

use std::{collections::HashMap, time::Duration};

use forebay_types::{Namespace, Policy, Topic, TopicName, TopicSettings};

use super::{patterns::Patterns, versioned_settings::VersionedSettings};

/// The policy and the settings of a topic or a namespace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DesiredSettings {
    /// Its pauses.
    pub policy: Policy,
    /// Its own settings.
    pub settings: TopicSettings,
    /// Settings that count where it has none: those of patterns that cover it, and of its namespace.
    pub inherited: TopicSettings,
    /// The version of the settings. 0: there are none.
    pub version: u64,
}

/// The settings of topics and namespaces.
#[derive(Debug, Default)]
pub(crate) struct SettingsTable {
    /// The settings of topics.
    topics: HashMap<TopicName, VersionedSettings>,
    /// The patterns of each namespace that has some.
    patterns: HashMap<Namespace, Patterns>,
    /// The settings of namespaces.
    namespaces: HashMap<Namespace, VersionedSettings>,
    /// The weights of namespaces that have one.
    weights: HashMap<Namespace, u32>,
}

impl SettingsTable {
    /// The own settings of a topic or a pattern; with an empty topic, of the namespace itself.
    pub fn own(&self, name: &TopicName) -> VersionedSettings {
        let found = match (name.topic.is_empty(), name.prefix()) {
            (true, _) => self.namespaces.get(&name.namespace),
            (false, None) => self.topics.get(name),
            (false, Some(prefix)) => {
                self.patterns.get(&name.namespace).and_then(|patterns| patterns.own(prefix))
            }
        };
        found.copied().unwrap_or_default()
    }

    /// Settings that count for a topic or a pattern where it has none.
    pub fn inherited(&self, name: &TopicName) -> TopicSettings {
        if name.topic.is_empty() {
            return TopicSettings::default();
        }
        self.with_wider(TopicSettings::default(), &name.namespace, &name.topic)
    }

    /// This is set from now on. Returns what was set before, if anything was.
    pub fn replace(&mut self, name: &TopicName, new: VersionedSettings) -> Option<VersionedSettings> {
        if name.topic.is_empty() {
            match new.settings.weight {
                Some(weight) => self.weights.insert(name.namespace.clone(), weight),
                None => self.weights.remove(&name.namespace),
            };
        }
        if let Some(prefix) = name.prefix() {
            let patterns = self.patterns.entry(name.namespace.clone()).or_default();
            let before = patterns.replace(prefix, new);
            if patterns.is_empty() {
                self.patterns.remove(&name.namespace);
            }
            return before;
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
        let patterns = self.patterns.iter().flat_map(|(namespace, patterns)| {
            patterns.names().map(|name| TopicName::new(namespace.clone(), name))
        });
        namespaces.chain(patterns).chain(self.topics.keys().cloned()).collect()
    }

    /// The settings that count for a topic: its own, where it has none those of patterns, and those of its
    /// namespace. An absent one is as the node has it.
    pub fn of_topic(&self, name: &TopicName) -> TopicSettings {
        self.with_wider(self.own_of(name), &name.namespace, &name.topic)
    }

    /// The same by the two parts of its name.
    pub fn of(&self, namespace: &Namespace, topic: &Topic) -> TopicSettings {
        // Mostly no topic has settings.
        let own = match self.topics.is_empty() {
            true => TopicSettings::default(),
            false => self.own_of(&TopicName { namespace: namespace.clone(), topic: topic.clone() }),
        };
        self.with_wider(own, namespace, topic)
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
        let own = if self.topics.is_empty() { None } else { self.own_of(name).weight };
        own.unwrap_or_else(|| self.of_patterns(&name.namespace, &name.topic).weight())
    }

    /// How long the keys of a namespace are remembered, where that is set.
    pub fn dedupe_window(&self, namespace: &Namespace) -> Option<Duration> {
        self.of_namespace(namespace).dedupe_window
    }

    fn own_of(&self, name: &TopicName) -> TopicSettings {
        self.topics.get(name).map(|own| own.settings).unwrap_or_default()
    }

    fn of_patterns(&self, namespace: &Namespace, topic: &str) -> TopicSettings {
        // Mostly there is no pattern.
        let patterns = if self.patterns.is_empty() { None } else { self.patterns.get(namespace) };
        patterns.map(|patterns| patterns.covering(topic)).unwrap_or_default()
    }

    /// Settings of a topic or a pattern, and where something is absent that of wider scopes.
    fn with_wider(&self, own: TopicSettings, namespace: &Namespace, topic: &str) -> TopicSettings {
        own.or_of_pattern(self.of_patterns(namespace, topic)).or(self.of_namespace(namespace))
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
    fn between_a_topic_and_its_namespace_stand_patterns_the_longest_first() {
        let name = |topic: &str| TopicName::new("ns", topic);
        let weight = |weight| {
            let settings = TopicSettings { weight: Some(weight), ..TopicSettings::default() };
            VersionedSettings { settings, version: 1 }
        };
        let mut table = SettingsTable::default();
        let counts = |table: &SettingsTable, topic: &str| {
            let settings = table.of_topic(&name(topic));
            assert_eq!(settings.weight(), table.weight_of_topic(&name(topic)));
            (settings.default_max_attempts, settings.weight)
        };
        table.replace(&name(""), attempts(2));
        table.replace(&name("calls/*"), attempts(3));
        table.replace(&name("calls/a*"), weight(4));
        table.replace(&name("*"), weight(5));
        table.replace(&name("calls/ab"), attempts(6));
        assert_eq!(counts(&table, "calls/ab"), (Some(6), Some(4)), "each from the narrowest scope");
        assert_eq!(counts(&table, "calls/a"), (Some(3), Some(4)), "a prefix is also a topic's whole name");
        assert_eq!(counts(&table, "calls/b"), (Some(3), Some(5)));
        assert_eq!(counts(&table, "call"), (Some(2), Some(5)));
        assert_eq!(counts(&table, "calls/é"), (Some(3), Some(5)));
        assert_eq!(table.weight_of_topic(&TopicName::new("other", "calls/a")), 1);
        let inherited = table.inherited(&name("calls/a*"));
        assert_eq!((inherited.default_max_attempts, inherited.weight), (Some(3), Some(5)), "not its own");
        assert_eq!(table.inherited(&name("")), TopicSettings::default());
        assert_eq!(table.own(&name("calls/a*")), weight(4));
        let mut names: Vec<String> = table.names().iter().map(|name| name.topic.to_string()).collect();
        names.sort();
        assert_eq!(names, ["", "*", "calls/*", "calls/a*", "calls/ab"]);
        assert_eq!(table.replace(&name("calls/a*"), VersionedSettings::default()), Some(weight(4)));
        assert_eq!(counts(&table, "calls/a"), (Some(3), Some(5)));
        for pattern in ["calls/*", "*"] {
            table.replace(&name(pattern), VersionedSettings::default());
        }
        assert_eq!((counts(&table, "calls/a"), table.patterns.len()), ((Some(2), None), 0));
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
