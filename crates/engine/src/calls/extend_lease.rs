//! ExtendLease: the ends of leases are moved.

use forebay_types::Namespace;

use super::settle::{self, Member};
use crate::{
    api::{ExtendOf, ExtensionResult, Notice},
    core::Core,
    messages::reply::Reply,
    shard::work::SettleKind,
};

/// Serves the call.
pub(crate) fn serve(
    core: &mut Core,
    namespace: Namespace,
    extensions: Vec<ExtendOf>,
    notice: Option<Notice>,
    reply: Reply<Vec<ExtensionResult>>,
) {
    let id = core.ids.next();
    if extensions.is_empty() {
        reply.send(Ok(Vec::new()));
        return;
    }
    let at = core.time.monotonic();
    core.calls.begin_extension(id, extensions.len(), reply, at);
    let members = extensions.into_iter().map(|extension| {
        let ExtendOf { receipt, lease } = extension;
        Member { receipt, kind: SettleKind::Extend { lease } }
    });
    settle::queue(core, id, namespace, members.collect(), notice);
}
