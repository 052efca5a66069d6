//! GetActiveTopics: which topics have something to deliver.

use std::time::Duration;

use forebay_proto::v1;
use forebay_types::Timestamp;

use crate::{Client, Error, spans};

/// Which page is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicQuery {
    /// Topics a page; 0: 100. At most 1,000.
    pub page_size: u32,
    /// The last page's [`TopicPage::next`]; empty: the first page.
    pub page_token: String,
    /// Only names that begin so.
    pub prefix: String,
}

/// A page of active topics, most urgent first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicPage {
    /// The topics.
    pub topics: Vec<ActiveTopic>,
    /// The token of the next page, unless this is the last one.
    pub next: Option<String>,
}

/// A topic that has a ready item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveTopic {
    /// Its name.
    pub topic: String,
    /// Items that could be leased now.
    pub ready: u64,
    /// Priority of the item that would be delivered next.
    pub best_priority: i32,
    /// When that item became ready.
    pub oldest_ready_at: Timestamp,
    /// Items that are leased.
    pub leased: u64,
    /// Items that wait for their time.
    pub scheduled: u64,
}

impl Client {
    /// One page of the topics that have a ready item.
    pub async fn active_topics(&self, query: TopicQuery) -> Result<TopicPage, Error> {
        let request = v1::GetActiveTopicsRequest {
            namespace: self.config.namespace.clone(),
            page_size: query.page_size,
            page_token: query.page_token,
            topic_prefix: query.prefix,
        };
        let mut attempts = self.attempts(Duration::ZERO);
        loop {
            let answer = self
                .attempt(Duration::ZERO, attempts.until(), request.clone(), |mut grpc, request| async move {
                    grpc.get_active_topics(request).await
                })
                .await;
            match answer {
                Ok(answer) => {
                    return Ok(TopicPage {
                        topics: answer.topics.into_iter().map(topic).collect(),
                        next: Some(answer.next_page_token).filter(|token| !token.is_empty()),
                    });
                }
                Err(error) if attempts.again(&error, &self.dice).await => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn topic(topic: v1::ActiveTopic) -> ActiveTopic {
    ActiveTopic {
        topic: topic.topic,
        ready: topic.ready_count,
        best_priority: topic.best_priority,
        oldest_ready_at: topic.oldest_ready_at.map(spans::time_from_proto).unwrap_or_default(),
        leased: topic.leased_count,
        scheduled: topic.scheduled_count,
    }
}
