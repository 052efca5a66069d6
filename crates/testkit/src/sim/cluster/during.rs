//! Functions that every disturbance of a cluster needs.

use crate::{
    fake::Dice,
    sim::{process::Node, world::World},
};

/// Something disturbs the cluster, for as long as `during` takes.
pub async fn trouble(world: &World, what: String, during: impl Future<Output = ()>) {
    lasts(world, false, what, during).await;
}

/// The same, of the catalog alone.
pub async fn catalog_trouble(world: &World, what: String, during: impl Future<Output = ()>) {
    lasts(world, true, what, during).await;
}

async fn lasts(world: &World, of_catalog: bool, what: String, during: impl Future<Output = ()>) {
    let troubles = &world.cluster().troubles;
    let number = troubles.begin(&world.journal, of_catalog, &what);
    during.await;
    troubles.end(&world.journal, number);
}

/// A node that lives.
pub fn some_node(world: &World, dice: &mut Dice) -> Option<Node> {
    let alive = world.alive();
    (!alive.is_empty()).then(|| dice.pick(&alive).clone())
}
