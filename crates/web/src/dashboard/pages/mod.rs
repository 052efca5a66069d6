//! The pages. Each reads what it needs, then makes its content.

mod access;
mod audit;
mod confirm;
mod consumers;
mod dead_letters;
mod item;
mod namespace;
mod narrower_settings;
mod nodes;
mod operation;
mod operations;
mod overview;
mod search;
mod settings;
mod shards;
mod topic;
mod topics;
mod ways_out;

use std::sync::Arc;

use axum::{
    response::IntoResponse as _,
    routing::{MethodRouter, get},
};
use forebay_access::FIRST_PAGE;

use super::{asked::PageRequest, frame, show::RenderedPage, trouble::Trouble};
use crate::info::NodeInfo;

/// The handler of a page of the dashboard. `path`: as in the list of pages.
pub fn page_handler(path: &'static str) -> Option<MethodRouter<Arc<NodeInfo>>> {
    let name = match path.strip_prefix('/')? {
        "" => FIRST_PAGE,
        name => name,
    };
    if !NAMES.contains(&name) {
        return None;
    }
    Some(get(move |asked: PageRequest| async move {
        match make(name, &asked).await {
            Ok(shown) => frame::answer(if name == FIRST_PAGE { "" } else { name }, &asked, shown).await,
            Err(trouble) => trouble.into_response(),
        }
    }))
}

/// The pages that there are.
const NAMES: &[&str] = &[
    "access",
    "audit",
    "confirm",
    "consumers",
    "dead-letters",
    "item",
    "namespace",
    "nodes",
    "operation",
    "operations",
    FIRST_PAGE,
    "search",
    "shards",
    "topic",
    "topics",
];

/// Pages whose content stays as it was when they were opened: to make it again costs a count of items, a look
/// at all topics, or a search in the catalog. Whether anything is wrong is told on them too.
pub fn stands_still(name: &str) -> bool {
    ["access", "audit", "confirm", "search"].contains(&name)
}

/// Makes a page.
pub async fn make(name: &str, asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    match name {
        "access" => access::make(asked).await,
        "audit" => audit::make(asked).await,
        "confirm" => confirm::make(asked).await,
        "consumers" => consumers::make(asked).await,
        "dead-letters" => dead_letters::make(asked).await,
        "item" => item::make(asked).await,
        "namespace" => namespace::make(asked).await,
        "nodes" => nodes::make(asked).await,
        "operation" => operation::make(asked).await,
        "operations" => operations::make(asked).await,
        FIRST_PAGE => overview::make(asked).await,
        "search" => search::make(asked).await,
        "shards" => shards::make(asked).await,
        "topic" => topic::make(asked).await,
        "topics" => topics::make(asked).await,
        _ => Err(Trouble::field("page", "names no page")),
    }
}
