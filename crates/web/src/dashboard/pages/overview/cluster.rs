//! Namespaces, shards and nodes in short.

use forebay_proto::v1::{ListNodesResponse, ListShardsResponse, Namespace, NodeState, Shard, ShardState};
use maud::{Markup, html};

use super::{
    super::{
        super::{
            asked::PageRequest,
            failing, links,
            live::Live,
            table::{self, Head},
            texts::{age, count, percent, rate, span},
        },
        topics::chips,
    },
    wall::Wall,
};
use crate::info::NodeStatus;

/// The first namespaces.
pub fn namespaces(asked: &PageRequest, wall: &Wall, live: &mut Live) -> Markup {
    if wall.namespaces.is_empty() {
        return html! {};
    }
    html! {
        h2 { "Namespaces" }
        (table::list(
            html! {
                (Head::words("namespace"))
                (Head::number("oldest"))
                (Head::number("ready"))
                (Head::number("in/s").title("Items enqueued a second"))
                (Head::number("out/s").title("Deliveries acked a second"))
                (Head::number("failed").title("Deliveries that failed, of all that ended"))
                (Head::number("dead").title("Dead letters"))
            },
            html! { @for one in &wall.namespaces { (namespace(asked, one, live)) } },
        ))
        @if wall.has_more_namespaces { p.none { "The first " (wall.namespaces.len()) " by name." } }
    }
}

fn namespace(asked: &PageRequest, one: &Namespace, live: &mut Live) -> Markup {
    let id = live.row(&["namespace", &one.namespace]);
    let rates = one.rates.unwrap_or_default();
    let failing = failing::part(&rates);
    let dead = if one.dead_count > 0 { "warn" } else { "none" };
    html! {
        tr data-row=(id) {
            td.l { (links::namespace(&one.namespace)) (chips(&one.pauses)) }
            td data-head="oldest" { (live.text(format!("{id}o"), age(one.oldest_ready_at, asked.now()))) }
            td data-head="ready" {
                @if one.topics_cut { span title="Only its first 50,000 topics are counted" { "≥ " } }
                (live.text(format!("{id}r"), count(one.ready_count)))
            }
            td data-head="in/s" { (live.text(format!("{id}i"), rate(rates.enqueued))) }
            td data-head="out/s" { (live.text(format!("{id}u"), rate(rates.acked))) }
            td data-head="failed" { (live.word(format!("{id}f"), failing::class(failing), percent(failing))) }
            td data-head="dead" { (live.word(format!("{id}d"), dead, count(one.dead_count))) }
        }
    }
}

/// A cell for each shard.
pub fn shards(list: &ListShardsResponse, live: &mut Live) -> Markup {
    let bad = list.shards.iter().filter(|shard| !is_fine(shard)).count();
    let all = list.shards.len();
    let summary = match bad {
        0 => format!("All {all} are served."),
        bad => format!("{bad} of {all} are not served as they should be."),
    };
    html! {
        h2 { "Shards" }
        p { (live.word("shards", if bad == 0 { "none" } else { "bad" }, summary)) }
        div.cells { @for shard in &list.shards { (cell(shard, live)) } }
        @if !list.next_page_token.is_empty() {
            p.none { "The first " (all) ". " a href="shards" { "All shards" } }
        }
    }
}

fn cell(shard: &Shard, live: &mut Live) -> Markup {
    let class = if is_fine(shard) { "good" } else { "bad" };
    let id = shard.id;
    html! {
        a.(class) href=(format!("shards#shard-{id}")) title=(title(shard)) {
            (live.word(format!("shard-{id}"), class, id))
        }
    }
}

/// One that is offline has no owner, and shall have none.
fn is_fine(shard: &Shard) -> bool {
    let is_served = !shard.owner.is_empty() || shard.state() == ShardState::Offline;
    is_served && shard.trouble.is_empty()
}

/// A shard's state and owner, in words.
fn title(shard: &Shard) -> String {
    let state = match shard.state() {
        ShardState::Draining => ", draining",
        ShardState::Offline => ", offline",
        _ => "",
    };
    let owner = match &*shard.owner {
        "" => "no owner".to_owned(),
        owner => format!("owned by {owner}"),
    };
    let trouble = if shard.trouble.is_empty() { String::new() } else { format!(": {}", shard.trouble) };
    format!("shard {}{state}, {owner}{trouble}", shard.id)
}

/// The nodes, and this one. `nodes`: `None` if they could not be read.
pub(crate) fn foot(status: &NodeStatus, nodes: Option<&ListNodesResponse>, live: &mut Live) -> Markup {
    let uptime = span(std::time::Duration::from_secs(status.uptime_seconds));
    html! {
        footer {
            p {
                a href="nodes" { "Nodes" } " " (live.text("nodes", live_of(nodes)))
                " · version " (status.version) " · up for " (live.text("uptime", uptime))
                " · gRPC " (status.grpc) " · HTTP " (status.http) " · for other nodes "
                @if status.address.is_empty() { "–" } @else { (status.address) }
            }
        }
    }
}

/// How many nodes live: `2/3`.
fn live_of(nodes: Option<&ListNodesResponse>) -> String {
    let Some(list) = nodes else { return "–".to_owned() };
    let silent = list.nodes.iter().filter(|node| node.state() == NodeState::Silent).count();
    let more = if list.next_page_token.is_empty() { "" } else { "+" };
    format!("{}/{}{more}", list.nodes.len() - silent, list.nodes.len())
}

#[cfg(test)]
mod tests {
    use forebay_proto::v1::Node;

    use super::*;

    #[test]
    fn a_shard_is_fine_if_it_is_served() {
        let served = Shard { id: 3, owner: "a".to_owned(), ..Shard::default() };
        assert!(is_fine(&served));
        assert_eq!(title(&served), "shard 3, owned by a");
        let unserved = Shard { owner: String::new(), ..served.clone() };
        assert!(!is_fine(&unserved));
        assert!(is_fine(&Shard { state: ShardState::Offline.into(), ..unserved }));
        let failing = Shard { trouble: "no answer".to_owned(), state: ShardState::Draining.into(), ..served };
        assert!(!is_fine(&failing));
        assert_eq!(title(&failing), "shard 3, draining, owned by a: no answer");
    }

    #[test]
    fn silent_nodes_do_not_count_as_living() {
        let node = |state: NodeState| Node { state: state.into(), ..Node::default() };
        let nodes = vec![node(NodeState::Live), node(NodeState::Silent), node(NodeState::Draining)];
        let list = ListNodesResponse { nodes, next_page_token: String::new() };
        assert_eq!((live_of(Some(&list)), live_of(None)), ("2/3".to_owned(), "–".to_owned()));
    }
}
