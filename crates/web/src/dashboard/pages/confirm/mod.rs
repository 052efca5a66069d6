//! The question before something that loses or moves items: how many, which, and what becomes of them.

mod cancel_form;
mod of_item;
mod of_items;

use forebay_edge::random::random;
use forebay_proto::v1::{
    GroupDeadLettersRequest, Operation, OperationKind, StartOperationRequest, StartOperationResponse,
};
use maud::{Markup, html};

use super::{
    super::{
        act,
        asked::PageRequest,
        bulk::{self, command},
        chosen,
        links::{self, link},
        live::Live,
        show::RenderedPage,
        trouble::Trouble,
    },
    dead_letters::filter::{group_of, of_items},
    topics::incomplete,
};

/// Items that are named as a sample.
const SAMPLES: usize = 5;
/// The rate that the form begins with.
const RATE: u32 = 5_000;

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    let action = asked.fields.get("action");
    match chosen::items(asked).as_deref() {
        Some([]) => return Ok(nothing_chosen(asked)),
        Some(ids) if action == "cancel" => return of_items::make(asked, ids).await,
        None if action == "cancel" && !asked.fields.get("id").is_empty() => {
            return of_item::make(asked).await;
        }
        _ => {}
    }
    let kind = bulk::kind_of(action).ok_or_else(|| {
        Trouble::field("action", "must be purge, redrive, delete-dead, reset-leases or cancel")
    })?;
    let title = format!("{} {}s?", bulk::verb(kind), bulk::noun(kind));
    let answer = counted(asked, kind).await?;
    let operation = answer.operation.clone().unwrap_or_default();
    let matched = operation.figures.unwrap_or_default().matched;
    let body = html! {
        h1 { (title) }
        p { "Topic " (links::topic(asked.namespace(), &operation.topic)) }
        (chosen(asked, &operation).await)
        (incomplete(&answer.incomplete_shards))
        @if matched == 0 && answer.exact {
            div.empty { p { "Nothing matches now, so there is nothing to do." } }
            p { a.button href=(back(asked, kind)) autofocus { "Go back" } }
        } @else {
            div.why {
                p { (bulk::consequence(&operation, matched, answer.exact)) }
                @if let Some((text, all)) = bulk::chosen_of(&operation) { p.warn[all] { (text) } }
            }
            @if !answer.exact { p.warn { "Not all could be counted. There may be more." } }
            (samples(asked, &answer.sample_item_ids))
            (form(asked, &operation, matched, answer.exact)?)
            (same_as(&operation, answer.exact.then_some(matched)))
        }
    };
    Ok(RenderedPage::new(title, body, Live::default()))
}

/// No box was marked. That is no question about all items.
fn nothing_chosen(asked: &PageRequest) -> RenderedPage {
    let topic = [("ns", asked.namespace()), ("name", asked.fields.get("name"))];
    let body = html! {
        h1 { "Nothing is chosen" }
        p { "Mark the boxes of the rows that are meant, and press the button again." }
        p { a.button href=(link("topic", &topic)) autofocus { "Go back" } }
    };
    RenderedPage::new("Nothing is chosen", body, Live::default())
}

/// Counts what would be changed.
async fn counted(asked: &PageRequest, kind: OperationKind) -> Result<StartOperationResponse, Trouble> {
    let request = StartOperationRequest {
        namespace: asked.namespace().to_owned(),
        kind: kind.into(),
        topic: asked.fields.get("name").to_owned(),
        filter: filter(asked),
        leased: !asked.fields.get("leased").is_empty(),
        to_topic: asked.fields.get("to").to_owned(),
        dry_run: true,
        ..StartOperationRequest::default()
    };
    Ok(asked.ask(request).await?)
}

/// Which items: those that are named, or those that pass a filter.
fn filter(asked: &PageRequest) -> String {
    let named = of_items(&asked.fields.all("id"));
    named.unwrap_or_else(|| asked.fields.get("filter").to_owned())
}

