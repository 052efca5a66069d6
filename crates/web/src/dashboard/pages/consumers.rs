//! Consumers: who asked for items lately, and who has leases.

use forebay_access::Scope;
use forebay_proto::v1::{Consumer, ListConsumersRequest, ListConsumersResponse};
use forebay_types::is_prefix;
use maud::{Markup, html};

use super::{
    super::{
        act,
        asked::PageRequest,
        failing,
        links::{self, link},
        live::Live,
        show::RenderedPage,
        table::{self, Head},
        texts::{age, count, percent, rate},
        trouble::Trouble,
    },
    topics::incomplete,
};

/// Consumers of a page.
const PAGE_SIZE: u32 = 200;

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    let request = ListConsumersRequest {
        namespace: asked.namespace().to_owned(),
        page_size: PAGE_SIZE,
        page_token: asked.fields.get("page-token").to_owned(),
    };
    let answer = asked.ask(request).await?;
    let mut live = Live::default();
    let body = html! {
        h1 { "Consumers" @if !asked.is_about_all() { " of " bdi { (asked.namespace()) } } }
        (controls(asked))
        (incomplete(&answer.incomplete_shards))
        @if answer.consumers_cut {
            p.warn {
                "Some consumers may be missing. A node remembers those of a namespace that it saw last, and "
                "looks at 50,000 leases."
            }
        }
        (list(asked, &answer, &mut live))
    };
    Ok(RenderedPage::new("Consumers", body, live))
}

fn controls(asked: &PageRequest) -> Markup {
    html! {
        form.controls action="consumers" {
            label {
                "Namespace "
                input name="ns" value=(asked.fields.get("ns")) placeholder="all" maxlength="255";
            }
            button { "Show" }
        }
    }
}

fn list(asked: &PageRequest, answer: &ListConsumersResponse, live: &mut Live) -> Markup {
    let is_first = asked.fields.get("page-token").is_empty();
    html! {
        @if answer.consumers.is_empty() && is_first {
            (nothing(asked))
        } @else if answer.consumers.is_empty() {
            p.none { "There are no more consumers." }
        } @else {
            (table(asked, &answer.consumers, live))
        }
        @if !is_first {
            p { a href=(link("consumers", &[("ns", asked.fields.get("ns"))])) { "First page" } }
        }
        @if !answer.next_page_token.is_empty() {
            p { a rel="next" href=(next(asked, &answer.next_page_token)) { "Next page" } }
        }
    }
}

fn next(asked: &PageRequest, token: &str) -> String {
    link("consumers", &[("ns", asked.fields.get("ns")), ("page-token", token)])
}

fn nothing(asked: &PageRequest) -> Markup {
    let namespace = if asked.is_about_all() { "default" } else { asked.namespace() };
    html! {
        div.empty {
            p { "Nobody has asked for items lately, and nobody has leases." }
            p { "A consumer is known by the name that it gives itself when it asks for items:" }
            pre { "forebay dequeue --namespace " (namespace) " --topic mail --consumer me" }
        }
    }
}

fn table(asked: &PageRequest, consumers: &[Consumer], live: &mut Live) -> Markup {
    let all = asked.is_about_all();
    let ends = consumers.iter().any(|consumer| may_end(asked, consumer));
    table::list(
        html! {
            @if all { (Head::words("namespace")) }
            (Head::words("consumer"))
            (Head::words("topics").title("Topics that it has leases of or has asked for"))
            (Head::number("leased").title("Items that it has leased"))
            (Head::number("oldest lease").title("How long ago the oldest of these deliveries began"))
            (Head::number("acks/s").title("Its deliveries acked a second"))
            (Head::number("failed").title(FAILED))
            (Head::number("last seen").title("How long ago it asked for items"))
            (Head::words("from").title("From where it asked last"))
            (Head::words("client").title("The program that it said it is"))
            @if ends { (Head::words("leases")) }
        },
        html! { @for consumer in consumers { (row(asked, consumer, all, ends, live)) } },
    )
}

