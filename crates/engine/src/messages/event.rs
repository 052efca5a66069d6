//! Events of the event loop: calls, and reports of the shards' tasks.

use std::{collections::BTreeMap, sync::Arc};

use forebay_store::{OperationId, OperationOrder};
use forebay_types::{Namespace, PolicyChanges, Receipt, Refusal, ShardId, TopicName};
use tokio::sync::{
    mpsc::{self, UnboundedSender},
    oneshot,
};

use super::{
    delivery_guard::{DeliveryGuard, ReturnAction},
    look::{
        ForgottenQuestion, KnownConsumers, LeaseQuestion, LeasesSnapshot, OutQuestion, ShardLook,
        StandingSnapshot, TopicsSlice, TopicsSnapshot,
    },
    reply::Reply,
    shard::ShardEvent,
    tenant_budget::Charge,
};
use crate::{
    api::{
        ActiveTopics, ActiveTopicsCall, ChangeCall, ChangeResult, ConsumersCall, DequeueCall,
        DesiredSettings, Duty, EnqueueCall, EnqueueOutcome, ExtendOf, ExtensionResult, FetchError,
        FetchedItems, KeyQuestion, LifetimeCounts, ListedShard, NackOf, Notice, OperationsSnapshot,
        OrderResult, OwnerAnswer, OwnerQuestion, PeerNews, RememberedKey, SettlementResult, ShardLoad,
        ShardSight, Status, Subscription, TopicHead,
    },
    index::ShardIndex,
};

/// The cost of a look at consumers, in members of a call: there are some hundred.
const CONSUMERS_COST: usize = 256;
/// The cost of an order, or of a look at operations, in members of a call: it is for all shards.
const OPERATIONS_COST: usize = 128;

/// The cost of a look at a topic in all shards, in members of a call.
const STANDING_COST: usize = 128;

