//! The topics of which a consumer has leases, where the nodes do not know all consumers any more.

use forebay_client::{Client, ItemListQuery, ItemState, TopicListQuery};
use forebay_types::filter::quoted;

use crate::{
    failure::{Failure, Status},
    verbs::pages,
};

/// Looks into each topic that has leases. Fails unless all shards can be asked.
pub async fn search(client: &Client, name: &str) -> Result<Vec<String>, Failure> {
    let mut incomplete = Vec::new();
    let leased = pages::collect(u32::MAX, async |page_size, page_token| {
        let filter = "leased > 0".to_owned();
        let query = TopicListQuery { filter, page_size, page_token, ..TopicListQuery::default() };
        let page = client.list_topics(query).await?;
        incomplete.extend(page.incomplete_shards);
        Ok((page.topics, page.next))
    });
    let (leased, _) = leased.await?;
    let mut topics = Vec::new();
    for topic in leased.into_iter().map(|topic| topic.topic) {
        let found = pages::collect(1, async |page_size, page_token| {
            let query = ItemListQuery {
                topic: topic.clone(),
                state: ItemState::Leased,
                filter: format!("consumer = {}", quoted(name)),
                full: false,
                max_payload_bytes: 0,
                page_size,
                page_token,
            };
            let page = client.list_items(query).await?;
            incomplete.extend(page.incomplete_shards);
            Ok((page.items, page.next))
        });
        if !found.await?.0.is_empty() {
            topics.push(topic);
        }
    }
    if incomplete.is_empty() { Ok(topics) } else { Err(not_asked(&incomplete)) }
}

/// It may have leases that nobody could look at.
pub fn not_asked(shards: &[u32]) -> Failure {
    let mut shards = shards.to_vec();
    shards.sort_unstable();
    shards.dedup();
    let shards: Vec<String> = shards.iter().map(ToString::to_string).collect();
    let why = "it may have leases in shards that could not be asked";
    Failure::new(format!("{why} ({}): name a topic with --topic", shards.join(", ")))
        .with(Status::Unavailable)
}
