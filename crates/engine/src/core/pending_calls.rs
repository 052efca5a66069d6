//! Calls whose members are answered one by one: enqueue, ack, nack, lease extension, changes of items. A call
//! is answered when its last member is.

use std::sync::Arc;

use forebay_types::{Refusal, Timestamp};
use rustc_hash::FxHashMap;

use crate::{
    api::{Changed, Enqueued, Extended, SeenCommit, Settled},
    invariant::broken,
    messages::{
        reply::Reply,
        tenant_budget::{Charge, TenantBudget},
    },
    shard::work::{ChangeRequest, ReplySlot, SettleKind, SettleRequest},
};

/// A call that collects its members' answers.
struct PendingCall<T> {
    /// The answers so far.
    results: Vec<Option<T>>,
    /// Members without an answer.
    left: usize,
    /// Receives the whole answer.
    reply: Reply<Vec<T>>,
}

impl<T> PendingCall<T> {
    fn new(count: usize, reply: Reply<Vec<T>>) -> Self {
        Self { results: std::iter::repeat_with(|| None).take(count).collect(), left: count, reply }
    }

    /// Notes one member's answer, and the commit that brought it. Returns whether it was the last.
    fn set(&mut self, index: usize, result: T, commit: Option<&SeenCommit>) -> bool {
        self.reply.saw(commit);
        match self.results.get_mut(index) {
            Some(slot @ None) => *slot = Some(result),
            Some(Some(_)) => {
                broken("a member is answered once");
                return false;
            }
            None => {
                broken("a call has as many answers as members");
                return false;
            }
        }
        self.left -= 1;
        self.left == 0
    }

    /// Answers the call, once every member has its answer. If the caller is gone, nobody reads it.
    fn send(self) {
        match self.results.into_iter().collect() {
            Some(results) => self.reply.send(Ok(results)),
            None => broken("a call is answered when its last member is"),
        }
    }
}

/// An enqueue call.
struct PendingEnqueue {
    /// Its members.
    call: PendingCall<Result<Enqueued, Refusal>>,
    /// What it was charged with at admission. Released with the call.
    _charge: Charge,
}

/// All calls that are under way.
pub(crate) struct PendingCalls {
    /// Enqueues.
    enqueues: FxHashMap<u64, PendingEnqueue>,
    /// Acks and nacks.
    settles: FxHashMap<u64, PendingCall<Settled>>,
    /// Lease extensions.
    extensions: FxHashMap<u64, PendingCall<Extended>>,
    /// Changes of items.
    changes: FxHashMap<u64, PendingCall<Changed>>,
    /// Bytes of enqueues that are not answered yet.
    admitted: Arc<TenantBudget>,
    /// The commit whose members are being answered.
    commit: Option<SeenCommit>,
}

impl PendingCalls {
    /// None. `admitted` counts the bytes of enqueues that are not answered yet.
    pub fn new(admitted: Arc<TenantBudget>) -> Self {
        Self {
            enqueues: FxHashMap::default(),
            settles: FxHashMap::default(),
            extensions: FxHashMap::default(),
            changes: FxHashMap::default(),
            admitted,
            commit: None,
        }
    }

    /// Every call has been answered.
    pub fn is_empty(&self) -> bool {
        let settled = self.settles.is_empty() && self.extensions.is_empty();
        settled && self.enqueues.is_empty() && self.changes.is_empty()
    }

    /// Bytes of enqueues that are not answered yet.
    pub fn admitted_bytes(&self) -> usize {
        self.admitted.used()
    }

    /// Members are answered of a commit, or of none any more.
    pub fn answer_of(&mut self, commit: Option<SeenCommit>) {
        self.commit = commit;
    }

    /// The commit whose members are being answered.
    pub fn commit(&self) -> Option<&SeenCommit> {
        self.commit.as_ref()
    }

    /// An enqueue call of `count` items begins, which was charged at admission.
    pub fn begin_enqueue(
        &mut self,
        id: u64,
        count: usize,
        charge: Charge,
        reply: Reply<Vec<Result<Enqueued, Refusal>>>,
    ) {
        let call = PendingCall::new(count, reply);
        self.enqueues.insert(id, PendingEnqueue { call, _charge: charge });
    }

    /// An ack or nack call of `count` members begins.
    pub fn begin_settle(&mut self, id: u64, count: usize, reply: Reply<Vec<Settled>>) {
        self.settles.insert(id, PendingCall::new(count, reply));
    }

    /// A lease extension of `count` members begins.
    pub fn begin_extension(&mut self, id: u64, count: usize, reply: Reply<Vec<Extended>>) {
        self.extensions.insert(id, PendingCall::new(count, reply));
    }

    /// A change of `count` items begins.
    pub fn begin_change(&mut self, id: u64, count: usize, reply: Reply<Vec<Changed>>) {
        self.changes.insert(id, PendingCall::new(count, reply));
    }

    /// A change of one item has its answer.
    pub fn change_done(&mut self, request: &ChangeRequest, result: Changed) {
        answer(&mut self.changes, request.slot, result, self.commit.as_ref());
    }

    /// One item of an enqueue call has its answer.
    pub fn enqueue_done(&mut self, call: u64, index: usize, result: Result<Enqueued, Refusal>) {
        let Some(pending) = self.enqueues.get_mut(&call) else {
            return broken("a member of a pending call is answered");
        };
        if pending.call.set(index, result, self.commit.as_ref())
            && let Some(pending) = self.enqueues.remove(&call)
        {
            pending.call.send();
        }
    }

    /// An ack or a nack is committed.
    pub fn settle_done(&mut self, request: &SettleRequest) {
        if let Some(slot) = request.slot {
            answer(&mut self.settles, slot, Ok(()), self.commit.as_ref());
        }
    }

    /// A lease was extended until `deadline`.
    pub fn extension_done(&mut self, request: &SettleRequest, deadline: Timestamp) {
        if let Some(slot) = request.slot {
            answer(&mut self.extensions, slot, Ok(deadline), self.commit.as_ref());
        }
    }

    /// A settlement is refused.
    pub fn settle_refused(&mut self, request: &SettleRequest, refusal: Refusal) {
        let Some(slot) = request.slot else { return };
        if matches!(request.kind, SettleKind::Extend { .. }) {
            answer(&mut self.extensions, slot, Err(refusal), self.commit.as_ref());
        } else {
            answer(&mut self.settles, slot, Err(refusal), self.commit.as_ref());
        }
    }
}

/// One member has its answer.
fn answer<T>(
    calls: &mut FxHashMap<u64, PendingCall<T>>,
    slot: ReplySlot,
    result: T,
    commit: Option<&SeenCommit>,
) {
    let Some(pending) = calls.get_mut(&slot.call) else {
        return broken("a member of a pending call is answered");
    };
    if pending.set(slot.index, result, commit)
        && let Some(pending) = calls.remove(&slot.call)
    {
        pending.send();
    }
}