/// Explains the column of failures.
const FAILED: &str = "Deliveries that were nacked, or whose lease ran out, of all that ended";

fn row(asked: &PageRequest, consumer: &Consumer, all: bool, ends: bool, live: &mut Live) -> Markup {
    let id = live.row(&[&consumer.namespace, &consumer.name]);
    let (now, failing) = (asked.now(), consumer.failure_ratio);
    html! {
        tr data-row=(id) {
            @if all { td.l data-head="in" { (links::namespace(&consumer.namespace)) } }
            td.l { (named(consumer)) }
            td.l.wrap data-head="topics" { (topics(consumer)) }
            td data-head="leased" { (live.text(format!("{id}l"), count(consumer.leased_count))) }
            td data-head="oldest lease" { (live.text(format!("{id}o"), age(consumer.oldest_lease_at, now))) }
            td data-head="acks/s" { (live.text(format!("{id}a"), rate(consumer.acks_per_second))) }
            td data-head="failed" { (live.word(format!("{id}f"), failing::class(failing), percent(failing))) }
            td data-head="last seen" { (live.text(format!("{id}s"), age(consumer.last_seen_at, now))) }
            td.l data-head="from" { (live.text(format!("{id}p"), or_dash(&consumer.peer))) }
            td.l.wrap data-head="client" { (live.text(format!("{id}c"), or_dash(&consumer.client))) }
            @if ends { td.l { @if may_end(asked, consumer) { (end_leases(asked, consumer)) } } }
        }
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

fn named(consumer: &Consumer) -> Markup {
    html! {
        @if consumer.name.is_empty() {
            span.none title="All consumers that give themselves no name are shown as one" { "no name" }
        } @else {
            bdi { (consumer.name) }
        }
    }
}

fn topics(consumer: &Consumer) -> Markup {
    html! {
        @for (place, topic) in consumer.topics.iter().enumerate() {
            @if place > 0 { ", " }
            // A prefix is no topic, and has no page.
            @if is_prefix(topic) { bdi { (topic) } } @else { (links::topic(&consumer.namespace, topic)) }
        }
        @if consumer.topics_cut { " and more" }
    }
}

/// Whether there are leases that whoever asks may end.
fn may_end(asked: &PageRequest, consumer: &Consumer) -> bool {
    let has_topics = consumer.topics.iter().any(|topic| !is_prefix(topic));
    consumer.leased_count > 0 && has_topics && asked.may(Scope::Operate, &consumer.namespace)
}

/// A form that ends the leases of one topic.
fn end_leases(asked: &PageRequest, consumer: &Consumer) -> Markup {
    let hidden = [("ns", consumer.namespace.as_str()), ("consumer", consumer.name.as_str())];
    let inside = html! {
        label {
            "Topic "
            select name="name" {
                @for topic in consumer.topics.iter().filter(|topic| !is_prefix(topic)) {
                    option value=(topic) { (topic) }
                }
            }
        }
        label { "Why " input name="reason" maxlength="1000"; }
        button { "End its leases" }
        p.dim { "The items are delivered again. No failure counts. Receipts of these leases are void." }
        @if consumer.topics_cut {
            p.dim { "It has more topics: forebay consumer reset names any with --topic." }
        }
    };
    html! {
        details.form {
            summary { "end its leases" }
            (act::form(asked, "release-leases", &hidden, inside))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_consumer_without_a_name_says_so_and_names_are_escaped() {
        let consumer = |name: &str| Consumer { name: name.to_owned(), ..Consumer::default() };
        assert!(named(&consumer("")).into_string().contains("no name"));
        assert_eq!(named(&consumer("<b>")).into_string(), "<bdi>&lt;b&gt;</bdi>");
        let topics_of = Consumer { topics: vec!["a".into(), "b".into()], topics_cut: true, ..consumer("x") };
        let shown = topics(&topics_of).into_string();
        assert!(shown.contains("</a>, <a") && shown.ends_with("and more"), "{shown}");
    }
}
