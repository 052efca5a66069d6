//! ONE-OWNER: batches match the current fence, without gaps, and each epoch has one owner.

use std::collections::BTreeMap;

use super::record::{Finding, RunRecord};

pub(super) fn check(record: &RunRecord, found: &mut Vec<Finding>) {
    for shard in &record.shards {
        let mut wrong = |what: String| found.push(("ONE-OWNER", format!("shard {}: {what}", shard.id)));
        let mut number = None;
        for batch in &shard.log {
            if (batch.epoch, batch.incarnation) != (batch.fence_epoch, batch.fence_incarnation) {
                let (own, fence) = (batch.epoch, batch.fence_epoch);
                wrong(format!("batch {} of epoch {own} committed in epoch {fence}", batch.number));
            }
            if number.is_some_and(|number| number + 1 != batch.number) {
                wrong(format!("batch {} follows {number:?}", batch.number));
            }
            number = Some(batch.number);
        }
        let mut owners = BTreeMap::new();
        for owner in &shard.owners {
            if owners.insert(owner.epoch, owner.incarnation).is_some() {
                wrong(format!("epoch {} has two owners", owner.epoch));
            }
        }
    }
}
