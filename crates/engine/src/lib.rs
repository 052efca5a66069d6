//! The queue itself, in process: no protobuf, no SQL, and time and randomness as arguments.
#![doc = include_str!("../README.md")]

mod api;
mod calls;
#[cfg(not(feature = "planted-bugs"))]
mod claim;
#[cfg(feature = "planted-bugs")]
pub mod claim;
mod clock;
mod commit;
mod core;
mod dispatch;
mod engine;
mod event_loop;
mod index;
mod invariant;
mod io;
mod looks;
mod messages;
mod ownership;
#[cfg(not(feature = "planted-bugs"))]
mod planted;
#[cfg(feature = "planted-bugs")]
pub mod planted;
mod routing;
mod shard;
mod striped;

pub use api::{
    ActiveTopic, ActiveTopics, ActiveTopicsCall, AnswerBy, Avoid, BehindCall, BreakerPhase, CallerFrom,
    ChangeCall, ChangeResult, CommitWatch, ConsumerFigures, ConsumerName, ConsumersCall, ConsumersSnapshot,
    DeadGroup, DeadGroups, DeadGroupsCall, DeliveredItem, Demand, DequeueCall, DesiredSettings, Duty,
    EnqueueCall, EnqueueOutcome, ExtendOf, ExtensionResult, FetchBound, FetchCall, FetchError, FetchedItems,
    HeadPosition, Histogram, Intake, ItemChange, ItemCount, ItemLookup, ItemPosition, ItemSnapshot,
    ItemState, ItemUpdate, ItemsCall, ItemsPage, KeyQuestion, Latencies, LeaseSnapshot, LifetimeCounts,
    ListedShard, MemberPlaces, MemorySlice, MisplacedMember, MissingHome, MissingSource, NackAction, NackOf,
    NewItem, Notice, OperationsSnapshot, OrderResult, OwnMetrics, OwnerAnswer, OwnerQuestion, PeerFault,
    PeerLink, PeerNews, Peers, PriorityCount, RETRY_AFTER, Rates, Reach, ReadyState, RememberedKey,
    ReportedNamespaces, ReportedTopics, SeenCommit, Settings, Settlement, SettlementResult, Setup,
    ShardCounts, ShardFigures, ShardLoad, ShardSight, ShardState, ShardStatus, Standing, Status,
    Subscription, SweepStatus, TOPIC_BYTES, Task, TaskName, Tasks, TopicDetails, TopicFigures, TopicHead,
    TopicPosition, TopicScope, TopicStanding, TopicsCall, TopicsPage, TurnStatus, filter_fields, list_fields,
};
pub use engine::Engine;
pub use messages::node_watch::NodeWatch;
pub use messages::pending_dequeue::PendingDequeue;
pub use messages::tenant_budget::{Charge, OverBudget, TenantBudget, paid_at_once_by, paid_by};
