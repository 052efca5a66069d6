//! Another node follows topics and prefixes of this one.

use crate::{api::Subscription, core::Core, messages::tenant_budget::paid_at_once_by};

/// It subscribes to some, wants other numbers of items, or is not interested any more. A prefix for which
/// there is no room is not followed: that node asks for its items by chance.
pub(crate) fn subscribe(core: &mut Core, link: u64, mut subscriptions: Vec<Subscription>) {
    let at = core.time.monotonic();
    subscriptions.retain(|Subscription { name, wanted, payer }| {
        let is_kept = || core.prefixes.ask(name, at).is_ok();
        wanted.is_none() || name.prefix().is_none() || paid_at_once_by(payer.clone(), is_kept)
    });
    core.watchers.subscribe(link, subscriptions);
}
