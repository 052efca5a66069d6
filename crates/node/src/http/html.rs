//! What all pages have in common.

use std::fmt::{self, Display, Write as _};

use axum::response::{Html, IntoResponse as _, Response};
use http::StatusCode;

use super::assets::{ICON, STYLE};

/// Everything before the first heading. `refresh`: it is loaded again after so many seconds.
pub fn head(page: &mut String, title: &str, refresh: Option<u32>) {
    page.push_str("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    if let Some(seconds) = refresh {
        // Writing to a string never fails.
        let _ = write!(page, "<meta http-equiv=\"refresh\" content=\"{seconds}\">");
    }
    let _ = writeln!(
        page,
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{}</title>\
         <link rel=\"stylesheet\" href=\"{}\"><link rel=\"icon\" href=\"{}\"></head><body>",
        Escaped(title),
        STYLE.link(),
        ICON.link(),
    );
}

/// A page that says one thing. `body` is HTML.
pub fn message(status: StatusCode, title: &str, body: &str) -> Response {
    let mut page = String::new();
    head(&mut page, &format!("{title} · Forebay"), None);
    let _ =
        write!(page, "<main class=\"message\"><h1>{}</h1>\n{body}</main></body></html>\n", Escaped(title));
    (status, Html(page)).into_response()
}

/// Text with HTML's special characters escaped.
pub struct Escaped<'a>(pub &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
