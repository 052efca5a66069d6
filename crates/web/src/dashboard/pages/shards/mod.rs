//! The shards of the cluster: who owns them, how they are, and what this node knows of those that it owns.

mod change;
mod history;
mod known;
mod owned;
mod state;
mod table;

use std::sync::Arc;

use forebay_engine::Status;
use forebay_proto::v1::{ListShardsRequest, Shard};
use maud::{Markup, html};

use self::known::ShardWithStatus;
use super::super::{asked::PageRequest, links::link, live::Live, show::RenderedPage, trouble::Trouble};

/// Shards of a page.
const PAGE_SIZE: u32 = 100;

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    let chosen = chosen(asked.fields.get("id"))?;
    let page_token = asked.fields.get("page-token");
    let request = ListShardsRequest { page_size: PAGE_SIZE, page_token: page_token.to_owned() };
    let answer = asked.ask(request).await?;
    let engine = asked.info.status().await.engine;
    let mut live = Live::default();
    let plots = match chosen {
        Some(id) => history::make(asked, id, &mut live).await?,
        None => html! {},
    };
    let forms = change::make(asked, chosen, &answer.shards).await?;
    let known = known(&answer.shards, engine.as_ref());
    let body = html! {
        h1 { "Shards" }
        @if engine.is_none() { p.bad role="alert" { "The engine of this node has stopped." } }
        (plots)
        @if known.is_empty() {
            (nothing(page_token))
        } @else {
            (table::make(asked, &known, &mut live))
        }
        @if !answer.next_page_token.is_empty() {
            @let next = link("shards", &[("page-token", &answer.next_page_token)]);
            p { a rel="next" href=(next) { "Next page" } }
        }
        (forms)
        (owned::make(asked, &known, &mut live))
    };
    Ok(RenderedPage::new("Shards", body, live))
}

/// The shard of which more is shown.
fn chosen(text: &str) -> Result<Option<u32>, Trouble> {
    match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| Trouble::field("id", "must be the number of a shard")),
    }
}

fn known<'a>(shards: &'a [Shard], engine: Option<&'a Arc<Status>>) -> Vec<ShardWithStatus<'a>> {
    let status = |id: u32| engine.and_then(|engine| engine.shards.iter().find(|status| status.id == id));
    shards.iter().map(|shard| ShardWithStatus { shard, status: status(shard.id) }).collect()
}

fn nothing(page_token: &str) -> Markup {
    html! {
        div.empty {
            @if page_token.is_empty() {
                p { "This node knows no shards. A shard is added with:" }
                pre { "forebay shard add mysql://forebay@db1:3306/forebay_0001" }
            } @else {
                p { "There are no more shards. " a href="shards" { "First page" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_engine::{ShardState, ShardStatus};

    use super::*;

    #[test]
    fn a_page_may_be_about_one_shard() {
        assert_eq!(chosen("").unwrap(), None);
        assert_eq!(chosen("3").unwrap(), Some(3));
        assert!(chosen("three").is_err() && chosen("-1").is_err());
    }

    #[test]
    fn figures_are_those_of_the_owner_alone() {
        let shards = [1, 2, 3].map(|id| Shard { id, ..Shard::default() });
        let status = |id, state| ShardStatus { id, state, ready: 7, ..ShardStatus::default() };
        let shards_of_engine = vec![status(2, ShardState::Waiting), status(1, ShardState::Owned)];
        let engine = Arc::new(Status { shards: shards_of_engine, ..Status::default() });
        let known = known(&shards, Some(&engine));
        let owned: Vec<_> = known.iter().map(|known| known.owned().map(|status| status.ready)).collect();
        assert_eq!(owned, [Some(7), None, None]);
        assert!(known[1].status.is_some() && known[2].status.is_none());
    }
}
