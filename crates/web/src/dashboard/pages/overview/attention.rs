//! Topics that need attention, and why in words.

use std::cmp::Reverse;

use forebay_proto::{
    time::from_timestamp,
    v1::{Side, Topic},
};
use forebay_types::Timestamp;
use maud::{Markup, html};

use super::{
    super::{
        super::{
            asked::PageRequest,
            failing, links,
            live::Live,
            table::{self, Head},
            texts::{age, count, counted, percent, rate, span},
        },
        topics::{chips, incomplete},
    },
    wall::Wall,
};

/// Topics that are shown.
const SHOWN: usize = 10;
/// A topic that nobody asks for is worth a word after so many seconds: consumers come back between calls.
const UNASKED_SECONDS: u64 = 10;
/// An item that has been ready for so many seconds has waited too long.
const LONG_SECONDS: u64 = 600;
/// Fewer failures a second are chance.
const FAILURES: f64 = 0.1;
/// A topic grows if so many times as many items come in as go out.
const GROWING: f64 = 1.1;
/// Fewer ready items are no backlog.
const BACKLOG: u64 = 100;

/// Something that is wrong with a topic.
struct Reason {
    /// How much it weighs.
    points: u32,
    /// A sentence.
    text: String,
}

/// A topic with something wrong.
struct TopicAlert<'a> {
    /// The topic.
    topic: &'a Topic,
    /// The sum of the points.
    score: u32,
    /// The sentences, the most severe first.
    text: String,
}

/// The table, or that nothing needs attention.
pub fn table(asked: &PageRequest, wall: &Wall, live: &mut Live) -> Markup {
    let found = found(&wall.topics, asked.now());
    let more = found.len().saturating_sub(SHOWN);
    html! {
        h2 { "Needs attention" }
        (incomplete(&wall.incomplete))
        @if wall.scanned == 0 && !wall.incomplete.is_empty() {
            p.none { "No topic in the shards that were asked. What the others have is not known." }
        } @else if wall.scanned == 0 {
            div.empty {
                p { "No topics yet. A topic is created by its first item:" }
                pre { "forebay enqueue --topic mail hello" }
            }
        } @else if found.is_empty() {
            p.none { (live.text("calm", calm(wall))) }
        } @else {
            (table::list(
                html! {
                    (Head::words("namespace"))
                    (Head::words("topic"))
                    (Head::words("why"))
                    (Head::number("oldest"))
                    (Head::number("ready"))
                },
                html! { @for one in found.iter().take(SHOWN) { (row(asked, one, live)) } },
            ))
            @if more > 0 { p.none { "And " (counted(more as u64, "more topic")) "." } }
        }
    }
}

fn row(asked: &PageRequest, found: &TopicAlert<'_>, live: &mut Live) -> Markup {
    let topic = found.topic;
    let id = live.row(&["attention", &topic.namespace, &topic.topic]);
    html! {
        tr data-row=(id) {
            td.l data-head="in" { (links::namespace(&topic.namespace)) }
            td.l { (links::topic(&topic.namespace, &topic.topic)) (chips(&topic.pauses)) }
            td.l.wrap { (live.text(format!("{id}y"), &found.text)) }
            td data-head="oldest" { (live.text(format!("{id}o"), age(topic.oldest_ready_at, asked.now()))) }
            td data-head="ready" { (live.text(format!("{id}r"), count(topic.ready_count))) }
        }
    }
}

/// Says which topics were looked at where nothing was found.
fn calm(wall: &Wall) -> String {
    let of = counted(wall.scanned, "topic");
    let answered = if wall.incomplete.is_empty() { "" } else { " in the shards that answered" };
    format!(
        "Nothing is wrong{answered} with the topics that wait longest, nor with those that have the most \
         dead letters. They are {} of {of}.",
        count(wall.topics.len() as u64)
    )
}

/// The topics with something wrong, the worst first.
fn found(topics: &[Topic], now: Timestamp) -> Vec<TopicAlert<'_>> {
    let mut found: Vec<TopicAlert<'_>> = topics.iter().filter_map(|topic| look(topic, now)).collect();
    found.sort_by_key(|one| Reverse((one.score, seconds(one.topic, now), one.topic.dead_count)));
    found
}

