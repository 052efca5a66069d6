//! The names by which this node may be called. A web page can have its own name lead to any address, and then
//! reads there as if it were at home. It can't hide the name: browsers send it.

use std::net::IpAddr;

use http::{HeaderMap, Uri, header::HOST};

/// Names, in small letters.
#[derive(Debug, Clone)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// Names of the configuration, and the hosts of the node's own addresses.
    pub fn new<'a>(configured: &[String], addresses: impl IntoIterator<Item = &'a str>) -> Self {
        let own = addresses.into_iter().map(|address| host_of(address).to_owned());
        let names = configured.iter().cloned().chain(own).map(|name| name.to_ascii_lowercase());
        Self(names.filter(|name| !name.is_empty()).collect())
    }

    /// Whether a request may be for this node. If not, returns why.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), String> {
        let mut given = headers.get_all(HOST).iter();
        let (first, more) = (given.next(), given.next());
        if more.is_some() {
            return Err("the request has several Host headers".to_owned());
        }
        let header = match first.map(|value| value.to_str()) {
            // Browsers always send it.
            None => "localhost",
            Some(Ok(text)) => text,
            Some(Err(_)) => return Err("the Host header is not text".to_owned()),
        };
        for address in
            [uri.authority().map(|authority| authority.as_str()), Some(header)].into_iter().flatten()
        {
            let host = host_of(address);
            if !self.allows(host) {
                let list = "`hosts` under [http] lists the names of this node";
                return Err(format!("this node is not called {host:?} ({list})"));
            }
        }
        Ok(())
    }

    fn allows(&self, host: &str) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        // An address is nobody's name: who calls it means what is there.
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        let loopback = host == "localhost" || host.ends_with(".localhost");
        let is = |name: &String| match name.strip_prefix('*') {
            Some(end) => host.len() > end.len() && host.ends_with(end),
            None => *name == host,
        };
        address || loopback || self.0.iter().any(is)
    }
}

/// The host of `host:port`, or of `host`.
fn host_of(address: &str) -> &str {
    let end = if address.ends_with(']') { None } else { address.rfind(':') };
    &address[..end.unwrap_or(address.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(host: &str) -> bool {
        let configured = ["queue.example.com".to_owned(), "*.Pods.Example".to_owned()];
        let hosts = Hosts::new(&configured, ["node1:7422", "0.0.0.0:7421"]);
        let headers = HeaderMap::from_iter([(HOST, host.parse().unwrap())]);
        hosts.check(&Uri::from_static("/"), &headers).is_ok()
    }

    #[test]
    fn loopback_addresses_and_listed_names_are_allowed() {
        for yes in [
            "localhost",
            "LOCALHOST:7421",
            "a.localhost:1",
            "127.0.0.1:7421",
            "10.2.3.4",
            "[::1]:7421",
            "[::1]",
            "node1:7421",
            "queue.example.com.",
            "Queue.Example.com:80",
            "forebay-0.pods.example:7421",
        ] {
            assert!(allowed(yes), "{yes}");
        }
        for no in [
            "evil.example",
            "",
            "node2",
            "localhost.evil.example",
            "xlocalhost",
            "1.2.3.4.evil.example",
            "pods.example",
            ".pods.example.evil",
            "xqueue.example.com",
        ] {
            assert!(!allowed(no), "{no}");
        }
    }

    #[test]
    fn the_host_of_a_full_url_counts_too() {
        let hosts = Hosts::new(&[], []);
        let headers = HeaderMap::from_iter([(HOST, "localhost".parse().unwrap())]);
        assert!(hosts.check(&Uri::from_static("http://localhost:7421/"), &headers).is_ok());
        let refused = hosts.check(&Uri::from_static("http://evil.example/"), &headers).unwrap_err();
        assert!(refused.contains("evil.example") && refused.contains("[http]"), "{refused}");
        assert!(hosts.check(&Uri::from_static("/"), &HeaderMap::new()).is_ok(), "HTTP/1.0");
        let mut twice = headers.clone();
        twice.append(HOST, "localhost".parse().unwrap());
        assert!(hosts.check(&Uri::from_static("/"), &twice).is_err());
    }
}
