//! Tests the checker: it must find each planted bug within a number of seeds.
//!
//! Bugs are planted in the engine (`Bug`), in the store (`StoreBug`), and between the engine and its callers
//! (`CallerBug`).

use forebay_engine::planted::{Bug, plant};
use forebay_testkit::{
    fake::StoreBug,
    sim::{CallerBug, Kind, Plan, find_bug},
};

/// How many runs may be needed to find a bug.
const RUNS: u64 = 400;

/// Runs plans of these kinds until one of them breaks one of these invariants.
fn found(name: &str, kinds: &[Kind], invariants: &[&str], plan: impl Fn(&mut Plan)) {
    find_bug(name, RUNS, kinds, invariants, |number, next| {
        if number % 2 == 1 {
            // Small batches, so that sweeps and queues need several.
            next.settings.batch_rows = 4;
        }
        plan(next);
    });
}

macro_rules! engine {
    ($($test:ident: $bug:ident in $($kind:ident)|+ breaks $($invariant:literal)|+ $(with $plan:expr)?;)+) => {
        $(
            #[test]
            fn $test() {
                // A bug is planted for one thread, and a run uses only one.
                plant(Some(Bug::$bug));
                let _plan: fn(&mut Plan) = |_| {};
                $(let _plan: fn(&mut Plan) = $plan;)?
                found(stringify!($bug), &[$(Kind::$kind),+], &[$($invariant),+], _plan);
            }
        )+
    };
}

macro_rules! store {
    ($($test:ident: $bug:ident in $($kind:ident)|+ breaks $($invariant:literal)|+;)+) => {
        $(
            #[test]
            fn $test() {
                let plan = |plan: &mut Plan| plan.store_bug = Some(StoreBug::$bug);
                found(stringify!($bug), &[$(Kind::$kind),+], &[$($invariant),+], plan);
            }
        )+
    };
}

macro_rules! callers {
    ($($test:ident: $bug:ident in $($kind:ident)|+ breaks $($invariant:literal)|+;)+) => {
        $(
            #[test]
            fn $test() {
                let plan = |plan: &mut Plan| plan.caller_bug = Some(CallerBug::$bug);
                found(stringify!($bug), &[$(Kind::$kind),+], &[$($invariant),+], plan);
            }
        )+
    };
}

