//! The clients' calls and their answers, which the checker reads.

use forebay_engine::{
    ActiveTopics, ActiveTopicsCall, ChangeCall, ChangeResult, DeliveredItem, DequeueCall, EnqueueOutcome,
    ExtendOf, ExtensionResult, NackOf, SettlementResult,
};
use forebay_types::{DeliveryPolicy, Namespace, Reason, Receipt, Refusal, Schedule, ShardId, Topic};
use std::time::Duration;

use crate::fake::Moment;

/// A time for which a process, or a task of it, stood still.
#[derive(Debug, Clone, Copy)]
pub struct Stall {
    /// The process.
    pub process: usize,
    /// Whether all of it stood still.
    pub whole: bool,
    /// When that began.
    pub begin: Moment,
    /// When it went on. `None`: it died before.
    pub end: Option<Moment>,
}

/// How a call ended.
#[derive(Debug, Clone)]
pub enum Answer<T> {
    /// It was answered, with a result for each member.
    Done(T),
    /// It was refused as a whole.
    Refused(Refusal),
    /// No answer arrived: the process died, the deadline passed, or the caller disconnected.
    Lost,
}

/// One call.
#[derive(Debug, Clone)]
pub struct Call {
    /// Which process was asked.
    pub process: usize,
    /// The tenant.
    pub namespace: Namespace,
    /// When it began.
    pub start: Moment,
    /// When it was answered or abandoned.
    pub end: Moment,
    /// The request and the answer.
    pub what: What,
}

/// A call's request and its answer.
#[derive(Debug, Clone)]
pub enum What {
    /// An enqueue.
    Enqueue {
        /// The items.
        items: Vec<SentItem>,
        /// Its request id.
        request_id: Option<String>,
        /// Its answer.
        answer: Answer<Vec<Result<EnqueueOutcome, Refusal>>>,
    },
    /// A dequeue.
    Dequeue {
        /// The request.
        call: DequeueCall,
        /// Its answer.
        answer: Answer<Vec<DeliveredItem>>,
    },
    /// An ack.
    Ack {
        /// The deliveries.
        receipts: Vec<Receipt>,
        /// Its answer.
        answer: Answer<Vec<SettlementResult>>,
    },
    /// A nack.
    Nack {
        /// The deliveries.
        nacks: Vec<NackOf>,
        /// Its answer.
        answer: Answer<Vec<SettlementResult>>,
    },
    /// An extension.
    Extend {
        /// The deliveries.
        extensions: Vec<ExtendOf>,
        /// Its answer.
        answer: Answer<Vec<ExtensionResult>>,
    },
    /// A change of single items.
    Change {
        /// The request.
        call: ChangeCall,
        /// Its answer.
        answer: Answer<Vec<ChangeResult>>,
    },
    /// A page of active topics.
    ActiveTopics {
        /// The request.
        call: ActiveTopicsCall,
        /// Its answer.
        answer: Answer<ActiveTopics>,
    },
}

impl What {
    /// The refusal of the whole call.
    pub fn refusal(&self) -> Option<&Refusal> {
        fn of<T>(answer: &Answer<T>) -> Option<&Refusal> {
            if let Answer::Refused(refusal) = answer { Some(refusal) } else { None }
        }
        match self {
            Self::Enqueue { answer, .. } => of(answer),
            Self::Dequeue { answer, .. } => of(answer),
            Self::Ack { answer, .. } | Self::Nack { answer, .. } => of(answer),
            Self::Extend { answer, .. } => of(answer),
            Self::Change { answer, .. } => of(answer),
            Self::ActiveTopics { answer, .. } => of(answer),
        }
    }

    /// Whether no answer arrived.
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Enqueue { answer, .. } => matches!(answer, Answer::Lost),
            Self::Dequeue { answer, .. } => matches!(answer, Answer::Lost),
            Self::Ack { answer, .. } | Self::Nack { answer, .. } => matches!(answer, Answer::Lost),
            Self::Extend { answer, .. } => matches!(answer, Answer::Lost),
            Self::Change { answer, .. } => matches!(answer, Answer::Lost),
            Self::ActiveTopics { answer, .. } => matches!(answer, Answer::Lost),
        }
    }
}

/// An item as a client sent it.
#[derive(Debug, Clone)]
pub struct SentItem {
    /// Its number in the run. The payload follows from it.
    pub tag: u64,
    /// Its topic.
    pub topic: Topic,
    /// Its priority.
    pub priority: i32,
    /// When it may be delivered.
    pub schedule: Schedule,
    /// Its lease duration.
    pub lease: Duration,
    /// Its time to live.
    pub ttl: Option<Duration>,
    /// Whether it needs an ack.
    pub policy: DeliveryPolicy,
    /// How many deliveries may fail.
    pub max_attempts: u32,
    /// Its dedupe key.
    pub dedupe_key: Option<String>,
    /// The shard that must store it, if the caller chose one.
    pub shard: Option<ShardId>,
    /// Whether no shard can store it.
    pub poison: bool,
}

impl SentItem {
    /// A plain item for one shard.
    pub fn plain(tag: u64, shard: ShardId) -> Self {
        Self {
            tag,
            topic: "topic-0".into(),
            priority: 0,
            schedule: Schedule::Now,
            lease: Duration::from_secs(5),
            ttl: None,
            policy: DeliveryPolicy::AtLeastOnce,
            max_attempts: 3,
            dedupe_key: None,
            shard: Some(shard),
            poison: false,
        }
    }
}

/// Knowledge of a caller after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerKnowledge {
    /// It happened.
    Done,
    /// It did not happen.
    Not,
    /// It may have happened.
    Maybe,
}

/// Returns the knowledge of a caller after a refusal.
pub fn known_after(refusal: &Refusal) -> CallerKnowledge {
    match refusal.reason {
        Reason::OutcomeUnknown | Reason::DeadlineExceeded => CallerKnowledge::Maybe,
        _ => CallerKnowledge::Not,
    }
}

impl<T> Answer<Vec<Result<T, Refusal>>> {
    /// Returns the caller's knowledge of one member.
    pub fn known(&self, member: usize) -> CallerKnowledge {
        match self {
            Self::Done(results) => match results.get(member) {
                Some(Ok(_)) => CallerKnowledge::Done,
                Some(Err(refusal)) => known_after(refusal),
                None => CallerKnowledge::Maybe,
            },
            Self::Refused(refusal) => known_after(refusal),
            Self::Lost => CallerKnowledge::Maybe,
        }
    }

    /// The answer to one member, if there is one.
    pub fn member(&self, member: usize) -> Option<Result<&T, &Refusal>> {
        match self {
            Self::Done(results) => results.get(member).map(Result::as_ref),
            Self::Refused(refusal) => Some(Err(refusal)),
            Self::Lost => None,
        }
    }
}
