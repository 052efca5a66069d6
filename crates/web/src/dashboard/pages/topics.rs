//! All topics, of a namespace or of all of them.

use forebay_access::Scope;
use forebay_edge::rpc::ALL_NAMESPACES;
use forebay_proto::v1::{Item, ListTopicsRequest, ListTopicsResponse, Pause, Side, Topic};
use forebay_types::{filter::quoted, visible};
use maud::{Markup, html};

use super::super::{
    asked::PageRequest,
    failing,
    greatest::{self, BY_EACH as PAGE_SIZE},
    links::{self, link},
    live::Live,
    plot::row_spark,
    show::RenderedPage,
    table::{self, Head},
    texts::{age, count, length, percent, rate},
    trouble::Trouble,
};

/// The orders: as the call has them, and how they are called.
const ORDERS: [(&str, &str); 6] = [
    ("-oldest", "oldest first"),
    ("-ready", "most ready"),
    ("-leased", "most leased"),
    ("-scheduled", "most scheduled"),
    ("-dead", "most dead letters"),
    ("", "by name"),
];

/// The heads of columns by which topics can be put in order: text, order, and what it means.
const HEADS: [(&str, &str, &str); 6] = [
    ("topic", "", ""),
    ("oldest", "-oldest", "How long the next item has been ready"),
    ("ready", "-ready", "Items that could be leased now"),
    ("leased", "-leased", "Items that are leased"),
    ("scheduled", "-scheduled", "Items that are not due yet"),
    ("dead", "-dead", "Dead letters"),
];

/// Explains the line of a topic.
const LINE_TITLE: &str =
    "Items that were ready in the last minutes, as nodes remember it of the 1,000 busiest topics";
/// Explains the percentile.
const WAIT_TITLE: &str = "99 of 100 items were ready no longer when they were delivered, in the last minutes";

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    let (query, sort) = (asked.fields.get("q"), order(asked));
    let answer = listed(asked, query, sort).await?;
    let mut live = Live::default();
    let body = html! {
        h1 { "Topics" @if !asked.is_about_all() { " of " bdi { (asked.namespace()) } } }
        @if !asked.is_about_all() {
            p.facts {
                a href=(link("namespace", &[("ns", asked.namespace())])) {
                    "Figures and settings of the namespace"
                }
                @if let Some(link) = links::grafana(asked, "") { " · " (link) }
            }
        }
        (controls(asked, query, sort))
        (incomplete(&answer.incomplete_shards))
        @if answer.topics.is_empty() {
            (nothing(asked, query, answer.incomplete_shards.is_empty()))
        } @else {
            (table(asked, &answer.topics, Some((query, sort)), &mut live))
            @if !answer.next_page_token.is_empty() {
                p {
                    a rel="next" href=(next(asked, query, &answer.next_page_token)) { "Next page" }
                }
            } @else if !sort.is_empty() && answer.topics.len() == PAGE_SIZE as usize {
                @let by_name = [("ns", asked.fields.get("ns")), ("q", query), ("sort", "name")];
                p.none {
                    "The first " (PAGE_SIZE) " in this order. "
                    a href=(link("topics", &by_name)) { "All by name" }
                }
            }
        }
    };
    Ok(RenderedPage::new("Topics", body, live))
}

/// The topics of the page. All topics in an order by a figure are read once for all who may see them.
async fn listed(asked: &PageRequest, query: &str, sort: &'static str) -> Result<ListTopicsResponse, Trouble> {
    let request = ListTopicsRequest {
        namespace: asked.namespace().to_owned(),
        filter: filter(query),
        order_by: sort.to_owned(),
        page_size: PAGE_SIZE,
        page_token: asked.fields.get("page-token").to_owned(),
        recent: true,
    };
    let is_all = asked.is_about_all() && request.filter.is_empty() && !sort.is_empty();
    // Whoever may not see them all is refused by the call.
    if is_all && asked.may(Scope::Observe, ALL_NAMESPACES) {
        let all = greatest::read(asked).await?;
        let (topics, incomplete_shards) = (greatest::by(&all, sort), all.incomplete_shards.clone());
        return Ok(ListTopicsResponse { topics, incomplete_shards, ..ListTopicsResponse::default() });
    }
    let _walk = if sort.is_empty() { None } else { Some(asked.shared.walk.lock().await) };
    Ok(asked.ask(request).await?)
}

