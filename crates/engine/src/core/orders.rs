//! Orders to operations that have no answer yet. A call is answered when its last shard is.

use std::collections::BTreeMap;

use forebay_store::OperationRow;
use forebay_types::{Refusal, ShardId};

use crate::{api::OrderResult, messages::reply::Reply};

/// A call that collects what its shards answer.
#[derive(Debug)]
struct PendingOrder {
    /// The answers so far.
    answers: Vec<OrderResult>,
    /// Shards without an answer.
    left: usize,
    /// Receives all answers.
    reply: Reply<Vec<OrderResult>>,
}

/// All calls that are under way. There are few: each is a call of an operator, or of another node.
#[derive(Debug, Default)]
pub(crate) struct Orders(BTreeMap<u64, PendingOrder>);

impl Orders {
    /// A call that so many shards answer. Some have done so already.
    pub fn begin(
        &mut self,
        call: u64,
        left: usize,
        answers: Vec<OrderResult>,
        reply: Reply<Vec<OrderResult>>,
    ) {
        if left == 0 {
            // Without a listener nobody is interested.
            reply.send(Ok(answers));
        } else {
            self.0.insert(call, PendingOrder { answers, left, reply });
        }
    }

    /// A shard has answered.
    pub fn done(&mut self, call: u64, shard: ShardId, result: Result<OperationRow, Refusal>) {
        let Some(mut order) = self.0.remove(&call) else { return };
        order.answers.push((shard, result));
        order.left -= 1;
        if order.left == 0 {
            order.reply.send(Ok(order.answers));
        } else {
            self.0.insert(call, order);
        }
    }
}
