//! Calls whose members are answered one by one: enqueue, ack, nack, lease extension, changes of items. A call
//! is answered when its last member is.

use std::{sync::Arc, time::Duration};

use forebay_types::{Monotonic, Reason, Refusal, Timestamp};
use rustc_hash::FxHashMap;

use crate::{
    api::{
        ChangeResult, EnqueueOutcome, ExtensionResult, ItemState, RETRY_AFTER, SeenCommit, Settlement,
        SettlementResult,
    },
    invariant::broken,
    messages::{
        reply::Reply,
        tenant_budget::{Charge, TenantBudget},
    },
    shard::work::{ChangeRequest, NOBODY, ReplySlot, SettleKind, SettleRequest},
};

/// Calls that are to be answered before they are whole are looked for no more often than this.
const LATE_EVERY: Duration = Duration::from_millis(10);

/// A call that collects its members' answers.
struct PendingCall<T> {
    /// The answers so far.
    results: Vec<Option<Result<T, Refusal>>>,
    /// Members without an answer.
    left: usize,
    /// When the caller goes away.
    answer_by: Option<Monotonic>,
    /// Receives the whole answer. `None`: the caller has got what was known, and members end without it.
    reply: Option<Reply<Vec<Result<T, Refusal>>>>,
}

impl<T> PendingCall<T> {
    fn new(count: usize, reply: Reply<Vec<Result<T, Refusal>>>, at: Monotonic) -> Self {
        let results = std::iter::repeat_with(|| None).take(count).collect();
        let answer_by = reply.time_left().map(|left| at.plus(left));
        Self { results, left: count, answer_by, reply: Some(reply) }
    }

    /// Notes one member's answer, and the commit that brought it. Returns whether it was the last.
    fn set(&mut self, index: usize, result: Result<T, Refusal>, commit: Option<&SeenCommit>) -> bool {
        if let Some(reply) = &self.reply {
            reply.saw(commit);
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
        }
        self.left -= 1;
        self.left == 0
    }

    /// Answers the call, once every member has its answer. If the caller is gone, nobody reads it.
    fn send(self) {
        let Some(reply) = self.reply else { return };
        match self.results.into_iter().collect() {
            Some(results) => reply.send(Ok(results)),
            None => broken("a call is answered when its last member is"),
        }
    }

    /// Answers what is known, if it is time for that. Returns when it will be.
    fn answer_late(&mut self, at: Monotonic) -> Option<Monotonic> {
        let by = self.answer_by.filter(|_| self.reply.is_some())?;
        if by > at {
            return Some(by);
        }
        let message = "there was no answer in time: this may or may not take effect";
        let unknown = || Err(Refusal::new(Reason::OutcomeUnknown, message).retry_after(RETRY_AFTER));
        let results = std::mem::take(&mut self.results);
        let results = results.into_iter().map(|result| result.unwrap_or_else(unknown)).collect();
        if let Some(reply) = self.reply.take() {
            reply.send(Ok(results));
        }
        None
    }
}

/// An enqueue call.
struct PendingEnqueue {
    /// Its members.
    call: PendingCall<EnqueueOutcome>,
    /// The charge of its admission. Released with the call.
    _charge: Charge,
}

