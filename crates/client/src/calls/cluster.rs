//! ListNodes and ListShards, all pages of them.

use forebay_proto::v1;

use crate::{client::Client, error::Error};

/// Rows of a page.
const PAGE_ROWS: u32 = 1_000;

impl Client {
    /// All nodes of the cluster, by name, as one of them sees it.
    pub async fn nodes(&self) -> Result<Vec<v1::Node>, Error> {
        let (mut nodes, mut page_token) = (Vec::new(), String::new());
        loop {
            let page = self.ask(v1::ListNodesRequest { page_size: PAGE_ROWS, page_token }).await?;
            nodes.extend(page.nodes);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(nodes);
            }
        }
    }

    /// All shards of the cluster, by number, as one node sees them.
    pub async fn shards(&self) -> Result<Vec<v1::Shard>, Error> {
        let (mut shards, mut page_token) = (Vec::new(), String::new());
        loop {
            let page = self.ask(v1::ListShardsRequest { page_size: PAGE_ROWS, page_token }).await?;
            shards.extend(page.shards);
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(shards);
            }
        }
    }
}
