//! The contract that every kind of catalog passes: SQLite, MariaDB, MySQL, and the fake of the simulation.
//!
//! [`catalog_contract`](crate::catalog_contract) runs all of it for one kind. A case is a function that takes
//! a fresh [`CatalogSubject`] and panics if the catalog breaks the contract.

pub mod assignment;
pub mod audit;
pub mod connections;
pub mod nodes;
pub mod policies;
pub mod schema;
pub mod sessions;
pub mod settings;
pub mod shards;
pub mod snapshot;
pub mod tokens;

use std::{any::Any, fmt, future::Future, pin::Pin, sync::Arc};

use forebay_store::{Catalog, CatalogChanges, CatalogNode, Home, NodeReport, Shard, Versions};
use forebay_types::{ClusterId, Incarnation, NodeName, Timestamp};

use super::Later;

/// Does something to a catalog's connections from outside.
pub type Cut = Box<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// A fresh catalog, not migrated yet.
pub struct CatalogSubject {
    /// Opens it once more, as another process would.
    pub open: Box<dyn Fn() -> Arc<dyn Catalog> + Send + Sync>,
    /// A shard at the same place, as if two URLs were swapped.
    pub shard: Arc<dyn Shard>,
    /// Kills all connections of the database, if there is a server that can.
    pub cut: Option<Cut>,
    /// Migrates the schema as a later release would.
    pub later: Later,
    /// A folder that must outlive the catalog.
    pub guard: Option<Box<dyn Any + Send + Sync>>,
}

impl fmt::Debug for CatalogSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatalogSubject").finish_non_exhaustive()
    }
}

impl CatalogSubject {
    /// The catalog as one process opens it, migrated.
    async fn migrated(&self) -> Arc<dyn Catalog> {
        let catalog = (self.open)();
        catalog.migrate(CLUSTER).await.expect("migrates");
        catalog
    }
}

/// The cluster of the tests.
const CLUSTER: ClusterId = ClusterId([7; 16]);

fn name(name: &str) -> NodeName {
    name.parse().expect("a good name")
}

fn home(node: &str) -> Home {
    Home { node: name(node), pinned: false }
}

/// A node; `process` makes its incarnation.
fn node(node: &str, process: u8) -> CatalogNode {
    CatalogNode {
        name: name(node),
        incarnation: Incarnation([process; 16]),
        peer_address: format!("{node}:7430"),
        clients_address: format!("{node}.example.org:7420"),
        http_address: format!("{node}:7421"),
        release: "0.2.0".to_owned(),
        format: 3,
        draining: false,
        started_at: Some(Timestamp::from_micros(process.into())),
        beats: 1,
        report: NodeReport { servers: vec!["db1:3306".to_owned()], unreachable: vec![] },
    }
}

/// Everything.
async fn all(catalog: &dyn Catalog) -> CatalogChanges {
    catalog.read(Versions::default()).await.expect("reads")
}

/// The version of its shards.
async fn shards_version(catalog: &dyn Catalog) -> u64 {
    all(catalog).await.versions.shards
}

/// Creates a module of tests for a kind of catalog, one for each case. The second argument is an expression
/// that returns a future of a [`CatalogSubject`](crate::contract::catalog::CatalogSubject). Each test
/// evaluates it.
#[macro_export]
macro_rules! catalog_contract {
    ($name:ident, $fresh:expr) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            $crate::catalog_contract!(@cases $fresh;
                schema: a_catalog_is_migrated_once, a_catalog_keeps_its_cluster,
                    a_catalog_without_schema_names_the_command, a_shard_and_a_catalog_are_not_confused,
                    a_later_catalog_is_used_until_it_excludes_this_program;
                nodes: a_node_is_read_as_it_joined, beats_move_the_counter_alone,
                    a_name_is_taken_only_when_dead, of_two_joins_of_one_name_one_wins,
                    of_two_that_take_a_dead_name_one_wins,
                    a_replaced_process_neither_beats_nor_leaves, a_node_drains_until_that_is_undone,
                    beats_of_many_nodes_are_all_counted;
                shards: shards_get_numbers_that_are_never_reused, a_shard_is_added_once,
                    a_password_is_not_stored, a_shard_changes_its_address,
                    a_shard_changes_its_state, a_shard_goes_with_its_home,
                    a_shard_is_changed_from_the_shards_as_they_are,
                    shards_added_at_once_have_different_numbers;
                assignment: homes_are_read_as_they_were_written, a_change_from_an_old_version_is_refused,
                    of_two_changes_from_one_version_one_wins, many_homes_change_at_once;
                snapshot: only_what_changed_is_read, a_lower_version_is_read, a_read_sees_one_moment;
                policies: a_policy_is_read_as_it_was_written, only_policies_that_changed_are_read,
                    a_policy_is_written_from_its_last_version, of_two_policies_from_one_version_one_wins,
                    a_removed_policy_is_told_and_then_forgotten, policies_have_bounds,
                    policies_are_shared_out_by_root, a_policy_that_has_ended_makes_room,
                    policies_do_not_touch_the_rest;
                settings: a_document_of_settings_is_written_whole, the_settings_of_a_namespace_have_a_version,
                a_long_document_of_settings_is_written_whole, settings_are_read_as_they_were_written,
                    settings_are_written_from_their_last_version, settings_and_pauses_leave_each_other_alone,
                    policies_and_settings_are_removed_together, removed_settings_are_told_and_then_forgotten,
                    settings_have_bounds, settings_are_shared_out_by_root;
                audit: a_record_is_read_as_it_was_written, a_record_ends_once,
                    records_are_read_by_tenant_and_time, old_records_are_deleted;
                tokens: a_token_is_read_as_it_was_written, a_token_is_rotated_from_its_newest_secret,
                    a_token_is_revoked, a_token_is_revoked_with_its_descendants,
                    a_revoked_token_without_an_end_stays, the_last_admin_stays,
                    the_first_admin_is_made_once, tokens_have_bounds,
                    tokens_of_one_root_have_bounds, a_root_with_few_tokens_may_make_one,
                    the_hour_of_the_last_use_is_noted;
                sessions: a_session_is_read_as_it_was_written, sessions_that_are_over_are_removed,
                    the_oldest_session_makes_room;
                connections: a_lost_connection_is_replaced, an_abandoned_change_is_rolled_back;
            );
        }
    };
    (@cases $fresh:expr; $($module:ident: $($case:ident),+;)+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::contract::catalog::$module::$case($fresh.await).await;
            }
        )+)+
    };
}
