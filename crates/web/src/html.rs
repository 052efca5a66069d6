//! The common parts of all pages. Every text in them is escaped by `maud`, and characters that would not be
//! seen are escaped here.

use std::borrow::Cow;

use axum::response::{Html, IntoResponse as _, Response};
use forebay_types::visible_lines;
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
    (status, Html(shown(&page.into_string()).into_owned())).into_response()
}

/// A document with everything escaped that could hide or turn around what is shown of texts. What is in tags
/// stays as it is: values of forms are sent back.
fn shown(document: &str) -> Cow<'_, str> {
    if matches!(visible_lines(document), Cow::Borrowed(_)) {
        return document.into();
    }
    let mut shown = String::with_capacity(document.len());
    // In texts and in values of attributes these signs are escaped already.
    for piece in document.split_inclusive(['<', '>']) {
        match piece.ends_with('>') {
            true => shown.push_str(piece),
            false => shown.push_str(&visible_lines(piece)),
        }
    }
    shown.into()
}

/// A page that says one thing.
pub fn message(status: StatusCode, title: &str, said: Markup) -> Response {
    page(status, title, &[], html! { body { main.message { h1 { (title) } (said) } } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_seen_is_escaped_in_texts_and_stays_in_values() {
        let evil = "\u{202e}a\x1b[2J\n<\u{9b}>";
        let markup = html! { p title="x" { (evil) } input value=(evil); b { (evil) } }.into_string();
        let text = "\\u{202e}a\\u{1b}[2J\n&lt;\\u{9b}&gt;";
        let expected = format!(
            "<p title=\"x\">{text}</p><input value=\"\u{202e}a\x1b[2J\n&lt;\u{9b}&gt;\"><b>{text}</b>"
        );
        assert_eq!(shown(&markup), expected);
        assert!(matches!(shown("<p>gr\u{fc}n \u{5d0}</p>\n"), Cow::Borrowed(_)));
    }
}
