//! Bugs of the engine that tests plant, to see whether the simulation's checker catches them.

#[cfg(feature = "planted-bugs")]
pub use forebay_types::planted::plant;

pub(crate) use forebay_types::planted::on;

/// A mistake that somebody could make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bug {
    /// A window that was cut claims to cover the first item that it dropped.
    HorizonOffByOne,
    /// A prefetch brings back what a commit touched while it ran.
    PrefetchResurrects,
    /// A prefetch forgets what a commit added while it ran.
    PrefetchLoses,
    /// A receipt ends another delivery of the same item.
    StaleReceipt,
    /// A step of node time ends leases and delays.
    SpansEndWithAStep,
    /// Items are handed out before their lease is committed.
    LeaseBeforeCommit,
    /// A sweep's checkpoint moves past rows that were added or left alone since its scan.
    CheckpointPastLive,
    /// A sweep's scan passes rows of the batch in flight.
    ScanPastOpenBatch,
    /// LEASE_LOST is answered from memory by an owner that may have been replaced.
    LeaseLostUntrusted,
    /// A batch whose outcome nobody knows is answered as failed.
    UnknownAsFailed,
    /// A COMMIT that failed is taken for done.
    UnknownAsCommitted,
    /// A delivery that ended is not counted.
    DeliveryNotCounted,
    /// A call that was passed on does not name its shard any more.
    NamedShardForgotten,
    /// Items of another node are fetched beyond the best one of others.
    FetchBoundIgnored,
    /// Items are offered to nobody.
    NothingOffered,
    /// An item that is offered to one node is offered to others, too.
    OfferedTwice,
    /// An offer that a node does not answer never lapses.
    OfferStays,
    /// Items that a node is asked for stay in its count.
    CountsKept,
    /// A node that leases items for another one has others lease some, too.
    FetchPassedOn,
    /// The items of a late answer are given back, and handed out too.
    LateHandedOut,
    /// A node is a source beyond its link.
    SourceKept,
    /// Of the topics of a prefix those with the worst priority go first.
    PrefixTurned,
    /// Items that become ready later are not looked at by prefixes.
    PrefixNotMarked,
    /// Prefixes hand out items of paused topics.
    PausedInPrefix,
    /// Nodes that tell nothing of a topic are not asked for items.
    NothingGuessed,
    /// An at-most-once item is handed out though it may still be in its shard.
    ConsumedUnsurely,
    /// Two enqueues with one key are in flight at once.
    KeyNotHeld,
    /// An item on its way to a lease is not kept out of a prefetch.
    ReservedForgotten,
    /// A shard whose head is unknown counts as empty.
    OutstandingIgnored,
    /// An expired item is delivered.
    ExpiryIgnored,
    /// Dead letters are kept for a quarter of their time.
    RetentionCutShort,
    /// A due item is promoted too early.
    DueEarly,
    /// A row that can't be stored fails its whole batch.
    PoisonFailsAll,
    /// A row that the database refuses is told to its caller before the fence is read.
    RefusedUnread,
    /// A new item is handed to a waiting poll although a better one is there.
    HandsOffTooEarly,
    /// A new item of a paused topic is handed to a waiting poll.
    HandsOffPaused,
    /// A new item that went to a waiting poll is offered to others too.
    HandedOffStaysReady,
    /// A node stops with work in hand.
    StopHasty,
    /// Of items with one priority the newest comes first.
    NewestFirst,
    /// An item that is released goes to the end of the line.
    ReleaseLosesPlace,
    /// Of the polls that wait the last one is served first.
    LastWaiterFirst,
    /// A new owner's ranks begin below those of the last one.
    RanksNotRaised,
    /// A read-back's result is taken for durable without a confirmation.
    ConfirmSkipped,
    /// Leases are timed out as soon as a shard is taken over.
    NoGrace,
    /// A generation of dedupe keys is dropped one second after the next one began.
    GenerationDroppedEarly,
    /// The metadata that a nack sends is not stored.
    MetadataIgnored,
    /// Every extension is one of 200 ms.
    ExtendsBriefly,
    /// An answer has as many bytes as there are.
    MaxBytesIgnored,
    /// A dead letter does not say why.
    ReasonForgotten,
    /// An item that fails waits for longer than it lives.
    DelayPastExpiry,
    /// A failure is not among the last ones of its item.
    FailureForgotten,
    /// A page of active topics has wrong times.
    OldestReadyAtWrong,
    /// A page of active topics has topics of every prefix.
    PrefixIgnored,
    /// A long poll waits four times as long as it was asked to.
    WaitsLong,
    /// A long poll waits half as long as it was asked to.
    WaitsBriefly,
    /// The ready index grows without limit.
    NeverEvicts,
    /// A shard takes any number of bytes.
    NoShardBudget,
    /// Bytes that were charged are never released.
    ChargesKept,
    /// A topic's leases have no limit.
    NoLeaseLimit,
    /// Long polls have no limit.
    NoPollLimit,
    /// A server's old clock reading is taken for its present one.
    OldReadingTakenForNew,
    /// The homes that keys had under an earlier set of shards are not asked.
    EarlierHomesForgotten,
    /// Such homes are not asked if another node owns them.
    EarlierHomesElsewhereForgotten,
    /// Dedupe keys that programs of the release before have stored are not looked up.
    OlderKeysForgotten,
    /// Dedupe keys are not stored where programs of the release before look them up.
    NoKeysForOlder,
    /// A dedupe key is one of all topics.
    TopicLeftOutOfKeys,
    /// A call is answered as another one that was made under its request id.
    RequestContentIgnored,
    /// The dedupe key of an item that an operator has removed stays taken.
    KeyNotFreed,
    /// A sweep takes a full page for all there is.
    FullPageTakenForAll,
    /// A node whose event loop stands still renews its claims.
    HungOwnerRenews,
    /// An operation's cursor is committed without what it counted.
    OperationCountsLost,
    /// An operation's cursor is committed without its effect.
    OperationEffectLost,
    /// A batch's counts of items are kept although the batch did not happen.
    UndoneCounted,
    /// A batch's counts of items are added twice in memory.
    CountedTwice,
    /// Items that expire are not counted.
    ExpiredNotCounted,
    /// Topics are folded before their tallies are read.
    FoldedUnread,
    /// A topic that is forgotten takes along what it counted.
    ForgottenNotCounted,
    /// A leased item is purged, and its lease stays.
    PurgedLeaseLives,
    /// A leased item is removed by an operation that removes items wherever they are, and its lease stays.
    CancelledLeaseLives,
    /// An operation gives an item other values again that it meets at its new place.
    OperationUpdatesTwice,
    /// An item that is cancelled stays in the store.
    CancelForgotten,
    /// An item whose priority was changed has its old place in memory.
    UpdateKeepsPlace,
    /// An item whose time was changed becomes due at its old time, too.
    UpdateKeepsSchedule,
    /// A change of an item uses what was read of it, although a commit has changed it since.
    ChangeOfThePast,
    /// Nobody but the named successor ever takes a shard that was handed over.
    SuccessorForEver,
    /// A candidate takes batches for no sign of life.
    BatchesIgnored,
    /// A candidate waits for its own lease, not for the owner's.
    CandidatesLease,
    /// A candidate asks the owner without a look at how fast the server commits.
    NoProbe,
    /// An owner that is not sure of its claim steps down although the server is slow for the others too.
    UnsureStepsDown,
    /// An owner that does not trust its claim says so to a candidate, and keeps the shard.
    DeniesAndStays,
    /// A shard is served in a tenure that was denied while it was being taken over.
    DeniedAndServed,
    /// An owner trusts its claim while it releases the shard.
    TrustedAfterRelease,
}

