//! Rows of a catalog as columns, and back.

use std::time::Duration;

use forebay_types::{
    Incarnation, NodeName, Pause, Policy, PolicyRow, SettingsRow, ShardId, TopicName, TopicSettings,
};

use super::rows::{CatalogNode, CatalogShard, CatalogShardState, Home, NodeReport};
use crate::{
    error::StoreError,
    sql::{Row, Value, corrupt, pack},
};

/// The columns of a node that its process writes when it joins, in the order of [`of_process`].
pub(super) const OF_PROCESS: [&str; 8] = [
    "incarnation",
    "peer_address",
    "clients_address",
    "http_address",
    "program_release",
    "format",
    "servers",
    "unreachable",
];

/// When the process was started, behind the columns of [`OF_PROCESS`]. What a process before has written is
/// not of this one.
pub(super) const STARTED_AT: &str = "CASE WHEN started_as = incarnation THEN started_at END";

/// The values of [`OF_PROCESS`].
pub(super) fn of_process(node: &CatalogNode) -> Result<Vec<Value>, StoreError> {
    let [servers, unreachable] = of_report(&node.report)?;
    Ok(vec![
        node.incarnation.0.as_slice().into(),
        node.peer_address.as_str().into(),
        node.clients_address.as_str().into(),
        node.http_address.as_str().into(),
        node.release.as_str().into(),
        node.format.into(),
        servers,
        unreachable,
    ])
}

/// The values of the columns `servers` and `unreachable`.
pub(super) fn of_report(report: &NodeReport) -> Result<[Value; 2], StoreError> {
    Ok([pack(&report.servers)?, pack(&report.unreachable)?])
}

/// A node, from `name`, `draining`, `beats`, [`OF_PROCESS`] and [`STARTED_AT`].
pub(super) fn node(row: &Row) -> Result<CatalogNode, StoreError> {
    let name = node_name(row, 0)?;
    Ok(CatalogNode {
        draining: row.int(1)? != 0,
        started_at: row.optional_time(11)?,
        beats: row.u64(2)?,
        incarnation: Incarnation(row.hash(3)?),
        peer_address: row.text(4)?,
        clients_address: row.text(5)?,
        http_address: row.text(6)?,
        release: row.text(7)?,
        format: row.u32(8)?,
        report: NodeReport {
            servers: unpack(row, 9, &name, "servers")?,
            unreachable: unpack(row, 10, &name, "unreachable nodes")?,
        },
        name,
    })
}

fn unpack<T: serde::de::DeserializeOwned>(
    row: &Row,
    column: usize,
    name: &NodeName,
    what: &str,
) -> Result<T, StoreError> {
    let unpacked = postcard::from_bytes(&row.bytes(column)?);
    unpacked.map_err(|error| corrupt(format!("the {what} of node {name}: {error}")))
}

fn node_name(row: &Row, column: usize) -> Result<NodeName, StoreError> {
    row.str(column)?.parse().map_err(|error| corrupt(format!("{error}")))
}

/// A shard, from `id`, `url` and `state`.
pub(super) fn shard(row: &Row) -> Result<CatalogShard, StoreError> {
    let id = ShardId(row.u32(0)?);
    let state = match row.int(2)? {
        0 => CatalogShardState::Active,
        1 => CatalogShardState::Draining,
        2 => CatalogShardState::Offline,
        other => return Err(corrupt(format!("shard {id} has the state {other}"))),
    };
    Ok(CatalogShard { id, url: row.text(1)?, state })
}

/// The column `state`.
pub(super) fn of_state(state: CatalogShardState) -> Value {
    Value::Int(match state {
        CatalogShardState::Active => 0,
        CatalogShardState::Draining => 1,
        CatalogShardState::Offline => 2,
    })
}

/// A shard's home, from `shard`, `node` and `pinned`.
pub(super) fn home(row: &Row) -> Result<(ShardId, Home), StoreError> {
    let home = Home { node: node_name(row, 1)?, pinned: row.int(2)? != 0 };
    Ok((ShardId(row.u32(0)?), home))
}

/// The columns of a policy, in the order of [`of_policy`].
pub(super) const OF_POLICY: [&str; 9] = [
    "removed",
    "enqueue_paused_by",
    "enqueue_paused_at",
    "enqueue_paused_until",
    "enqueue_paused_note",
    "dequeue_paused_by",
    "dequeue_paused_at",
    "dequeue_paused_until",
    "dequeue_paused_note",
];

/// The values of [`OF_POLICY`].
pub(super) fn of_policy(policy: &Policy) -> Vec<Value> {
    let removed = i64::from(policy.is_nothing()).into();
    let pauses = [&policy.enqueue, &policy.dequeue].into_iter().flat_map(of_pause);
    std::iter::once(removed).chain(pauses).collect()
}

fn of_pause(pause: &Option<Pause>) -> [Value; 4] {
    let Some(Pause { by, since, until, note }) = pause else { return [const { Value::Null }; 4] };
    let until = until.map_or(Value::Null, Value::from);
    [by.as_str().into(), (*since).into(), until, note.as_str().into()]
}

/// A policy, from `namespace`, `topic`, `version` and [`OF_POLICY`].
pub(super) fn policy(row: &Row) -> Result<PolicyRow, StoreError> {
    Ok(PolicyRow {
        name: TopicName::new(row.str(0)?, row.str(1)?),
        version: row.u64(2)?,
        policy: Policy { enqueue: pause(row, 4)?, dequeue: pause(row, 8)? },
    })
}

fn pause(row: &Row, column: usize) -> Result<Option<Pause>, StoreError> {
    let Some(since) = row.optional_time(column + 1)? else { return Ok(None) };
    let until = row.optional_time(column + 2)?;
    Ok(Some(Pause { by: row.text(column)?, since, until, note: row.text(column + 3)? }))
}

/// The columns of settings, in the order of [`of_settings`].
pub(super) const OF_SETTINGS: [&str; 7] = [
    "removed",
    "default_lease",
    "default_max_attempts",
    "retry_delay",
    "dead_letter_retention",
    "dedupe_window",
    "weight",
];

/// The values of [`OF_SETTINGS`].
pub(super) fn of_settings(settings: &TopicSettings) -> Vec<Value> {
    let span = |span: Option<Duration>| {
        span.map_or(Value::Null, |span| u64::try_from(span.as_micros()).unwrap_or(u64::MAX).into())
    };
    vec![
        i64::from(settings.is_nothing()).into(),
        span(settings.default_lease),
        settings.default_max_attempts.map_or(Value::Null, Value::from),
        span(settings.retry_delay),
        span(settings.dead_letter_retention),
        span(settings.dedupe_window),
        settings.weight.map_or(Value::Null, Value::from),
    ]
}

/// Settings, from `namespace`, `topic`, `version` and [`OF_SETTINGS`].
pub(super) fn settings(row: &Row) -> Result<SettingsRow, StoreError> {
    let span = |column| {
        let micros = row.optional_int(column)?;
        Ok::<_, StoreError>(micros.map(|micros| Duration::from_micros(micros.unsigned_abs())))
    };
    let number = |column| row.optional_int(column)?.map(|_| row.u32(column)).transpose();
    Ok(SettingsRow {
        name: TopicName::new(row.str(0)?, row.str(1)?),
        version: row.u64(2)?,
        settings: TopicSettings {
            default_lease: span(4)?,
            default_max_attempts: number(5)?,
            retry_delay: span(6)?,
            dead_letter_retention: span(7)?,
            dedupe_window: span(8)?,
            weight: number(9)?,
        },
    })
}
