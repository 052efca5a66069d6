//! Actions on a topic, for visitors who have the right to them.

use forebay_access::Scope;
use forebay_proto::v1::{Side, Topic};
use maud::{Markup, html};

use super::{
    super::super::{act, asked::PageRequest, links::link},
    place::Place,
};

/// A side that can be paused.
#[derive(Clone, Copy)]
struct NamedSide {
    /// As the API names it.
    side: Side,
    /// As forms name it.
    name: &'static str,
    /// As people name it.
    word: &'static str,
}

const SIDES: [NamedSide; 2] = [
    NamedSide { side: Side::Dequeue, name: "dequeue", word: "deliveries" },
    NamedSide { side: Side::Enqueue, name: "enqueue", word: "enqueue" },
];
/// Characters of a payload that is typed. A form as a whole has 16 KiB.
const PAYLOAD_MAX: &str = "8000";

/// Buttons and forms.
pub fn actions(asked: &PageRequest, place: &Place<'_>, topic: &Topic) -> Markup {
    let namespace = place.namespace;
    let question = |action, class, text: &str| {
        let fields = [("action", action), ("ns", namespace), ("name", place.name)];
        act::question(asked, namespace, &link("confirm", &fields), class, text)
    };
    html! {
        div.actions {
            @for side in SIDES { (toggle(asked, place, topic, side)) }
            @if topic.leased_count > 0 { (question("reset-leases", "", "Reset leases…")) }
            @if topic.dead_count > 0 { (question("redrive", "", "Redrive all dead letters…")) }
            @if topic.dead_count > 0 { (question("delete-dead", "danger", "Delete dead letters…")) }
            (question("purge", "danger", "Purge…"))
        }
        @if asked.may(Scope::Operate, namespace) { (pause(asked, place)) }
        @if asked.may(Scope::Produce, namespace) { (enqueue(asked, place)) }
    }
}

/// Pauses a side, or ends its pauses: its own, and that of the namespace.
fn toggle(asked: &PageRequest, place: &Place<'_>, topic: &Topic, side: NamedSide) -> Markup {
    let NamedSide { side, name, word } = side;
    let is_paused = |of_namespace: bool| {
        topic.pauses.iter().any(|pause| pause.side() == side && pause.of_namespace == of_namespace)
    };
    let own = [("ns", place.namespace), ("name", place.name), ("side", name)];
    let whole = [("ns", place.namespace), ("side", name)];
    let button = |act, fields, text: String| act::button(asked, Scope::Operate, act, fields, &text);
    html! {
        @if is_paused(false) {
            (button("resume", &own, format!("Resume {word}")))
        } @else {
            (button("pause", &own, format!("Pause {word}")))
        }
        @if is_paused(true) {
            (button("resume", &whole, format!("Resume {word} of the whole namespace")))
        }
    }
}

/// A pause that ends by itself, or says why.
fn pause(asked: &PageRequest, place: &Place<'_>) -> Markup {
    let fields = [("ns", place.namespace), ("name", place.name)];
    let inside = html! {
        div.form {
            label {
                "What is paused " select name="side" {
                    option value="dequeue" { "deliveries" }
                    option value="enqueue" { "enqueue" }
                    option value="both" { "both" }
                }
            }
            label {
                "For how long "
                input name="for" placeholder="2h, or empty: until resumed" maxlength="40";
            }
            label { "Why " input name="note" placeholder="the mail server is down" maxlength="1000"; }
            button { "Pause" }
        }
    };
    let form = act::form(asked, "pause", &fields, inside);
    html! { details { summary { "Pause with an end and a note" } (form) } }
}

/// One item, to try consumers with.
fn enqueue(asked: &PageRequest, place: &Place<'_>) -> Markup {
    let fields = [("ns", place.namespace), ("name", place.name)];
    let inside = html! {
        div.form {
            label { "Payload " textarea name="payload" maxlength=(PAYLOAD_MAX) {} }
            label { "Priority " input name="priority" type="number" value="0" step="1"; }
            label { "Delay " input name="delay" placeholder="10s, or empty: none" maxlength="40"; }
            button { "Enqueue" }
            p.none { "A form has at most 16 KiB. A file is enqueued with the command line:" }
            pre {
                "forebay enqueue --namespace " (place.namespace) " --topic " (place.name)
                " --file payload.json"
            }
        }
    };
    html! { details { summary { "Enqueue a test item" } (act::form(asked, "enqueue", &fields, inside)) } }
}
