//! Why something was refused, in the words of the API.

use std::{fmt, time::Duration};

use crate::id::ShardId;

/// The stable reasons that clients may match on. Mapped to gRPC codes in `edge/src/rpc/status.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A field has a value that it must not have.
    InvalidField,
    /// Something is over its size limit.
    TooLarge,
    /// The string is no receipt of this system.
    InvalidReceipt,
    /// The delivery that the receipt names is over.
    LeaseLost,
    /// The topic is paused.
    TopicPaused,
    /// The shard takes no new items.
    ShardDraining,
    /// The receipt belongs to another namespace, or the caller has no rights in this one.
    WrongNamespace,
    /// The caller may not do this.
    NotAllowed,
    /// The caller has rights here, but not this one.
    ScopeMissing,
    /// The caller named no credentials.
    NoCredentials,
    /// The caller's credentials are not accepted.
    BadCredentials,
    /// The tenant is over a quota.
    QuotaExceeded,
    /// The tenant is over a rate limit.
    RateLimited,
    /// The node has more to do than it takes on.
    Overloaded,
    /// Too many items are leased.
    TooManyLeased,
    /// The namespace has too many topics.
    TooManyTopics,
    /// The namespace, or the cluster, has as many policies as it may have.
    TooManyPolicies,
    /// The shard's disk is full.
    DiskFull,
    /// The shard does not answer.
    ShardUnavailable,
    /// Another node owns the shard.
    NotOwner,
    /// The node is stopping.
    NodeDraining,
    /// The node accepts no tokens of its catalog.
    CatalogTokensOff,
    /// The catalog does not answer.
    CatalogUnavailable,
    /// It may or may not have happened.
    OutcomeUnknown,
    /// Not served by this version.
    Unimplemented,
    /// The call's deadline has passed or is too near.
    DeadlineExceeded,
    /// There is no such topic.
    TopicNotFound,
    /// There is no such item.
    ItemNotFound,
    /// The item is leased.
    ItemLeased,
    /// The item is a dead letter.
    ItemDead,
    /// The stored row of the item can't be read.
    ItemUnreadable,
    /// There is no such operation.
    OperationNotFound,
    /// There is no such namespace.
    NamespaceNotFound,
    /// There is no such token.
    TokenNotFound,
    /// It is the last token that may change all tokens.
    LastAdmin,
    /// The namespace, or the cluster, has as many tokens as it may have.
    TooManyTokens,
    /// There is no such shard.
    ShardNotFound,
    /// There is no such node.
    NodeNotFound,
    /// The shard is needed as it is.
    ShardInUse,
    /// The operation has ended.
    OperationEnded,
    /// It has items.
    NotEmpty,
    /// Somebody else has changed it.
    VersionMismatch,
    /// More items match than the caller expected.
    ExpectationFailed,
    /// The request id was used for something else.
    RequestIdReused,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 44] = [
        Self::InvalidField,
        Self::TooLarge,
        Self::InvalidReceipt,
        Self::LeaseLost,
        Self::TopicPaused,
        Self::ShardDraining,
        Self::WrongNamespace,
        Self::NotAllowed,
        Self::ScopeMissing,
        Self::NoCredentials,
        Self::BadCredentials,
        Self::QuotaExceeded,
        Self::RateLimited,
        Self::Overloaded,
        Self::TooManyLeased,
        Self::TooManyTopics,
        Self::TooManyPolicies,
        Self::DiskFull,
        Self::ShardUnavailable,
        Self::NotOwner,
        Self::NodeDraining,
        Self::CatalogTokensOff,
        Self::CatalogUnavailable,
        Self::OutcomeUnknown,
        Self::Unimplemented,
        Self::DeadlineExceeded,
        Self::TopicNotFound,
        Self::ItemNotFound,
        Self::ItemLeased,
        Self::ItemDead,
        Self::ItemUnreadable,
        Self::OperationNotFound,
        Self::NamespaceNotFound,
        Self::TokenNotFound,
        Self::LastAdmin,
        Self::TooManyTokens,
        Self::ShardNotFound,
        Self::NodeNotFound,
        Self::ShardInUse,
        Self::OperationEnded,
        Self::NotEmpty,
        Self::VersionMismatch,
        Self::ExpectationFailed,
        Self::RequestIdReused,
    ];

    /// Reads what [`Reason::as_str`] wrote; `None` for a reason of another version.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == name)
    }

    /// The reason as clients see it in `ErrorInfo.reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidField => "INVALID_FIELD",
            Self::TooLarge => "TOO_LARGE",
            Self::InvalidReceipt => "INVALID_RECEIPT",
            Self::LeaseLost => "LEASE_LOST",
            Self::TopicPaused => "TOPIC_PAUSED",
            Self::ShardDraining => "SHARD_DRAINING",
            Self::WrongNamespace => "WRONG_NAMESPACE",
            Self::NotAllowed => "NOT_ALLOWED",
            Self::ScopeMissing => "SCOPE_MISSING",
            Self::NoCredentials => "NO_CREDENTIALS",
            Self::BadCredentials => "BAD_CREDENTIALS",
            Self::QuotaExceeded => "QUOTA_EXCEEDED",
            Self::RateLimited => "RATE_LIMITED",
            Self::Overloaded => "OVERLOADED",
            Self::TooManyLeased => "TOO_MANY_LEASED",
            Self::TooManyTopics => "TOO_MANY_TOPICS",
            Self::TooManyPolicies => "TOO_MANY_POLICIES",
            Self::DiskFull => "DISK_FULL",
            Self::ShardUnavailable => "SHARD_UNAVAILABLE",
            Self::NotOwner => "NOT_OWNER",
            Self::NodeDraining => "NODE_DRAINING",
            Self::CatalogTokensOff => "CATALOG_TOKENS_OFF",
            Self::CatalogUnavailable => "CATALOG_UNAVAILABLE",
            Self::OutcomeUnknown => "OUTCOME_UNKNOWN",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::TopicNotFound => "TOPIC_NOT_FOUND",
            Self::ItemNotFound => "ITEM_NOT_FOUND",
            Self::ItemLeased => "ITEM_LEASED",
            Self::ItemDead => "ITEM_DEAD",
            Self::ItemUnreadable => "ITEM_UNREADABLE",
            Self::OperationNotFound => "OPERATION_NOT_FOUND",
            Self::NamespaceNotFound => "NAMESPACE_NOT_FOUND",
            Self::TokenNotFound => "TOKEN_NOT_FOUND",
            Self::LastAdmin => "LAST_ADMIN",
            Self::TooManyTokens => "TOO_MANY_TOKENS",
            Self::ShardNotFound => "SHARD_NOT_FOUND",
            Self::NodeNotFound => "NODE_NOT_FOUND",
            Self::ShardInUse => "SHARD_IN_USE",
            Self::OperationEnded => "OPERATION_ENDED",
            Self::NotEmpty => "NOT_EMPTY",
            Self::VersionMismatch => "VERSION_MISMATCH",
            Self::ExpectationFailed => "EXPECTATION_FAILED",
            Self::RequestIdReused => "REQUEST_ID_REUSED",
        }
    }
}

