//! A walk through topics of all nodes, by namespace and name.

use std::collections::{BTreeSet, VecDeque};

use forebay_engine::{TopicScope, TopicsCall};
use forebay_proto::v1;
use forebay_types::{Refusal, TopicName};

use super::context::Admin;
use crate::gather::TopicScan;

/// Topics of one scan.
const SCAN_TOPICS: usize = 1_000;
/// Bytes that the topics of one scan may take.
pub(crate) const SCAN_BYTES: usize = SCAN_TOPICS * 512;
/// Behind every name of a topic, as no name has such a letter.
const BEHIND_ALL: &str = "~";

/// A walk.
pub(crate) struct TopicWalk {
    /// Where topics can be.
    scope: TopicScope,
    /// Behind which one the next scan goes on.
    after: Option<TopicName>,
    /// Topics that were scanned and not taken yet.
    found: VecDeque<v1::Topic>,
    /// Nothing is behind those.
    is_over: bool,
    /// Each namespace with what its forgotten topics counted comes before its topics, as one without a name.
    sums: bool,
    /// Shards that could not be asked.
    pub incomplete: BTreeSet<u32>,
    /// Shards that were asked, and have not read yet all that they have counted.
    pub uncounted: BTreeSet<u32>,
    /// How many topics were looked at.
    pub scanned: u64,
}

impl TopicWalk {
    /// Behind one of them, for sums over namespaces. What forgotten topics counted comes as a topic without a
    /// name before those of its namespace.
    pub fn of_namespaces(scope: TopicScope, after: Option<TopicName>) -> Self {
        Self { sums: true, ..Self::new(scope, after) }
    }

    /// Behind one of them.
    pub fn new(scope: TopicScope, after: Option<TopicName>) -> Self {
        let (found, incomplete, uncounted) = (VecDeque::new(), BTreeSet::new(), BTreeSet::new());
        Self { scope, after, found, is_over: false, sums: false, incomplete, uncounted, scanned: 0 }
    }

    /// Behind all topics of a namespace.
    pub fn behind(namespace: &str) -> TopicName {
        TopicName::new(namespace, BEHIND_ALL)
    }

    /// The next topic, which stays.
    pub async fn peek(&mut self, admin: &Admin) -> Result<Option<&v1::Topic>, Refusal> {
        while self.found.is_empty() && !self.is_over {
            let (scope, after) = (self.scope.clone(), self.after.take());
            let forgotten = self.sums;
            let call = TopicsCall { scope, after, limit: SCAN_TOPICS, due: false, forgotten };
            let TopicScan { topics, through, shards, counted, scanned } = admin.gather.topics(call).await?;
            if self.sums {
                self.uncounted.extend(shards.difference(&counted));
            }
            self.incomplete.extend(admin.gather.incomplete(&shards));
            self.scanned += scanned;
            self.found.extend(topics);
            self.is_over = through.is_none();
            self.after = through;
        }
        Ok(self.found.front())
    }

    /// Takes the next topic.
    pub async fn next(&mut self, admin: &Admin) -> Result<Option<v1::Topic>, Refusal> {
        self.peek(admin).await?;
        Ok(self.found.pop_front())
    }

    /// Passes over all other topics of a namespace.
    pub fn skip(&mut self, namespace: &str) {
        self.found.retain(|topic| topic.namespace != namespace);
        if self.found.is_empty() && !self.is_over {
            self.after = self.after.take().max(Some(Self::behind(namespace)));
        }
    }
}
