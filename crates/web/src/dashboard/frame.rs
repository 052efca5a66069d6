//! The frame of all pages: where one is, who one is, and whether anything is wrong.

use axum::response::Response;
use forebay_access::Scope;
use forebay_edge::rpc::ALL_NAMESPACES;
use http::StatusCode;
use maud::{Markup, html};

use super::{asked::PageRequest, links::link, live::Live, notice::notice, show::RenderedPage, texts::utc};
use crate::{assets::SCRIPT, condition::Condition, html::page};

/// The pages that the frame links to: address, text, and the right that is needed to see it.
const PAGES: &[(&str, &str, Scope)] = &[
    ("topics", "Topics", Scope::Observe),
    ("dead-letters", "Dead letters", Scope::Observe),
    ("operations", "Operations", Scope::Operate),
    ("consumers", "Consumers", Scope::Observe),
    ("shards", "Shards", Scope::Observe),
    ("nodes", "Nodes", Scope::Observe),
    ("access", "Access", Scope::Admin),
    ("audit", "Audit", Scope::Admin),
];
/// Pages that are about no namespace.
const OF_CLUSTER: [&str; 2] = ["shards", "nodes"];
/// Pages that need a namespace.
const OF_NAMESPACE: [&str; 2] = ["dead-letters", "operations"];

/// How things are, as the frame of every page says it.
pub struct Health {
    /// One word.
    word: &'static str,
    /// Its class.
    class: &'static str,
    /// Problems, most severe first. A visitor who may not see the whole cluster is told the word alone.
    problems: Vec<String>,
}

impl Health {
    /// As of now, for whoever asks.
    pub async fn of(asked: &PageRequest) -> Self {
        let node = asked.info.status().await;
        let (word, class, problems) = match node.state {
            Condition::Serving => ("serving", "good", Vec::new()),
            Condition::StandingBy => ("standing by", "none", Vec::new()),
            Condition::Degraded(problems) => ("degraded", "bad", problems),
        };
        let stopped = node.engine.is_none().then(|| "the engine of this node has stopped".to_owned());
        let problems = stopped.into_iter().chain(problems).chain(node.exposed);
        let sees = asked.may(Scope::Observe, ALL_NAMESPACES);
        Self { word, class, problems: if sees { problems.collect() } else { Vec::new() } }
    }

    /// The word of the head.
    pub fn word(&self, live: &mut Live) -> Markup {
        live.word("state", self.class, self.word)
    }

    /// The problems, a line each. Without any it is empty, and not seen.
    pub fn strip(&self, live: &mut Live) -> Markup {
        let text = self.problems.iter().map(|problem| sentence(problem)).collect::<Vec<_>>().join("\n");
        html! { p.strip role="alert" { (live.text("problems", text)) } }
    }
}

/// A text with a capital and a full stop.
pub fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", chars.as_str())
}

/// The answer with a whole page. `name`: its address.
pub async fn answer(name: &str, asked: &PageRequest, shown: RenderedPage) -> Response {
    let RenderedPage { title, body, mut live } = shown;
    let health = Health::of(asked).await;
    let of_page = asked.fields.encoded();
    let body = html! {
        body data-events=(events_of(name, &of_page)) {
            a.skip href="#main" { "Skip to the content" }
            header {
                a.brand href="./" { "Forebay" }
                (health.word(&mut live))
                nav aria-label="Pages" { (pages(asked, name, asked.namespace())) }
                (search(asked))
                (fresh(asked, &address(name, &of_page)))
                (asked.visitor.session_line())
            }
            (health.strip(&mut live))
            main #main {
                (notice(asked))
                (body)
            }
        }
    };
    page(StatusCode::OK, &title, &[SCRIPT.link()], body)
}

/// Of when the page is. The day is seen where the figures are old: there is little room in the head.
fn fresh(asked: &PageRequest, address: &str) -> Markup {
    let now = utc(asked.now()) + " UTC";
    html! {
        span.fresh {
            span #fresh title=(now) { (now.split_once(' ').map_or("", |(_, time)| time)) }
            a href=(address) { "reload" }
        }
    }
}

/// The search. A tenant searches in a namespace of its own.
fn search(asked: &PageRequest) -> Markup {
    if !asked.may(Scope::Observe, asked.namespace()) {
        return html! {};
    }
    html! {
        form.search action="search" role="search" {
            @if !asked.is_about_all() { input type="hidden" name="ns" value=(asked.namespace()); }
            input name="q" type="search" placeholder="topic or item id" aria-label="Search" maxlength="255";
        }
    }
}

fn address(name: &str, query: &str) -> String {
    let page = if name.is_empty() { "./" } else { name };
    if query.is_empty() { page.to_owned() } else { format!("{page}?{query}") }
}

/// Where the page's changes come from.
fn events_of(name: &str, query: &str) -> String {
    let page = if name.is_empty() { "overview" } else { name };
    let and = if query.is_empty() { "" } else { "&" };
    format!("events?page={page}{and}{query}")
}

/// Links to the pages that whoever asks may see.
fn pages(asked: &PageRequest, here: &str, namespace: &str) -> Markup {
    let everywhere = asked.may(Scope::Observe, ALL_NAMESPACES);
    let about = if asked.is_about_all() { "" } else { namespace };
    let seen = |(page, _, scope): &&(&str, &str, Scope)| match OF_CLUSTER.contains(page) {
        true => everywhere,
        false => asked.may(*scope, namespace) && !(OF_NAMESPACE.contains(page) && about.is_empty()),
    };
    html! {
        @if everywhere { a href="./" aria-current=[current("", here)] { "Overview" } }
        @for (page, text, _) in PAGES.iter().filter(seen) {
            @let about = if OF_CLUSTER.contains(page) { "" } else { about };
            a href=(link(page, &[("ns", about)])) aria-current=[current(page, here)] { (text) }
        }
        @if !about.is_empty() {
            span.about { "in " bdi { (about) } @if everywhere { " " a href=(link(here, &[])) { "all" } } }
        }
    }
}

fn current(page: &str, here: &str) -> Option<&'static str> {
    (page == here).then_some("page")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_begins_and_ends_as_one() {
        assert_eq!(sentence("shard 3 does not answer"), "Shard 3 does not answer.");
        assert_eq!(sentence("Done!"), "Done!");
        assert_eq!(sentence(""), ".");
    }

    #[test]
    fn the_events_of_a_page_are_asked_for_with_its_fields() {
        assert_eq!(events_of("", ""), "events?page=overview");
        assert_eq!(events_of("topics", "ns=a&q=b"), "events?page=topics&ns=a&q=b");
        assert_eq!(address("", ""), "./");
        assert_eq!(address("topics", "ns=a"), "topics?ns=a");
    }
}
