//! The engine's input and output: checked values, no protobuf. One file a verb.

mod active_topics;
mod answer_by;
mod changes;
mod commit_watch;
mod consumers;
mod content;
mod dead_groups;
mod dequeue;
mod duty;
mod enqueue;
mod explain;
mod fetch;
mod heads;
mod items;
mod latencies;
mod misplaced;
mod operations;
mod patterns;
mod peer_fault;
mod peer_news;
mod peers;
mod reach;
pub(crate) mod reason;
mod reported;
mod settings;
mod settings_table;
mod settle;
mod setup;
mod shard_set;
mod sight;
mod status;
mod tasks;
mod topics;
mod versioned_settings;

pub use active_topics::{ActiveTopic, ActiveTopics, ActiveTopicsCall, TopicPosition};
pub use answer_by::AnswerBy;
pub use changes::{ChangeCall, ChangeResult, ItemChange, ItemUpdate};
pub use commit_watch::{CommitWatch, SeenCommit};
pub use consumers::{CallerFrom, ConsumerFigures, ConsumerName, ConsumersCall, ConsumersSnapshot};
pub(crate) use content::content_of;
pub use dead_groups::{DeadGroup, DeadGroups, DeadGroupsCall};
pub use dequeue::{DeliveredItem, Demand, DequeueCall, FetchBound};
pub use duty::Duty;
pub use enqueue::{Avoid, EnqueueCall, EnqueueOutcome, NewItem};
pub use explain::{BehindCall, Standing, TopicStanding};
pub use fetch::{FetchCall, FetchError, FetchedItems};
pub use heads::{HeadPosition, PeerLink, ReadyState, Subscription, TopicHead};
pub use items::{
    ItemLookup, ItemPosition, ItemSnapshot, ItemState, ItemsCall, ItemsPage, LeaseSnapshot, list_fields,
};
pub use latencies::{Histogram, Latencies};
pub use misplaced::{MemberPlaces, MisplacedMember, Notice};
pub(crate) use operations::{Facts, OperationItems, takes_unreadable};
pub use operations::{ItemCount, OperationsSnapshot, OrderResult, filter_fields};
pub use peer_fault::PeerFault;
pub use peer_news::{PeerNews, ShardLoad};
pub use peers::{KeyQuestion, OwnerAnswer, OwnerQuestion, Peers, RememberedKey};
pub use reach::Reach;
pub use reported::{OwnMetrics, ReportedNamespaces, ReportedTopics};
pub use settings::{Settings, TOPIC_BYTES};
pub use settings_table::DesiredSettings;
pub(crate) use settings_table::SettingsTable;
pub use settle::{ExtendOf, ExtensionResult, NackAction, NackOf, Settlement, SettlementResult};
pub use setup::Setup;
pub(crate) use shard_set::ByIntake;
pub use shard_set::{Intake, ListedShard};
pub use sight::ShardSight;
pub use status::{
    BreakerPhase, MissingHome, MissingSource, ShardCounts, ShardState, ShardStatus, Status, SweepStatus,
    TurnStatus,
};
pub(crate) use tasks::TaskSupervisor;
pub use tasks::{Task, TaskName, Tasks};
pub use topics::{
    LifetimeCounts, MemorySlice, PriorityCount, Rates, ShardFigures, TopicDetails, TopicFigures, TopicScope,
    TopicsCall, TopicsPage,
};
pub(crate) use versioned_settings::VersionedSettings;

/// When a refused caller should try again.
pub const RETRY_AFTER: std::time::Duration = std::time::Duration::from_millis(500);
