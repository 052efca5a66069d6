//! The forms. Each makes one call for whoever sends it, and leads to a page.

mod cancel_item;
mod create_token;
mod drain_node;
mod drain_shard;
mod enqueue;
mod move_shard;
mod operate;
mod pause;
mod put_namespace;
mod put_topic;
mod release_leases;
mod resume;
mod revoke_token;
mod rotate_token;
mod set_rate;
mod settings;
mod stop_operation;
mod update_item;

use std::sync::Arc;

use axum::routing::{MethodRouter, post};

use crate::info::NodeInfo;

/// The handler of a form of the dashboard. `path`: as in the list of forms.
pub fn form_handler(path: &str) -> Option<MethodRouter<Arc<NodeInfo>>> {
    Some(match path {
        "/cancel-item" => post(cancel_item::act),
        "/create-token" => post(create_token::act),
        "/drain-node" => post(drain_node::act),
        "/drain-shard" => post(drain_shard::act),
        "/enqueue" => post(enqueue::act),
        "/move-shard" => post(move_shard::act),
        "/operate" => post(operate::act),
        "/pause" => post(pause::act),
        "/put-namespace" => post(put_namespace::act),
        "/put-topic" => post(put_topic::act),
        "/release-leases" => post(release_leases::act),
        "/resume" => post(resume::act),
        "/revoke-token" => post(revoke_token::act),
        "/rotate-token" => post(rotate_token::act),
        "/set-rate" => post(set_rate::act),
        "/stop-operation" => post(stop_operation::act),
        "/update-item" => post(update_item::act),
        _ => return None,
    })
}