fn look(topic: &Topic, now: Timestamp) -> Option<TopicAlert<'_>> {
    let mut reasons: Vec<Reason> = paused(topic, now).into_iter().chain(rates(topic)).collect();
    reasons.extend(waits(topic, now));
    reasons.extend(dead(topic));
    reasons.sort_by_key(|reason| Reverse(reason.points));
    let score = reasons.iter().map(|reason| reason.points).sum();
    let text = reasons.iter().map(|reason| &*reason.text).collect::<Vec<_>>().join(" ");
    (!reasons.is_empty()).then_some(TopicAlert { topic, score, text })
}

/// For how long its next item has been ready.
fn seconds(topic: &Topic, now: Timestamp) -> u64 {
    topic.oldest_ready_at.map_or(0, |at| now.since(from_timestamp(at)).as_secs())
}

fn hands_out(topic: &Topic) -> bool {
    topic.pauses.iter().all(|pause| pause.side() != Side::Dequeue)
}

fn paused(topic: &Topic, now: Timestamp) -> Vec<Reason> {
    let reason = |pause: &forebay_proto::v1::Pause| {
        let (what, points) = match pause.side() {
            Side::Enqueue => ("Enqueue has", 15),
            _ if topic.ready_count > 0 => ("Deliveries have", 40),
            _ => ("Deliveries have", 15),
        };
        let whole = if pause.of_namespace { ", with the whole namespace" } else { "" };
        Reason { points, text: format!("{what} been paused for {}{whole}.", age(pause.since, now)) }
    };
    topic.pauses.iter().map(reason).collect()
}

/// Its items wait, and for what.
fn waits(topic: &Topic, now: Timestamp) -> Option<Reason> {
    let (ready, waited) = (topic.ready_count, seconds(topic, now));
    if ready == 0 || !hands_out(topic) {
        return None;
    }
    let delivered = topic.rates.is_some_and(|rates| rates.delivered > 0.0);
    let unasked = topic.waiting_calls == 0 && topic.leased_count == 0 && !delivered;
    let for_long = u32::try_from(waited / 60).unwrap_or(u32::MAX).min(40);
    if unasked && waited >= UNASKED_SECONDS {
        let are = if ready == 1 { "is" } else { "are" };
        let text = format!("No consumer waits, though {} {are} ready.", counted(ready, "item"));
        return Some(Reason { points: 60 + for_long, text });
    }
    (waited >= LONG_SECONDS).then(|| {
        let text =
            format!("The next item has been ready for {}.", span(std::time::Duration::from_secs(waited)));
        Reason { points: 20 + for_long, text }
    })
}

/// How much happens in it.
fn rates(topic: &Topic) -> Vec<Reason> {
    let Some(rates) = topic.rates else { return Vec::new() };
    let mut reasons = Vec::new();
    let part = failing::part(&rates);
    if rates.failed >= FAILURES && failing::is_much(part) {
        let text = format!("{} of the deliveries fail.", percent(part));
        reasons.push(Reason { points: 10 + (part * 50.0) as u32, text });
    }
    let grows = rates.enqueued > rates.delivered * GROWING && topic.ready_count >= BACKLOG;
    if grows && hands_out(topic) && rates.delivered > 0.0 {
        let (comes, goes) = (rate(rates.enqueued), rate(rates.delivered));
        let text = format!("It grows: {comes} items a second come in, and {goes} go out.");
        reasons.push(Reason { points: 25, text });
    }
    reasons
}