/// Where the item of a lost lease is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// Never delivered again: acked, expired or cancelled.
    Gone,
    /// Waits for its next delivery.
    Waiting,
    /// Out in another delivery.
    Leased,
    /// In the dead letters.
    Dead,
}

impl Fate {
    /// Every fate.
    pub const ALL: [Self; 4] = [Self::Gone, Self::Waiting, Self::Leased, Self::Dead];

    /// Reads what [`Fate::as_str`] wrote; `None` for a fate of another version.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fate| fate.as_str() == name)
    }

    /// The value of the error metadata `item`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Waiting => "waiting",
            Self::Leased => "leased",
            Self::Dead => "dead",
        }
    }
}

/// A shard that another node owns, or is about to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The shard.
    pub shard: ShardId,
    /// Where that node answers other nodes, `host:port`. Empty: it is not known.
    pub owner: String,
}

/// A call, or one member of it, that was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// The code that clients match on.
    pub reason: Reason,
    /// The text that people read.
    pub message: String,
    /// The path of the wrong field, as in `items[3].topic`.
    pub field: Option<String>,
    /// When it is worth trying again.
    pub retry_after: Option<Duration>,
    /// With [`Reason::LeaseLost`]: where the item is.
    pub fate: Option<Fate>,
    /// With [`Reason::NotOwner`]: who is to be asked instead. For other nodes; callers are not told.
    pub elsewhere: Option<Elsewhere>,
    /// With [`Reason::ScopeMissing`]: the right that the caller does not have. With [`Reason::RateLimited`]:
    /// the key of the limit.
    pub subject: Option<&'static str>,
}

impl Refusal {
    /// With a reason and a sentence for people.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        let (message, field, retry_after) = (message.into(), None, None);
        Self { reason, message, field, retry_after, fate: None, elsewhere: None, subject: None }
    }

    /// A field has a wrong value.
    pub fn field(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: Some(path.into()), ..Self::new(Reason::InvalidField, message) }
    }

    /// A field is over its limit.
    pub fn too_large(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: Some(path.into()), ..Self::new(Reason::TooLarge, message) }
    }

    /// The delivery is over.
    pub fn lease_lost(fate: Fate) -> Self {
        let message = format!("the delivery is over; the item is {}", fate.as_str());
        Self { fate: Some(fate), ..Self::new(Reason::LeaseLost, message) }
    }

    /// Another node owns the shard.
    pub fn not_owner(elsewhere: Elsewhere, message: impl Into<String>) -> Self {
        Self { elsewhere: Some(elsewhere), ..Self::new(Reason::NotOwner, message) }
    }

    /// The caller does not have a right.
    pub fn scope_missing(scope: &'static str, message: impl Into<String>) -> Self {
        Self { subject: Some(scope), ..Self::new(Reason::ScopeMissing, message) }
    }

    /// The same, worth repeating after `span`.
    pub fn retry_after(mut self, span: Duration) -> Self {
        self.retry_after = Some(span);
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "{}: {field}: {}", self.reason.as_str(), self.message),
            None => write!(f, "{}: {}", self.reason.as_str(), self.message),
        }
    }
}
