//! What all pages have in common. Every text in them is escaped by `maud`.

use axum::response::{Html, IntoResponse as _, Response};
use http::StatusCode;
use maud::{DOCTYPE, Markup, html};

use super::assets::{ICON, STYLE};

/// A whole page. `scripts`: addresses of scripts, which run before anything is painted, so that a page does
/// not first appear in another theme. `body`: its element, with all that is in it.
pub fn page(status: StatusCode, title: &str, scripts: &[String], body: Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Forebay" }
                link rel="stylesheet" href=(STYLE.link());
                link rel="icon" href=(ICON.link());
                @for script in scripts { script src=(script) {} }
            }
            (body)
        }
    };
    (status, Html(page.into_string())).into_response()
}

/// A page that says one thing.
pub fn message(status: StatusCode, title: &str, said: Markup) -> Response {
    page(status, title, &[], html! { body { main.message { h1 { (title) } (said) } } })
}
