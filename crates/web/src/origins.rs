//! Which web pages may make calls: those of this node, and those of origins that the configuration lists. A
//! browser sends any page's requests to any address, with its reader's place in the network. It says where
//! they come from.

use forebay_types::{Reason, Refusal};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN,
        VARY,
    },
};

/// Where a request comes from, seen from its target.
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// The use that is made of its answer.
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
/// Headers that a page of another origin may send.
const SENT: &str = "Content-Type, Connect-Protocol-Version, Connect-Timeout-Ms, Authorization, X-User-Agent";
/// Headers of an answer that it may read.
const READ: &str = "Retry-After, X-Forebay-Request-Id";

/// Origins of which pages may make calls: `https://app.example.com`.
#[derive(Debug, Clone)]
pub struct Origins(Vec<String>);

impl Origins {
    /// Origins of the configuration.
    pub fn new(configured: &[String]) -> Self {
        Self(configured.to_vec())
    }

    /// Whether a request may make a call, as far as its origin goes. That is so for those that read too: they
    /// cost, and some are written down as a look of whoever reads the page.
    pub(crate) fn may_call(&self, headers: &HeaderMap) -> bool {
        self.listed(headers).is_some() || is_of_no_other(headers)
    }

    /// Whether a request for a page may be served, as far as its origin goes. Links of others may lead to
    /// pages; nothing else of others may read any, or change something.
    pub(crate) fn may_ask(&self, method: &Method, headers: &HeaderMap) -> bool {
        match *method {
            Method::GET | Method::HEAD => !is_embedded(headers),
            _ => is_of_no_other(headers),
        }
    }

    /// The origin of a request, if it is listed.
    fn listed<'a>(&self, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        self.0.iter().any(|listed| listed.as_bytes() == origin.as_bytes()).then_some(origin)
    }

    /// Whether a request asks, for a page of a listed origin, if it may make a call.
    pub(crate) fn is_preflight(&self, method: &Method, headers: &HeaderMap) -> bool {
        let asks = headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        *method == Method::OPTIONS && asks && self.listed(headers).is_some()
    }

    /// Adds what a browser needs to let a page have the answer to a request.
    pub fn permit(&self, request: &HeaderMap, answer: &mut HeaderMap) {
        answer.append(VARY, HeaderValue::from_static("Origin"));
        if let Some(origin) = self.listed(request) {
            answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READ));
        }
    }
}

/// Whether no page of another origin has sent a request.
fn is_of_no_other(headers: &HeaderMap) -> bool {
    match (headers.get(SITE).map(HeaderValue::as_bytes), headers.get(ORIGIN)) {
        (Some(site), _) => matches!(site, b"same-origin" | b"none"),
        // Neither: no browser.
        (None, None) => true,
        (None, Some(origin)) => is_own(origin, headers),
    }
}

/// Whether a page of another site asks for something that it shows or runs, such as an image.
fn is_embedded(headers: &HeaderMap) -> bool {
    let says = |name: &HeaderName| headers.get(name).map(HeaderValue::as_bytes);
    says(&SITE) == Some(b"cross-site") && says(&MODE).is_some_and(|mode| mode != b"navigate")
}

/// Whether a page of this node has sent a request. Browsers say so of everything that changes something, and
/// nobody else sends the forms of pages.
pub(crate) fn is_own_page(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all(SITE).into_iter();
    match (sites.next().map(HeaderValue::as_bytes), sites.next(), headers.get(ORIGIN)) {
        (Some(site), None, _) => site == b"same-origin",
        // Browsers leave it out where there is no TLS.
        (None, None, Some(origin)) => is_own(origin, headers),
        _ => false,
    }
}

/// Whether an origin is the host that a request is for.
fn is_own(origin: &HeaderValue, headers: &HeaderMap) -> bool {
    let text = std::str::from_utf8(origin.as_bytes()).unwrap_or_default();
    let host = text.split_once("://").map(|(_, host)| host.as_bytes());
    host.is_some() && host == headers.get(HOST).map(HeaderValue::as_bytes)
}

/// The refusal of a request that a page of another origin has sent.
pub fn foreign() -> Refusal {
    let message = "a web page of another origin sent this request \
                   (`cors_origins` under [http] lists those that may)";
    Refusal::new(Reason::NotAllowed, message)
}

