//! Access: who asks, which tokens there are, and how tokens are made and ended.

mod create;
mod tokens;
mod who;

use forebay_proto::v1::{ListTokensRequest, ListTokensResponse};
use forebay_types::Reason;
use maud::{Markup, html};
use tonic::Status;
use tonic_types::StatusExt as _;

use super::super::{asked::PageRequest, links::link, live::Live, show::RenderedPage, trouble::Trouble};

/// Tokens of a page.
const PAGE_SIZE: u32 = 100;

/// The command that makes a tenant's token.
const MAILER: &str =
    "forebay token create --name mailer --grant 'billing:produce,consume' --ends 90d --out mailer.token";
/// The command that makes an operator's, where tokens are in a file.
const ADMIN_OF_A_FILE: &str = "forebay token create --name admin --grant '*:all' \
                               --tokens-file /etc/forebay/tokens.toml --out admin.token";

/// Makes the page.
pub async fn make(asked: &PageRequest) -> Result<RenderedPage, Trouble> {
    let request = ListTokensRequest {
        namespace: asked.namespace().to_owned(),
        page_size: PAGE_SIZE,
        page_token: asked.fields.get("page-token").to_owned(),
    };
    let tokens = match asked.ask(request).await {
        Ok(answer) => section(asked, &answer),
        Err(refused) if are_off(&refused) => not_kept(),
        Err(refused) => return Err(refused.into()),
    };
    let body = html! {
        h1 { "Access" @if !asked.is_about_all() { " to " bdi { (asked.namespace()) } } }
        @if !asked.info.access.is_on() {
            p.bad { "Access control is off: whoever reaches this node may do everything." }
        }
        @if let Some(trouble) = asked.info.access.trouble() {
            p.bad role="alert" { "The file of tokens can't be used: " (trouble) }
        }
        (who::make(asked).await?)
        (tokens)
    };
    // Tokens do not change by themselves.
    Ok(RenderedPage::new("Access", body, Live::default()))
}

/// Whether a call was refused because the node accepts no tokens of its catalog.
fn are_off(refused: &Status) -> bool {
    let details = refused.get_error_details();
    details.error_info().is_some_and(|info| info.reason == Reason::CatalogTokensOff.as_str())
}

fn section(asked: &PageRequest, answer: &ListTokensResponse) -> Markup {
    let (namespace, page_token) = (asked.fields.get("ns"), asked.fields.get("page-token"));
    html! {
        h2 { "Tokens of the catalog" }
        @if !answer.tokens.is_empty() {
            (tokens::table(asked, &answer.tokens))
        } @else if page_token.is_empty() {
            div.empty {
                p { "There are no tokens here. Make one below, or with:" }
                pre { (MAILER) }
            }
        } @else {
            p.none { "There are no more tokens." }
        }
        @if !page_token.is_empty() {
            p { a href=(link("access", &[("ns", namespace)])) { "First page" } }
        }
        @if !answer.next_page_token.is_empty() {
            @let fields = [("ns", namespace), ("page-token", answer.next_page_token.as_str())];
            p { a rel="next" href=(link("access", &fields)) { "Next page" } }
        }
        p.dim {
            "Tokens that have ended or were revoked are listed for 30 days. Tokens of a file are not listed: "
            code { "forebay token list --tokens-file FILE" } " shows them."
        }
        (create::form(asked))
    }
}

/// Names the settings with which tokens are kept.
fn not_kept() -> Markup {
    html! {
        h2 { "Tokens" }
        p { "This node accepts no tokens of its catalog, so none are listed. To keep tokens there:" }
        pre { "[access]\ncatalog_tokens = true" }
        p { "The first token is written straight into the catalog:" }
        pre { "forebay token create --name admin --bootstrap --config forebay.toml --out admin.token" }
        p { "Tokens of a file (access.tokens_file) are made, listed and revoked with the command line:" }
        pre { (ADMIN_OF_A_FILE) }
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::Refusal;

    use super::*;
    use forebay_edge::rpc::of_call;

    #[test]
    fn tokens_that_are_off_are_told_from_other_refusals() {
        let refused = |reason| are_off(&of_call(&Refusal::new(reason, "no")));
        assert!(refused(Reason::CatalogTokensOff));
        assert!(!refused(Reason::LastAdmin), "it has the same code");
        assert!(!are_off(&Status::failed_precondition("no")));
    }
}
