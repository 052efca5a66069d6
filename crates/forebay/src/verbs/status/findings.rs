//! Problems in a picture of the cluster, and the command that shows more of each.

use std::{collections::BTreeMap, time::Duration};

use forebay_client::v1::{NodeState, OperationShard, PrincipalKind, ShardState, Side, Topic};
use forebay_proto::time::from_timestamp;
use forebay_types::is_loopback;

use super::picture::{Picture, TOPICS_MAX};
use crate::{output, verbs::severity::Severity};

/// Of one kind so many are named. The others are counted.
const NAMED_MAX: usize = 5;
/// A token that ends sooner is to be replaced.
const TOKEN_ENDS_SOON: Duration = Duration::from_secs(14 * 86_400);

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Which rule has found it, for programs.
    pub kind: &'static str,
    /// The problem.
    pub what: String,
    /// The command to type next.
    pub look: String,
}

/// That nobody answers.
pub fn no_answer(why: String) -> Finding {
    let look = "forebay health".to_owned();
    Finding { severity: Severity::Critical, kind: "no_answer", what: why, look }
}

/// All that is wrong, the most severe first.
pub fn of(seen: &Picture) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        [shards(seen), old_items(seen), nodes(seen), incomplete(seen), dead_letters(seen), operations(seen)]
            .into_iter()
            .chain([insecure(seen), token(seen), unseen(seen)])
            .flat_map(few)
            .collect();
    // In the order of the rules where they are equally severe.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// The first findings of a kind, and how many more there are.
fn few(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    if findings.len() > NAMED_MAX {
        let more = findings.split_off(NAMED_MAX - 1);
        let what = format!("{} more like these", more.len());
        findings.extend(more.into_iter().next().map(|next| Finding { what, ..next }));
    }
    findings
}

fn finding(severity: Severity, kind: &'static str, what: String, look: impl Into<String>) -> Finding {
    Finding { severity, kind, what, look: look.into() }
}

fn shards(seen: &Picture) -> Vec<Finding> {
    let shards = seen.shards.iter().flatten();
    let wrong = shards.filter_map(|shard| {
        let (id, trouble) = (shard.id, &shard.trouble);
        let because = if trouble.is_empty() { String::new() } else { format!(": {trouble}") };
        let what = match (shard.owner.as_str(), shard.state()) {
            ("", _) => format!("no node serves shard {id}{because}"),
            (_, ShardState::Offline) => format!("shard {id} is offline{because}"),
            _ if trouble.is_empty() => return None,
            (owner, _) => format!("shard {id} of {owner}{because}"),
        };
        let kind = if shard.owner.is_empty() { "shard_unserved" } else { "shard_trouble" };
        Some(finding(Severity::Critical, kind, what, "forebay shard list"))
    });
    wrong.collect()
}

fn nodes(seen: &Picture) -> Vec<Finding> {
    let silent = seen.nodes.iter().filter(|node| node.state() == NodeState::Silent);
    let wrong = silent.map(|node| {
        let what = format!("node {} is silent and owns {} shards", node.name, node.shards);
        finding(Severity::Warning, "node_silent", what, "forebay node list")
    });
    wrong.collect()
}

/// The flags of a command that is for a topic's namespace.
fn namespace_flag(seen: &Picture, namespace: &str) -> String {
    if seen.all_namespaces { format!(" --namespace {namespace}") } else { String::new() }
}

fn old_items(seen: &Picture) -> Vec<Finding> {
    let wrong = seen.old.iter().filter_map(|topic| {
        let age = output::span(seen.now.since(from_timestamp(topic.oldest_ready_at?)));
        let Topic { topic: name, ready_count: ready, .. } = topic;
        let (leased, waiting) = (topic.leased_count, topic.waiting_calls);
        let paused = topic.pauses.iter().find(|pause| pause.side() == Side::Dequeue);
        let (severity, but) = match (leased, waiting) {
            _ if let Some(pause) = paused => (Severity::Warning, paused_by(&pause.by)),
            (0, 0) => (Severity::Critical, "nobody takes any".to_owned()),
            (_, 0) => (Severity::Warning, format!("{leased} are leased: the consumers fall behind")),
            _ => (Severity::Warning, format!("{leased} are leased, and {waiting} dequeue calls wait")),
        };
        let what = format!("{name}: the oldest of {ready} ready items waits for {age}; {but}");
        let look = format!("forebay topic get {name}{}", namespace_flag(seen, &topic.namespace));
        Some(finding(severity, "old_items", what, look))
    });
    wrong.collect()
}

