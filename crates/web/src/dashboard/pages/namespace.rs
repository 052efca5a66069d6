//! A namespace: its figures, the settings that count, and the form that changes them.

use std::collections::BTreeSet;

use forebay_access::Scope;
use forebay_proto::v1::{GetNamespaceRequest, GetNamespaceResponse};
use maud::{Markup, html};
use tonic::{Code, Status};

use super::{
    super::{
        act, asked::PageRequest, bulk::word, links::link, live::Live, show::RenderedPage, texts::counted,
        trouble::Trouble,
    },
    narrower_settings,
    overview::{
        figures::{self, History},
        unread,
    },
    settings,
    topics::{chips, incomplete},
    ways_out,
};

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    if asked.is_about_all() {
        return Err(Trouble::field("ns", "must name a namespace"));
    }
    let namespace = asked.namespace();
    let title = format!("Namespace {namespace}");
    let history = History::read(asked, namespace).await?;
    let mut live = Live::default();
    let figures = lately(&history, &mut live);
    // To make the rest again would be a look at all topics of the namespace.
    if asked.is_followed() {
        history?;
        return Ok(RenderedPage::new(title, html! {}, live));
    }
    let request = GetNamespaceRequest { namespace: namespace.to_owned() };
    let (found, is_known) = match asked.ask(request).await {
        Ok(found) => (found, true),
        // Settings may be made before there is anything else.
        Err(status) if status.code() == Code::NotFound => (GetNamespaceResponse::default(), false),
        Err(status) => return Err(status.into()),
    };
    let of = found.namespace.clone().unwrap_or_default();
    let missing = history.as_ref().map_or(&[][..], |history| &history.missing);
    let missing: BTreeSet<u32> = found.incomplete_shards.iter().chain(missing).copied().collect();
    let body = html! {
        h1 { "Namespace " bdi { (namespace) } (chips(&of.pauses)) }
        (incomplete(&missing.into_iter().collect::<Vec<_>>()))
        @if is_known {
            p.facts {
                @if of.topics_cut { "≥ " }
                a href=(link("topics", &[("ns", namespace)])) { (counted(of.topic_count, "topic")) }
            }
            (figures)
            (ways_out::line(of.counts.as_ref(), asked.now(), &mut live))
        } @else {
            p.none { "There is nothing of it yet: no topics, no settings and no pauses." }
        }
        h2 { "Settings" }
        (shown(asked, &found, is_known))
        (command(namespace))
        @if asked.may(Scope::Admin, namespace) { (narrower_settings::show(asked).await) }
    };
    Ok(RenderedPage::new(title, body, live))
}

/// How much happens in it, as far as that is known.
fn lately(history: &Result<History, Status>, live: &mut Live) -> Markup {
    match history {
        Ok(history) if history.is_empty() => html! {
            p.none {
                "No figures: nodes have looked at none of its topics, or remember those of 200 other \
                 namespaces, in which more happens."
            }
        },
        Ok(history) => figures::figures(history, live),
        Err(status) => unread("The figures", status),
    }
}

fn shown(asked: &PageRequest, found: &GetNamespaceResponse, is_known: bool) -> Markup {
    let of = found.namespace.clone().unwrap_or_default();
    let own = of.settings.unwrap_or_default();
    html! {
        @if is_known {
            (settings::pairs(&own, &found.effective_settings.unwrap_or_default(), of.settings_version))
            p {
                "They count for all topics that have none of their own, or of a pattern. What is inherited \
                 is that of the node's configuration."
            }
        }
        @if asked.may(Scope::Admin, asked.namespace()) {
            @let version = of.settings_version.to_string();
            @let fields = [("ns", asked.namespace()), ("version", version.as_str())];
            details.form {
                summary { "Change the settings of this namespace" }
                (act::form(asked, "put-namespace", &fields, settings::fields(&own, true)))
            }
        }
    }
}

fn command(namespace: &str) -> Markup {
    html! {
        p { "To change a setting with the command line, and to inherit it again:" }
        pre {
            "forebay namespace put --namespace " (word(namespace)) " --retry-delay 10s --reason WHY\n"
            "forebay namespace put --namespace " (word(namespace)) " --retry-delay inherit"
        }
    }
}
