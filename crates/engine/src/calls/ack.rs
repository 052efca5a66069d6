//! Ack: deliveries are done, and their items are deleted.

use forebay_types::{Namespace, Receipt};

use super::settle::{self, Member};
use crate::{
    api::{Notice, SettlementResult},
    core::Core,
    messages::reply::Reply,
    shard::work::SettleKind,
};

/// Serves the call.
pub(crate) fn serve(
    core: &mut Core,
    namespace: Namespace,
    acks: Vec<Receipt>,
    notice: Option<Notice>,
    reply: Reply<Vec<SettlementResult>>,
) {
    let members = acks.into_iter().map(|receipt| Member { receipt, kind: SettleKind::Ack });
    settle::begin(core, namespace, members.collect(), notice, reply);
}
