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
    ChangeCall, Changed, CommitWatch, ConsumerFigures, ConsumerName, ConsumersCall, ConsumersSeen, Counted,
    DeadGroup, DeadGroups, DeadGroupsCall, Delivered, Demand, DequeueCall, Duty, EnqueueCall, Enqueued,
    ExtendOf, Extended, Histogram, Intake, ItemChange, ItemCount, ItemFound, ItemPosition, ItemSeen,
    ItemState, ItemUpdate, ItemsCall, ItemsPage, KeyQuestion, Latencies, LeaseSeen, ListedShard, MemorySlice,
    Misplaced, MissingHome, NackAction, NackOf, NewItem, Notice, OperationsSeen, Ordered, OwnerAnswer,
    OwnerQuestion, Peers, Placed, PriorityCount, RETRY_AFTER, Rates, Reach, RememberedKey, Reported,
    ReportedNamespaces, ReportedTopics, SeenCommit, Served, Settings, Settled, Settlement, Setup,
    ShardFigures, ShardSight, ShardState, ShardStatus, Standing, Status, SweepStatus, TOPIC_BYTES, Task,
    TaskName, Tasks, TopicDetails, TopicFigures, TopicPosition, TopicScope, TopicStatus, TopicsCall,
    TopicsPage, TurnStatus, Wanted, filter_fields, list_fields,
};
pub use engine::Engine;
pub use messages::tenant_budget::{Charge, OverBudget, TenantBudget, paid_at_once_by, paid_by};
