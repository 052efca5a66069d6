//! Links to Grafana, by a template of the configuration. Long history is there.

use std::str::FromStr;

use form_urlencoded::byte_serialize;
use http::{Uri, uri::Authority};

/// Placeholders for names in a template.
const NAMESPACE: &str = "{namespace}";
const TOPIC: &str = "{topic}";
/// Grafana's word for all values of a variable.
const ALL: &str = "$__all";

/// A template of links, such as `https://grafana.example.com/d/forebay?var-namespace={namespace}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grafana(String);

impl Grafana {
    /// The link for a namespace and a topic. Empty ones stand for all.
    pub fn link(&self, namespace: &str, topic: &str) -> String {
        self.0.replace(NAMESPACE, &encoded(namespace)).replace(TOPIC, &encoded(topic))
    }
}

/// A name as a part of an address. Nothing in it has a meaning of its own, braces neither.
fn encoded(name: &str) -> String {
    byte_serialize(if name.is_empty() { ALL } else { name }.as_bytes()).collect()
}

impl FromStr for Grafana {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let filled = Self(text.to_owned()).link("n", "t");
        let plain = filled.bytes().all(|byte| byte.is_ascii_graphic() && !b"{}\"<>\\".contains(&byte));
        let uri: Uri = filled.parse().map_err(|_| ())?;
        let scheme = uri.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https")).ok_or(())?;
        let authority = uri.authority().map(Authority::as_str).ok_or(())?;
        // A name decides what is looked at, and never where.
        let is_fixed = text.starts_with(&format!("{scheme}://{authority}")) && !authority.contains('@');
        if plain && is_fixed { Ok(Self(text.to_owned())) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_none_stands_for_all() {
        let template = "https://g.example/d/forebay?var-namespace={namespace}&var-topic={topic}";
        let grafana: Grafana = template.parse().unwrap();
        let begins = "https://g.example/d/forebay?var-namespace=";
        assert_eq!(grafana.link("shop", "a/b"), format!("{begins}shop&var-topic=a%2Fb"));
        assert_eq!(grafana.link("", ""), format!("{begins}%24__all&var-topic=%24__all"));
        let odd = grafana.link("{topic}&x=\"><script>", "ä");
        assert_eq!(odd, format!("{begins}%7Btopic%7D%26x%3D%22%3E%3Cscript%3E&var-topic=%C3%A4"));
    }

    #[test]
    fn a_template_that_leads_nowhere_is_refused() {
        for right in
            ["http://localhost:3000/d/forebay", "https://g.example/grafana/d/x?orgId=1&var-t={topic}"]
        {
            assert!(right.parse::<Grafana>().is_ok(), "{right}");
        }
        for wrong in [
            "",
            "g.example/d/forebay",
            "/d/forebay",
            "javascript:alert(1)",
            "ftp://g.example/",
            "https://u@g.example/",
            "https://{namespace}.example/",
            "https://{topic}/",
            "https://{topic}/?a=https://t",
            "https://g.example/?a={queue}",
            "https://g.example/?a={topic",
            "https://g.example/?a=\"b\"",
            "https://g.example/ d",
        ] {
            assert!(wrong.parse::<Grafana>().is_err(), "{wrong}");
        }
    }
}
