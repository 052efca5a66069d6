//! `forebay topics`

use clap::Args;
use forebay_client::{ActiveTopic, TopicQuery};
use serde_json::{Value, json};

use super::connection::Connection;
use crate::{
    failure::Failure,
    output::{self, Output},
};

/// Topics of one page.
const PAGE_TOPICS_MAX: u32 = 1_000;

/// The flags.
#[derive(Args)]
pub struct Topics {
    /// Server, namespace and output format.
    #[command(flatten)]
    connection: Connection,
    /// List only topics whose names begin with this text
    #[arg(long, default_value = "")]
    prefix: String,
    /// The most topics to list
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
}

impl Topics {
    /// Lists the active topics.
    pub async fn run(self) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        let mut topics: Vec<ActiveTopic> = Vec::new();
        let mut incomplete = false;
        let mut token = Some(String::new());
        while let Some(page_token) = token.take() {
            let left = self.limit - u32::try_from(topics.len()).unwrap_or(self.limit).min(self.limit);
            if left == 0 {
                break;
            }
            let query =
                TopicQuery { page_size: left.min(PAGE_TOPICS_MAX), page_token, prefix: self.prefix.clone() };
            let page = client.active_topics(query).await?;
            incomplete |= page.incomplete;
            topics.extend(page.topics);
            token = page.next;
        }
        if incomplete {
            eprintln!("forebay: some shards could not be asked: the list may be incomplete");
        }
        Ok(self.print(&topics, incomplete)?)
    }

    fn print(&self, topics: &[ActiveTopic], incomplete: bool) -> std::io::Result<()> {
        match self.connection.output {
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
