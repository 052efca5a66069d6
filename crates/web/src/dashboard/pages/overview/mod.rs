//! The first page: how the whole cluster is. Whoever may not see all of it is shown its own namespaces.

mod attention;
mod cluster;
pub mod figures;
pub mod lines;
mod own;
mod wall;

use forebay_access::Scope;
use forebay_edge::rpc::ALL_NAMESPACES;
use forebay_proto::v1::{ListNodesRequest, ListShardsRequest};
use maud::{Markup, html};
use tonic::Status;

use super::{
    super::{asked::PageRequest, frame::sentence, links, live::Live, show::RenderedPage, trouble::Trouble},
    topics::incomplete,
};

/// Shards that are shown.
const SHARDS: u32 = 256;
/// Nodes that are counted.
const NODES: u32 = 1_000;

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    if !asked.may(Scope::Observe, ALL_NAMESPACES) {
        return Ok(own::page(asked));
    }
    let first = ListShardsRequest { page_size: SHARDS, page_token: String::new() };
    let all = ListNodesRequest { page_size: NODES, page_token: String::new() };
    let (history, wall, shards, nodes, status) = tokio::join!(
        figures::History::read(asked, ALL_NAMESPACES),
        wall::wall(asked),
        asked.ask(first),
        asked.ask(all),
        asked.info.status(),
    );
    let mut live = Live::default();
    let body = html! {
        h1 { "Overview" }
        @if let Some(link) = links::grafana(asked, "") { p.facts { (link) } }
        @match &history? {
            Ok(history) => {
                (incomplete(&history.missing))
                (figures::figures(history, &mut live))
            }
            Err(status) => (unread("The figures", status)),
        }
        @match &wall {
            Ok(wall) => {
                (attention::table(asked, wall, &mut live))
                (cluster::namespaces(asked, wall, &mut live))
            }
            Err(status) => (unread("The topics", status)),
        }
        @match &shards {
            Ok(shards) => (cluster::shards(shards, &mut live)),
            Err(status) => (unread("The shards", status)),
        }
        (cluster::foot(&status, nodes.as_ref().ok(), &mut live))
    };
    Ok(RenderedPage::new("Overview", body, live))
}

/// A part of the page that could not be read.
pub fn unread(what: &str, status: &Status) -> Markup {
    html! { p.bad role="alert" { (what) " could not be read. " (sentence(status.message())) } }
}
