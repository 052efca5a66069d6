//! One change of many items: how far it is, and what it has done.

use forebay_access::Scope;
use forebay_proto::{
    time::{from_duration, from_timestamp},
    v1::{
        GetOperationRequest, Operation, OperationShard, OperationState, OperationUpdate,
        operation_update::Schedule,
    },
};
use maud::{Markup, html};

use super::{
    super::{
        act,
        asked::PageRequest,
        bulk::{self, command},
        frame::sentence,
        links,
        live::Live,
        show::RenderedPage,
        table::{self, Head},
        texts::{bytes, count, span, time},
        trouble::Trouble,
    },
    operations::progress,
    topics::incomplete,
};

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    let request = GetOperationRequest {
        namespace: asked.namespace().to_owned(),
        operation_id: asked.fields.get("id").to_owned(),
        ..GetOperationRequest::default()
    };
    let answer = asked.ask(request).await?;
    let operation = answer.operation.unwrap_or_default();
    let mut live = Live::default();
    let (class, word) = bulk::state_word(operation.state());
    let title = format!("Operation: {}", bulk::kind_text(operation.kind()));
    let error = operation.error.as_ref().map(|error| sentence(&error.message)).unwrap_or_default();
    let body = html! {
        h1 { (title) }
        p {
            "Topic " (links::topic(asked.namespace(), &operation.topic)) " · "
            (live.word("operation-state", class, word))
            " · " a href=(links::link("operations", &[("ns", asked.namespace())])) { "all operations" }
        }
        p.bad role="status" { (live.text("operation-error", error)) }
        (incomplete(&answer.incomplete_shards))
        p { (progress(&operation, "operation", &mut live)) }
        p.facts { (live.text("operation-left", left(asked, &operation))) }
        (figures(&operation, &mut live))
        (buttons(asked, &operation))
        (facts(asked, &operation))
        (shards(&operation.shards, &mut live))
        (commands(asked, &operation))
    };
    Ok(RenderedPage::new(title, body, live))
}

/// When it will have ended.
fn left(asked: &PageRequest, operation: &Operation) -> String {
    match (operation.state(), operation.estimated_end) {
        (OperationState::Running, Some(end)) => {
            format!("It ends in about {}.", span(from_timestamp(end).since(asked.now())))
        }
        (OperationState::Pending, _) => {
            "Of one topic one operation runs at a time, of a namespace four.".to_owned()
        }
        (OperationState::Cancelling, _) => "A shard has not heard yet that it is to stop.".to_owned(),
        _ => String::new(),
    }
}

fn figures(operation: &Operation, live: &mut Live) -> Markup {
    let figures = operation.figures.unwrap_or_default();
    let mut figure = |id: &str, name: &str, what: &str, number: u64, class: &'static str| {
        html! {
            div.figure {
                (name) b { (live.word(format!("operation-{id}"), class, count(number))) } small { (what) }
            }
        }
    };
    let failing = if figures.failed > 0 { "bad" } else { "" };
    html! {
        div.figures {
            (figure("matched", "matched", "passed the filter", figures.matched, ""))
            (figure("changed", "changed", "are done", figures.changed, ""))
            (figure("skipped", "skipped", "did not fit any more, or are left out", figures.skipped, ""))
            (figure("failed", "failed", "could not be changed", figures.failed, failing))
        }
    }
}

fn buttons(asked: &PageRequest, operation: &Operation) -> Markup {
    if !bulk::goes_on(operation.state()) || !asked.may(Scope::Operate, asked.namespace()) {
        return html! {};
    }
    let fields = [("ns", asked.namespace()), ("id", operation.id.as_str())];
    let rate = html! {
        label {
            "Items a second "
            input name="rate" type="number" min="1" max="1000000" required value=(operation.rate_per_second);
        }
        " " button { "Change the rate" }
    };
    html! {
        div.actions {
            (act::form(asked, "set-rate", &fields, rate))
            (act::form(asked, "stop-operation", &fields, html! { button.danger { "Stop the operation" } }))
        }
    }
}

fn facts(asked: &PageRequest, operation: &Operation) -> Markup {
    let now = asked.now();
    let text = |text: &str| html! { @if text.is_empty() { span.none { "–" } } @else { bdi { (text) } } };
    html! {
        dl.pairs {
            dt { "id" } dd.id { (operation.id) }
            dt { "filter" } dd {
                @if operation.filter.is_empty() { "none: all items of the topic" }
                @else { code { bdi { (operation.filter) } } }
            }
            @if operation.leased { dt { "leased items" } dd { "are among them" } }
            @if !operation.to_topic.is_empty() {
                dt { "to topic" } dd { (links::topic(asked.namespace(), &operation.to_topic)) }
            }
            @if let Some(ttl) = operation.ttl {
                dt { "items expire" } dd { (span(from_duration(ttl))) " later" }
            }
            @if let Some(most) = operation.max_redrives {
                dt { "skipped" } dd { "what was redriven " (most) " times or more" }
            }
            @if let Some(update) = &operation.update { (update_facts(asked, update)) }
            dt { "rate" } dd { (count(operation.rate_per_second.into())) " items a second at most" }
            dt { "started" } dd { (time(operation.started_at, now)) " by " (text(&operation.started_by)) }
            dt { "ended" } dd { (time(operation.ended_at, now)) }
            dt { "reason" } dd { (text(&operation.reason)) }
        }
    }
}