/// One event.
pub(crate) enum Event {
    /// Store items.
    Enqueue {
        /// The items to store.
        call: EnqueueCall,
        /// The same in short, if the call has a request id.
        content: Option<[u8; 16]>,
        /// The charge of the call's admission.
        charge: Charge,
        /// Receives at once which items are for other nodes.
        notice: Option<Notice>,
        /// Receives the answer.
        reply: Reply<Vec<Result<EnqueueOutcome, Refusal>>>,
    },
    /// Lease items.
    Dequeue {
        /// Names the poll.
        id: u64,
        /// The call.
        call: DequeueCall,
        /// The charge of its admission; `None` if it does not wait.
        charge: Option<Charge>,
        /// The payer of what the node keeps for it. `None`: the namespace.
        payer: Option<Arc<str>>,
        /// Receives the answer.
        reply: Reply<DeliveryGuard>,
    },
    /// The caller of a dequeue went away.
    PollGone {
        /// The tenant.
        namespace: Namespace,
        /// Names the poll.
        id: u64,
    },
    /// Deliveries that nobody received.
    Undelivered {
        /// The tenant.
        namespace: Namespace,
        /// How they are returned.
        returns: Vec<ReturnAction>,
    },
    /// Another node has leased items for a poll, or has not.
    Fetched {
        /// Names the fetch.
        fetch: u64,
        /// The node.
        address: String,
        /// The tenant.
        namespace: Namespace,
        /// Its answer.
        answer: Result<FetchedItems, FetchError>,
    },
    /// At-most-once items of a fetch have left their shards.
    Consumed {
        /// Names the fetch.
        fetch: u64,
        /// The tenant.
        namespace: Namespace,
        /// For each of them, whether that is certain.
        consumed: Vec<bool>,
    },
    /// Another node follows topics from now on.
    WatchBegun {
        /// Names the link to it.
        link: u64,
        /// Receives what it is told.
        heads: mpsc::Sender<Vec<TopicHead>>,
    },
    /// Another node follows other topics, or wants other numbers of items.
    Subscribe {
        /// Names the link.
        link: u64,
        /// The changes.
        subscriptions: Vec<Subscription>,
    },
    /// The link to another node has ended.
    WatchEnded {
        /// Names the link.
        link: u64,
    },
    /// End deliveries.
    Ack {
        /// The tenant.
        namespace: Namespace,
        /// The deliveries.
        acks: Vec<Receipt>,
        /// Receives at once which of them are for other nodes.
        notice: Option<Notice>,
        /// Receives the answer.
        reply: Reply<Vec<SettlementResult>>,
    },
    /// Give items back.
    Nack {
        /// The tenant.
        namespace: Namespace,
        /// The deliveries.
        nacks: Vec<NackOf>,
        /// Receives at once which of them are for other nodes.
        notice: Option<Notice>,
        /// Receives the answer.
        reply: Reply<Vec<SettlementResult>>,
    },
    /// Move the ends of leases.
    ExtendLease {
        /// The tenant.
        namespace: Namespace,
        /// The deliveries.
        extensions: Vec<ExtendOf>,
        /// Receives at once which of them are for other nodes.
        notice: Option<Notice>,
        /// Receives the answer.
        reply: Reply<Vec<ExtensionResult>>,
    },
    /// List active topics.
    ActiveTopics {
        /// The tenant and the page that are asked for.
        call: ActiveTopicsCall,
        /// Receives the answer.
        reply: Reply<ActiveTopics>,
    },
    /// Tell which shards can be looked at.
    LookShards {
        /// The caller.
        caller: Namespace,
        /// Receives the answer.
        reply: Reply<Vec<ShardLook>>,
    },
    /// Look at a slice of the topics.
    LookTopics {
        /// The topics' scope, and where the slice begins.
        slice: TopicsSlice,
        /// Receives the answer.
        reply: Reply<TopicsSnapshot>,
    },
    /// Look at what topics counted that are forgotten.
    LookForgotten {
        /// The shard, and the namespaces.
        question: ForgottenQuestion,
        /// Receives the answer. `None` in it: the shard was lost meanwhile.
        reply: Reply<Option<Vec<(Namespace, LifetimeCounts)>>>,
    },
    /// The namespace's topics that are forgotten count no more.
    ForgetCounts {
        /// The namespace.
        namespace: Namespace,
        /// Receives the shards that will do so with their next batch.
        reply: Reply<Vec<ShardId>>,
    },
    /// Tell how a topic stands in the shards.
    LookStanding {
        /// The topic.
        name: TopicName,
        /// Receives the answer.
        reply: Reply<StandingSnapshot>,
    },
    /// Tell which items are leased, or on their way to a lease.
    LookOut {
        /// Which items.
        question: OutQuestion,
        /// Receives the answer. `None` in it: the shard was lost meanwhile.
        reply: Reply<Option<Vec<bool>>>,
    },
    /// Look at open deliveries.
    LookLeases {
        /// The shard, and which of its deliveries.
        question: LeaseQuestion,
        /// Receives the answer. `None` in it: the shard was lost meanwhile.
        reply: Reply<Option<LeasesSnapshot>>,
    },
    /// Look at the consumers that the node remembers.
    LookConsumers {
        /// The caller.
        caller: Namespace,
        /// The tenant and the page that are asked for.
        call: ConsumersCall,
        /// Receives the answer.
        reply: Reply<KnownConsumers>,
    },
    /// Change items.
    ChangeItems {
        /// Which, and how.
        call: ChangeCall,
        /// Receives the answer.
        reply: Reply<Vec<ChangeResult>>,
    },
    /// Begin an operation, or change it.
    Order {
        /// The tenant of the operation.
        caller: Namespace,
        /// The order.
        order: OperationOrder,
        /// Only in this shard.
        only: Option<ShardId>,
        /// Receives what each shard of this node answers.
        reply: Reply<Vec<OrderResult>>,
    },
    /// Look at operations.
    LookOperations {
        /// The caller.
        caller: Namespace,
        /// The tenant whose operations are looked at. `None`: all tenants.
        namespace: Option<Namespace>,
        /// This one. `None`: all.
        id: Option<OperationId>,
        /// Receives the answer.
        reply: Reply<OperationsSnapshot>,
    },
    /// Policies have changed.
    Policies(PolicyChanges),
    /// Tell what is wanted of topics and namespaces.
    LookPolicies {
        /// The caller.
        caller: Namespace,
        /// The topics. An empty topic: the namespace itself.
        names: Vec<TopicName>,
        /// Receives the answer, in the order of the names.
        reply: Reply<Vec<DesiredSettings>>,
    },
    /// Tell namespaces of which something is wanted, or for which something is set, in order.
    LookNamespaces {
        /// The caller.
        caller: Namespace,
        /// From this one on. An empty one: from the first one on.
        from: Namespace,
        /// At most so many.
        limit: usize,
        /// Receives the answer.
        reply: Reply<Vec<Namespace>>,
    },
    /// Set the node's duties for shards from now on.
    Duties(BTreeMap<ShardId, Duty>),
    /// The shards that the node has to do with from now on.
    Shards(Vec<ListedShard>),
    /// A candidate asks whether the node owns a shard.
    Owns {
        /// The tenure that it saw.
        question: OwnerQuestion,
        /// Receives the answer.
        reply: oneshot::Sender<OwnerAnswer>,
    },
    /// The owner of keys' homes asks for what an earlier home remembers of them.
    FindKeys {
        /// The keys, and the earlier home.
        question: KeyQuestion,
        /// Receives the answer. Dropped, if the node can't say.
        reply: oneshot::Sender<Vec<RememberedKey>>,
    },
    /// Tell the load of the node's own shards.
    OwnLoads(oneshot::Sender<Vec<ShardLoad>>),
    /// Another node tells something.
    PeerNews(PeerNews),
    /// Tell what the node sees of its shards.
    Sights(oneshot::Sender<Vec<ShardSight>>),
    /// Tell operators how things are.
    Status(oneshot::Sender<Status>),
    /// Stop in an orderly way.
    Stop(oneshot::Sender<()>),
    /// A shard's task reports something.
    Shard {
        /// The shard.
        shard: ShardIndex,
        /// The task's term. What an earlier term reports is dropped.
        term: u64,
        /// The report.
        event: ShardEvent,
    },
}

