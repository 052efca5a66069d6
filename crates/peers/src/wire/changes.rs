//! Changes of items, between nodes.

use std::time::Duration;

use forebay_engine::{ChangeCall, ChangeResult, ItemChange, ItemUpdate};
use forebay_proto::peer::{self, change_items_request::Change, update_item::Schedule as WireSchedule};
use forebay_types::{ItemId, Reason, Refusal, Schedule, Seq, ShardId, Timestamp};

use super::{micros, refusal};
use crate::looks::items::{state, state_message};

/// A request to another node.
pub fn request(call: &ChangeCall) -> peer::ChangeItemsRequest {
    let ChangeCall { namespace, items, change, dry_run } = call;
    let change = match change {
        ItemChange::Cancel => Change::Cancel(peer::CancelItem {}),
        ItemChange::Update(update) => Change::Update(update_request(update)),
    };
    peer::ChangeItemsRequest {
        namespace: namespace.to_string(),
        items: items.iter().map(|id| peer::ItemId { shard: id.shard.0, seq: id.seq.0 }).collect(),
        dry_run: *dry_run,
        change: Some(change),
    }
}

/// A request of another node. `None`: it names a change that this program does not know.
pub fn call(request: peer::ChangeItemsRequest) -> Option<ChangeCall> {
    let peer::ChangeItemsRequest { namespace, items, dry_run, change } = request;
    let change = match change? {
        Change::Cancel(peer::CancelItem {}) => ItemChange::Cancel,
        Change::Update(update) => ItemChange::Update(update_of(update)),
    };
    let id = |id: peer::ItemId| ItemId { shard: ShardId(id.shard), seq: Seq(id.seq) };
    Some(ChangeCall {
        namespace: namespace.into(),
        items: items.into_iter().map(id).collect(),
        change,
        dry_run,
    })
}

fn update_request(update: &ItemUpdate) -> peer::UpdateItem {
    let ItemUpdate { priority, schedule, metadata, ttl } = update.clone();
    let schedule = schedule.map(|schedule| match schedule {
        Schedule::Now => WireSchedule::Delay(0),
        Schedule::Delay(delay) => WireSchedule::Delay(micros(delay)),
        Schedule::After(time) => WireSchedule::DeliverAfter(time.as_micros()),
    });
    peer::UpdateItem { priority, schedule, metadata, ttl: ttl.map(micros) }
}

fn update_of(update: peer::UpdateItem) -> ItemUpdate {
    let peer::UpdateItem { priority, schedule, metadata, ttl } = update;
    let schedule = schedule.map(|schedule| match schedule {
        WireSchedule::Delay(0) => Schedule::Now,
        WireSchedule::Delay(delay) => Schedule::Delay(Duration::from_micros(delay)),
        WireSchedule::DeliverAfter(time) => Schedule::After(Timestamp::from_micros(time)),
    });
    ItemUpdate { priority, schedule, metadata, ttl: ttl.map(Duration::from_micros) }
}

/// Results, as another node is told.
pub fn response(results: Vec<ChangeResult>) -> peer::ChangeItemsResponse {
    let result = |changed: ChangeResult| match changed {
        Ok(state) => peer::ChangeItemResult { state: state_message(state).into(), refusal: None },
        Err(why) => peer::ChangeItemResult { refusal: Some(refusal::message(why)), ..Default::default() },
    };
    peer::ChangeItemsResponse { results: results.into_iter().map(result).collect() }
}

/// Results, as another node has told.
pub fn results(response: peer::ChangeItemsResponse) -> Vec<ChangeResult> {
    let result = |result: peer::ChangeItemResult| match (state(result.state()), result.refusal) {
        (_, Some(why)) => Err(refusal::refusal(why)),
        (Some(state), None) => Ok(state),
        // It was changed, as a later release has it.
        (None, None) => {
            let message = "a node of another release says nothing of the state in which the item was";
            Err(Refusal::new(Reason::OutcomeUnknown, message))
        }
    };
    response.results.into_iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use forebay_engine::ItemState;

    use super::*;

    #[test]
    fn a_change_and_its_answers_are_read_back() {
        let items =
            vec![ItemId { shard: ShardId(3), seq: Seq(7) }, ItemId { shard: ShardId(1), seq: Seq(9) }];
        let all = ItemUpdate {
            priority: Some(i32::MIN),
            schedule: Some(Schedule::After(Timestamp::from_micros(-7))),
            metadata: Some("m".into()),
            ttl: Some(Duration::from_micros(1_500_001)),
        };
        let none = ItemUpdate::default();
        let now = ItemUpdate { schedule: Some(Schedule::Now), metadata: Some("".into()), ..none.clone() };
        let delay = Some(Schedule::Delay(Duration::from_micros(9)));
        let later = ItemUpdate { priority: Some(0), schedule: delay, ..none.clone() };
        let updates = [all, none, now, later].map(ItemChange::Update);
        for (dry_run, change) in updates.into_iter().chain([ItemChange::Cancel]).enumerate() {
            let (namespace, items, dry_run) = ("ns".into(), items.clone(), dry_run % 2 == 0);
            let change = ChangeCall { namespace, items, change, dry_run };
            assert_eq!(call(request(&change)), Some(change));
        }
        assert_eq!(call(peer::ChangeItemsRequest::default()), None, "a change of a later release");
        let told = vec![Ok(ItemState::Leased), Err(Refusal::new(Reason::ItemNotFound, "gone"))];
        assert_eq!(results(response(told.clone())), told);
        let later = peer::ChangeItemsResponse { results: vec![peer::ChangeItemResult::default()] };
        assert_eq!(results(later).remove(0).unwrap_err().reason, Reason::OutcomeUnknown);
    }
}
