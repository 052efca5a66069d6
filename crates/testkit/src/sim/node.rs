//! Calls to a node. They are recorded, abandoned at a deadline, and lost if the process dies.

use std::{future::Future, time::Duration};

use forebay_engine::{
    ActiveTopicsCall, ChangeCall, DeliveredItem, DequeueCall, EnqueueCall, EnqueueOutcome, ExtendOf,
    NackAction, NackOf, NewItem, Settlement, SettlementResult,
};
use forebay_store::OperationOrder;
use forebay_types::{Body, Fate, ItemId, Namespace, Reason, Receipt, Refusal, Schedule, Seq, ShardId};

use super::{
    caller_bug::CallerBug,
    history::{Answer, Call, CallerKnowledge, SentItem, What, known_after},
    payload::{metadata, payload},
    process::Node,
    world::World,
};
use crate::fake::{Dice, Moment};

/// How long a caller waits for an answer.
const DEADLINE: Duration = Duration::from_secs(30);

/// The shard that a call names, by its request id: a repeated one names it again. Most name none. The
/// release before knows of no such calls.
fn named_shard(world: &World, request_id: &str) -> Option<ShardId> {
    let number: u64 = request_id.rsplit('-').next()?.parse().ok()?;
    let shard = 1 + number / 3 % world.plan.shards as u64;
    (number.is_multiple_of(3) && !world.plan.older).then_some(ShardId(shard as u32))
}

/// The tenants of a run. They use the same topic names.
pub const NAMESPACES: [&str; 2] = ["one", "two"];

/// One client's access to the nodes.
pub struct Port<'a> {
    /// The run.
    pub world: &'a World,
    /// Its randomness.
    pub dice: Dice,
    /// It never disconnects before its answer.
    pub patient: bool,
}

