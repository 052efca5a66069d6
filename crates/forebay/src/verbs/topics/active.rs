//! Topics that have a ready item, most urgent first.

use forebay_client::{ActiveTopic, TopicQuery};
use serde_json::Value;

use super::flags::Topics;
use crate::{
    failure::Failure,
    output::{self, Cell, Column, List, Row},
};

/// Topics of one page.
const PAGE_TOPICS_MAX: u32 = 1_000;

/// Lists the active topics.
pub async fn list(flags: &Topics) -> Result<(), Failure> {
    let client = flags.connection.client().await?;
    let mut topics: Vec<ActiveTopic> = Vec::new();
    let mut incomplete = false;
    let mut token = Some(String::new());
    loop {
        let left = flags.limit - u32::try_from(topics.len()).unwrap_or(flags.limit).min(flags.limit);
        let Some(page_token) = token.take_if(|_| left > 0) else { break };
        let prefix = flags.prefix.clone();
        let query = TopicQuery { page_size: left.min(PAGE_TOPICS_MAX), page_token, prefix };
        let page = client.active_topics(query).await?;
        incomplete |= page.incomplete;
        topics.extend(page.topics);
        token = page.next;
    }
    if incomplete {
        flags.format.look.note("some shards could not be asked: the list may be incomplete");
    }
    let rest = vec![("nextPageToken", token.unwrap_or_default().into()), ("incomplete", incomplete.into())];
    List { field: "topics", rows: &topics, rest }.print(flags.format.output, &flags.format.look)
}

impl Row for ActiveTopic {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("TOPIC", |topic, _| Cell::from(&topic.topic)),
        Column::new("READY", |topic, _| topic.ready.into()),
        Column::new("BEST", |topic, _| topic.best_priority.into()),
        Column::new("OLDEST READY", |topic, style| style.time(topic.oldest_ready_at).into()),
        Column::new("LEASED", |topic, _| topic.leased.into()),
        Column::new("SCHEDULED", |topic, _| topic.scheduled.into()),
    ];

    fn name(&self) -> String {
        self.topic.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("ActiveTopic", &output::active_topic(self))
    }
}
