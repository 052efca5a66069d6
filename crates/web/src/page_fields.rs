//! The fields that the address of each page may have. Another one is refused, with the nearest name: to leave
//! it out would show something else than was asked for.

use forebay_types::{Refusal, instead};

use super::fields::Fields;

/// The field that names the act which was just done. Any page may have it.
const DONE: &str = "done";
/// Where the changes of an open page are asked for, and the field that names the page.
const EVENTS: (&str, &str) = ("/events", "page");
/// The most bytes that are told of a name that is not known.
const NAME_BYTES_MAX: usize = 100;

/// Pages, and their fields. Those that programs ask for without any, as probes are, take no notice of fields.
const PAGES: [(&str, &[&str]); 17] = [
    ("/", &[]),
    ("/topics", &["ns", "q", "sort", "page-token"]),
    ("/topic", &["ns", "name", "range", "tab", "filter", "from", "page-token"]),
    ("/namespace", &["ns"]),
    ("/item", &["ns", "id", "view"]),
    ("/dead-letters", &["ns", "topic", "reason", "page-token"]),
    ("/operations", &["ns", "page-token"]),
    ("/operation", &["ns", "id"]),
    ("/confirm", &["ns", "name", "action", "chosen", "id", "filter", "leased", "to"]),
    ("/consumers", &["ns", "page-token"]),
    ("/shards", &["id", "range", "page-token"]),
    ("/nodes", &["page-token"]),
    ("/access", &["ns", "page-token"]),
    ("/audit", &["ns", "principal", "method", "outcome", "from", "until", "page-token"]),
    ("/search", &["ns", "q"]),
    ("/login", &["next"]),
    ("/status.json", &[]),
];

/// Refuses a field that a page does not have.
pub fn check(path: &str, query: &Fields) -> Result<(), Refusal> {
    let (page, about_page) = match (path == EVENTS.0, query.get(EVENTS.1)) {
        (true, "overview") => ("/".to_owned(), Some(EVENTS.1)),
        (true, name) => (format!("/{name}"), Some(EVENTS.1)),
        (false, _) => (path.to_owned(), None),
    };
    let Some((_, fields)) = PAGES.iter().find(|(path, _)| *path == page) else { return Ok(()) };
    let known = || fields.iter().copied().chain(about_page);
    match query.names().find(|name| *name != DONE && known().all(|known| known != *name)) {
        Some(name) => {
            let message = format!("is no field of this page; {}", instead(name, known()));
            Err(Refusal::field(&name[..name.floor_char_boundary(NAME_BYTES_MAX)], message))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use forebay_access::Reader;

    use super::*;

    fn told(path: &str, query: &str) -> Result<(), String> {
        check(path, &Fields::read(query.as_bytes())).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn a_field_that_a_page_does_not_have_is_refused_with_the_nearest_one() {
        assert_eq!(told("/topic", "ns=a&name=b&tab=dead&done=paused-both"), Ok(()));
        assert_eq!(told("/events", "page=topic&ns=a&name=b"), Ok(()));
        assert_eq!(told("/events", "page=overview"), Ok(()));
        for (path, query, why) in [
            ("/topic", "ns=a&nam=b", "nam: is no field of this page; did you mean name?"),
            ("/topics", "namespace=a", "namespace: is no field of this page; there are ns, q, "),
            ("/audit", "untill=1h", "did you mean until?"),
            ("/", "ns=a", "there are none"),
            ("/status.json", "x", "there are none"),
            ("/events", "page=topic&nam=b", "did you mean name?"),
            ("/events", "page=overview&ns=a", "ns: is no field"),
        ] {
            let refusal = told(path, query).unwrap_err();
            assert!(refusal.contains(why), "{path}?{query}: {refusal}");
        }
        assert!(told("/", &"x".repeat(10_000)).unwrap_err().len() < 200);
    }

    #[test]
    fn probes_and_scrapes_take_no_notice_of_fields() {
        for path in ["/healthz", "/readyz", "/metrics", "/assets/app.css"] {
            assert_eq!(told(path, "verbose=1"), Ok(()));
        }
    }

    #[test]
    fn every_page_for_people_has_its_fields() {
        for (path, _, reader) in forebay_access::PAGES {
            let is_listed = PAGES.iter().any(|(listed, _)| listed == path);
            assert!(is_listed || *reader == Reader::Program, "{path}");
        }
    }
}
