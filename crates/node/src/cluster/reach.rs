//! Which database servers a node reaches. A short disturbance is not reported: the shards of a server that a
//! node does not reach are given to others.

use std::{collections::BTreeMap, time::Duration};

use forebay_engine::ShardSight;
use forebay_types::Monotonic;

/// A server of which no shard has answered for so long is out of reach.
const UNREACHED_AFTER: Duration = Duration::from_secs(3);

/// When each server answered last.
#[derive(Debug, Default)]
pub struct Reach {
    /// By the server's name: when one of its shards answered, or when it was first looked at.
    answered: BTreeMap<String, Monotonic>,
}

impl Reach {
    /// Takes in what the node sees. Returns the servers that it reaches.
    pub fn observe(&mut self, sights: &[ShardSight], now: Monotonic) -> Vec<String> {
        self.answered.retain(|server, _| sights.iter().any(|sight| sight.server == *server));
        for sight in sights.iter().filter(|sight| sight.answers) {
            self.answered.insert(sight.server.clone(), now);
        }
        let reached = self.answered.iter().filter(|(_, at)| now.since(**at) < UNREACHED_AFTER);
        reached.map(|(server, _)| server.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::ShardId;

    use super::*;

    #[test]
    fn a_server_is_reached_until_it_has_not_answered_for_a_while() {
        let at = |millis| Monotonic::from_start(Duration::from_millis(millis));
        let sight = |server: &str, answers| ShardSight {
            id: ShardId(1),
            server: server.to_owned(),
            wanted: false,
            owned: false,
            owner: String::new(),
            silent: false,
            looked_at: true,
            answers,
            stuck: false,
        };
        let mut reach = Reach::default();
        assert_eq!(reach.observe(&[sight("db1", true), sight("db2", false)], at(0)), ["db1"]);
        assert_eq!(reach.observe(&[sight("db1", false), sight("db2", true)], at(2_999)), ["db1", "db2"]);
        assert_eq!(reach.observe(&[sight("db1", false), sight("db2", true)], at(3_000)), ["db2"]);
        // One shard of a server is enough.
        assert_eq!(reach.observe(&[sight("db1", false), sight("db1", true)], at(9_000)), ["db1"]);
    }
}
