//! From ready items to waiting callers.

pub(crate) mod answer;
pub(crate) mod delivery;
pub(crate) mod fetch;
pub(crate) mod fetched;
pub(crate) mod head;
pub(crate) mod heads;
pub(crate) mod merge;
pub(crate) mod pick;
pub(crate) mod prefetch;
pub(crate) mod prefix;
pub(crate) mod serve;
pub(crate) mod sources;
pub(crate) mod undelivered;
pub(crate) mod waiting_polls;
