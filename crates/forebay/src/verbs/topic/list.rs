//! `forebay topic list`

use std::collections::BTreeSet;

use forebay_client::v1::{ListTopicsRequest, Topic};
use forebay_types::ALL_NAMESPACES;
use serde_json::Value;

use super::flags;
use crate::{
    failure::Failure,
    output::{self, Column, Format, List, Row, optional_span},
    verbs::{
        flow::{count, rate},
        pages,
    },
};

/// An entry of the list.
struct TopicListEntry {
    /// The topic.
    figures: Topic,
    /// The list is of all namespaces.
    with_namespace: bool,
}

/// Lists topics.
pub async fn run(flags: &flags::List) -> Result<(), Failure> {
    let client = flags.connection.client().await?;
    let mut incomplete = BTreeSet::new();
    let pages = pages::collect(flags.limit, async |page_size, page_token| {
        let request = ListTopicsRequest {
            namespace: if flags.all_namespaces { ALL_NAMESPACES } else { client.namespace() }.to_owned(),
            filter: flags.filter.clone(),
            order_by: flags.order.clone(),
            page_size,
            page_token,
            recent: false,
        };
        let page = client.ask(request).await?;
        incomplete.extend(page.incomplete_shards);
        Ok((page.topics, page.next_page_token))
    });
    let (topics, next) = pages.await?;
    print(topics, next, incomplete.into_iter().collect(), flags.all_namespaces, &flags.format)
}

/// Prints a list of topics.
pub fn print(
    topics: Vec<Topic>,
    next: String,
    incomplete: Vec<u32>,
    with_namespace: bool,
    format: &Format,
) -> Result<(), Failure> {
    let topics: Vec<_> =
        topics.into_iter().map(|figures| TopicListEntry { figures, with_namespace }).collect();
    output::note_incomplete(&format.look, &incomplete);
    let rest = vec![("nextPageToken", next.into()), ("incompleteShards", incomplete.into())];
    List { field: "topics", rows: &topics, rest }.print(format.output, &format.look)
}

impl Row for TopicListEntry {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("TOPIC", |it, _| it.name().into()),
        Column::new("OLDEST READY", |it, style| style.optional_time(it.figures.oldest_ready_at).into()),
        Column::new("READY", |it, _| it.figures.ready_count.into()),
        Column::new("LEASED", |it, _| it.figures.leased_count.into()),
        Column::new("SCHEDULED", |it, _| it.figures.scheduled_count.into()),
        Column::new("DEAD", |it, _| it.figures.dead_count.into()),
        Column::new("WAITING", |it, _| it.figures.waiting_calls.into()),
        Column::new("IN/S", |it, _| rate(it.figures.rates.as_ref(), |rates| rates.enqueued)),
        Column::new("ACKED/S", |it, _| rate(it.figures.rates.as_ref(), |rates| rates.acked)),
        Column::wide("OUT/S", |it, _| rate(it.figures.rates.as_ref(), |rates| rates.delivered)),
        Column::wide("FAILED/S", |it, _| rate(it.figures.rates.as_ref(), |rates| rates.failed)),
        Column::wide("EXPIRED", |it, _| count(it.figures.counts.as_ref(), |counts| counts.expired)),
        Column::wide("REMOVED", |it, _| count(it.figures.counts.as_ref(), |counts| counts.removed)),
        Column::wide("WAIT P50", |it, _| optional_span(it.figures.wait_p50).into()),
        Column::wide("WAIT P99", |it, _| optional_span(it.figures.wait_p99).into()),
        Column::wide("HANDLING P99", |it, _| optional_span(it.figures.handling_p99).into()),
        Column::wide("NEXT DUE", |it, style| style.optional_time(it.figures.next_due_at).into()),
    ];

    fn name(&self) -> String {
        let Topic { namespace, topic, .. } = &self.figures;
        if self.with_namespace { format!("{namespace}/{topic}") } else { topic.clone() }
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("Topic", &self.figures)
    }
}
