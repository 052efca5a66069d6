//! A client that cancels and updates single items.

use std::time::Duration;

use forebay_engine::{ChangeCall, ItemChange, ItemUpdate};
use forebay_store::OperationUpdate;
use forebay_types::{ItemId, Schedule};

use super::{
    node::{Port, namespace},
    process::Node,
};

/// Cancels or updates a few items, wherever they are, and by mistake some of another tenant.
pub async fn change(port: &mut Port<'_>, node: &Node) {
    let tenant = usize::from(port.dice.chance(150));
    let change = match port.dice.chance(500) {
        true => ItemChange::Cancel,
        false => ItemChange::Update(update(port)),
    };
    let mut items: Vec<ItemId> = Vec::new();
    for _ in 0..port.dice.within(1, 6) {
        let stored = &mut port.world.receipts().stored;
        if stored.is_empty() {
            break;
        }
        let at = port.dice.below(stored.len() as u64) as usize;
        let (of, item) = stored[at];
        if (of == tenant || port.dice.chance(20)) && !items.contains(&item) {
            items.push(item);
            // Some are cancelled twice, and many updated again.
            let again = if change == ItemChange::Cancel { 200 } else { 900 };
            if !port.dice.chance(again) {
                stored.swap_remove(at);
            }
        }
    }
    if !items.is_empty() {
        let call = ChangeCall { namespace: namespace(tenant), items, change, dry_run: false };
        port.change(node, tenant, call).await;
    }
}

/// Values for items, at least a priority.
fn update(port: &mut Port<'_>) -> ItemUpdate {
    let (world, dice) = (port.world, &mut port.dice);
    let schedule = match dice.below(6) {
        0 => Some(Schedule::Now),
        1 => Some(Schedule::Delay(dice.millis((0, 3_000)))),
        // Due while the batch is on its way.
        3 => Some(Schedule::Delay(dice.millis((1, 60)))),
        // Some of these times are in the past.
        2 if world.plan.exact_time() => {
            let span = dice.millis((0, 4_000));
            Some(Schedule::After(world.journal.now().plus(span).minus(Duration::from_secs(1))))
        }
        _ => None,
    };
    let priority = *dice.pick(&[-9, 0, 0, 1, 5, -3]);
    ItemUpdate {
        priority: (schedule.is_none() || dice.chance(300)).then_some(priority),
        schedule,
        metadata: dice.chance(300).then(|| format!("updated-{}", dice.below(1_000)).into()),
        ttl: dice.chance(200).then(|| dice.millis((500, 9_000))),
    }
}

/// Values for all items of an operation.
pub fn update_of_many(port: &mut Port<'_>) -> OperationUpdate {
    let ItemUpdate { priority, schedule, metadata, ttl } = update(port);
    OperationUpdate { priority, due: schedule, metadata: metadata.map(|it| it.to_vec()), ttl }
}
