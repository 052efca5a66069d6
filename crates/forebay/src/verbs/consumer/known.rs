//! The consumers of a namespace, over all pages.

use std::collections::BTreeSet;

use forebay_client::{
    Client,
    v1::{ListConsumersRequest, ListConsumersResponse},
};

use crate::{failure::Failure, verbs::pages};

/// Asks for so many consumers at most. What is missing on any page is missing in the whole.
pub async fn known(client: &Client, limit: u32) -> Result<ListConsumersResponse, Failure> {
    let (mut incomplete, mut cut) = (BTreeSet::new(), false);
    let pages = pages::collect(limit, async |page_size, page_token| {
        let namespace = client.namespace().to_owned();
        let page = client.ask(ListConsumersRequest { namespace, page_size, page_token }).await?;
        incomplete.extend(page.incomplete_shards);
        cut |= page.consumers_cut;
        Ok((page.consumers, page.next_page_token))
    });
    let (consumers, next_page_token) = pages.await?;
    let incomplete_shards = incomplete.into_iter().collect();
    Ok(ListConsumersResponse { consumers, consumers_cut: cut, incomplete_shards, next_page_token })
}
