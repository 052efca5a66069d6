//! Changes that can be made to an item.

use forebay_access::Scope;
use forebay_proto::v1::{Item, ItemState};
use maud::{Markup, html};

use super::super::super::{act, asked::PageRequest, links::link};

/// The buttons, for those who may use them.
pub fn section(asked: &PageRequest, item: &Item) -> Markup {
    let namespace = asked.namespace();
    let cancel = [("action", "cancel"), ("ns", namespace), ("id", item.item_id.as_str())];
    let redrive =
        [("action", "redrive"), ("ns", namespace), ("name", item.topic.as_str()), ("id", &item.item_id)];
    let dead = [("ns", namespace), ("topic", item.topic.as_str())];
    html! {
        div.actions {
            @if waits(item.state()) { (update(asked, item)) }
            @if item.state() == ItemState::Dead {
                (act::question(asked, namespace, &link("confirm", &redrive), "", "Redrive the item"))
                a.button href=(link("dead-letters", &dead)) { "Dead letters of its topic" }
            }
            (act::question(asked, namespace, &link("confirm", &cancel), "danger", "Cancel the item"))
        }
    }
}

/// Whether an item in this state can be changed.
fn waits(state: ItemState) -> bool {
    matches!(state, ItemState::Ready | ItemState::Scheduled)
}

fn update(asked: &PageRequest, item: &Item) -> Markup {
    let namespace = asked.namespace();
    if !asked.may(Scope::Operate, namespace) {
        return html! {};
    }
    let fields = [("ns", namespace), ("id", item.item_id.as_str())];
    let inside = html! {
        label {
            "Priority "
            input name="priority" type="number" min="-2147483648" max="2147483647" value=(item.priority);
        }
        " "
        label {
            "Deliver after "
            input name="delay" placeholder="as it is; 0s: now" size="14" maxlength="40";
        }
        " "
        button { "Change" }
    };
    act::form(asked, "update-item", &fields, inside)
}
