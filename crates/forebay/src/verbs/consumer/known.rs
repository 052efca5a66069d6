//! The consumers of a namespace, over all pages.

use std::collections::BTreeSet;

use forebay_client::{Client, ConsumerList};

use crate::{failure::Failure, verbs::pages};

/// Asks for so many consumers at most. What is missing on any page is missing in the whole.
pub async fn known(client: &Client, limit: u32) -> Result<ConsumerList, Failure> {
    let (mut incomplete, mut cut) = (BTreeSet::new(), false);
    let pages = pages::collect(limit, async |page_size, page_token| {
        let page = client.consumers(page_size, page_token).await?;
        incomplete.extend(page.incomplete_shards);
        cut |= page.cut;
        Ok((page.consumers, page.next))
    });
    let (consumers, next) = pages.await?;
    let next = Some(next).filter(|token| !token.is_empty());
    Ok(ConsumerList { consumers, cut, incomplete_shards: incomplete.into_iter().collect(), next })
}