engine! {
    a_horizon_that_is_off_by_one: HorizonOffByOne in Tight breaks "EVENTUAL-REDELIVERY" | "CONSERVATION";
    an_item_that_a_prefetch_brings_back: PrefetchResurrects in Tight
        breaks "EVENTUAL-REDELIVERY" | "CONSERVATION" | "LEASE-EXCLUSIVE"
        with |plan| (plan.topics, plan.shards, plan.clients, plan.steps) = (1, 1, 8, 80);
    an_item_that_a_prefetch_loses: PrefetchLoses in Tight breaks "EVENTUAL-REDELIVERY" | "CONSERVATION";
    a_stale_receipt_let_through: StaleReceipt in Quiet breaks "STALE-RECEIPT-INERT";
    a_lease_handed_out_before_its_commit: LeaseBeforeCommit in Quiet breaks "LEASE-BEFORE-DELIVERY";
    a_checkpoint_past_a_live_row: CheckpointPastLive in Crashes | TakeOvers | Unknown
        breaks "CHECKPOINT-SAFE";
    a_scan_past_an_open_batch: ScanPastOpenBatch in Tight | Unknown | Crashes
        breaks "CHECKPOINT-SAFE" | "EVENTUAL-REDELIVERY"
        with |plan| plan.clients = 6;
    a_lost_lease_told_from_memory: LeaseLostUntrusted in TakeOvers breaks "NO-STALE-OK";
    an_unknown_outcome_told_as_failure: UnknownAsFailed in TakeOvers | Everything
        breaks "UNKNOWN-STAYS-UNKNOWN";
    an_unknown_commit_taken_for_done: UnknownAsCommitted in Unknown breaks "NO-LOST-ENQUEUE" | "NO-STALE-OK";
    a_delivery_that_is_not_counted: DeliveryNotCounted in Quiet breaks "LEASE-EXCLUSIVE";
    two_enqueues_with_one_key_at_once: KeyNotHeld in Quiet | Unknown breaks "IDEMPOTENT-ENQUEUE";
    an_item_on_its_way_that_a_prefetch_finds: ReservedForgotten in Tight
        breaks "LEASE-EXCLUSIVE" | "CONSERVATION";
    an_unknown_head_taken_for_none: OutstandingIgnored in Crashes breaks "PRIORITY";
    an_expired_item_delivered: ExpiryIgnored in Crashes | TakeOvers | Rollbacks breaks "TIME";
    an_item_that_is_due_too_early: DueEarly in Quiet breaks "TIME";
    spans_that_a_step_of_the_clock_ends: SpansEndWithAStep in Clocks breaks "TIME";
    a_dead_letter_that_is_deleted_too_early: RetentionCutShort in Quiet breaks "TIME";
    a_poisoned_row_that_fails_others: PoisonFailsAll in Rollbacks breaks "BATCH-ATTRIBUTION";
    a_refused_row_told_before_the_fence_is_read: RefusedUnread in Stalls | TakeOvers
        breaks "BATCH-ATTRIBUTION"
        with |plan| (plan.topics, plan.shards) = (1, 1);
    an_item_handed_off_that_stays_ready: HandedOffStaysReady in Unknown | Crashes
        breaks "LEASE-EXCLUSIVE" | "CONSERVATION";
    a_hasty_stop: StopHasty in Crashes breaks "CLEAN-DRAIN";
    the_newest_item_first: NewestFirst in Quiet breaks "PRIORITY";
    a_release_that_loses_its_place: ReleaseLosesPlace in Quiet breaks "AS-ASKED";
    the_last_waiter_first: LastWaiterFirst in Quiet breaks "FIRST-COME";
    ranks_that_a_take_over_forgets: RanksNotRaised in Clocks breaks "PRIORITY"
        with |plan| (plan.topics, plan.shards) = (1, 1);
    a_read_back_taken_for_durable: ConfirmSkipped in Unknown breaks "NO-LOST-ENQUEUE" | "NO-STALE-OK";
    leases_timed_out_at_a_take_over: NoGrace in Crashes | TakeOvers breaks "GRACE";
    a_generation_dropped_early: GenerationDroppedEarly in Quiet breaks "IDEMPOTENT-ENQUEUE"
        with |plan| plan.rests = 30;
    metadata_of_a_nack_ignored: MetadataIgnored in Quiet breaks "AS-ASKED";
    brief_extensions: ExtendsBriefly in Quiet breaks "AS-ASKED";
    an_answer_of_too_many_bytes: MaxBytesIgnored in Quiet breaks "AS-ASKED";
    a_dead_letter_without_a_reason: ReasonForgotten in Quiet breaks "AS-ASKED";
    a_delay_that_passes_the_expiry: DelayPastExpiry in Quiet breaks "AS-ASKED" | "EVENTUAL-REDELIVERY";
    a_failure_that_is_not_remembered: FailureForgotten in Quiet breaks "AS-ASKED";
    an_undone_batch_that_is_counted: UndoneCounted in Rollbacks breaks "CONSERVATION";
    a_batch_that_is_counted_twice: CountedTwice in Crashes | TakeOvers breaks "CONSERVATION";
    an_item_that_expires_uncounted: ExpiredNotCounted in Quiet breaks "CONSERVATION";
    a_fold_of_a_tally_that_is_not_read: FoldedUnread in Crashes | TakeOvers breaks "CONSERVATION";
    a_forgotten_topic_whose_counts_are_lost: ForgottenNotCounted in Quiet breaks "CONSERVATION";
    a_wrong_time_on_a_page: OldestReadyAtWrong in Quiet breaks "COUNTS";
    a_prefix_ignored: PrefixIgnored in Quiet breaks "AS-ASKED";
    waits_that_are_too_long: WaitsLong in Quiet breaks "AS-ASKED";
    waits_that_are_cut_short: WaitsBriefly in Quiet breaks "AS-ASKED";
    counts_of_an_operation_that_are_lost: OperationCountsLost in Quiet breaks "CONSERVATION";
    an_operation_whose_effect_is_lost: OperationEffectLost in Quiet breaks "CONSERVATION";
    a_leased_item_removed_whose_lease_lives_on: CancelledLeaseLives in Quiet breaks "CONSERVATION"
        with |plan| plan.topics = 1;
    an_item_that_an_operation_updates_twice: OperationUpdatesTwice in Quiet breaks "CONSERVATION";
    a_cancelled_item_that_stays: CancelForgotten in Quiet breaks "CONSERVATION";
    an_updated_item_at_its_old_place: UpdateKeepsPlace in Quiet breaks "PRIORITY" | "AS-ASKED";
    an_updated_item_that_becomes_due_twice: UpdateKeepsSchedule in Quiet breaks "CONSERVATION";
    a_change_of_what_an_item_was: ChangeOfThePast in Quiet | Unknown breaks "CONSERVATION"
        with |plan| (plan.topics, plan.clients) = (1, 8);
    a_purged_item_whose_lease_lives_on: PurgedLeaseLives in Quiet breaks "CONSERVATION"
        with |plan| plan.topics = 1;
    an_index_that_grows: NeverEvicts in Tight | Quiet breaks "BOUNDED";
    a_shard_without_a_budget: NoShardBudget in Quiet breaks "BOUNDED"
        with |plan| plan.settings.admit_shard_bytes = 900;
    charges_that_are_kept: ChargesKept in Quiet breaks "BOUNDED";
    leases_without_a_limit: NoLeaseLimit in Quiet breaks "BOUNDED";
    polls_without_a_limit: NoPollLimit in Quiet breaks "BOUNDED";
    a_lost_lease_told_after_a_stall: LeaseLostUntrusted in Stalls breaks "NO-STALE-OK"
        with |plan| (plan.topics, plan.shards, plan.clients, plan.steps) = (1, 1, 10, 160);
    an_old_reading_of_a_clock_taken_for_new: OldReadingTakenForNew in Stalls breaks "TIME";
    an_earlier_home_that_is_not_asked: EarlierHomesForgotten in Reshards breaks "IDEMPOTENT-ENQUEUE";
    an_earlier_home_at_another_node_that_is_not_asked: EarlierHomesElsewhereForgotten in Changes
        breaks "IDEMPOTENT-ENQUEUE";
    keys_of_the_release_before_that_are_not_looked_up: OlderKeysForgotten in Crashes | TakeOvers | Moves
        breaks "IDEMPOTENT-ENQUEUE"
        with |plan| (plan.older, plan.keys) = (true, 600);
    keys_that_the_release_before_does_not_find: NoKeysForOlder in Crashes | TakeOvers | Moves
        breaks "IDEMPOTENT-ENQUEUE"
        with |plan| (plan.older, plan.keys, plan.topics, plan.shards) = (true, 900, 1, 1);
    a_key_of_all_topics: TopicLeftOutOfKeys in Quiet breaks "IDEMPOTENT-ENQUEUE"
        with |plan| plan.topics = 4;
    topics_of_a_prefix_the_wrong_way_round: PrefixTurned in Quiet breaks "PRIORITY";
    a_prefix_that_hears_of_no_new_item: PrefixNotMarked in Quiet breaks "PRIORITY";
    items_fetched_beyond_better_ones: FetchBoundIgnored in Cluster breaks "PRIORITY-ACROSS";
    items_that_are_offered_to_several: OfferedTwice in Cluster breaks "MESSAGES";
    an_offer_that_stays: OfferStays in Cluster breaks "WAKE-ACROSS";
    items_that_several_polls_ask_for: CountsKept in Cluster breaks "MESSAGES";
    a_fetch_that_is_passed_on: FetchPassedOn in Cluster breaks "MESSAGES";
    items_of_a_late_answer_that_are_handed_out_too: LateHandedOut in Cluster breaks "LEASE-EXCLUSIVE";
    a_source_beyond_its_link: SourceKept in Cluster breaks "MESSAGES";
    items_that_are_offered_to_nobody: NothingOffered in Cluster breaks "WAKE-ACROSS";
    items_of_topics_that_cannot_be_followed: NothingGuessed in Cluster breaks "WAKE-ACROSS"
        with |plan| plan.settings.followed_bytes = 0;
    an_item_delivered_twice_that_may_be_in_its_shard: ConsumedUnsurely in Moves | Cluster
        breaks "LEASE-BEFORE-DELIVERY";
    a_named_shard_that_is_forgotten: NamedShardForgotten in Moves | Cluster breaks "IDEMPOTENT-ENQUEUE";
    another_call_answered_as_the_first: RequestContentIgnored in Quiet breaks "NO-PHANTOM";
    a_key_that_a_removal_does_not_free: KeyNotFreed in Quiet breaks "IDEMPOTENT-ENQUEUE"
        with |plan| (plan.keys, plan.topics, plan.shards) = (900, 1, 1);
    a_hung_owner_that_renews: HungOwnerRenews in Stalls breaks "SHARD-SERVED";
    a_successor_that_never_comes: SuccessorForEver in Moves breaks "EVENTUAL-REDELIVERY";
    a_full_page_taken_for_all: FullPageTakenForAll in Quiet | Crashes breaks "CHECKPOINT-SAFE"
        with |plan| plan.settings.sweep_rows = 2;
}

