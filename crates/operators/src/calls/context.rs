//! Context from which the calls for operators answer.

use std::sync::Arc;

use forebay_edge::{
    access::TokenBook,
    rpc::{page_token::PageTokens, rules::RequestRules},
};
use forebay_engine::{Settings, TenantBudget};
use forebay_membership::ClusterState;
use forebay_types::Clock;
use tokio::sync::watch;

use crate::{cluster::Operator, gather::Gather, policies::PolicyBook, status_cache::StatusCache};

/// Rows of a page by default, and at most.
const PAGE_ROWS: (usize, usize) = (100, 1_000);

/// Rows of a page, as a request names them: 0 is the default, and more than may be is as many as may be.
pub fn page_rows(named: u32) -> usize {
    let (default, most) = PAGE_ROWS;
    if named == 0 { default } else { usize::try_from(named).map_or(most, |named| named.min(most)) }
}

/// The longest reason of a change.
pub const REASON_BYTES: usize = 1 << 10;

/// Context from which the calls answer.
#[derive(Clone)]
pub struct Admin {
    /// State of the cluster as it is known.
    pub cluster: watch::Receiver<Arc<ClusterState>>,
    /// Changes shards and nodes.
    pub operator: Operator,
    /// Reports this node's own shards.
    pub status: Arc<StatusCache>,
    /// Looks at the shards of all nodes.
    pub gather: Gather,
    /// Changes policies.
    pub policies: PolicyBook,
    /// Settings that count where nothing is set.
    pub settings: Arc<Settings>,
    /// Changes tokens in the catalog. `None`: those are not accepted.
    pub token_book: Option<TokenBook>,
    /// Bytes of lists that are read from the catalog.
    pub records: Arc<TenantBudget>,
    /// Checked before anything is looked at.
    pub rules: Arc<RequestRules>,
    /// Signs where lists go on.
    pub tokens: PageTokens,
    /// By which ages are told.
    pub clock: Arc<dyn Clock>,
}
