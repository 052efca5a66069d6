//! GetActiveTopics over all nodes: their pages are merged, and of each topic of the page all nodes say what
//! they have.

use std::collections::BTreeMap;

use forebay_engine::{ActiveTopic, ActiveTopics, ActiveTopicsCall, Engine, TopicPosition};
use forebay_types::{Refusal, Topic};
use futures_util::future::join_all;

use crate::links::Links;

/// The page of all nodes, from this node's own, which knows some others.
pub(crate) async fn over_nodes(
    engine: &Engine,
    links: &dyn Links,
    call: ActiveTopicsCall,
    own: ActiveTopics,
) -> Result<ActiveTopics, Refusal> {
    let nodes = own.nodes.clone();
    let others = join_all(nodes.iter().map(|node| links.active_topics(node, call.clone()))).await;
    let reached = nodes.into_iter().zip(others).filter_map(|(node, page)| Some((node, page.ok()?)));
    let (nodes, mut pages): (Vec<String>, Vec<ActiveTopics>) = reached.unzip();
    pages.push(own);
    let (order, next) = merge(&pages, call.limit);
    let mut missing = pages.iter().map(|page| &page.missing);
    let first = missing.next().cloned().unwrap_or_default();
    let missing =
        missing.fold(first, |left, other| left.into_iter().filter(|id| other.contains(id)).collect());
    if order.is_empty() {
        return Ok(ActiveTopics { topics: Vec::new(), next, missing, nodes });
    }
    let named = order.iter().map(|position| position.topic.clone()).collect();
    let asked = ActiveTopicsCall { named, ..call.clone() };
    let there = join_all(nodes.iter().map(|node| links.active_topics(node, asked.clone())));
    let (here, there) = tokio::join!(engine.active_topics(asked.clone()), there);
    let parts: Vec<ActiveTopics> = there.into_iter().flatten().chain([here?]).collect();
    let topics = order.into_iter().enumerate();
    let topics = topics.filter_map(|(at, position)| sum(at, position, &parts, call.after.as_ref())).collect();
    Ok(ActiveTopics { topics, next, missing, nodes })
}

/// The first topics of all pages, by the best position that one of them names, and where the next page
/// begins. Behind the end of a page that goes on nothing is certain.
fn merge(pages: &[ActiveTopics], limit: usize) -> (Vec<TopicPosition>, Option<TopicPosition>) {
    let end = pages.iter().filter_map(|page| page.next.as_ref()).min();
    let mut best: BTreeMap<&Topic, &TopicPosition> = BTreeMap::new();
    for position in pages.iter().flat_map(|page| &page.topics).map(|topic| &topic.position) {
        let known = best.entry(&position.topic).or_insert(position);
        *known = position.min(known);
    }
    let certain = |position: &&TopicPosition| end.is_none_or(|end| *position <= end);
    let mut order: Vec<TopicPosition> = best.into_values().filter(certain).cloned().collect();
    order.sort_unstable();
    let more = order.len() > limit || end.is_some();
    order.truncate(limit);
    let next = order.last().or(end).filter(|_| more).cloned();
    (order, next)
}

/// A topic of the page, as all nodes have it. `None`: an earlier page has it, or nothing of it is ready.
fn sum(
    at: usize,
    position: TopicPosition,
    parts: &[ActiveTopics],
    after: Option<&TopicPosition>,
) -> Option<ActiveTopic> {
    let mut sum = ActiveTopic { position, ready: 0, leased: 0, scheduled: 0 };
    for part in parts.iter().filter_map(|part| part.topics.get(at)) {
        if part.ready > 0 && after.is_some_and(|after| part.position <= *after) {
            return None;
        }
        sum.ready += part.ready;
        sum.leased += part.leased;
        sum.scheduled += part.scheduled;
    }
    (sum.ready > 0).then_some(sum)
}

#[cfg(test)]
mod tests {
    use forebay_types::Timestamp;

    use super::*;

    fn topic(name: &str, best_priority: i32, ready: u64) -> ActiveTopic {
        let position = TopicPosition { best_priority, oldest_ready_at: Timestamp::MIN, topic: name.into() };
        ActiveTopic { position, ready, leased: 1, scheduled: 2 }
    }

    fn page(topics: Vec<ActiveTopic>, more: bool) -> ActiveTopics {
        let next = topics.last().filter(|_| more).map(|topic| topic.position.clone());
        ActiveTopics { topics, next, ..ActiveTopics::default() }
    }

    fn names(order: &[TopicPosition]) -> Vec<&str> {
        order.iter().map(|position| &*position.topic).collect()
    }

    #[test]
    fn a_topic_has_its_best_position_of_all_nodes() {
        let pages =
            [page(vec![topic("a", 1, 1), topic("b", 2, 1)], false), page(vec![topic("b", 0, 1)], false)];
        let (order, next) = merge(&pages, 10);
        assert_eq!((names(&order), next), (vec!["b", "a"], None));
        let (order, next) = merge(&pages, 1);
        assert_eq!((names(&order), next.map(|next| next.best_priority)), (vec!["b"], Some(0)));
    }

    #[test]
    fn nothing_is_listed_behind_the_end_of_a_page_that_goes_on() {
        let pages = [page(vec![topic("a", 1, 1)], true), page(vec![topic("b", 2, 1)], false)];
        let (order, next) = merge(&pages, 10);
        assert_eq!((names(&order), next), (vec!["a"], Some(topic("a", 1, 1).position)));
    }

    #[test]
    fn a_topic_is_listed_once_over_the_pages() {
        let parts = [page(vec![topic("a", 5, 2)], false), page(vec![topic("a", 1, 3)], false)];
        let at = |priority| topic("a", priority, 0).position;
        let found = sum(0, at(1), &parts, None).unwrap();
        assert_eq!((found.ready, found.leased, found.scheduled), (5, 2, 4));
        assert_eq!(sum(0, at(5), &parts, Some(&at(3))), None, "an earlier page had it at 1");
        assert_eq!(sum(0, at(5), &[page(vec![topic("a", 5, 0)], false)], None), None, "nothing is ready");
    }
}