/// The order of the page. By name: an empty one. With a filter that is the first one, since it need not look
/// at all topics.
fn order(asked: &PageRequest) -> &'static str {
    let asked_for = asked.fields.get("sort");
    let is_first = asked.fields.get("page-token").is_empty() && asked.fields.get("q").is_empty();
    if asked_for.is_empty() && is_first {
        return ORDERS[0].0;
    }
    ORDERS.iter().find(|(order, _)| *order == asked_for).map_or("", |(order, _)| order)
}

/// Returns the filter for a typed text: a part of a name, unless it is a filter as calls have them.
fn filter(query: &str) -> String {
    let query = query.trim();
    match query {
        "" => String::new(),
        _ if query.contains(['=', '>', '<', ':']) => query.to_owned(),
        _ => format!("topic : {}", quoted(query)),
    }
}

fn controls(asked: &PageRequest, query: &str, sort: &str) -> Markup {
    html! {
        form.controls action="topics" {
            label {
                "Namespace "
                input name="ns" value=(asked.fields.get("ns")) placeholder="all" maxlength="255";
            }
            label {
                "Filter "
                input name="q" value=(query) placeholder="mail, or dead > 0" maxlength="1000";
            }
            label { "Order "
                select name="sort" {
                    @for (order, text) in ORDERS {
                        @let value = if order.is_empty() { "name" } else { order };
                        option value=(value) selected[order == sort] { (text) }
                    }
                }
            }
            button { "Show" }
        }
    }
}

/// Names the shards that could not be asked: what they have is missing.
pub fn incomplete(shards: &[u32]) -> Markup {
    if shards.is_empty() {
        return html! {};
    }
    let names: Vec<String> = shards.iter().map(ToString::to_string).collect();
    html! {
        p.bad role="alert" {
            "≥ The figures are too small: "
            (if shards.len() == 1 { "shard " } else { "shards " }) (names.join(", "))
            " could not be asked."
        }
    }
}

/// Items of a list that can't be read, and why.
pub fn unreadable(items: &[Item]) -> Markup {
    let damaged: Vec<&Item> = items.iter().filter(|item| !item.unreadable.is_empty()).collect();
    if damaged.is_empty() {
        return html! {};
    }
    html! {
        div.bad role="alert" {
            p {
                (damaged.len()) " of these items can't be read. "
                "They can only be removed, and are not delivered."
            }
            ul { @for item in damaged { li { span.id { (item.item_id) } ": " (item.unreadable) } } }
        }
    }
}

fn next(asked: &PageRequest, query: &str, token: &str) -> String {
    link("topics", &[("ns", asked.fields.get("ns")), ("q", query), ("sort", "name"), ("page-token", token)])
}

/// Why no topic is shown. `all_asked`: all shards were asked.
fn nothing(asked: &PageRequest, query: &str, all_asked: bool) -> Markup {
    let namespace = if asked.is_about_all() { "default" } else { asked.namespace() };
    html! {
        div.empty {
            @if query.is_empty() && !all_asked {
                p { "No topic in the shards that were asked. What the others have is not known." }
            } @else if query.is_empty() {
                p { "No topics yet. A topic is created by its first item:" }
                pre { "forebay enqueue --namespace " (namespace) " --topic mail hello" }
            } @else {
                p { "No topic passes the filter " code { (query) } "." }
                p { a href=(link("topics", &[("ns", asked.fields.get("ns"))])) { "Clear the filter" } }
            }
        }
    }
}

