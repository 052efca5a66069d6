//! What the client returns, as the messages that it came in.

use forebay_client::{
    ActiveTopic, Blocker, Caller, Counts, DeadGroup, Dequeued, Enqueued, Error, History, HistoryLine,
    ItemState, KnownConsumer, Nacked, Node, Rates, Shard, Side, StoredItem, Timestamp, TopicFigures,
    TopicPause, TopicReport,
};
use forebay_proto::v1;
use forebay_types::DeliveryPolicy;

use super::settings::{span, topic_settings};

/// A time in protobuf.
pub(super) fn time(at: Timestamp) -> prost_types::Timestamp {
    let micros = at.as_micros();
    prost_types::Timestamp {
        seconds: micros.div_euclid(1_000_000),
        // Below 10^9, so it fits.
        nanos: i32::try_from(micros.rem_euclid(1_000_000) * 1_000).unwrap_or(0),
    }
}

/// The error of a member, without its details.
pub fn status(error: &Error) -> forebay_proto::Status {
    forebay_proto::Status {
        code: error.code() as i32,
        message: error.message().to_owned(),
        details: Vec::new(),
    }
}

pub fn reason(error: &Error) -> String {
    error.reason().map(|reason| reason.as_str().to_owned()).unwrap_or_default()
}

fn retry_after(error: &Error) -> Option<prost_types::Duration> {
    // A delay is far shorter than what the type holds.
    error.retry_after().and_then(|delay| prost_types::Duration::try_from(delay).ok())
}

/// The result of one item of an enqueue.
pub fn enqueued(result: &Result<Enqueued, Error>) -> v1::EnqueueResult {
    match result {
        Ok(stored) => v1::EnqueueResult {
            item_id: stored.item_id.clone(),
            duplicate: stored.duplicate,
            first_enqueued_at: stored.first_enqueued_at.map(time),
            ..Default::default()
        },
        Err(error) => v1::EnqueueResult {
            error: Some(status(error)),
            reason: reason(error),
            retry_after: retry_after(error),
            ..Default::default()
        },
    }
}

/// The result of one item that was to be removed.
pub fn cancelled(item: &str, result: &Result<ItemState, Error>) -> v1::CancelItemResult {
    let item_id = item.to_owned();
    match result {
        Ok(was) => v1::CancelItemResult { item_id, state: item_state(*was).into(), ..Default::default() },
        Err(error) => v1::CancelItemResult {
            item_id,
            error: Some(status(error)),
            reason: reason(error),
            retry_after: retry_after(error),
            ..Default::default()
        },
    }
}

/// Why items are not delivered.
pub fn blocker(it: &Blocker) -> v1::Blocker {
    let code = v1::BlockerCode::from_str_name(&format!("BLOCKER_CODE_{}", it.code));
    v1::Blocker {
        code: code.unwrap_or_default().into(),
        sentence: it.sentence.clone(),
        since: it.since.map(time),
        until: it.until.map(time),
        by: it.by.clone(),
        shard: it.shard,
        count: it.count,
    }
}

/// The result of one ack or nack.
pub fn settled(result: &Result<Nacked, Error>) -> v1::SettleResult {
    match result {
        Ok(done) => v1::SettleResult { delay_cut: done.delay_cut, ..Default::default() },
        Err(error) => v1::SettleResult {
            error: Some(status(error)),
            reason: reason(error),
            retry_after: retry_after(error),
            delay_cut: false,
        },
    }
}

/// The result of one extension.
pub fn extended(result: &Result<Timestamp, Error>) -> v1::ExtendLeaseResult {
    match result {
        Ok(end) => v1::ExtendLeaseResult { lease_expires_at: Some(time(*end)), ..Default::default() },
        Err(error) => v1::ExtendLeaseResult {
            error: Some(status(error)),
            reason: reason(error),
            retry_after: retry_after(error),
            ..Default::default()
        },
    }
}

/// A delivery.
pub fn delivery(item: &Dequeued) -> v1::DequeuedItem {
    v1::DequeuedItem {
        item_id: item.item_id.clone(),
        receipt: item.receipt.clone(),
        topic: item.topic.clone(),
        priority: item.priority,
        payload: item.payload.clone(),
        metadata: item.metadata.clone(),
        headers: item.headers.clone(),
        attempt: item.attempt,
        enqueued_at: Some(time(item.enqueued_at)),
        lease_expires_at: item.lease_expires_at.map(time),
        expires_at: item.expires_at.map(time),
        delivery_policy: match item.policy {
            DeliveryPolicy::AtLeastOnce => v1::DeliveryPolicy::AtLeastOnce.into(),
            DeliveryPolicy::AtMostOnce => v1::DeliveryPolicy::AtMostOnce.into(),
        },
        failures: item.failures,
    }
}

