//! The nodes of the cluster, and what this one is busy with.

use std::time::Duration;

use forebay_access::Scope;
use forebay_edge::rpc::ALL_NAMESPACES;
use forebay_engine::{ShardState, Status};
use forebay_membership::{ClusterState, NodeState as Member};
use forebay_proto::v1::{ListNodesRequest, Node, NodeState};
use maud::{Markup, html};

use super::super::{
    act,
    asked::PageRequest,
    frame::sentence,
    links::link,
    live::Live,
    show::RenderedPage,
    table::{self, Head},
    texts::{bytes, count, span, time},
    trouble::Trouble,
};
use crate::info::NodeStatus;

/// Nodes of a page.
const PAGE_SIZE: u32 = 100;
/// From this part of a limit on, what is in use is a trouble.
const NEARLY_FULL: f64 = 0.8;

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    let page_token = asked.fields.get("page-token");
    let request = ListNodesRequest { page_size: PAGE_SIZE, page_token: page_token.to_owned() };
    let answer = asked.ask(request).await?;
    let status = asked.info.status().await;
    let mut live = Live::default();
    let body = html! {
        h1 { "Nodes" }
        @if !status.cluster.catalog_trouble.is_empty() {
            p.bad role="alert" {
                "This may be old: " (status.cluster.catalog_trouble)
            }
        }
        @if answer.nodes.is_empty() {
            p.none { "There are no more nodes. " a href="nodes" { "First page" } }
        } @else {
            (table(asked, &answer.nodes, &status, &mut live))
        }
        @if !answer.next_page_token.is_empty() {
            @let next = link("nodes", &[("page-token", &answer.next_page_token)]);
            p { a rel="next" href=(next) { "Next page" } }
        }
        (this_node(asked, &status, &mut live))
    };
    Ok(RenderedPage::new("Nodes", body, live))
}

fn table(asked: &PageRequest, nodes: &[Node], status: &NodeStatus, live: &mut Live) -> Markup {
    let changes = asked.may(Scope::Admin, ALL_NAMESPACES);
    table::list(
        html! {
            (Head::words("node"))
            (Head::words("state"))
            (Head::number("shards").title("Shards that it owns"))
            (Head::words("clients").title("Where clients reach it"))
            (Head::words("nodes").title("Where other nodes reach it"))
            (Head::words("HTTP").title("The dashboard, metrics and probes"))
            (Head::words("release"))
            (Head::words("started"))
            @if changes { (Head::words("change")) }
        },
        html! { @for node in nodes { (row(asked, node, status, changes, live)) } },
    )
}

fn row(asked: &PageRequest, node: &Node, status: &NodeStatus, changes: bool, live: &mut Live) -> Markup {
    let id = live.row(&["node", &node.name]);
    let (class, words) = state(node, member(&status.cluster, &node.name));
    let addresses = [
        ("clients", &node.clients_address),
        ("nodes", &node.peer_address),
        ("HTTP", &node.http_address),
        ("release", &node.release),
    ];
    html! {
        tr data-row=(id) {
            td.l { bdi { (node.name) } @if node.self_ { " " span.chip { "this one" } } }
            td.l data-head="state" { (live.word(format!("{id}w"), class, words)) }
            td data-head="shards" { (live.text(format!("{id}s"), count(node.shards.into()))) }
            @for (head, address) in addresses {
                td.l data-head=(head) { @if address.is_empty() { "–" } @else { bdi { (address) } } }
            }
            td.l data-head="started" { (time(node.started_at, asked.now())) }
            @if changes { td.l { (drain(asked, node)) } }
        }
    }
}

/// The state of a node, as this node itself sees it.
fn member<'a>(cluster: &'a ClusterState, name: &str) -> Option<&'a Member> {
    cluster.nodes.iter().find(|member| member.name == name)
}

/// The class and the words of a node's state.
fn state(node: &Node, member: Option<&Member>) -> (&'static str, &'static str) {
    match node.state() {
        NodeState::Silent => ("bad", "silent"),
        _ if member.is_some_and(|member| !member.reached) => ("bad", "does not answer this node"),
        NodeState::Draining if node.draining => ("warn", "draining, as an operator wants it"),
        NodeState::Draining => ("warn", "draining, as it stops"),
        NodeState::Joining => ("warn", "joining"),
        NodeState::Live => ("good", "live"),
        NodeState::Unspecified => ("warn", "not known"),
    }
}

/// A form that drains a node, or ends its drain.
fn drain(asked: &PageRequest, node: &Node) -> Markup {
    let name = node.name.as_str();
    if node.draining {
        let inside = html! { button { "End its drain" } };
        return act::form(asked, "drain-node", &[("node", name), ("undo", "yes")], inside);
    }
    let inside = html! {
        label { "Why " input name="reason" maxlength="1000"; }
        button { "Drain" }
        p.dim { "Its shards move to other nodes. Then it can be stopped." }
    };
    html! {
        details.form {
            summary { "drain" }
            (act::form(asked, "drain-node", &[("node", name)], inside))
        }
    }
}

