//! The forms that change where shards are. They are for who may administer the whole cluster.

use forebay_access::Scope;
use forebay_edge::rpc::ALL_NAMESPACES;
use forebay_proto::v1::{ListNodesRequest, Node, Shard, ShardState};
use maud::{Markup, html};

use super::super::super::{act, asked::PageRequest, trouble::Trouble};

/// Nodes that a shard can be moved to on the page.
const NODES_MAX: u32 = 1_000;

/// Makes them. `chosen`: the shard that the page is about.
pub async fn make(asked: &PageRequest, chosen: Option<u32>, shards: &[Shard]) -> Result<Markup, Trouble> {
    if !asked.may(Scope::Admin, ALL_NAMESPACES) || shards.is_empty() {
        return Ok(html! {});
    }
    let request = ListNodesRequest { page_size: NODES_MAX, page_token: String::new() };
    let nodes = asked.ask(request).await?.nodes;
    let of = |is: fn(&Shard) -> bool| shards.iter().filter(|it| is(it)).map(|it| it.id).collect::<Vec<_>>();
    let (active, draining) =
        (of(|shard| shard.state() == ShardState::Active), of(|shard| shard.state() == ShardState::Draining));
    let (movable, pinned) = (of(|shard| shard.state() != ShardState::Offline), of(|shard| shard.pinned));
    Ok(html! {
        h2 { "Change" }
        div.actions {
            (move_to(asked, chosen, &movable, &nodes))
            (unpin(asked, chosen, &pinned))
            (drain(asked, chosen, &active))
            (end_drain(asked, chosen, &draining))
        }
    })
}

fn move_to(asked: &PageRequest, chosen: Option<u32>, movable: &[u32], nodes: &[Node]) -> Markup {
    let inside = html! {
        (choice(chosen, movable))
        label {
            "To node "
            select name="node" {
                @for node in nodes { option value=(node.name) { (node.name) } }
            }
        }
        (why())
        button { "Move" }
        p.dim { "It is pinned there: it is not moved for evenness." }
    };
    section(asked, "Move a shard", "move-shard", &[], movable, inside)
}

fn unpin(asked: &PageRequest, chosen: Option<u32>, pinned: &[u32]) -> Markup {
    let inside = html! {
        (choice(chosen, pinned))
        (why())
        button { "End its pin" }
        p.dim { "It goes where evenness wants it." }
    };
    section(asked, "End a pin", "move-shard", &[("undo", "yes")], pinned, inside)
}

fn drain(asked: &PageRequest, chosen: Option<u32>, active: &[u32]) -> Markup {
    let inside = html! {
        (choice(chosen, active))
        (why())
        button { "Drain" }
        p.dim { "It takes no new items. Those that it has are still delivered. Then it can be removed." }
    };
    section(asked, "Drain a shard", "drain-shard", &[], active, inside)
}

fn end_drain(asked: &PageRequest, chosen: Option<u32>, draining: &[u32]) -> Markup {
    let inside = html! {
        (choice(chosen, draining))
        (why())
        button { "End its drain" }
        p.dim { "It takes new items again." }
    };
    section(asked, "End a drain", "drain-shard", &[("undo", "yes")], draining, inside)
}

/// A form that is there only if a shard can be chosen.
fn section(
    asked: &PageRequest,
    title: &str,
    act: &str,
    hidden: &[(&str, &str)],
    shards: &[u32],
    inside: Markup,
) -> Markup {
    html! {
        @if !shards.is_empty() {
            details.form {
                summary { (title) }
                (act::form(asked, act, hidden, inside))
            }
        }
    }
}

/// Which shard it is about.
fn choice(chosen: Option<u32>, shards: &[u32]) -> Markup {
    html! {
        label {
            "Shard "
            select name="id" {
                @for id in shards { option value=(id) selected[chosen == Some(*id)] { (id) } }
            }
        }
    }
}

fn why() -> Markup {
    html! { label { "Why " input name="reason" maxlength="1000"; } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shard_of_the_page_is_chosen() {
        let shown = choice(Some(7), &[3, 7]).into_string();
        assert!(shown.contains("<option value=\"7\" selected>"), "{shown}");
        assert!(shown.contains("<option value=\"3\">"), "{shown}");
    }
}