/// An active topic.
pub fn active_topic(topic: &ActiveTopic) -> v1::ActiveTopic {
    v1::ActiveTopic {
        topic: topic.topic.clone(),
        ready_count: topic.ready,
        best_priority: topic.best_priority,
        oldest_ready_at: Some(time(topic.oldest_ready_at)),
        leased_count: topic.leased,
        scheduled_count: topic.scheduled,
    }
}

/// A node.
pub fn node(node: &Node) -> v1::Node {
    let state = v1::NodeState::from_str_name(&format!("NODE_STATE_{}", node.state.to_uppercase()));
    v1::Node {
        name: node.name.clone(),
        clients_address: node.clients_address.clone(),
        peer_address: node.peer_address.clone(),
        http_address: node.http_address.clone(),
        release: node.release.clone(),
        state: state.unwrap_or_default().into(),
        shards: node.shards,
        draining: node.draining,
        started_at: node.started_at.map(time),
        self_: node.is_self,
    }
}

/// A shard.
pub fn shard(shard: &Shard) -> v1::Shard {
    let state = v1::ShardState::from_str_name(&format!("SHARD_STATE_{}", shard.state.to_uppercase()));
    v1::Shard {
        id: shard.id,
        server: shard.server.clone(),
        state: state.unwrap_or_default().into(),
        owner: shard.owner.clone(),
        wished_owner: shard.wished_owner.clone(),
        pinned: shard.pinned,
        epoch: shard.epoch,
        since: shard.since.map(time),
        trouble: shard.trouble.clone(),
        items: shard.items,
        hold_up: shard.hold_up.clone(),
    }
}

/// As whom a node knows the caller.
pub fn caller(caller: &Caller) -> v1::WhoAmIResponse {
    let kind = v1::PrincipalKind::from_str_name(&format!("PRINCIPAL_KIND_{}", caller.kind.to_uppercase()));
    let grants = caller.grants.iter();
    let grants = grants.map(|it| v1::Grant { namespaces: it.namespaces.clone(), scopes: it.scopes.clone() });
    v1::WhoAmIResponse {
        kind: kind.unwrap_or_default().into(),
        id: caller.id.clone(),
        name: caller.name.clone(),
        grants: grants.collect(),
        ends_at: caller.ends_at.map(time),
    }
}

/// A topic.
pub fn topic(topic: &TopicFigures) -> v1::Topic {
    v1::Topic {
        namespace: topic.namespace.clone(),
        topic: topic.topic.clone(),
        ready_count: topic.ready,
        leased_count: topic.leased,
        scheduled_count: topic.scheduled,
        dead_count: topic.dead,
        oldest_ready_at: topic.oldest_ready_at.map(time),
        next_due_at: topic.next_due_at.map(time),
        waiting_calls: topic.waiting,
        pauses: topic.pauses.iter().map(pause).collect(),
        settings: Some(topic_settings(&topic.settings)).filter(|_| !topic.settings.is_nothing()),
        settings_version: topic.settings_version,
        counts: topic.counts.map(counts),
        rates: topic.rates.map(rates),
        wait_p50: topic.wait.p50.map(span),
        wait_p99: topic.wait.p99.map(span),
        handling_p50: topic.handling.p50.map(span),
        handling_p99: topic.handling.p99.map(span),
        last_delivery_at: topic.last_delivery_at.map(time),
        last_ack_at: topic.last_ack_at.map(time),
        // It is not asked for.
        recent_ready: Vec::new(),
    }
}

/// A consumer.
pub fn consumer(it: &KnownConsumer) -> v1::Consumer {
    v1::Consumer {
        namespace: it.namespace.clone(),
        name: it.name.clone(),
        topics: it.topics.clone(),
        topics_cut: it.topics_cut,
        leased_count: it.leased,
        oldest_lease_at: it.oldest_lease_at.map(time),
        acks_per_second: it.acks_per_second,
        failures_per_second: it.failures_per_second,
        failure_ratio: it.failure_ratio,
        window: it.window.try_into().ok(),
        last_seen_at: it.last_seen_at.map(time),
        peer: it.peer.clone(),
        client: it.client.clone(),
    }
}

/// How figures were.
pub fn history(it: &History) -> v1::GetHistoryResponse {
    let line = |line: &HistoryLine| v1::HistoryLine {
        series: line.series.number(),
        points: line.points.iter().map(|point| point.unwrap_or(f64::NAN)).collect(),
    };
    v1::GetHistoryResponse {
        begins_at: it.begins_at.map(time),
        step: it.step.try_into().ok(),
        lines: it.lines.iter().map(line).collect(),
        incomplete_shards: it.incomplete_shards.clone(),
        topics_cut: it.topics_cut,
        looked_every: it.looked_every.try_into().ok(),
    }
}