/// It takes a batch that inserts an item for a waiting poll and makes a better one ready. So there are many
/// callers of one topic, and commits that take long enough for them to meet.
#[test]
fn a_new_item_before_a_better_one() {
    plant(Some(Bug::HandsOffTooEarly));
    let crowded = |plan: &mut Plan| (plan.topics, plan.clients, plan.steps) = (1, 8, 60);
    found("HandsOffTooEarly", &[Kind::Unknown, Kind::TakeOvers], &["PRIORITY"], crowded);
}

store! {
    a_fence_that_is_not_checked: FenceNotChecked in TakeOvers breaks "ONE-OWNER";
    a_commit_that_was_not_done: CommitNotDone in Quiet breaks "NO-LOST-ENQUEUE" | "NO-STALE-OK";
    a_batch_kept_after_its_rollback: RollbackNotDone in Quiet
        breaks "UNKNOWN-STAYS-UNKNOWN" | "IDEMPOTENT-ENQUEUE" | "NO-PHANTOM" | "CONSERVATION";
    a_lost_commit_resolved_as_done: ResolvedAsCommitted in Unknown breaks "NO-LOST-ENQUEUE" | "NO-STALE-OK";
    a_lost_commit_resolved_as_lost: ResolvedAsLost in Unknown breaks "EVENTUAL-REDELIVERY" | "CONSERVATION";
    a_lease_that_was_not_written: LeaseNotWritten in Quiet breaks "LEASE-BEFORE-DELIVERY";
    a_checkpoint_moved_too_far: CheckpointTooFar in Quiet breaks "CHECKPOINT-SAFE";
    a_read_that_skips_a_row: ReadSkipsARow in Tight | Crashes breaks "EVENTUAL-REDELIVERY" | "CONSERVATION";
    a_read_that_shows_the_past: ReadShowsThePast in Tight
        breaks "LEASE-EXCLUSIVE" | "CONSERVATION" | "EVENTUAL-REDELIVERY";
    a_lease_forgotten_at_a_take_over: LeaseForgottenAtLoad in Crashes | TakeOvers breaks "LEASE-EXCLUSIVE";
    counts_forgotten_at_a_take_over: CountsForgottenAtLoad in Crashes
        breaks "CONSERVATION" | "EVENTUAL-REDELIVERY";
    a_dedupe_key_that_is_forgotten: DedupeForgotten in Quiet breaks "IDEMPOTENT-ENQUEUE";
    a_sweep_that_runs_ahead: DueTooEarly in Quiet breaks "TIME";
    a_body_that_changes: BodyChanged in Tight | Crashes breaks "NO-PHANTOM";
}

