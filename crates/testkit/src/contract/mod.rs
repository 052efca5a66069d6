//! The contract that every kind of store passes: SQLite, MariaDB, MySQL, and the fake of the simulation.
//!
//! [`store_contract`](crate::store_contract) runs all of it for one kind of store. A case is a function that
//! takes a fresh [`Subject`] and panics if the store breaks the contract.

mod bench;
pub mod catalog;
pub mod columns;
pub mod counts;
pub mod damage;
pub mod dedupe;
pub mod due;
pub mod fence;
pub mod items;
pub mod leases;
pub mod looks;
pub mod operations;
pub mod read_ahead;
pub mod retention;
pub mod settle;
pub mod take_over;
pub mod updates;
pub mod versions;

use std::{any::Any, fmt, future::Future, pin::Pin, sync::Arc};

use forebay_store::Shard;
use forebay_types::ShardId;

/// Leaves a schema as a later release would: at this version, for programs that know that one or a newer one.
/// Without the second number as it was.
pub type Later = Box<dyn Fn(u32, Option<u32>) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// A fresh shard, not migrated yet, and what its kind of store can do.
pub struct Subject {
    /// The shard.
    pub shard: Arc<dyn Shard>,
    /// A living owner can be replaced. In SQLite it cannot: it holds the file's lock.
    pub steals: bool,
    /// The same place, configured as a shard with another number.
    pub renumbered: Box<dyn Fn(ShardId) -> Arc<dyn Shard> + Send + Sync>,
    /// Migrates the schema as a later release would.
    pub later: Later,
    /// Damages rows. Absent: the store has no bytes that could be wrong.
    pub damage: Option<damage::Damage>,
    /// A folder that must outlive the shard.
    pub guard: Option<Box<dyn Any + Send + Sync>>,
}

impl Subject {
    /// `open` opens the same place as the shard with a number. `steals`: see [`Subject::steals`].
    pub fn new(
        open: impl Fn(ShardId) -> Arc<dyn Shard> + Send + Sync + 'static,
        steals: bool,
        later: Later,
    ) -> Self {
        Self { shard: open(ShardId(1)), renumbered: Box::new(open), steals, later, damage: None, guard: None }
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("steals", &self.steals).finish_non_exhaustive()
    }
}

/// Creates a module of tests for a kind of store, one for each case. The second argument is an expression
/// that returns a future of a [`Subject`](crate::contract::Subject). Each test evaluates it.
///
/// ```text
/// forebay_testkit::store_contract!(sqlite, fresh_sqlite());
/// ```
#[macro_export]
macro_rules! store_contract {
    ($name:ident, $fresh:expr) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            $crate::store_contract!(@cases $fresh;
                versions: a_migration_is_done_once, a_shard_without_schema_says_so, settings_bound_a_batch,
                    a_schema_is_one_shard, a_later_schema_is_used_until_it_excludes_this_program;
                take_over: the_first_owner_finds_a_clean_shard, the_next_owner_continues,
                    a_fence_behind_its_rows_is_raised,
                    a_living_owner_is_replaced_or_stays, what_was_seen_must_still_hold,
                    a_probe_changes_nothing, of_two_candidates_one_wins, of_many_candidates_one_wins,
                    a_release_clears_the_address, a_renewal_is_seen, a_release_by_an_old_owner_does_nothing;
                fence: a_wrong_number_changes_nothing, a_batch_moves_the_fence, an_empty_batch_is_a_batch,
                    a_renewal_returns_the_servers_time, a_failed_batch_changes_nothing,
                    an_unknown_batch_is_resolved, a_lost_fence_is_foreign;
                items: an_item_is_read_as_it_was_written, items_come_in_delivery_order, pages_miss_nothing,
                    a_read_of_ready_items_has_so_many_bytes, topics_are_apart,
                    scheduled_items_are_not_ready, a_batch_of_a_thousand,
                    payloads_of_the_largest_size, items_are_removed, extremes_are_kept,
                    a_poisoned_row_has_its_error_class;
                settle: an_item_is_requeued, an_item_is_requeued_for_later, new_metadata_replaces_the_old,
                    many_are_requeued_at_once, the_last_failures_are_remembered,
                    an_item_becomes_a_dead_letter, an_item_returns_after_its_removal;
                due: what_is_due_is_found, what_is_put_off_is_due_later, a_delay_is_known_from_a_time,
                    a_promotion_makes_ready, a_removed_item_is_no_longer_due,
                    expiries_are_found, the_next_time_is_read, checkpoints_are_kept;
                retention: dead_letters_are_found_by_their_end, dead_letters_are_deleted,
                    dead_letters_are_kept_for_longer, a_dormant_topic_goes_with_its_last_dead_letter,
                    a_topic_whose_items_are_not_folded_is_not_dormant;
                operations: parts_are_kept, items_are_walked_over, dead_letters_are_walked_over,
                    a_purge_deletes, a_dead_letter_comes_back;
                updates: an_item_gets_other_values, an_item_changes_its_times, many_items_are_updated_at_once,
                    a_mark_of_an_operation_stays;
                leases: a_lease_is_loaded, a_lease_closes_bit_by_bit, many_lease_rows_change_at_once;
                looks: dormant_topics_are_found_by_name, the_first_due_items_of_topics_are_found,
                    keys_are_read_in_order, items_are_looked_at, dead_letters_are_read_from_the_latest;
                columns: empty_columns_are_read, a_damaged_row_hides_no_other;
                counts: deltas_add_up, tallies_add_up_and_are_folded, a_fold_replaces_the_deltas,
                    a_dropped_topic_is_gone, many_topics_are_folded,
                    namespaces_keep_what_topics_counted, a_topic_with_a_tally_is_not_dormant;
                read_ahead: a_topic_dropped_after_the_read_is_gone,
                    a_topic_dormant_after_the_read_is_not_loaded;
                dedupe: generations_come_and_go, a_key_is_found_again, a_key_is_replaced,
                    many_keys_are_asked, the_topology_history_is_kept;
            );
        }
    };
    (@cases $fresh:expr; $($module:ident: $($case:ident),+;)+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::contract::$module::$case($fresh.await).await;
            }
        )+)+
    };
}
