//! Topics that have a ready item, most urgent first.

use forebay_client::{ActiveTopic, TopicQuery};
use serde_json::Value;

use super::flags::Topics;
use crate::{
    failure::Failure,
    output::{self, Cell, Column, List, Row},
    verbs::pages,
};

/// Lists the active topics.
pub async fn list(flags: &Topics) -> Result<(), Failure> {
    let client = flags.connection.client().await?;
    let mut incomplete = false;
    let pages = pages::collect(flags.limit, async |page_size, page_token| {
        let query = TopicQuery { page_size, page_token, prefix: flags.prefix.clone() };
        let page = client.active_topics(query).await?;
        incomplete |= page.incomplete;
        Ok((page.topics, page.next.unwrap_or_default()))
    });
    let (topics, next) = pages.await?;
    if incomplete {
        flags.format.look.note("some shards could not be asked: the list may be incomplete");
    }
    let rest = vec![("nextPageToken", next.into()), ("incomplete", incomplete.into())];
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
