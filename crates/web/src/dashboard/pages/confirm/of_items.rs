//! The question before items that were chosen from a list are cancelled.

use forebay_proto::v1::{CancelItemResult, CancelItemsRequest, ItemState};
use maud::{Markup, html};

use super::{
    super::super::{
        asked::PageRequest,
        bulk::word,
        links::{self, link},
        live::Live,
        show::RenderedPage,
        texts::counted,
        trouble::Trouble,
    },
    cancel_form::cancel_form,
};

/// Makes the page. `ids`: at least one.
pub async fn make(asked: &PageRequest, ids: &[&str]) -> Result<RenderedPage, Trouble> {
    let (namespace, topic) = (asked.namespace(), asked.fields.get("name"));
    let request = CancelItemsRequest {
        namespace: namespace.to_owned(),
        item_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        dry_run: true,
        ..CancelItemsRequest::default()
    };
    let answer = asked.ask(request).await?;
    let (there, gone): (Vec<_>, Vec<_>) = answer.results.iter().partition(|result| result.error.is_none());
    let title = format!("Cancel {}?", counted(ids.len() as u64, "item"));
    let back = link("topic", &[("ns", namespace), ("name", topic)]);
    let body = html! {
        h1 { (title) }
        p { "Topic " (links::topic(namespace, topic)) }
        @if there.is_empty() {
            div.empty { p { "None of them is there any more, so there is nothing to do." } }
            p { a.button href=(back) autofocus { "Go back" } }
        } @else {
            div.why { p { (consequence(&there)) } }
            p { "They are:" @for one in &there { " " (links::item(namespace, &one.item_id)) } }
            @for one in &gone { p.warn { (one.item_id) " can't be cancelled: " (why(one)) "." } }
            (form(asked, &there, &back))
            h2 { "The same as a command" }
            pre {
                "forebay item cancel --namespace " (word(namespace))
                @for one in &there { " " (word(&one.item_id)) }
            }
        }
    };
    Ok(RenderedPage::new(title, body, Live::default()))
}

/// The consequence for the items that are there.
fn consequence(there: &[&CancelItemResult]) -> String {
    let many = counted(there.len() as u64, "item");
    let (are, they) = if there.len() == 1 { ("is", "It") } else { ("are", "They") };
    let leased = there.iter().filter(|one| one.state() == ItemState::Leased).count();
    let more = match leased {
        0 => String::new(),
        1 => " 1 of them is leased, and its receipt is over then.".to_owned(),
        leased => format!(" {leased} of them are leased, and their receipts are over then."),
    };
    format!("{many} {are} deleted. {they} can't be had back.{more}")
}

/// Why one can't be cancelled.
fn why(one: &CancelItemResult) -> &str {
    one.error.as_ref().map_or("", |error| error.message.as_str())
}

fn form(asked: &PageRequest, there: &[&CancelItemResult], back: &str) -> Markup {
    let mut fields = vec![("ns", asked.namespace()), ("name", asked.fields.get("name"))];
    fields.extend(there.iter().map(|one| ("id", one.item_id.as_str())));
    cancel_form(asked, &fields, back)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_said() {
        let of = |state: ItemState| CancelItemResult { state: state.into(), ..CancelItemResult::default() };
        let (ready, leased) = (of(ItemState::Ready), of(ItemState::Leased));
        assert_eq!(consequence(&[&ready]), "1 item is deleted. It can't be had back.");
        let said = consequence(&[&ready, &leased]);
        assert!(
            said.starts_with("2 items are deleted. They can't be had back. 1 of them is leased"),
            "{said}"
        );
    }
}