/// Whether any bug is planted.
pub(crate) fn any() -> bool {
    forebay_types::planted::any::<Bug>()
}

#[cfg(feature = "planted-bugs")]
mod older {
    use std::cell::RefCell;

    thread_local! {
        static OLDER: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    /// The engines of this thread that answer at these addresses treat dedupe keys and request ids as the
    /// release before does.
    pub fn make_older(addresses: Vec<String>) {
        OLDER.set(addresses);
    }

    pub(crate) fn is_older(address: &str) -> bool {
        OLDER.with_borrow(|older| older.iter().any(|known| known == address))
    }
}

#[cfg(feature = "planted-bugs")]
pub(crate) use older::is_older;
#[cfg(feature = "planted-bugs")]
pub use older::make_older;

/// No engine is of the release before.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn is_older(_address: &str) -> bool {
    false
}

/// A debug build panics at the first enqueue where a test asks for it, to see how the process ends.
#[cfg(debug_assertions)]
pub(crate) fn panic_if_asked() {
    use std::sync::LazyLock;

    static ASKED: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os("FOREBAY_TEST_PANIC").is_some_and(|value| value == "enqueue"));
    assert!(!*ASKED, "a planted panic");
}

/// Nobody can ask for a panic.
#[cfg(not(debug_assertions))]
pub(crate) const fn panic_if_asked() {}
