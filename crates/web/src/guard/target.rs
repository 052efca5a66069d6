//! Where a login leads: to a page of this node, and nowhere else.

use forebay_access::{Needs, Reader, of_page};
use http::Uri;

/// A longer one is none.
const TARGET_BYTES_MAX: usize = 2_048;

/// The page that was asked for, as the field `next` of the login names it: relative, as all links are, so
/// that it holds behind any prefix of a proxy.
pub fn of_request(uri: &Uri) -> String {
    let name = uri.path().trim_start_matches('/');
    match uri.query() {
        Some(query) => format!("{name}?{query}"),
        None => name.to_owned(),
    }
}

/// Where to go from the login. What is no page of people goes to the first one.
pub fn link(next: &str) -> String {
    if is_page(next) { format!("./{next}") } else { "./".to_owned() }
}

fn is_page(next: &str) -> bool {
    let plain = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let name = next.split('?').next().unwrap_or_default();
    let (needs, reader) = of_page(&format!("/{name}"));
    next.len() <= TARGET_BYTES_MAX
        && plain
        && !next.contains("//")
        && !next.contains('#')
        && reader == Reader::Person
        && needs != Needs::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_pages_alone() {
        for (next, expected) in [("", "./"), ("?a=b&c=%2F", "./?a=b&c=%2F"), ("?next=x", "./?next=x")] {
            assert_eq!(link(next), expected);
        }
        let long = format!("?{}", "a".repeat(TARGET_BYTES_MAX));
        for wrong in [
            "//evil.example",
            "/",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example",
            "https:evil.example",
            "javascript:alert(1)",
            ".//evil.example",
            "..//",
            "?a=//evil.example",
            "?a=\\evil",
            "?a\r\nSet-Cookie: x=y",
            "?a\0",
            "?a b",
            "?ä",
            "#//evil.example",
            "login",
            "logout",
            "metrics",
            "nothing",
            &long,
        ] {
            assert_eq!(link(wrong), "./", "{wrong:?}");
        }
    }

    #[test]
    fn the_page_that_was_asked_for_comes_back() {
        for target in ["/", "/?a=b"] {
            let next = of_request(&target.parse().unwrap());
            assert_eq!(link(&next), format!(".{target}"));
        }
        assert_eq!(link(&of_request(&"//evil.example/x".parse().unwrap())), "./");
    }
}
