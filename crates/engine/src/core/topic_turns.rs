//! Topics with something to be done, in turn by tenant: nobody's topic waits behind all of another one's.

use std::{collections::BTreeMap, ops::Bound};

use forebay_types::{Namespace, TopicName};

/// Topics of a tenant, in turn by name.
#[derive(Debug)]
struct TenantTopics<V> {
    /// Their names, and what goes with each.
    topics: BTreeMap<TopicName, V>,
    /// The one whose turn was last.
    last: Option<TopicName>,
}

/// Topics of all tenants, each with a value.
#[derive(Debug)]
pub(crate) struct TopicTurns<V = ()> {
    /// Topics of each tenant that has any.
    tenants: BTreeMap<Namespace, TenantTopics<V>>,
    /// The tenant whose turn was last.
    last: Option<Namespace>,
}

impl<V> TenantTopics<V> {
    fn next(&mut self) -> Option<(TopicName, V)> {
        let next = self.topics.range(behind(&self.last)).chain(&self.topics).next()?.0.clone();
        let next = self.topics.remove_entry(&next)?;
        self.last = Some(next.0.clone());
        Some(next)
    }
}

impl<V> TopicTurns<V> {
    /// Adds a topic. The value of one that is there already is replaced.
    pub fn insert(&mut self, name: TopicName, value: V) {
        match self.tenants.get_mut(&name.namespace) {
            Some(tenant) => drop(tenant.topics.insert(name, value)),
            None => {
                let tenant = name.namespace.clone();
                let topics = BTreeMap::from([(name, value)]);
                self.tenants.insert(tenant, TenantTopics { topics, last: None });
            }
        }
    }

    /// Takes a topic out of its turn.
    pub fn remove(&mut self, name: &TopicName) -> Option<V> {
        let tenant = self.tenants.get_mut(&name.namespace)?;
        let value = tenant.topics.remove(name)?;
        if tenant.topics.is_empty() {
            self.tenants.remove(&name.namespace);
        }
        Some(value)
    }

    /// There is no topic.
    pub fn is_empty(&self) -> bool {
        self.tenants.is_empty()
    }

    /// Takes the next topic of the tenant whose turn it is.
    pub fn next(&mut self) -> Option<(TopicName, V)> {
        let tenant =
            self.tenants.range::<Namespace, _>(behind(&self.last)).chain(&self.tenants).next()?.0.clone();
        let topics = self.tenants.get_mut(&tenant)?;
        let next = topics.next();
        if topics.topics.is_empty() {
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

impl<V> Default for TopicTurns<V> {
    fn default() -> Self {
        Self { tenants: BTreeMap::new(), last: None }
    }
}

/// All behind the last one.
fn behind<K>(last: &Option<K>) -> (Bound<&K>, Bound<&K>) {
    (last.as_ref().map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(names: &[(&str, &str)]) -> TopicTurns {
        let mut turns = TopicTurns::default();
        names.iter().for_each(|(tenant, topic)| turns.insert(TopicName::new(*tenant, *topic), ()));
        turns
    }

    fn next(turns: &mut TopicTurns) -> TopicName {
        turns.next().unwrap().0
    }

    #[test]
    fn topics_of_a_tenant_have_turns_by_name() {
        let mut turns = turns(&[("ns", "c"), ("ns", "a"), ("ns", "b")]);
        assert_eq!(next(&mut turns).topic.as_ref(), "a");
        // It has something to be done again before the others had their turns.
        turns.insert(TopicName::new("ns", "a"), ());
        let rest: Vec<String> =
            std::iter::from_fn(|| turns.next()).map(|(name, ())| name.topic.to_string()).collect();
        assert_eq!(rest, ["b", "c", "a"]);
    }

    #[test]
    fn a_tenant_with_many_topics_has_every_other_turn() {
        let names: Vec<String> = (0..1_000).map(|number| format!("t{number:04}")).collect();
        let mut many: Vec<(&str, &str)> = names.iter().map(|name| ("many", name.as_str())).collect();
        many.extend([("few", "t"), ("zero", "t"), ("few", "t")]);
        let mut turns = turns(&many);
        let tenants: Vec<String> = (0..4).map(|_| next(&mut turns).namespace.to_string()).collect();
        assert_eq!(tenants, ["few", "many", "zero", "many"]);
        turns.insert(TopicName::new("few", "u"), ());
        assert_eq!(next(&mut turns).namespace.as_ref(), "few");
        // Others were taken, and the turn of this one was the last.
        turns.insert(TopicName::new("zero", "u"), ());
        turns.continue_after("many".into());
        assert_eq!(next(&mut turns).namespace.as_ref(), "zero");
        assert_eq!(std::iter::from_fn(|| turns.next()).count(), 998);
        assert!(turns.is_empty());
    }

    #[test]
    fn the_newest_value_counts_and_a_topic_can_be_taken_out_of_its_turn() {
        let [one, other] = ["a", "b"].map(|topic| TopicName::new("ns", topic));
        let mut turns = TopicTurns::default();
        turns.insert(one.clone(), 1);
        turns.insert(other.clone(), 2);
        turns.insert(one.clone(), 3);
        assert_eq!((turns.remove(&other), turns.remove(&other)), (Some(2), None));
        assert_eq!((turns.next(), turns.is_empty()), (Some((one, 3)), true));
        turns.insert(other.clone(), 4);
        assert_eq!((turns.remove(&other), turns.is_empty(), turns.next()), (Some(4), true, None));
    }
}
