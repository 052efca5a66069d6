//! AS-ASKED and COUNTS of pages of active topics: prefix, limit and order in every run; in runs without
//! faults also that the topics, their first items and their counts are right.

use std::time::Duration;

use forebay_engine::{ActiveTopic, ActiveTopics, ActiveTopicsCall};
use forebay_types::Namespace;

use super::{
    items::{Item, Items, Location, Phase},
    record::{Finding, RunRecord},
};
use crate::sim::history::{Answer, Call, What};

/// The engine knows of a commit after this time.
const COMMIT_KNOWN_AFTER: Duration = Duration::from_millis(60);

pub(super) fn check(record: &RunRecord, items: &Items, found: &mut Vec<Finding>) {
    for call in &record.calls {
        let What::ActiveTopics { call: asked, answer: Answer::Done(page) } = &call.what else { continue };
        as_asked(record, call, asked, page, found);
        if record.strict {
            for topic in &page.topics {
                is_right(call, topic, items, found);
            }
            if page.topics.len() < asked.limit {
                is_whole(call, asked, page, items, found);
            }
        }
    }
}

fn as_asked(
    record: &RunRecord,
    call: &Call,
    asked: &ActiveTopicsCall,
    page: &ActiveTopics,
    found: &mut Vec<Finding>,
) {
    let mut wrong = |what: String| {
        found.push(("AS-ASKED", format!("page {}: {what}", call.start.event)));
    };
    let topics = || page.topics.iter().map(|topic| &topic.position);
    if let Some(other) = topics().find(|position| !position.topic.starts_with(&asked.prefix)) {
        wrong(format!("{} does not begin with {:?}", other.topic, asked.prefix));
    }
    // Over nodes a page may be shorter: behind the end of one of theirs nothing is certain.
    let short = !record.forwards && page.next.is_some() && page.topics.len() < asked.limit;
    if page.topics.len() > asked.limit || short {
        wrong(format!("has {} topics of {}, more: {}", page.topics.len(), asked.limit, page.next.is_some()));
    }
    if !topics().is_sorted_by(|one, other| one < other) {
        wrong(format!("is not in order: {:?}", page.topics));
    }
    if topics().any(|position| asked.after.as_ref().is_some_and(|after| position <= after)) {
        wrong(format!("begins before {:?}", asked.after));
    }
}

/// The items of a topic, and what each was while the page was made.
fn history<'a>(
    items: &'a Items,
    call: &'a Call,
    namespace: &'a Namespace,
    topic: &'a str,
) -> impl Iterator<Item = (&'a Item, Vec<&'a Phase>)> {
    let of_topic = move |item: &&Item| {
        item.topic.as_ref().is_some_and(|name| name.namespace == *namespace && &*name.topic == topic)
    };
    items.by_id.values().filter(of_topic).map(|item| (item, during(item, call)))
}

/// Phases of an item that the engine may have seen.
fn during<'a>(item: &'a Item, call: &Call) -> Vec<&'a Phase> {
    let from = call.start.at.minus(COMMIT_KNOWN_AFTER);
    let first = item.phases.iter().rposition(|phase| phase.done.at < from).unwrap_or(0);
    let phases = item.phases[first..].iter();
    phases.take_while(|phase| phase.done.at <= call.end.at.plus(COMMIT_KNOWN_AFTER)).collect()
}

fn could_be_leased(phase: &Phase) -> bool {
    phase.location == Location::Ready && phase.lease.is_none()
}

/// The page names a topic's first item, and how many it has.
fn is_right(call: &Call, topic: &ActiveTopic, items: &Items, found: &mut Vec<Finding>) {
    let position = &topic.position;
    let name = format!("page {}: {}", call.start.event, position.topic);
    let first = (position.best_priority, position.oldest_ready_at.as_micros());
    let (mut there, mut ready, mut leased, mut scheduled) =
        (false, Range::default(), Range::default(), Range::default());
    for (item, phases) in history(items, call, &call.namespace, &position.topic) {
        let key = |phase: &Phase| (phase.key.priority, phase.key.rank);
        there |= phases.iter().any(|phase| could_be_leased(phase) && key(phase) == first);
        let gone =
            item.phases.first().is_none_or(|phase| phase.done.at.plus(COMMIT_KNOWN_AFTER) > call.start.at);
        ready.add(gone, &phases, could_be_leased);
        leased.add(gone, &phases, |phase| phase.lease.is_some());
        scheduled.add(gone, &phases, |phase| phase.location == Location::Scheduled);
        // It was there all the time, and was not even asked for.
        let better = phases.len() == 1 && could_be_leased(phases[0]) && key(phases[0]) < first && !gone;
        if better && phases[0].expires_at.is_none_or(|end| end > call.end.at) {
            let key = key(phases[0]);
            found.push(("COUNTS", format!("{name} begins with {first:?}, and {} is at {key:?}", item.id)));
        }
    }
    if !there {
        found.push(("COUNTS", format!("{name} begins with {first:?}, where no item is")));
    }
    for (what, told, range) in [
        ("ready", topic.ready, ready),
        ("leased", topic.leased, leased),
        ("scheduled", topic.scheduled, scheduled),
    ] {
        if !(range.least..=range.most).contains(&told) {
            found.push(("COUNTS", format!("{name} has {told} {what} items and not {range:?}")));
        }
    }
}

/// How many items can have been in a state.
#[derive(Debug, Default)]
struct Range {
    least: u64,
    most: u64,
}

impl Range {
    /// `gone`: the item may not have been there yet.
    fn add(&mut self, gone: bool, phases: &[&Phase], is: impl Fn(&Phase) -> bool) {
        let all = !phases.is_empty() && phases.iter().all(|phase| is(phase)) && !gone;
        self.least += u64::from(all);
        self.most += u64::from(phases.iter().any(|phase| is(phase)));
    }
}

/// A topic that has had a ready item all the time is on the page.
fn is_whole(
    call: &Call,
    asked: &ActiveTopicsCall,
    page: &ActiveTopics,
    items: &Items,
    found: &mut Vec<Finding>,
) {
    if asked.after.is_some() {
        return;
    }
    for item in items.by_id.values() {
        let Some(name) = item.topic.as_ref().filter(|name| name.namespace == call.namespace) else {
            continue;
        };
        let phases = during(item, call);
        let known =
            phases.first().is_some_and(|phase| phase.done.at.plus(COMMIT_KNOWN_AFTER) < call.start.at);
        let stays = phases.len() == 1 && could_be_leased(phases[0]) && known;
        let named = page.topics.iter().any(|topic| topic.position.topic == name.topic);
        let ends = |phase: &&&Phase| phase.expires_at.is_some_and(|end| end <= call.end.at);
        let expired = phases.iter().any(|phase| ends(&phase));
        if stays && !named && !expired && name.topic.starts_with(&asked.prefix) {
            let what = format!("page {} has no {}, where {} is ready", call.start.event, name.topic, item.id);
            found.push(("COUNTS", what));
        }
    }
}