impl Port<'_> {
    /// A number for a new item.
    pub fn next_tag(&self) -> u64 {
        let mut receipts = self.world.receipts();
        receipts.tags += 1;
        receipts.tags
    }

    /// Stores items. Returns those that were certainly not stored.
    pub async fn enqueue(
        &mut self,
        node: &Node,
        tenant: usize,
        items: Vec<SentItem>,
        request_id: Option<String>,
    ) -> Vec<SentItem> {
        let call = EnqueueCall {
            namespace: namespace(tenant),
            items: items.iter().map(new_item).collect(),
            request_id: request_id.clone(),
            shard: request_id.as_deref().and_then(|id| named_shard(self.world, id)),
            ..EnqueueCall::default()
        };
        let count = items.len();
        let start = self.begin(node, format_args!("enqueue {:?}", Tags(&items)));
        let forgotten = self.has_bug(CallerBug::EnqueueForgotten, 20);
        let mut answer = if forgotten {
            let id = ItemId { shard: ShardId(1), seq: Seq(1 << 30) };
            Answer::Done(vec![Ok(EnqueueOutcome::new(id)); count])
        } else {
            let stored = async { node.front.enqueue(call).await.map(|answer| answer.results) };
            self.call(node, stored).await
        };
        self.tell_unknown(&mut answer);
        if let Answer::Done(results) = &mut answer
            && self.world.plan.caller_bug == Some(CallerBug::PoisonSpreads)
            && let Some(Err(refusal)) = results.iter().find(|result| result.is_err()).cloned()
        {
            results.iter_mut().for_each(|result| *result = Err(refusal.clone()));
        }
        let unknown = (0..count).any(|member| answer.known(member) == CallerKnowledge::Maybe);
        let known = !unknown || request_id.is_none() && items.iter().all(|item| item.dedupe_key.is_none());
        if !known || (request_id.is_some() && self.dice.chance(200)) {
            self.world.receipts().repeatable.push((tenant, items.clone(), request_id.clone()));
        }
        if let Answer::Done(results) = &answer {
            let stored = results.iter().flatten().map(|done| (tenant, done.id));
            self.world.receipts().stored.extend(stored);
        }
        let is_left = |(at, _): &(usize, &SentItem)| answer.known(*at) == CallerKnowledge::Not;
        let left = items.iter().enumerate().filter(is_left).map(|(_, sent)| sent.clone()).collect();
        self.end(node, tenant, start, What::Enqueue { items, request_id, answer });
        left
    }

    /// Leases items, and adds their receipts to the shared ones.
    pub async fn dequeue(&mut self, node: &Node, tenant: usize, call: DequeueCall) -> usize {
        let topics: Vec<_> = call.demands.iter().map(|demand| (&*demand.topic, demand.max_items)).collect();
        let start = self.begin(node, format_args!("dequeue {topics:?} for {:?}", call.wait));
        let mut answer = self.call(node, node.engine.dequeue(call.clone())).await;
        if let Answer::Done(items) = &mut answer
            && items.len() > 1
            && self.world.plan.caller_bug == Some(CallerBug::OrderTurned)
        {
            items.reverse();
        }
        let mut count = 0;
        if let Answer::Done(items) = &answer {
            count = items.len();
            let receipts = items.iter().filter_map(|item| Some((tenant, item.receipt?)));
            self.world.receipts().held.extend(receipts);
        }
        if self.has_bug(CallerBug::HandedOutTwice, 200) {
            let what = What::Dequeue { call: call.clone(), answer: answer.clone() };
            self.end(node, tenant, start, what);
        }
        self.end(node, tenant, start, What::Dequeue { call, answer });
        count
    }

    /// Ends deliveries.
    pub async fn ack(&mut self, node: &Node, tenant: usize, receipts: Vec<Receipt>) -> Vec<CallerKnowledge> {
        let start = self.begin(node, format_args!("ack {:?}", ReceiptNames(&receipts)));
        let mut answer = if self.has_bug(CallerBug::AckForgotten, 100) {
            Answer::Done(vec![Ok(Settlement::default()); receipts.len()])
        } else {
            self.call(node, node.front.ack(namespace(tenant), receipts.clone())).await
        };
        self.settle_bugs(&mut answer);
        let known = (0..receipts.len()).map(|member| answer.known(member)).collect();
        self.settled(tenant, &receipts);
        self.end(node, tenant, start, What::Ack { receipts, answer });
        known
    }

    /// Nacks deliveries.
    pub async fn nack(&mut self, node: &Node, tenant: usize, nacks: Vec<NackOf>) {
        let receipts: Vec<Receipt> = nacks.iter().map(|nack| nack.receipt).collect();
        let start =
            self.begin(node, format_args!("nack {:?} {:?}", ReceiptNames(&receipts), Actions(&nacks)));
        let mut answer = if self.has_bug(CallerBug::NackForgotten, 300) {
            Answer::Done(vec![Ok(Settlement::default()); receipts.len()])
        } else {
            self.call(node, node.front.nack(namespace(tenant), nacks.clone())).await
        };
        self.settle_bugs(&mut answer);
        self.settled(tenant, &receipts);
        self.end(node, tenant, start, What::Nack { nacks, answer });
    }

    /// Extends leases.
    pub async fn extend(&mut self, node: &Node, tenant: usize, extensions: Vec<ExtendOf>) {
        let receipts: Vec<Receipt> = extensions.iter().map(|extension| extension.receipt).collect();
        let start = self.begin(node, format_args!("extend {:?}", ReceiptNames(&receipts)));
        let mut answer =
            self.call(node, node.front.extend_lease(namespace(tenant), extensions.clone())).await;
        if let Answer::Done(results) = &mut answer
            && self.world.plan.caller_bug == Some(CallerBug::ExtensionExaggerated)
        {
            results.iter_mut().flatten().for_each(|end| *end = end.plus(Duration::from_secs(1)));
        }
        self.end(node, tenant, start, What::Extend { extensions, answer });
    }

    /// Changes items.
    pub async fn change(&mut self, node: &Node, tenant: usize, call: ChangeCall) {
        let start = self.begin(node, format_args!("{:?} of {:?}", call.change, call.items));
        let mut answer = self.call(node, node.engine.change_items(call.clone())).await;
        self.tell_unknown(&mut answer);
        self.end(node, tenant, start, What::Change { call, answer });
    }

    /// Asks a node's shards for something about an operation. What comes of it is in their rows.
    pub async fn order(&mut self, node: &Node, order: OperationOrder) {
        let start = self.begin(node, format_args!("order {order:?}"));
        let answer = self.call(node, node.engine.order(order, None)).await;
        let text = match answer {
            Answer::Done(answers) => format!("{} shards answered", answers.len()),
            Answer::Refused(refusal) => format!("refused: {refusal}"),
            Answer::Lost => "lost".to_owned(),
        };
        self.world.journal.note(format_args!("<- call {}: {text}", start.event));
    }

    /// Reads a page of active topics.
    pub async fn active_topics(&mut self, node: &Node, tenant: usize, call: ActiveTopicsCall) {
        let start = self.begin(node, format_args!("active topics, {} of {:?}", call.limit, call.prefix));
        let answer = self.call(node, node.front.active_topics(call.clone())).await;
        self.end(node, tenant, start, What::ActiveTopics { call, answer });
    }

    /// Waits for an answer until the deadline passes, the caller disconnects, or the process dies.
    async fn call<T>(&mut self, node: &Node, call: impl Future<Output = Result<T, Refusal>>) -> Answer<T> {
        let timeout = match !self.patient && self.dice.chance(self.world.plan.cancels) {
            true => self.dice.millis((0, 300)),
            false => DEADLINE,
        };
        tokio::select! {
            biased;
            () = node.process.died() => Answer::Lost,
            answer = node.tasks.serve(call) => match answer {
                Ok(answer) => Answer::Done(answer),
                Err(refusal) => Answer::Refused(refusal),
            },
            () = tokio::time::sleep(timeout) => Answer::Lost,
        }
    }

    fn begin(&self, node: &Node, what: std::fmt::Arguments<'_>) -> Moment {
        self.world.journal.note(format_args!("-> process {}: {what}", node.process.number))
    }

    fn end(&self, node: &Node, tenant: usize, start: Moment, what: What) {
        let summary = summary(&what);
        let end = self.world.journal.note(format_args!("<- call {}: {summary}", start.event));
        let (process, namespace) = (node.process.number, namespace(tenant));
        self.world.record(Call { process, namespace, start, end, what });
    }

    fn settled(&self, tenant: usize, settled: &[Receipt]) {
        let mut receipts = self.world.receipts();
        receipts.held.retain(|(_, held)| !settled.contains(held));
        for receipt in settled {
            receipts.old.push((tenant, *receipt));
        }
    }

    fn has_bug(&mut self, caller_bug: CallerBug, per_mille: u32) -> bool {
        self.world.plan.caller_bug == Some(caller_bug) && self.dice.chance(per_mille)
    }

    fn settle_bugs(&self, answer: &mut Answer<Vec<SettlementResult>>) {
        self.tell_unknown(answer);
        let Answer::Done(results) = answer else { return };
        for result in results {
            let lost = matches!(result, Err(refusal) if refusal.reason == Reason::LeaseLost);
            match self.world.plan.caller_bug {
                Some(CallerBug::StaleAckOk) if lost => *result = Ok(Settlement::default()),
                Some(CallerBug::FateMadeUp) if lost => *result = Err(Refusal::lease_lost(Fate::Gone)),
                _ => {}
            }
        }
    }

    fn tell_unknown<T>(&self, answer: &mut Answer<Vec<Result<T, Refusal>>>) {
        if self.world.plan.caller_bug != Some(CallerBug::UnknownTold) {
            return;
        }
        let definite = |refusal: &mut Refusal| {
            if known_after(refusal) == CallerKnowledge::Maybe {
                *refusal = Refusal::new(Reason::ShardUnavailable, "told as a failure");
            }
        };
        match answer {
            Answer::Done(results) => results.iter_mut().filter_map(|r| r.as_mut().err()).for_each(definite),
            Answer::Refused(refusal) => definite(refusal),
            Answer::Lost => {}
        }
    }
}