/// A table of topics. `ns` is shown where they are of several namespaces. `listed`: the filter and the order
/// of the page, where its heads lead to the other orders.
pub fn table(asked: &PageRequest, topics: &[Topic], listed: Option<(&str, &str)>, live: &mut Live) -> Markup {
    let all = asked.namespace() == ALL_NAMESPACES;
    table::list(
        html! {
            @if all { (Head::words("namespace")) }
            @for (text, order, title) in HEADS {
                (head(asked, text, order, title, listed))
                @if order == "-ready" { (Head::words("5 min").title(LINE_TITLE)) }
            }
            (Head::number("in/s").title("Items enqueued a second"))
            (Head::number("out/s").title("Deliveries acked a second"))
            (Head::number("failed").title("Deliveries nacked, or whose lease ran out"))
            (Head::number("wait p99").title(WAIT_TITLE))
            (Head::number("waiting").title("Dequeue calls that wait for the topic"))
        },
        html! { @for topic in topics { (row(asked, topic, all, live)) } },
    )
}

/// The head of a column. It leads to the list in its order: names from the first, figures from the largest.
fn head(asked: &PageRequest, text: &str, order: &str, title: &str, listed: Option<(&str, &str)>) -> Markup {
    let is_name = order.is_empty();
    let (class, title) = (is_name.then_some("l"), (!title.is_empty()).then_some(title));
    let Some((query, sort)) = listed else {
        return html! { th class=[class] scope="col" title=[title] { (text) } };
    };
    let value = if is_name { "name" } else { order };
    let fields = [("ns", asked.fields.get("ns")), ("q", query), ("sort", value)];
    let sorted = (sort == order).then_some(if is_name { "ascending" } else { "descending" });
    html! {
        th class=[class] scope="col" title=[title] aria-sort=[sorted] {
            a href=(link("topics", &fields)) { (text) }
        }
    }
}

fn row(asked: &PageRequest, topic: &Topic, all: bool, live: &mut Live) -> Markup {
    let id = live.row(&[&topic.namespace, &topic.topic]);
    let rates = topic.rates.unwrap_or_default();
    let failing = failing::part(&rates);
    let dead = if topic.dead_count > 0 { "warn" } else { "none" };
    html! {
        tr data-row=(id) {
            @if all { td.l data-head="in" { (links::namespace(&topic.namespace)) } }
            td.l { (links::topic(&topic.namespace, &topic.topic)) (chips(&topic.pauses)) }
            (live.cell(format!("{id}o"), Some("oldest"), age(topic.oldest_ready_at, asked.now())))
            (live.cell(format!("{id}r"), Some("ready"), count(topic.ready_count)))
            td.line { (row_spark(live, &id, &topic.recent_ready)) }
            (live.cell(format!("{id}l"), None, count(topic.leased_count)))
            (live.cell(format!("{id}s"), None, count(topic.scheduled_count)))
            (live.word_cell(format!("{id}d"), dead, count(topic.dead_count)))
            (live.cell(format!("{id}i"), None, rate(rates.enqueued)))
            (live.cell(format!("{id}u"), None, rate(rates.acked)))
            (live.word_cell(format!("{id}f"), failing::class(failing), percent(failing)))
            (live.cell(format!("{id}p"), None, length(topic.wait_p99)))
            (live.cell(format!("{id}w"), None, count(topic.waiting_calls)))
        }
    }
}

/// Chips for the pauses of a topic.
pub(crate) fn chips(pauses: &[Pause]) -> Markup {
    html! {
        @for pause in pauses {
            @let whole = if pause.of_namespace { "namespace " } else { "" };
            " " span.chip.warn title=(visible(&pause.note)) { (whole) (paused(pause)) }
        }
    }
}

fn paused(pause: &Pause) -> &'static str {
    match pause.side() {
        Side::Enqueue => "enqueue paused",
        _ => "paused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_a_part_of_a_name_or_a_filter() {
        assert_eq!(filter(" "), "");
        assert_eq!(filter("mail"), "topic : \"mail\"");
        assert_eq!(filter("a\"b"), format!("topic : {}", quoted("a\"b")));
        assert_eq!(filter("dead > 0"), "dead > 0");
    }

    #[test]
    fn a_shard_that_is_missing_is_named() {
        assert_eq!(incomplete(&[]).into_string(), "");
        let shown = incomplete(&[3, 7]).into_string();
        assert!(shown.contains("≥") && shown.contains("shards 3, 7 could not be asked"), "{shown}");
    }
}
