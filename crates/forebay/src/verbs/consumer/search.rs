//! The topics of which a consumer has leases, where the nodes do not know all consumers any more.

use forebay_client::{
    Client,
    v1::{ItemState, ListItemsRequest, ListTopicsRequest},
};
use forebay_types::filter::quoted;

use crate::{
    failure::{Failure, Status},
    verbs::pages,
};

/// Looks into each topic that has leases. Fails unless all shards can be asked.
pub async fn search(client: &Client, name: &str) -> Result<Vec<String>, Failure> {
    let mut incomplete = Vec::new();
    let leased = pages::collect(u32::MAX, async |page_size, page_token| {
        let (namespace, filter) = (client.namespace().to_owned(), "leased > 0".to_owned());
        let request = ListTopicsRequest { namespace, filter, page_size, page_token, ..Default::default() };
        let page = client.ask(request).await?;
        incomplete.extend(page.incomplete_shards);
        Ok((page.topics, page.next_page_token))
    });
    let (leased, _) = leased.await?;
    let mut topics = Vec::new();
    for topic in leased.into_iter().map(|topic| topic.topic) {
        let found = pages::collect(1, async |page_size, page_token| {
            let request = ListItemsRequest {
                namespace: client.namespace().to_owned(),
                topic: topic.clone(),
                state: ItemState::Leased.into(),
                filter: format!("consumer = {}", quoted(name)),
                page_size,
                page_token,
                ..Default::default()
            };
            let page = client.ask(request).await?;
            incomplete.extend(page.incomplete_shards);
            Ok((page.items, page.next_page_token))
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
