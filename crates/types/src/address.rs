//! Addresses as people write them.

use std::net::IpAddr;

/// Whether only this machine reaches an address, `host:port`, with or without a scheme. Of a name that is not
/// known.
pub fn is_loopback(address: &str) -> bool {
    let address = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_reaches_loopback() {
        for address in ["127.0.0.1:7420", "127.8.0.1:0", "[::1]:7420", "localhost:1", "http://127.0.0.1:7420"]
        {
            assert!(is_loopback(address), "{address}");
        }
        for address in [
            "0.0.0.0:7420",
            "[::]:7420",
            "10.0.0.1:1",
            "queue1:7420",
            "localhost.x:1",
            "128.0.0.1:1",
            "https://queue1",
        ] {
            assert!(!is_loopback(address), "{address}");
        }
    }
}