fn dead(topic: &Topic) -> Option<Reason> {
    let number = topic.dead_count;
    if number == 0 {
        return None;
    }
    let are = if number == 1 { "is" } else { "are" };
    let letters = counted(number, "dead letter");
    let (more, points) = match topic.rates {
        Some(rates) if rates.dead_lettered > 0.0 => (", and they become more", 15),
        _ => ("", 0),
    };
    // A thousand times as many are worth six points more.
    let points = 5 + points + number.ilog10() * 2;
    Some(Reason { points, text: format!("There {are} {letters}{more}.") })
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1::{Pause, Rates};

    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000_000);

    fn ago(seconds: i64) -> Option<prost_types::Timestamp> {
        Some(prost_types::Timestamp { seconds: 1_000_000 - seconds, nanos: 0 })
    }

    fn busy(name: &str) -> Topic {
        let rates = Rates { enqueued: 10.0, delivered: 10.0, acked: 10.0, ..Rates::default() };
        Topic {
            topic: name.to_owned(),
            ready_count: 500,
            oldest_ready_at: ago(30),
            leased_count: 3,
            rates: Some(rates),
            ..Topic::default()
        }
    }

    fn text(topic: &Topic) -> String {
        look(topic, NOW).map(|found| found.text).unwrap_or_default()
    }

    #[test]
    fn a_topic_that_flows_is_not_listed() {
        assert_eq!(text(&busy("a")), "");
        assert_eq!(text(&Topic { leased_count: 0, ..busy("a") }), "", "deliveries are made");
        let between_two_calls = Topic { rates: None, leased_count: 0, oldest_ready_at: ago(2), ..busy("a") };
        assert_eq!(text(&between_two_calls), "");
    }

    #[test]
    fn each_reason_is_a_sentence() {
        let unasked = Topic { rates: None, leased_count: 0, ..busy("a") };
        assert_eq!(text(&unasked), "No consumer waits, though 500 items are ready.");
        let old = Topic { oldest_ready_at: ago(720), ..busy("a") };
        assert_eq!(text(&old), "The next item has been ready for 12 min.");
        let with = |change: fn(&mut Rates)| {
            let mut topic = busy("a");
            topic.rates.iter_mut().for_each(change);
            text(&topic)
        };
        assert_eq!(with(|it| (it.acked, it.failed) = (6.6, 3.4)), "34 % of the deliveries fail.");
        assert_eq!(with(|it| (it.acked, it.failed) = (0.1, 0.05)), "", "a single failure is chance");
        let grows = "It grows: 20.0 items a second come in, and 10.0 go out.";
        assert_eq!(with(|it| it.enqueued = 20.0), grows);
        let dead = Topic { dead_count: 1, ..busy("a") };
        assert_eq!(text(&dead), "There is 1 dead letter.");
    }

    #[test]
    fn a_paused_topic_does_not_lack_consumers() {
        let pause = Pause { side: Side::Dequeue.into(), since: ago(7_200), ..Pause::default() };
        let rates = None;
        let topic = Topic { pauses: vec![pause.clone()], rates, leased_count: 0, ..busy("a") };
        assert_eq!(text(&topic), "Deliveries have been paused for 2 h.");
        let pauses = vec![Pause { side: Side::Enqueue.into(), of_namespace: true, ..pause }];
        let said = text(&Topic { pauses, oldest_ready_at: ago(660), ..busy("a") });
        assert!(
            said.starts_with("The next item has been ready for 11 min. Enqueue has been paused"),
            "{said}"
        );
        assert!(said.ends_with("for 2 h, with the whole namespace."), "{said}");
    }

    #[test]
    fn the_worst_comes_first() {
        let dead = |number| Topic { dead_count: number, ..busy("dead") };
        let unasked = |age| Topic { rates: None, leased_count: 0, oldest_ready_at: ago(age), ..busy("b") };
        let topics = [dead(1), busy("c"), unasked(60), dead(1_000_000), unasked(6_000)];
        let found = found(&topics, NOW);
        let order: Vec<u64> =
            found.iter().map(|one| one.topic.dead_count + seconds(one.topic, NOW)).collect();
        assert_eq!(order, [6_000, 60, 1_000_030, 31]);
    }

    #[test]
    fn calm_says_what_was_looked_at() {
        let wall = Wall { scanned: 12_345, topics: vec![busy("a")], ..Wall::default() };
        assert!(calm(&wall).ends_with("They are 1 of 12,345 topics."), "{}", calm(&wall));
        assert!(!calm(&wall).contains("that answered"));
        assert!(calm(&Wall { incomplete: vec![3], ..wall }).contains("in the shards that answered"));
    }
}
