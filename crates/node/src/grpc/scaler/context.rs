//! Context from which KEDA is answered.

use std::sync::Arc;

use forebay_edge::access::Access;
use forebay_engine::TenantBudget;
use forebay_operators::calls::Admin;

/// Streams of a node. A tenant has a quarter.
const STREAMS_MAX: usize = 256;

/// Answers KEDA.
#[derive(Clone)]
pub struct Scaler {
    /// Looks at topics.
    pub admin: Admin,
    /// Finds who asks.
    pub access: Arc<Access>,
    /// The streams that are open.
    pub streams: Arc<TenantBudget>,
}

impl Scaler {
    /// With what operators' calls answer from.
    pub fn new(admin: Admin, access: Arc<Access>) -> Self {
        Self { admin, access, streams: TenantBudget::new(STREAMS_MAX) }
    }
}