/// A tenant's name.
pub fn namespace(tenant: usize) -> Namespace {
    NAMESPACES[tenant].into()
}

fn new_item(sent: &SentItem) -> NewItem {
    NewItem {
        topic: sent.topic.clone(),
        priority: sent.priority,
        body: Body {
            payload: payload(sent.tag, sent.poison),
            metadata: metadata(sent.tag),
            ..Body::default()
        },
        schedule: sent.schedule,
        lease: sent.lease,
        lease_is_default: false,
        ttl: sent.ttl,
        policy: sent.policy,
        max_attempts: sent.max_attempts,
        attempts_are_default: false,
        dedupe_key: sent.dedupe_key.clone(),
        shard: sent.shard,
        rank: None,
    }
}

/// A short text of an answer, for the trace.
fn summary(what: &What) -> String {
    fn all<T>(answer: &Answer<Vec<T>>, one: impl Fn(&T) -> String) -> String {
        match answer {
            Answer::Done(results) => results.iter().map(one).collect::<Vec<_>>().join(" "),
            Answer::Refused(refusal) => format!("refused: {refusal}"),
            Answer::Lost => "lost".to_owned(),
        }
    }
    fn why(refusal: &Refusal) -> String {
        match refusal.fate {
            Some(fate) => format!("lost:{}", fate.as_str()),
            None => refusal.reason.as_str().to_owned(),
        }
    }
    match what {
        What::Enqueue { answer, .. } => all(answer, |result| match result {
            Ok(done) if done.duplicate => format!("={}", done.id),
            Ok(done) => done.id.to_string(),
            Err(refusal) => why(refusal),
        }),
        What::Dequeue { answer, .. } => {
            all(answer, |item: &DeliveredItem| format!("{}.{}@{}", item.id, item.attempt, item.priority))
        }
        What::Ack { answer, .. } | What::Nack { answer, .. } => {
            all(answer, |result| result.as_ref().map_or_else(why, |_| "ok".to_owned()))
        }
        What::Extend { answer, .. } => {
            all(answer, |result| result.as_ref().map_or_else(why, |end| end.as_micros().to_string()))
        }
        What::Change { answer, .. } => {
            all(answer, |result| result.as_ref().map_or_else(why, |state| format!("{state:?}")))
        }
        What::ActiveTopics { answer: Answer::Done(page), .. } => {
            let topics = page.topics.iter().map(|topic| format!("{} {}", topic.position.topic, topic.ready));
            topics.collect::<Vec<_>>().join(", ")
        }
        What::ActiveTopics { answer, .. } => format!("{answer:?}"),
    }
}