/// The headers that tell a page of a listed origin which methods and headers it may send.
pub(crate) fn preflight() -> HeaderMap {
    HeaderMap::from_iter([
        (ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST")),
        (ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(SENT)),
        (ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200")),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(HeaderName, &'static str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    fn origins() -> Origins {
        Origins::new(&["https://app.example.com".to_owned()])
    }

    #[test]
    fn only_the_own_pages_and_listed_ones_may_change_something() {
        let host = || (HOST, "localhost:7421");
        let origin = |origin| (ORIGIN, origin);
        let site = |site| (SITE, site);
        let listed = "https://app.example.com";
        for (given, own, calls) in [
            (vec![host()], true, true),
            (vec![host(), site("none")], true, true),
            (vec![host(), site("same-site")], false, false),
            (vec![host(), site("cross-site")], false, false),
            (vec![host(), site("")], false, false),
            (vec![host(), site("cross-site"), origin(listed)], false, true),
            (vec![host(), site("cross-site"), origin("https://evil.example")], false, false),
            (vec![host(), site("cross-site"), origin("http://localhost:7421")], false, false),
            (vec![host(), origin("http://localhost:7422")], false, false),
            (vec![host(), origin(listed)], false, true),
            (vec![host(), origin("null")], false, false),
            (vec![origin("x")], false, false),
        ] {
            let given = headers(&given);
            assert!(!is_own_page(&given), "{given:?}");
            assert_eq!(origins().may_ask(&Method::POST, &given), own, "{given:?}");
            assert_eq!(origins().may_call(&given), calls, "{given:?}");
            assert!(origins().may_ask(&Method::GET, &given));
        }
        for given in [
            vec![host(), site("same-origin")],
            vec![host(), site("same-origin"), origin("http://localhost:7421")],
            vec![host(), origin("http://localhost:7421")],
        ] {
            let given = headers(&given);
            assert!(is_own_page(&given), "{given:?}");
            assert!(origins().may_ask(&Method::POST, &given), "{given:?}");
            assert!(origins().may_call(&given), "{given:?}");
        }
        let mut twice = headers(&[host(), site("same-origin")]);
        twice.append(SITE, HeaderValue::from_static("cross-site"));
        assert!(!is_own_page(&twice));
    }

    #[test]
    fn links_of_others_lead_to_pages_and_nothing_else_of_them_does() {
        let asks = |site, mode| {
            let given = headers(&[(HOST, "localhost:7421"), (SITE, site), (MODE, mode)]);
            (origins().may_ask(&Method::GET, &given), origins().may_call(&given))
        };
        assert_eq!(asks("cross-site", "navigate"), (true, false));
        assert_eq!(asks("cross-site", "no-cors"), (false, false), "an image");
        assert_eq!(asks("cross-site", "cors"), (false, false));
        assert_eq!(asks("same-site", "no-cors"), (true, false));
        assert_eq!(asks("same-origin", "cors"), (true, true));
        assert_eq!(asks("none", "navigate"), (true, true));
    }

    #[test]
    fn a_listed_origin_is_told_what_it_may() {
        let listed = headers(&[(ORIGIN, "https://app.example.com"), (ACCESS_CONTROL_REQUEST_METHOD, "POST")]);
        assert!(origins().is_preflight(&Method::OPTIONS, &listed));
        assert!(!origins().is_preflight(&Method::POST, &listed));
        assert!(!Origins::new(&[]).is_preflight(&Method::OPTIONS, &listed));
        let mut answer = preflight();
        origins().permit(&listed, &mut answer);
        assert_eq!(answer[ACCESS_CONTROL_ALLOW_ORIGIN], "https://app.example.com");
        assert_eq!(answer[ACCESS_CONTROL_ALLOW_METHODS], "GET, POST");
        assert_eq!(answer[ACCESS_CONTROL_MAX_AGE], "7200");
        assert_eq!(answer[VARY], "Origin");
        assert!(!answer.contains_key("access-control-allow-credentials"));
    }

    #[test]
    fn others_are_told_nothing() {
        let mut answer = HeaderMap::new();
        origins().permit(&headers(&[(ORIGIN, "https://evil.example")]), &mut answer);
        assert_eq!(answer, headers(&[(VARY, "Origin")]));
    }
}