/// All calls that are under way.
pub(crate) struct PendingCalls {
    /// Enqueues.
    enqueues: FxHashMap<u64, PendingEnqueue>,
    /// Acks and nacks.
    settles: FxHashMap<u64, PendingCall<Settlement>>,
    /// Lease extensions.
    extensions: FxHashMap<u64, PendingCall<Timestamp>>,
    /// Changes of items.
    changes: FxHashMap<u64, PendingCall<ItemState>>,
    /// Bytes of enqueues that are not answered yet.
    admitted: Arc<TenantBudget>,
    /// The commit whose members are being answered.
    commit: Option<SeenCommit>,
    /// When the first caller goes away, or earlier.
    next_late: Option<Monotonic>,
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
            next_late: None,
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
        reply: Reply<Vec<Result<EnqueueOutcome, Refusal>>>,
        at: Monotonic,
    ) {
        let call = PendingCall::new(count, reply, at);
        note(&mut self.next_late, &call);
        self.enqueues.insert(id, PendingEnqueue { call, _charge: charge });
    }

    /// An ack or nack call of `count` members begins.
    pub fn begin_settle(
        &mut self,
        id: u64,
        count: usize,
        reply: Reply<Vec<SettlementResult>>,
        at: Monotonic,
    ) {
        let call = PendingCall::new(count, reply, at);
        note(&mut self.next_late, &call);
        self.settles.insert(id, call);
    }

    /// A lease extension of `count` members begins.
    pub fn begin_extension(
        &mut self,
        id: u64,
        count: usize,
        reply: Reply<Vec<ExtensionResult>>,
        at: Monotonic,
    ) {
        let call = PendingCall::new(count, reply, at);
        note(&mut self.next_late, &call);
        self.extensions.insert(id, call);
    }

    /// A change of `count` items begins.
    pub fn begin_change(&mut self, id: u64, count: usize, reply: Reply<Vec<ChangeResult>>, at: Monotonic) {
        let call = PendingCall::new(count, reply, at);
        note(&mut self.next_late, &call);
        self.changes.insert(id, call);
    }

    /// A change of one item has its answer.
    pub fn change_done(&mut self, request: &ChangeRequest, result: ChangeResult) {
        answer(&mut self.changes, request.slot, result, self.commit.as_ref());
    }

    /// One item of an enqueue call has its answer.
    pub fn enqueue_done(&mut self, call: u64, index: usize, result: Result<EnqueueOutcome, Refusal>) {
        if call == NOBODY {
            return;
        }
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
    pub fn settle_done(&mut self, request: &SettleRequest, done: Settlement) {
        if let Some(slot) = request.slot {
            answer(&mut self.settles, slot, Ok(done), self.commit.as_ref());
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
        self.refuse_settle(slot, matches!(request.kind, SettleKind::Extend { .. }), refusal);
    }

    /// The same. `extends`: it is an extension.
    pub fn refuse_settle(&mut self, slot: ReplySlot, extends: bool, refusal: Refusal) {
        if extends {
            answer(&mut self.extensions, slot, Err(refusal), self.commit.as_ref());
        } else {
            answer(&mut self.settles, slot, Err(refusal), self.commit.as_ref());
        }
    }

    /// Calls whose callers are about to go away are answered with what is known.
    pub fn answer_late(&mut self, at: Monotonic) {
        if self.next_late.is_none_or(|next| next > at) {
            return;
        }
        let enqueues = self.enqueues.values_mut().filter_map(|pending| pending.call.answer_late(at));
        let settles = self.settles.values_mut().filter_map(|call| call.answer_late(at));
        let extensions = self.extensions.values_mut().filter_map(|call| call.answer_late(at));
        let changes = self.changes.values_mut().filter_map(|call| call.answer_late(at));
        let next = enqueues.chain(settles).chain(extensions).chain(changes).min();
        self.next_late = next.map(|next| next.max(at.plus(LATE_EVERY)));
    }

    /// When that is due.
    pub fn next_late(&self) -> Option<Monotonic> {
        self.next_late
    }
}

/// A call begins: its caller may be the first to go away.
fn note<T>(next_late: &mut Option<Monotonic>, call: &PendingCall<T>) {
    *next_late = next_late.iter().copied().chain(call.answer_by).min();
}

/// One member has its answer.
fn answer<T>(
    calls: &mut FxHashMap<u64, PendingCall<T>>,
    slot: ReplySlot,
    result: Result<T, Refusal>,
    commit: Option<&SeenCommit>,
) {
    if slot.call == NOBODY {
        return;
    }
    let Some(pending) = calls.get_mut(&slot.call) else {
        return broken("a member of a pending call is answered");
    };
    if pending.set(slot.index, result, commit)
        && let Some(pending) = calls.remove(&slot.call)
    {
        pending.send();
    }
}