struct Tags<'a>(&'a [SentItem]);

impl std::fmt::Debug for Tags<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for sent in self.0 {
            write!(f, "#{} {}@{} ", sent.tag, sent.topic, sent.priority)?;
            match sent.schedule {
                Schedule::Now => {}
                Schedule::Delay(span) => write!(f, "in {span:?} ")?,
                Schedule::After(at) => write!(f, "after {} ", at.as_micros())?,
            }
            if let Some(ttl) = sent.ttl {
                write!(f, "ttl {ttl:?} ")?;
            }
            if let Some(key) = &sent.dedupe_key {
                write!(f, "key {key} ")?;
            }
            if sent.poison {
                write!(f, "POISON ")?;
            }
        }
        Ok(())
    }
}

struct ReceiptNames<'a>(&'a [Receipt]);

impl std::fmt::Debug for ReceiptNames<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|receipt| write!(f, "{}.{} ", receipt.item, receipt.delivery))
    }
}

struct Actions<'a>(&'a [NackOf]);

impl std::fmt::Debug for Actions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|nack| match nack.action {
            NackAction::Fail(None) => write!(f, "fail "),
            NackAction::Fail(Some(span)) => write!(f, "fail {span:?} "),
            NackAction::Release(span) => write!(f, "release {span:?} "),
            NackAction::DeadLetter => write!(f, "dead "),
        })
    }
}