fn paused_by(who: &str) -> String {
    if who.is_empty() { "it is paused".to_owned() } else { format!("it is paused by {who}") }
}

fn incomplete(seen: &Picture) -> Vec<Finding> {
    if seen.incomplete.is_empty() {
        return Vec::new();
    }
    let shards: Vec<String> = seen.incomplete.iter().take(20).map(ToString::to_string).collect();
    let what = format!("{} shards could not be asked: {}", seen.incomplete.len(), shards.join(", "));
    vec![finding(Severity::Warning, "shards_not_asked", what, "forebay shard list")]
}

fn dead_letters(seen: &Picture) -> Vec<Finding> {
    let more = if seen.dead.len() >= TOPICS_MAX { " or more" } else { "" };
    let mut by_namespace: BTreeMap<&str, Vec<&Topic>> = BTreeMap::new();
    for topic in &seen.dead {
        by_namespace.entry(&topic.namespace).or_default().push(topic);
    }
    let wrong = by_namespace.into_iter().map(|(namespace, topics)| {
        let sum: u64 = topics.iter().map(|topic| topic.dead_count).sum();
        let first = topics.first().map_or("", |topic| &topic.topic);
        let what = match topics.len() {
            1 => format!("{first}: {sum} dead letters"),
            count => format!("{sum}{more} dead letters in {count}{more} topics; {first} has the most"),
        };
        let look = format!("forebay dead-letter groups{}", namespace_flag(seen, namespace));
        finding(Severity::Warning, "dead_letters", what, look)
    });
    wrong.collect()
}

fn operations(seen: &Picture) -> Vec<Finding> {
    let wrong = seen.stuck.iter().map(|operation| {
        let left = operation.shards.iter().filter(|shard| !shard.ended);
        let left: Vec<String> = left.take(5).map(|OperationShard { shard, .. }| shard.to_string()).collect();
        let kind = output::word(operation.kind().as_str_name(), "OPERATION_KIND_");
        let what =
            format!("nothing happens in a {kind} of {}; left: shards {}", operation.topic, left.join(", "));
        let look = format!("forebay operation get {}", operation.id);
        finding(Severity::Warning, "operation_stuck", what, look)
    });
    wrong.collect()
}

fn insecure(seen: &Picture) -> Vec<Finding> {
    let mut wrong = Vec::new();
    let nodes = seen.nodes.iter().map(|node| node.clients_address.as_str());
    let others_reach = nodes.chain(seen.plain.iter().map(String::as_str)).find(|addr| !is_loopback(addr));
    if let (true, Some(addr)) = (seen.caller.kind() == PrincipalKind::Anyone, others_reach) {
        let what = format!("whoever reaches {addr} may do everything: there is no access control");
        wrong.push(finding(Severity::Warning, "no_access_control", what, "forebay token create --help"));
    }
    if let Some(addr) = seen.plain.iter().find(|addr| !is_loopback(addr)) {
        let what = format!("what is sent to {addr} can be read on the way: there is no TLS");
        wrong.push(finding(Severity::Warning, "no_tls", what, "forebay check certificate --help"));
    }
    wrong
}

fn token(seen: &Picture) -> Vec<Finding> {
    let Some(ends) = seen.caller.ends_at else { return Vec::new() };
    let left = from_timestamp(ends).since(seen.now);
    if left > TOKEN_ENDS_SOON {
        return Vec::new();
    }
    let kind = output::word(seen.caller.kind().as_str_name(), "PRINCIPAL_KIND_");
    let what = format!("the {kind} that is shown ends in {}", output::span(left));
    vec![finding(Severity::Warning, "token_ends", what, "forebay whoami")]
}

/// Without the topics, nothing is known of the queue. Nodes and operations are not everybody's business.
fn unseen(seen: &Picture) -> Vec<Finding> {
    if !seen.not_seen.contains(&"topics") {
        return Vec::new();
    }
    let what = "the topics can't be seen: the right `observe` is missing".to_owned();
    vec![finding(Severity::Warning, "topics_not_seen", what, "forebay whoami")]
}

#[cfg(test)]
mod tests;
