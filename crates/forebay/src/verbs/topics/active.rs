//! Topics that have a ready item, most urgent first.

use forebay_client::{ActiveTopic, TopicQuery};
use serde_json::{Value, json};

use super::flags::Topics;
use crate::{
    failure::Failure,
    output::{self, Output},
};

/// Topics of one page.
const PAGE_TOPICS_MAX: u32 = 1_000;

/// Lists the active topics.
pub async fn list(flags: &Topics) -> Result<(), Failure> {
    let client = flags.connection.client().await?;
    let mut topics: Vec<ActiveTopic> = Vec::new();
    let mut incomplete = false;
    let mut token = Some(String::new());
    while let Some(page_token) = token.take() {
        let left = flags.limit - u32::try_from(topics.len()).unwrap_or(flags.limit).min(flags.limit);
        if left == 0 {
            break;
        }
        let prefix = flags.prefix.clone();
        let query = TopicQuery { page_size: left.min(PAGE_TOPICS_MAX), page_token, prefix };
        let page = client.active_topics(query).await?;
        incomplete |= page.incomplete;
        topics.extend(page.topics);
        token = page.next;
    }
    if incomplete {
        eprintln!("forebay: some shards could not be asked: the list may be incomplete");
    }
    Ok(print(flags.format.output, &topics, incomplete)?)
}

fn print(output: Output, topics: &[ActiveTopic], incomplete: bool) -> std::io::Result<()> {
    match output {
        Output::Json => {
            let topics: Vec<Value> = topics.iter().map(to_json).collect();
            output::json(&json!({ "topics": topics, "incomplete": incomplete }))
        }
        Output::Table => {
            let rows: Vec<_> = topics.iter().map(to_row).collect();
            output::table(["TOPIC", "READY", "BEST", "OLDEST READY AT", "LEASED", "SCHEDULED"], &rows)
        }
    }
}

fn to_json(topic: &ActiveTopic) -> Value {
    json!({
        "topic": topic.topic,
        "ready_count": topic.ready,
        "best_priority": topic.best_priority,
        "oldest_ready_at": output::time(topic.oldest_ready_at),
        "leased_count": topic.leased,
        "scheduled_count": topic.scheduled,
    })
}

fn to_row(topic: &ActiveTopic) -> [String; 6] {
    [
        topic.topic.clone(),
        topic.ready.to_string(),
        topic.best_priority.to_string(),
        output::time(topic.oldest_ready_at),
        topic.leased.to_string(),
        topic.scheduled.to_string(),
    ]
}