callers! {
    a_stale_ack_answered_ok: StaleAckOk in Quiet breaks "STALE-RECEIPT-INERT" | "NO-STALE-OK";
    an_ack_forgotten: AckForgotten in Quiet breaks "NO-STALE-OK";
    an_enqueue_forgotten: EnqueueForgotten in Quiet breaks "NO-LOST-ENQUEUE";
    an_unknown_outcome_told_wrong: UnknownTold in TakeOvers | Everything breaks "UNKNOWN-STAYS-UNKNOWN";
    a_fate_made_up: FateMadeUp in Quiet breaks "NO-STALE-OK";
    an_item_handed_out_twice: HandedOutTwice in Quiet breaks "LEASE-EXCLUSIVE";
    an_answer_out_of_order: OrderTurned in Quiet breaks "PRIORITY";
    a_nack_forgotten: NackForgotten in Quiet breaks "NO-STALE-OK";
    an_extension_exaggerated: ExtensionExaggerated in Quiet breaks "NO-STALE-OK";
    a_lost_answer_taken_for_a_call_that_was_not_sent: LostCountsAsUnsent in Moves | TakeOvers | Crashes
        breaks "IDEMPOTENT-ENQUEUE" | "LEASE-EXCLUSIVE";
    poison_that_spreads: PoisonSpreads in Rollbacks breaks "BATCH-ATTRIBUTION";
}