/// What has become of items.
pub fn counts(counts: Counts) -> v1::Counts {
    let Counts { since, enqueued, delivered, acked, failed, dead_lettered, expired, removed } = counts;
    let since = since.map(time);
    v1::Counts { since, enqueued, delivered, acked, failed, dead_lettered, expired, removed }
}

/// How much happens.
pub fn rates(rates: Rates) -> v1::Rates {
    let Rates { window, enqueued, delivered, acked, failed, dead_lettered } = rates;
    v1::Rates { window: window.try_into().ok(), enqueued, delivered, acked, failed, dead_lettered }
}

/// A side of a topic that is paused.
pub fn pause(pause: &TopicPause) -> v1::Pause {
    let side = match pause.side {
        Some(Side::Enqueue) => v1::Side::Enqueue,
        Some(Side::Dequeue) => v1::Side::Dequeue,
        None => v1::Side::Unspecified,
    };
    v1::Pause {
        side: side.into(),
        by: pause.by.clone(),
        since: pause.since.map(time),
        until: pause.until.map(time),
        note: pause.note.clone(),
        of_namespace: pause.of_namespace,
    }
}

/// A topic with its priorities.
pub fn topic_report(report: &TopicReport) -> v1::GetTopicResponse {
    let priorities = report.priorities.iter().map(|count| v1::PriorityCount {
        priority: count.priority,
        ready_count: count.ready,
        oldest_ready_at: count.oldest_ready_at.map(time),
    });
    v1::GetTopicResponse {
        topic: Some(topic(&report.figures)),
        priorities: priorities.collect(),
        priorities_cut: report.priorities_cut,
        incomplete_shards: report.incomplete_shards.clone(),
        effective_settings: Some(topic_settings(&report.effective)),
    }
}

/// A group of dead letters.
pub fn dead_group(group: &DeadGroup) -> v1::DeadLetterGroup {
    v1::DeadLetterGroup {
        fingerprint: group.fingerprint.clone(),
        reason: group.reason.clone(),
        count: group.count,
        topics: group.topics.clone(),
        topics_cut: group.topics_cut,
        first_died_at: group.first_died_at.map(time),
        last_died_at: group.last_died_at.map(time),
        sample_item_ids: group.sample_item_ids.clone(),
    }
}

pub const fn item_state(state: ItemState) -> v1::ItemState {
    match state {
        ItemState::Ready => v1::ItemState::Ready,
        ItemState::Leased => v1::ItemState::Leased,
        ItemState::Scheduled => v1::ItemState::Scheduled,
        ItemState::Dead => v1::ItemState::Dead,
    }
}

/// An item.
pub fn item(item: &StoredItem) -> v1::Item {
    let state = item.state.map_or(v1::ItemState::Unspecified, item_state);
    let lease = item.lease.as_ref().map(|lease| v1::ItemLease {
        consumer: lease.consumer.clone(),
        ends_at: lease.ends_at.map(time),
        leased_at: lease.leased_at.map(time),
    });
    let failures = item.last_failures.iter().map(|failure| v1::ItemFailure {
        attempt: failure.attempt,
        consumer: failure.consumer.clone(),
        leased_at: failure.leased_at.map(time),
        ended_at: failure.ended_at.map(time),
        cause: failure.cause.clone(),
        reason: failure.reason.clone(),
    });
    let death = item.death.as_ref().map(|death| v1::ItemDeath {
        cause: death.cause.clone(),
        reason: death.reason.clone(),
        died_at: death.died_at.map(time),
        kept_until: death.kept_until.map(time),
    });
    v1::Item {
        item_id: item.id.clone(),
        namespace: item.namespace.clone(),
        topic: item.topic.clone(),
        state: state.into(),
        priority: item.priority,
        attempt: item.attempt,
        failures: item.failures,
        redrives: item.redrives,
        max_attempts: item.max_attempts,
        enqueued_at: item.enqueued_at.map(time),
        ready_at: item.ready_at.map(time),
        expires_at: item.expires_at.map(time),
        at_most_once: item.at_most_once,
        payload: item.payload.clone(),
        payload_size: item.payload_size,
        payload_cut: (item.payload.len() as u64) < item.payload_size,
        metadata: item.metadata.clone(),
        headers: item.headers.clone().into_iter().collect(),
        lease,
        death,
        last_failures: failures.collect(),
        unreadable: item.unreadable.clone(),
    }
}
