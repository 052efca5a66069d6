//! Where a request comes from that a proxy has passed on.

use std::net::IpAddr;

use forebay_edge::connections::Network;
use http::{HeaderMap, HeaderName};

/// Where a proxy says that a request came from, behind what it was told.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Proxies that are believed.
#[derive(Debug, Clone, Default)]
pub struct Proxies(Vec<Network>);

impl Proxies {
    /// In these networks.
    pub fn new(networks: &[Network]) -> Self {
        Self(networks.to_vec())
    }

    /// Where a request comes from: the last address in front of proxies that are believed. `peer`: the other
    /// end of the connection.
    pub fn client(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        let mut client = peer.to_canonical();
        let lists = headers.get_all(FORWARDED_FOR).into_iter().rev();
        let said = lists.flat_map(|list| list.to_str().unwrap_or_default().rsplit(','));
        for text in said {
            if !self.0.iter().any(|network| network.has(client)) {
                break;
            }
            // Whoever says nonsense is not believed.
            let Some(address) = address(text.trim()) else { break };
            client = address;
        }
        client
    }
}

/// An address, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let with_port = || text.parse::<std::net::SocketAddr>().map(|address| address.ip());
    bare.or_else(|_| with_port()).ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_proxies_that_are_listed_are_believed() {
        let networks = ["10.0.0.0/8", "::1"].map(|text| text.parse().unwrap());
        let proxies = Proxies::new(&networks);
        let client = |peer: &str, said: &[&'static str]| {
            let said = said.iter().map(|text| (FORWARDED_FOR, HeaderValue::from_static(text)));
            proxies.client(&said.collect(), peer.parse().unwrap()).to_string()
        };
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client("1.1.1.1", &["2.2.2.2"]), "1.1.1.1", "anybody may say so");
        assert_eq!(client("10.0.0.1", &["2.2.2.2"]), "2.2.2.2");
        assert_eq!(client("::ffff:10.0.0.1", &["2.2.2.2:55"]), "2.2.2.2");
        assert_eq!(
            client("10.0.0.1", &["3.3.3.3, 2.2.2.2, 10.9.9.9"]),
            "2.2.2.2",
            "what it says first is its own"
        );
        assert_eq!(client("10.0.0.1", &["3.3.3.3", "2.2.2.2"]), "2.2.2.2");
        assert_eq!(client("::1", &["[2001:db8::1]:44"]), "2001:db8::1");
        assert_eq!(client("10.0.0.1", &["unknown"]), "10.0.0.1");
        assert_eq!(
            Proxies::default().client(&HeaderMap::new(), "10.0.0.1".parse().unwrap()).to_string(),
            "10.0.0.1"
        );
    }
}