/// The values that an update gives items.
fn update_facts(asked: &PageRequest, update: &OperationUpdate) -> Markup {
    html! {
        @if let Some(priority) = update.priority { dt { "new priority" } dd { (priority) } }
        @match update.schedule {
            Some(Schedule::Delay(delay)) => {
                dt { "delivered" } dd { (span(from_duration(delay))) " after the change" }
            }
            Some(Schedule::DeliverAfter(at)) => {
                dt { "delivered" } dd { "not before " (time(Some(at), asked.now())) }
            }
            None => {}
        }
        @if let Some(size) = update.metadata_bytes {
            dt { "new metadata" } dd { (bytes(size.into())) }
        }
        @if let Some(ttl) = update.ttl {
            dt { "items expire" } dd { (span(from_duration(ttl))) " after the change" }
        }
    }
}

fn shards(shards: &[OperationShard], live: &mut Live) -> Markup {
    html! {
        h2 { "Shards" }
        (table::list(
            html! {
                (Head::number("shard"))
                (Head::words("state"))
                (Head::number("looked at"))
                (Head::number("matched"))
                (Head::number("changed"))
                (Head::number("skipped"))
                (Head::number("failed"))
                (Head::words("what is wrong"))
            },
            html! { @for shard in shards { (shard_row(shard, live)) } },
        ))
    }
}

fn shard_row(shard: &OperationShard, live: &mut Live) -> Markup {
    let id = live.row(&["shard", &shard.shard.to_string()]);
    let figures = shard.figures.unwrap_or_default();
    let (class, word) = shard_word(shard);
    let error = shard.error.as_ref().map(|error| sentence(&error.message)).unwrap_or_default();
    html! {
        tr data-row=(id) {
            td data-head="shard" { (shard.shard) }
            td.l data-head="state" { (live.word(format!("{id}w"), class, word)) }
            td data-head="looked at" { (live.text(format!("{id}l"), count(figures.scanned))) }
            td data-head="matched" { (live.text(format!("{id}m"), count(figures.matched))) }
            td data-head="changed" { (live.text(format!("{id}c"), count(figures.changed))) }
            td data-head="skipped" { (live.text(format!("{id}s"), count(figures.skipped))) }
            td data-head="failed" { (live.text(format!("{id}f"), count(figures.failed))) }
            td.l.wrap data-head="wrong" { (live.text(format!("{id}e"), error)) }
        }
    }
}

/// How far a shard is, and the class of the word.
fn shard_word(shard: &OperationShard) -> (&'static str, &'static str) {
    match (shard.begun, shard.ended, shard.error.is_some()) {
        _ if shard.silent => ("bad", "does not answer"),
        (_, true, true) => ("bad", "failed"),
        (_, true, false) => ("none", "done"),
        (true, false, true) => ("warn", "waits"),
        (true, false, false) => ("good", "running"),
        (false, false, _) => ("none", "has not begun"),
    }
}

fn commands(asked: &PageRequest, operation: &Operation) -> Markup {
    let (namespace, id) = (bulk::word(asked.namespace()), &operation.id);
    html! {
        h2 { "The same as a command" }
        @if let Some(command) = command(operation, None) { pre { (command) } }
        p { "To follow it:" }
        pre { "forebay operation watch --namespace " (namespace) " " (id) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_that_does_not_answer_is_never_called_done() {
        let shard = |begun, ended| OperationShard { begun, ended, ..OperationShard::default() };
        assert_eq!(shard_word(&shard(true, true)).1, "done");
        assert_eq!(shard_word(&shard(true, false)).1, "running");
        assert_eq!(shard_word(&shard(false, false)).1, "has not begun");
        let silent = OperationShard { silent: true, ..shard(true, true) };
        assert_eq!(shard_word(&silent), ("bad", "does not answer"));
        let error = Some(Default::default());
        assert_eq!(shard_word(&OperationShard { error: error.clone(), ..shard(true, true) }).1, "failed");
        assert_eq!(shard_word(&OperationShard { error, ..shard(true, false) }).1, "waits");
    }
}
