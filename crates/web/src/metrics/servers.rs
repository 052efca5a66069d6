//! Gauges of database servers, of which each has several shards.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError},
};

use forebay_engine::ShardStatus;
use metrics::gauge;

/// State of a server, as the node knows it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Server {
    /// Some shard of it answers.
    is_up: bool,
    /// How far its clock is ahead of node time, in seconds. 0: it is not known.
    offset: f64,
}

/// Sets them. A server whose last shard was removed is neither up nor down: a gauge that nobody sets would
/// keep its last value.
pub fn set(shards: &[ShardStatus]) {
    static SHOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let servers = of(shards);
    let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    for gone in shown.iter().filter(|name| !servers.contains_key(name.as_str())) {
        show(gone, f64::NAN, f64::NAN);
    }
    shown.clear();
    for (name, Server { is_up, offset }) in servers {
        show(name, f64::from(is_up), offset);
        shown.insert(name.to_owned());
    }
}

fn show(name: &str, is_up: f64, offset: f64) {
    gauge!("forebay_database_up", "server" => name.to_owned()).set(is_up);
    gauge!("forebay_clock_offset_seconds", "server" => name.to_owned()).set(offset);
}

/// The servers of these shards, by name.
fn of(shards: &[ShardStatus]) -> BTreeMap<&str, Server> {
    let mut servers: BTreeMap<&str, Server> = BTreeMap::new();
    for shard in shards {
        let server = servers.entry(&shard.server).or_default();
        server.is_up |= shard.silent_since_micros.is_none();
        let offset = shard.clock_offset_micros as f64 / 1e6;
        if offset.abs() > server.offset.abs() {
            server.offset = offset;
        }
    }
    servers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_up_while_a_shard_of_it_answers() {
        let shard = |server: &str, silent_since_micros, clock_offset_micros| {
            let server = server.to_owned();
            ShardStatus { server, silent_since_micros, clock_offset_micros, ..ShardStatus::default() }
        };
        let shards = [
            shard("db1:3306", Some(7), 0),
            shard("db1:3306", None, -2_500_000),
            shard("db2:3306", Some(7), 0),
        ];
        let server = |is_up, offset| Server { is_up, offset };
        let expected = [("db1:3306", server(true, -2.5)), ("db2:3306", server(false, 0.0))];
        assert_eq!(of(&shards), BTreeMap::from(expected));
    }
}
