//! The groups of dead letters.

use forebay_proto::v1::{DeadLetterGroup, GroupDeadLettersResponse};
use maud::{Markup, html};

use super::{
    super::super::{
        asked::PageRequest,
        links::{self, link},
        live::Live,
        table::{self, Head},
        texts::{count, time},
    },
    filter,
    question::question,
};

/// Samples of a group that are shown.
const SAMPLES: usize = 3;

/// The table of groups, and how much was looked at for it.
pub fn section(asked: &PageRequest, answer: &GroupDeadLettersResponse, live: &mut Live) -> Markup {
    html! {
        h2 { "By reason" }
        p.facts { (live.text("window", window(answer))) }
        (table::list(
            html! {
                (Head::number("count"))
                (Head::words("reason").title("Numbers, ids and quoted texts in it are replaced"))
                (Head::words("topics"))
                (Head::words("first died"))
                (Head::words("last died"))
                (Head::words("some of them"))
            },
            html! { @for group in &answer.groups { (row(asked, group, live)) } },
        ))
        p.dim {
            "A group is redriven or deleted in one topic at a time, with all of its dead letters there, also \
             those that were not looked at for this list. They are counted, and a sample is shown, before \
             anything is done."
        }
    }
}

/// How much was looked at.
fn window(answer: &GroupDeadLettersResponse) -> String {
    let GroupDeadLettersResponse { looked_at, total, ungrouped, .. } = answer;
    // There are more than were counted.
    let least = answer.topics_cut || !answer.incomplete_shards.is_empty();
    let least = if least { "≥ " } else { "" };
    let mut text = match looked_at < total || !least.is_empty() {
        true => format!("Grouping the latest {} of {least}{}.", count(*looked_at), count(*total)),
        false => format!("Grouping all {}.", count(*total)),
    };
    if *ungrouped > 0 {
        text += &format!(" {} of them are in none of these groups.", count(*ungrouped));
    }
    text
}

fn row(asked: &PageRequest, group: &DeadLetterGroup, live: &mut Live) -> Markup {
    let id = live.row(&["group", &group.fingerprint]);
    html! {
        tr data-row=(id) {
            td data-head="count" { (live.text(format!("{id}n"), count(group.count))) }
            td.l.wrap {
                bdi { (group.reason) }
                @if filter::is_cause(&group.reason) { " " span.dim { "(no reason was given)" } }
            }
            td.l data-head="topics" {
                @for topic in &group.topics { (topic_actions(asked, topic, &group.fingerprint)) }
                @if group.topics_cut { p.dim { "and more topics" } }
            }
            td.l data-head="first died" { (time(group.first_died_at, asked.now())) }
            td.l data-head="last died" { (time(group.last_died_at, asked.now())) }
            td.l.wrap data-head="some of them" {
                @for item in group.sample_item_ids.iter().take(SAMPLES) {
                    (links::item(asked.namespace(), item)) " "
                }
            }
        }
    }
}

/// Actions on a group in one of its topics.
fn topic_actions(asked: &PageRequest, topic: &str, fingerprint: &str) -> Markup {
    let (namespace, filter) = (asked.namespace(), filter::of_group(fingerprint));
    let look = [("ns", namespace), ("topic", topic), ("reason", filter.as_str())];
    html! {
        p {
            (links::topic(namespace, topic)) " "
            a href=(link("dead-letters", &look) + "#rows") { "look" } " "
            (question(asked, "redrive", topic, &filter, "Redrive")) " "
            (question(asked, "delete-dead", topic, &filter, "Delete"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_says_what_is_missing() {
        let answer = GroupDeadLettersResponse { looked_at: 10_000, total: 48_112, ..Default::default() };
        assert_eq!(window(&answer), "Grouping the latest 10,000 of 48,112.");
        let cut = GroupDeadLettersResponse { topics_cut: true, ungrouped: 7, ..answer };
        assert_eq!(
            window(&cut),
            "Grouping the latest 10,000 of ≥ 48,112. 7 of them are in none of these groups."
        );
        let all = GroupDeadLettersResponse { looked_at: 12, total: 12, ..Default::default() };
        assert_eq!(window(&all), "Grouping all 12.");
        let missing = GroupDeadLettersResponse { incomplete_shards: vec![3], ..all };
        assert_eq!(window(&missing), "Grouping the latest 12 of ≥ 12.");
    }
}
