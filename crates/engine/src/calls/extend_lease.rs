//! ExtendLease: the ends of leases are moved.

use super::settle;
use crate::{
    api::{ExtendOf, Extended},
    core::Core,
    messages::event::Reply,
    shard::work::SettleKind,
};

/// Serves the call.
pub(crate) fn serve(core: &mut Core, extensions: Vec<ExtendOf>, reply: Reply<Vec<Extended>>) {
    let id = core.ids.next();
    if extensions.is_empty() {
        let _ = reply.send(Ok(Vec::new()));
        return;
    }
    core.calls.begin_extension(id, extensions.len(), reply);
    let members = extensions.into_iter().map(|of| (of.receipt, SettleKind::Extend { lease: of.lease }));
    settle::queue(core, id, members.collect());
}
