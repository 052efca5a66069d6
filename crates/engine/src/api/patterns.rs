//! The settings of the patterns of a namespace. A pattern is a topic's name with `*` behind it: its settings
//! count for each topic that begins so.
//!
//! To look for all prefixes of a name would take as long as the owner of the namespace likes. But the topics
//! that begin alike stand together in the order of names. So patterns cut that order into ranges, in each of
//! which the same settings count, and a look-up is one search for the range of a name.

use std::{collections::BTreeMap, ops::Bound, sync::OnceLock};

use forebay_types::{Topic, TopicSettings, topics_with_prefix};

use super::versioned_settings::VersionedSettings;

/// Comes behind all that names may have. So it ends the range of a prefix.
const END: char = char::MAX;

/// The patterns of a namespace.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    /// Their own settings, by what stands before the `*`.
    own: BTreeMap<Topic, VersionedSettings>,
    /// The settings of all patterns that cover a name, from this text on. Made when somebody asks.
    ranges: OnceLock<BTreeMap<Topic, TopicSettings>>,
}

impl Patterns {
    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// The own settings of one, by what stands before its `*`.
    pub fn own(&self, prefix: &str) -> Option<&VersionedSettings> {
        self.own.get(prefix)
    }

    /// This is set from now on. Returns what was set before, if anything was.
    pub fn replace(&mut self, prefix: &str, new: VersionedSettings) -> Option<VersionedSettings> {
        self.ranges = OnceLock::new();
        match new.settings.is_nothing() {
            true => self.own.remove(prefix),
            false => self.own.insert(prefix.into(), new),
        }
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = Topic> {
        self.own.keys().map(|prefix| topics_with_prefix(prefix))
    }

    /// The settings of all that cover a topic: each of the longest one that has it. Of a pattern: of those
    /// that are shorter.
    pub fn covering(&self, topic: &str) -> TopicSettings {
        let until = match topic.strip_suffix('*') {
            // The range before its own is of those around it.
            Some(prefix) => Bound::Excluded(prefix),
            None => Bound::Included(topic),
        };
        let ranges = self.ranges.get_or_init(|| ranges(&self.own));
        let range = ranges.range::<str, _>((Bound::Unbounded, until)).next_back();
        range.map(|(_, settings)| *settings).unwrap_or_default()
    }
}

/// The ranges of names, by their begins. In order, a pattern comes before those that it covers.
fn ranges(own: &BTreeMap<Topic, VersionedSettings>) -> BTreeMap<Topic, TopicSettings> {
    let mut ranges = BTreeMap::new();
    // The patterns whose ranges have not ended, each around the next, with all settings that count there.
    let mut around: Vec<(&str, TopicSettings)> = Vec::new();
    for (prefix, VersionedSettings { settings, .. }) in own {
        end_ranges(&mut ranges, &mut around, |ended| !prefix.starts_with(ended));
        let counts = settings.or_of_pattern(innermost(&around));
        ranges.insert(prefix.clone(), counts);
        around.push((prefix, counts));
    }
    end_ranges(&mut ranges, &mut around, |_| true);
    ranges
}

/// Behind the range of a pattern counts what counts around it.
fn end_ranges(
    ranges: &mut BTreeMap<Topic, TopicSettings>,
    around: &mut Vec<(&str, TopicSettings)>,
    has_ended: impl Fn(&str) -> bool,
) {
    while let Some((prefix, _)) = around.pop_if(|(prefix, _)| has_ended(prefix)) {
        ranges.insert(format!("{prefix}{END}").into(), innermost(around));
    }
}

fn innermost(around: &[(&str, TopicSettings)]) -> TopicSettings {
    around.last().map(|(_, counts)| *counts).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

    use super::*;

    /// All names of up to so many letters of two.
    fn names(letters: usize) -> Vec<String> {
        let mut names = vec![String::new()];
        for from in 0.. {
            if names[from].len() == letters {
                return names;
            }
            names.extend(["a", "b"].map(|letter| format!("{}{letter}", names[from])));
        }
        names
    }

    /// Each pattern is looked at, the longest first.
    fn looked_for(own: &BTreeMap<String, TopicSettings>, topic: &str) -> TopicSettings {
        let (text, is_topic) = topic.strip_suffix('*').map_or((topic, true), |prefix| (prefix, false));
        let covers = |prefix: &String| text.starts_with(prefix) && (is_topic || text != prefix);
        let mut covering: Vec<_> = own.iter().filter(|(prefix, _)| covers(prefix)).collect();
        covering.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        covering.iter().fold(TopicSettings::default(), |counts, (_, own)| counts.or_of_pattern(**own))
    }

    #[test]
    fn a_range_has_the_settings_of_all_patterns_around_it() {
        let (mut rng, all) = (StdRng::seed_from_u64(1), names(4));
        for _ in 0..200 {
            let (mut patterns, mut own) = (Patterns::default(), BTreeMap::new());
            for step in 0..8 {
                let prefix = &all[rng.random_range(0..all.len())];
                let mut one = || rng.random_bool(0.5).then_some(step + 1);
                let settings =
                    TopicSettings { weight: one(), default_max_attempts: one(), ..TopicSettings::default() };
                patterns.replace(prefix, VersionedSettings { settings, version: 1 });
                match settings.is_nothing() {
                    true => own.remove(prefix),
                    false => own.insert(prefix.clone(), settings),
                };
                for name in names(5).iter().flat_map(|name| [name.clone(), format!("{name}*")]) {
                    assert_eq!(patterns.covering(&name), looked_for(&own, &name), "{name} of {own:?}");
                }
            }
        }
    }
}
