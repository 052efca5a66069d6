//! The first page of a visitor who may not see the whole cluster: its own namespaces.

use forebay_access::{Grant, Namespaces, Scope};
use maud::{Markup, html};

use super::super::super::{
    asked::PageRequest,
    links,
    live::Live,
    show::RenderedPage,
    table::{self, Head},
};

/// The page. It asks nothing of the cluster.
pub fn page(asked: &PageRequest) -> RenderedPage {
    let grants: &[Grant] = asked.visitor.who.as_ref().map_or(&[], |who| &who.identity.grants);
    let sees_any = grants.iter().any(|grant| grant.scopes.has(Scope::Observe));
    let body = html! {
        h1 { "Your namespaces" }
        @if !sees_any {
            div.empty {
                p { "None of your rights is " code { "observe" } ", which the pages of topics need." }
                p { "Whoever has " code { "admin" } " can make a token that has it:" }
                pre { "forebay token create --name NAME --grant 'NAMESPACE:observe'" }
            }
        }
        @if !grants.is_empty() {
            (table::list(
                html! { (Head::words("namespace")) (Head::words("your rights")) },
                html! { @for grant in grants { (row(grant)) } },
            ))
        }
        @if grants.iter().any(is_prefix) { (form()) }
    };
    RenderedPage::new("Your namespaces", body, Live::default())
}

fn row(grant: &Grant) -> Markup {
    html! {
        tr {
            td.l {
                @match &grant.namespaces {
                    Namespaces::One(name) if grant.scopes.has(Scope::Observe) => (links::namespace(name)),
                    Namespaces::One(name) => bdi { (name) },
                    Namespaces::Prefix(prefix) => { "all that begin with " bdi { (prefix) } }
                    Namespaces::All => "all",
                }
            }
            td.l.wrap data-head="rights" { (scopes(grant)) }
        }
    }
}

fn is_prefix(grant: &Grant) -> bool {
    matches!(grant.namespaces, Namespaces::Prefix(_)) && grant.scopes.has(Scope::Observe)
}

fn scopes(grant: &Grant) -> String {
    grant.scopes.iter().map(Scope::as_str).collect::<Vec<_>>().join(", ")
}

/// Where namespaces are known by their beginning alone, the rest is typed.
fn form() -> Markup {
    html! {
        form.controls action="topics" {
            label { "Namespace " input name="ns" required maxlength="255"; }
            button { "Show its topics" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(grant: &str) -> String {
        row(&grant.parse().unwrap()).into_string()
    }

    #[test]
    fn a_link_leads_only_where_one_may_look() {
        let link = "<a href=\"topics?ns=billing\"><bdi>billing</bdi></a>";
        assert!(shown("billing:observe,consume").contains(link));
        assert!(!shown("billing:consume").contains("<a"), "without observe");
        assert!(shown("team-*:observe").contains("all that begin with <bdi>team-</bdi>"));
        assert!(is_prefix(&"team-*:observe".parse().unwrap()));
        assert!(!is_prefix(&"team-*:produce".parse().unwrap()));
    }
}
