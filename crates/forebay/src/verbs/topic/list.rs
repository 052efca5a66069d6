//! `forebay topic list`

use std::collections::BTreeSet;

use forebay_client::{TopicFigures, TopicListQuery};
use serde_json::Value;

use super::flags;
use crate::{
    failure::Failure,
    output::{self, Column, List, Row},
};

/// Topics of one page.
const PAGE_TOPICS_MAX: u32 = 1_000;

/// An entry of the list.
struct Listed {
    /// The topic.
    figures: TopicFigures,
    /// The list is of all namespaces.
    with_namespace: bool,
}

/// Lists topics.
pub async fn run(flags: &flags::List) -> Result<(), Failure> {
    let client = flags.connection.client().await?;
    let mut topics: Vec<Listed> = Vec::new();
    let mut incomplete = BTreeSet::new();
    let mut token = Some(String::new());
    loop {
        let left = flags.limit.saturating_sub(u32::try_from(topics.len()).unwrap_or(u32::MAX));
        let Some(page_token) = token.take_if(|_| left > 0) else { break };
        let page = client.list_topics(TopicListQuery {
            all_namespaces: flags.all_namespaces,
            filter: flags.filter.clone(),
            order_by: flags.order.clone(),
            page_size: left.min(PAGE_TOPICS_MAX),
            page_token,
        });
        let page = page.await?;
        incomplete.extend(page.incomplete_shards);
        let with_namespace = flags.all_namespaces;
        topics.extend(page.topics.into_iter().map(|figures| Listed { figures, with_namespace }));
        token = page.next;
    }
    let incomplete: Vec<u32> = incomplete.into_iter().collect();
    output::note_incomplete(&flags.format.look, &incomplete);
    let rest =
        vec![("nextPageToken", token.unwrap_or_default().into()), ("incompleteShards", incomplete.into())];
    List { field: "topics", rows: &topics, rest }.print(flags.format.output, &flags.format.look)
}

impl Row for Listed {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("TOPIC", |it, _| it.name().into()),
        Column::new("OLDEST READY", |it, style| style.optional_time(it.figures.oldest_ready_at).into()),
        Column::new("READY", |it, _| it.figures.ready.into()),
        Column::new("LEASED", |it, _| it.figures.leased.into()),
        Column::new("SCHEDULED", |it, _| it.figures.scheduled.into()),
        Column::new("DEAD", |it, _| it.figures.dead.into()),
        Column::new("WAITING", |it, _| it.figures.waiting.into()),
        Column::wide("NEXT DUE", |it, style| style.optional_time(it.figures.next_due_at).into()),
    ];

    fn name(&self) -> String {
        let TopicFigures { namespace, topic, .. } = &self.figures;
        if self.with_namespace { format!("{namespace}/{topic}") } else { topic.clone() }
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("Topic", &output::topic(&self.figures))
    }
}
