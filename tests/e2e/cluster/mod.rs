//! Several nodes with a catalog: each owns some of the shards, and others take them over.

mod dev;
mod faults;
mod forward;
mod nodes;
mod operate;
mod restarts;
mod servers;
mod shards;
mod unreached;
