//! CancelItems.

use std::collections::HashMap;

use forebay_access::Identity;
use forebay_edge::rpc::{
    fields,
    members::Members,
    status::{self, RefusalFields},
};
use forebay_engine::{ChangeCall, ChangeResult, ItemChange};
use forebay_peers::looks::items::state_message;
use forebay_proto::v1;
use forebay_types::{ItemId, Reason, Refusal, cut_text};

use super::{
    context::{Admin, REASON_BYTES},
    ctx::Ctx,
};

/// The most items of one call.
const ITEMS_MAX: usize = 1_000;
/// Bytes that the answer to one item may take between nodes.
const ANSWER_BYTES: usize = 256;

/// Serves the call.
pub async fn cancel(
    admin: &Admin,
    ctx: &Ctx,
    mut request: v1::CancelItemsRequest,
) -> Result<v1::CancelItemsResponse, Refusal> {
    let namespace = admin.rules.namespace(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    fields::members("item_ids", request.item_ids.len(), ITEMS_MAX)?;
    cut_text(&mut request.reason, REASON_BYTES);
    ctx.call.reserve_answers(request.item_ids.len())?;
    let _look = admin.gather.admit(&namespace, request.item_ids.len() * ANSWER_BYTES)?;
    let id =
        |(index, text): (usize, &String)| text.parse::<ItemId>().map_err(|error| wrong_id(index, &error));
    let (named, results) = request.item_ids.iter().enumerate().map(id).collect::<Members<_>>().split();
    let mut items = named.clone();
    items.sort_unstable();
    items.dedup();
    let change = ChangeCall { namespace, items, change: ItemChange::Cancel, dry_run: request.dry_run };
    let changed = admin.gather.change_items(&change).await;
    if !request.dry_run {
        log(&ctx.caller, &change, &changed, &request.reason);
    }
    let by_id: HashMap<ItemId, ChangeResult> = change.items.into_iter().zip(changed).collect();
    let answers = named.iter().filter_map(|id| by_id.get(id).cloned()).collect();
    let answers = results.merge("item_ids", answers)?;
    let results = request.item_ids.into_iter().zip(answers).map(|(id, changed)| result(id, changed));
    Ok(v1::CancelItemsResponse { results: results.collect() })
}

fn wrong_id(index: usize, error: &dyn std::fmt::Display) -> Refusal {
    Refusal::field(format!("item_ids[{index}]"), error.to_string())
}

fn result(item_id: String, changed: ChangeResult) -> v1::CancelItemResult {
    match changed {
        Ok(state) => {
            v1::CancelItemResult { item_id, state: state_message(state).into(), ..Default::default() }
        }
        Err(refusal) => {
            let RefusalFields { error, reason, retry_after } = status::of_result(&refusal);
            v1::CancelItemResult { item_id, error, reason, retry_after, ..Default::default() }
        }
    }
}

/// Logs who removed items and why, as they can't be looked at any more.
fn log(caller: &Identity, change: &ChangeCall, changed: &[ChangeResult], reason: &str) {
    let cancelled = changed.iter().filter(|result| result.is_ok()).count();
    let unknown = |result: &&ChangeResult| matches!(result, Err(why) if why.reason == Reason::OutcomeUnknown);
    let unknown = changed.iter().filter(unknown).count();
    if cancelled + unknown > 0 {
        let (namespace, who) = (&*change.namespace, &*caller.id);
        tracing::info!(namespace, who, cancelled, unknown, reason, "items were cancelled");
    }
}
