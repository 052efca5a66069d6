//! Topics whose polls may be served now, in turn by tenant: nobody's topic waits behind all of another one's.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use forebay_types::{Namespace, TopicName};

/// The woken topics of a tenant, in turn by name.
#[derive(Debug, Default)]
struct TenantTopics {
    /// Their names.
    names: BTreeSet<TopicName>,
    /// The one whose turn was last.
    last: Option<TopicName>,
}

/// All woken topics.
#[derive(Debug, Default)]
pub(crate) struct WokenTopics {
    /// Topics of each tenant that has any.
    tenants: BTreeMap<Namespace, TenantTopics>,
    /// The tenant whose turn was last.
    last: Option<Namespace>,
}

impl TenantTopics {
    fn next(&mut self) -> Option<TopicName> {
        let next = self.names.range(behind(&self.last)).chain(&self.names).next()?.clone();
        self.names.remove(&next);
        self.last = Some(next.clone());
        Some(next)
    }
}

impl WokenTopics {
    /// A topic is woken, or is already.
    pub fn insert(&mut self, name: TopicName) {
        self.tenants.entry(name.namespace.clone()).or_default().names.insert(name);
    }

    /// No topic is woken.
    pub fn is_empty(&self) -> bool {
        self.tenants.is_empty()
    }

    /// Takes the next topic of the tenant whose turn it is.
    pub fn next(&mut self) -> Option<TopicName> {
        let tenant =
            self.tenants.range::<Namespace, _>(behind(&self.last)).chain(&self.tenants).next()?.0.clone();
        let topics = self.tenants.get_mut(&tenant)?;
        let next = topics.next();
        if topics.names.is_empty() {
            self.tenants.remove(&tenant);
        }
        self.last = Some(tenant);
        next
    }

    /// The tenant's turn was the last, whatever was taken since.
    pub fn continue_after(&mut self, tenant: Namespace) {
        self.last = Some(tenant);
    }
}

/// All behind the last one.
fn behind<K>(last: &Option<K>) -> (Bound<&K>, Bound<&K>) {
    (last.as_ref().map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn woken(names: &[(&str, &str)]) -> WokenTopics {
        let mut woken = WokenTopics::default();
        names.iter().for_each(|(namespace, topic)| woken.insert(TopicName::new(*namespace, *topic)));
        woken
    }

    #[test]
    fn the_topics_of_a_tenant_have_their_turns_however_often_one_is_woken() {
        let mut woken = woken(&[("ns", "b"), ("ns", "a"), ("ns", "c")]);
        let mut turns = Vec::new();
        for _ in 0..4 {
            let topic = woken.next().unwrap();
            woken.insert(TopicName::new("ns", "a"));
            turns.push(topic.topic.to_string());
        }
        assert_eq!(turns, ["a", "b", "c", "a"]);
    }

    #[test]
    fn a_topic_waits_for_one_of_each_other_tenant() {
        let names: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
        let mut many: Vec<(&str, &str)> = names.iter().map(|name| ("many", name.as_str())).collect();
        many.extend([("few", "t"), ("zero", "t"), ("few", "t")]);
        let mut woken = woken(&many);
        let turns: Vec<String> = (0..4).map(|_| woken.next().unwrap().namespace.to_string()).collect();
        assert_eq!(turns, ["few", "many", "zero", "many"]);
        woken.insert(TopicName::new("few", "u"));
        assert_eq!(woken.next().unwrap().namespace.as_ref(), "few");
        // A turn that took more than it served begins behind what it served.
        woken.insert(TopicName::new("zero", "u"));
        woken.continue_after("many".into());
        assert_eq!(woken.next().unwrap().namespace.as_ref(), "zero");
        assert_eq!(std::iter::from_fn(|| woken.next()).count(), 998);
        assert!(woken.is_empty());
    }
}