/// How the items were chosen. Of a group it is said what its reasons have in common, since a hash of that
/// says nothing to people.
async fn chosen(asked: &PageRequest, operation: &Operation) -> Markup {
    let reason = match group_of(&operation.filter) {
        Some(group) => reason_of(asked, &operation.topic, group).await,
        None => None,
    };
    html! {
        @if !operation.filter.is_empty() { p { "Filter " code { bdi { (operation.filter) } } } }
        @if let Some(reason) = reason { p { "Reason " bdi { (reason) } } }
    }
}

/// The common part of the reasons of a group. `None`: it is not among the groups that are found now.
async fn reason_of(asked: &PageRequest, topic: &str, group: &str) -> Option<String> {
    let request = GroupDeadLettersRequest {
        namespace: asked.namespace().to_owned(),
        topic: topic.to_owned(),
        window: 0,
    };
    let answer = asked.ask(request).await.ok()?;
    let found = answer.groups.into_iter().find(|found| found.fingerprint == group);
    found.map(|found| found.reason)
}

fn samples(asked: &PageRequest, ids: &[String]) -> Markup {
    html! {
        @if !ids.is_empty() {
            p {
                (if ids.len() == 1 { "The item:" } else { "Some of them:" })
                @for id in ids.iter().take(SAMPLES) { " " (links::item(asked.namespace(), id)) }
            }
        }
    }
}

/// Where whoever does not want it goes.
fn back(asked: &PageRequest, kind: OperationKind) -> String {
    let (namespace, topic) = (asked.namespace(), asked.fields.get("name"));
    let id = asked.fields.get("id");
    match kind {
        _ if !id.is_empty() && chosen::items(asked).is_none() => {
            link("item", &[("ns", namespace), ("id", id)])
        }
        OperationKind::Redrive | OperationKind::DeleteDead => {
            link("dead-letters", &[("ns", namespace), ("topic", topic)])
        }
        _ => link("topic", &[("ns", namespace), ("name", topic)]),
    }
}

fn form(asked: &PageRequest, operation: &Operation, matched: u64, exact: bool) -> Result<Markup, Trouble> {
    let kind = operation.kind();
    let expected = exact.then_some(matched);
    let expect = expected.map(|most| most.to_string()).unwrap_or_default();
    // A form that is sent twice begins one operation.
    let request_id = random().map_err(|_| Trouble::stopping())?;
    let request_id = format!("page-{request_id:016x}");
    let fields = [
        ("kind", bulk::action_of(kind)),
        ("ns", asked.namespace()),
        ("name", &operation.topic),
        ("filter", &operation.filter),
        ("leased", if operation.leased { "true" } else { "" }),
        ("expect", &expect),
        ("request_id", &request_id),
    ];
    let class = if bulk::destroys(kind) { "danger" } else { "" };
    let inside = html! {
        @if kind == OperationKind::Redrive { (redrive_fields(operation)) }
        label {
            "Reason, which is kept with the operation "
            input name="reason" maxlength="500" size="40";
        }
        label {
            "Items a second at most "
            input name="rate" type="number" min="1" max="1000000" value=(RATE);
        }
        @if bulk::must_type(&operation.filter, expected) {
            label {
                "Type the name of the topic, " bdi { (operation.topic) } ", to go on "
                input name="typed" required autocomplete="off" spellcheck="false";
            }
        }
        div.actions {
            a.button href=(back(asked, kind)) autofocus { "Go back" }
            button.(class) { (bulk::verb(kind)) " " (bulk::how_many(kind, matched, exact)) }
        }
        @if exact { p.dim { "If more match by then, nothing is done." } }
    };
    Ok(html! { div.form { (act::form(asked, "operate", &fields, inside)) } })
}

fn redrive_fields(operation: &Operation) -> Markup {
    html! {
        label {
            "To another topic "
            input name="to" value=(operation.to_topic) placeholder=(operation.topic) maxlength="255";
        }
        label {
            "Skip those that were redriven so often already "
            input name="max_redrives" type="number" min="1" max="65535";
        }
    }
}

fn same_as(operation: &Operation, expected: Option<u64>) -> Markup {
    let Some(command) = command(operation, expected) else { return html! {} };
    html! {
        h2 { "The same as a command" }
        pre { (command) }
    }
}
