//! Nack: items are given back.

use forebay_types::Namespace;

use super::settle::{self, Member};
use crate::{
    api::{NackOf, Notice, SettlementResult},
    core::Core,
    messages::reply::Reply,
    shard::work::SettleKind,
};

/// Serves the call.
pub(crate) fn serve(
    core: &mut Core,
    namespace: Namespace,
    nacks: Vec<NackOf>,
    notice: Option<Notice>,
    reply: Reply<Vec<SettlementResult>>,
) {
    let members = nacks.into_iter().map(|nack| {
        let NackOf { receipt, action, metadata, reason } = nack;
        Member { receipt, kind: SettleKind::Nack { action, metadata, reason } }
    });
    settle::begin(core, namespace, members.collect(), notice, reply);
}