impl Event {
    /// The tenant of the call, and how many members it has. `None`: it is nobody's call.
    pub fn tenant(&self) -> Option<(&Namespace, usize)> {
        Some(match self {
            Self::Enqueue { call, .. } => (&call.namespace, call.items.len()),
            Self::Dequeue { call, .. } => (&call.namespace, call.demands.len()),
            Self::PollGone { namespace, .. } => (namespace, 1),
            Self::Undelivered { namespace, returns } => (namespace, returns.len()),
            Self::Fetched { namespace, answer, .. } => {
                (namespace, answer.as_ref().map_or(1, |fetched| fetched.items.len()))
            }
            Self::Consumed { namespace, consumed, .. } => (namespace, consumed.len()),
            Self::Ack { namespace, acks, .. } => (namespace, acks.len()),
            Self::Nack { namespace, nacks, .. } => (namespace, nacks.len()),
            Self::ExtendLease { namespace, extensions, .. } => (namespace, extensions.len()),
            Self::ActiveTopics { call, .. } => (&call.namespace, call.limit),
            Self::LookShards { caller, .. } => (caller, 1),
            Self::LookTopics { slice, .. } => (&slice.caller, slice.most),
            Self::LookForgotten { question, .. } => (&question.caller, question.most),
            Self::ForgetCounts { namespace, .. } => (namespace, 1),
            Self::LookStanding { name, .. } => (&name.namespace, STANDING_COST),
            Self::LookOut { question, .. } => (&question.caller, question.seqs.len()),
            Self::LookLeases { question, .. } => (&question.caller, question.members()),
            Self::LookConsumers { caller, .. } => (caller, CONSUMERS_COST),
            Self::ChangeItems { call, .. } => (&call.namespace, call.items.len()),
            Self::Order { caller, .. } | Self::LookOperations { caller, .. } => (caller, OPERATIONS_COST),
            Self::LookPolicies { caller, names, .. } => (caller, names.len()),
            Self::LookNamespaces { caller, limit, .. } => (caller, *limit),
            Self::WatchBegun { .. }
            | Self::Subscribe { .. }
            | Self::WatchEnded { .. }
            | Self::Policies(_)
            | Self::Duties(_)
            | Self::Shards(_)
            | Self::Owns { .. }
            | Self::FindKeys { .. }
            | Self::OwnLoads(_)
            | Self::PeerNews(_)
            | Self::Sights(_)
            | Self::Status(_)
            | Self::Stop(_)
            | Self::Shard { .. } => {
                return None;
            }
        })
    }
}

/// Sends one shard's events to the event loop.
#[derive(Clone)]
pub(crate) struct ShardEvents {
    /// The shard.
    pub shard: ShardIndex,
    /// The term in which its task is.
    pub term: u64,
    /// The event loop's inbox.
    pub events: UnboundedSender<Event>,
}

impl ShardEvents {
    /// Sends one. Without an event loop nobody is interested any more.
    pub fn send(&self, event: ShardEvent) {
        let _ = self.events.send(Event::Shard { shard: self.shard, term: self.term, event });
    }
}
