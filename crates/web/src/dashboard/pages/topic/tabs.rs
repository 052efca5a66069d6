//! The parts of a topic's page, one at a time.

use forebay_access::Scope;
use forebay_proto::v1::{GetTopicResponse, ItemState};
use maud::{Markup, html};

use super::{
    super::super::{
        asked::PageRequest,
        table::{self, Head},
        texts::{age, count, utc},
        trouble::Trouble,
    },
    items, others,
    place::{HISTORY, Place, TABS},
    settings,
};

/// Links to the parts.
pub fn links(asked: &PageRequest, place: &Place<'_>) -> Markup {
    let seen = |(name, _): &&(&str, &str)| *name != HISTORY || asked.may(Scope::Admin, place.namespace);
    html! {
        nav.tabs aria-label="Parts of the topic" {
            @for (name, text) in TABS.iter().filter(seen) {
                a href=(place.with(&[("tab", name)])) aria-current=[(*name == place.tab).then_some("page")] {
                    (text)
                }
            }
        }
    }
}

/// The part that is asked for.
pub async fn show(
    asked: &PageRequest,
    place: &Place<'_>,
    found: &GetTopicResponse,
) -> Result<Markup, Trouble> {
    let part = match place.tab {
        "leased" => items::list(asked, place, found, ItemState::Leased).await?,
        "scheduled" => items::list(asked, place, found, ItemState::Scheduled).await?,
        "dead" => items::list(asked, place, found, ItemState::Dead).await?,
        "priorities" => priorities(asked, found),
        "consumers" => others::consumers(asked, place).await?,
        "settings" => settings::settings(asked, place, found),
        HISTORY if asked.may(Scope::Admin, place.namespace) => others::history(asked, place).await?,
        _ => items::list(asked, place, found, ItemState::Ready).await?,
    };
    Ok(html! {
        (part)
        p.none { "This list is of " (utc(asked.now())) " UTC. It does not change by itself." }
    })
}

/// How many items are ready of each priority.
fn priorities(asked: &PageRequest, found: &GetTopicResponse) -> Markup {
    let most = found.priorities.iter().map(|one| one.ready_count).max().unwrap_or(0).max(1);
    if found.priorities.is_empty() {
        return html! { div.empty { p { "No item is ready, so there are no priorities to count." } } };
    }
    html! {
        @if found.priorities_cut {
            p.none { "≥ There are more ready items: each shard counts its first 50,000." }
        }
        (table::plain(
            html! {
                (Head::number("priority").title("Smaller numbers are delivered first"))
                (Head::number("ready"))
                (Head::number("oldest"))
                (Head::words("share"))
            },
            html! {
                @for one in &found.priorities {
                    tr {
                        td { (one.priority) }
                        td { (count(one.ready_count)) }
                        td { (age(one.oldest_ready_at, asked.now())) }
                        td.l {
                            meter min="0" max=(most) value=(one.ready_count)
                                aria-label=(format!("priority {}", one.priority)) {}
                        }
                    }
                }
            },
        ))
    }
}