fn this_node(asked: &PageRequest, status: &NodeStatus, live: &mut Live) -> Markup {
    let uptime = span(Duration::from_secs(status.uptime_seconds));
    html! {
        h2 { "This node" }
        @for exposed in &status.exposed { p.bad { "Insecure: " (sentence(exposed)) } }
        dl.pairs {
            dt { "address" } dd { bdi { (status.address) } }
            dt { "gRPC" } dd { (status.grpc) }
            dt { "HTTP" } dd { (status.http) }
            dt { "version" } dd { (status.version) }
            dt { "up for" } dd { (live.text("uptime", uptime)) }
        }
        div.figures { (figures(asked, status, live)) }
    }
}

/// The load of this node, in figures.
fn figures(asked: &PageRequest, status: &NodeStatus, live: &mut Live) -> Markup {
    let load = &asked.info.load;
    let limits = load.limits;
    let number = |number: usize| count(number as u64);
    let size = |size: usize| bytes(size as u64);
    let engine = status.engine.as_deref();
    let (requests, requests_max) = (status.request_bytes, Some(limits.request_bytes));
    let (answers, answers_max) = (load.unread.in_use(), Some(limits.unread_bytes));
    let (grpc, grpc_max) = (load.connections.in_use(), Some(limits.connections));
    let (http, http_max) = (load.http_connections.in_use(), Some(limits.http_connections));
    html! {
        (figure(live, "calls", "calls in progress", status.calls, Some(limits.calls), number))
        (figure(live, "requests", "requests in memory", requests, requests_max, size))
        (figure(live, "answers", "answers not read yet", answers, answers_max, size))
        @if let Some(engine) = engine {
            (figure(live, "polls", "long polls", engine.polls, None, number))
            (figure(live, "polled", "long polls in memory", asked.info.engine.waiting_bytes(), None, size))
            (figure(live, "admitted", "waiting to be stored", engine.admitted_bytes, None, size))
            (figure(live, "topics", "topics", engine.topic_count, None, number))
            (clocks(engine, live))
        } @else {
            p.bad role="alert" { "The engine of this node has stopped." }
        }
        (figure(live, "grpc", "gRPC connections", grpc, grpc_max, number))
        (figure(live, "http", "HTTP connections", http, http_max, number))
    }
}

/// A figure, and the limit that it has.
fn figure(
    live: &mut Live,
    id: &str,
    name: &str,
    used: usize,
    limit: Option<usize>,
    text: impl Fn(usize) -> String,
) -> Markup {
    let limit = limit.filter(|limit| *limit != usize::MAX);
    html! {
        div.figure {
            small { (name) }
            b { (live.word(format!("figure-{id}"), full(used, limit), text(used))) }
            small { @if let Some(limit) = limit { "of " (text(limit)) } @else { "no limit of its own" } }
        }
    }
}

/// The class of what is in use of a limit.
fn full(used: usize, limit: Option<usize>) -> &'static str {
    match limit {
        Some(limit) if used as f64 >= limit as f64 * NEARLY_FULL => "bad",
        _ => "",
    }
}

/// The clock of a database server that is off the furthest.
fn clocks(engine: &Status, live: &mut Live) -> Markup {
    let owned = engine.shards.iter().filter(|shard| shard.state == ShardState::Owned);
    let offset = owned.map(|shard| shard.clock_offset_micros).max_by_key(|offset| offset.unsigned_abs());
    let offset = Duration::from_micros(offset.unwrap_or(0).unsigned_abs());
    let class = if offset >= Duration::from_secs(1) { "bad" } else { "" };
    let stepped = Duration::from_micros(engine.clock_stepped_micros);
    html! {
        div.figure {
            small { "clock against servers" }
            b { (live.word("figure-clock", class, span(offset))) }
            @if stepped.is_zero() {
                small { "the furthest of its shards" }
            } @else {
                small { "its time stepped by " (span(stepped)) " since the start" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_does_not_answer_is_a_trouble_whatever_it_reports() {
        let node = |state: NodeState, draining| Node { state: state.into(), draining, ..Node::default() };
        let member = |reached| Member {
            name: "b".to_owned(),
            peer_address: String::new(),
            clients_address: String::new(),
            http_address: String::new(),
            release: String::new(),
            live: true,
            joining: false,
            reached,
            draining: false,
            shards: 0,
            started_micros: None,
        };
        let (answers, silent) = (member(true), member(false));
        assert_eq!(state(&node(NodeState::Live, false), Some(&answers)), ("good", "live"));
        assert_eq!(state(&node(NodeState::Live, false), None), ("good", "live"), "it is alone");
        assert_eq!(state(&node(NodeState::Live, false), Some(&silent)).0, "bad");
        assert_eq!(state(&node(NodeState::Silent, false), Some(&silent)), ("bad", "silent"));
        let stops = state(&node(NodeState::Draining, false), Some(&answers));
        assert_eq!(stops, ("warn", "draining, as it stops"));
        assert!(state(&node(NodeState::Draining, true), Some(&answers)).1.contains("operator"));
    }

    #[test]
    fn what_is_nearly_full_is_marked() {
        assert_eq!([full(79, Some(100)), full(80, Some(100)), full(80, None)], ["", "bad", ""]);
    }
}
