//! GetActiveTopics: the topics that have a ready item.

use std::time::Duration;

use forebay_proto::{time, v1};
use forebay_types::Timestamp;

use crate::{client::Client, error::Error};

/// Which page to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicQuery {
    /// Topics of the page, at most 1,000; 0: 100.
    pub page_size: u32,
    /// The last page's [`TopicPage::next`]; empty: the first page.
    pub page_token: String,
    /// List only topics whose names begin with this.
    pub prefix: String,
}

/// A page of active topics, most urgent first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicPage {
    /// The topics.
    pub topics: Vec<ActiveTopic>,
    /// The token of the next page; `None` after the last one.
    pub next: Option<String>,
    /// Some shards could not be asked: topics, or a part of their counts, may be missing.
    pub incomplete: bool,
}

/// A topic that has a ready item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveTopic {
    /// Its name.
    pub topic: String,
    /// Items that are ready.
    pub ready: u64,
    /// The priority of the item that would be delivered next.
    pub best_priority: i32,
    /// When that item became ready.
    pub oldest_ready_at: Timestamp,
    /// Items that are leased.
    pub leased: u64,
    /// Items that are not due yet.
    pub scheduled: u64,
}

impl Client {
    /// One page of the topics that have a ready item. All pages come from one server while it works.
    pub async fn active_topics(&self, query: TopicQuery) -> Result<TopicPage, Error> {
        let request = v1::GetActiveTopicsRequest {
            namespace: self.config.namespace.clone(),
            page_size: query.page_size,
            page_token: query.page_token,
            topic_prefix: query.prefix,
        };
        let mut attempts = self.attempts_by(self.listing.clone(), Duration::ZERO);
        loop {
            let target = attempts.target()?;
            let answer = self
                .attempt(&target, Duration::ZERO, request.clone(), |mut grpc, request| async move {
                    grpc.get_active_topics(request).await
                })
                .await;
            match answer {
                Ok(answer) => {
                    return Ok(TopicPage {
                        topics: answer.topics.into_iter().map(topic).collect(),
                        incomplete: answer.incomplete,
                        next: Some(answer.next_page_token).filter(|token| !token.is_empty()),
                    });
                }
                Err(error) if attempts.wait_for_retry(&[&error]).await => {}
                Err(error) => return Err(attempts.final_error(error)),
            }
        }
    }
}

fn topic(topic: v1::ActiveTopic) -> ActiveTopic {
    ActiveTopic {
        topic: topic.topic,
        ready: topic.ready_count,
        best_priority: topic.best_priority,
        oldest_ready_at: topic.oldest_ready_at.map(time::from_timestamp).unwrap_or_default(),
        leased: topic.leased_count,
        scheduled: topic.scheduled_count,
    }
}
