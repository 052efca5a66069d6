//! The addresses at which a node listens and is reached.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Addresses are stored in columns of 255 bytes.
const ADDRESS_BYTES_MAX: usize = 255;

/// Checks the address of a key.
pub fn address(key: &str, text: String, errors: &mut Vec<String>) -> String {
    let valid =
        text.rsplit_once(':').is_some_and(|(host, port)| is_host(host) && port.parse::<u16>().is_ok());
    if !valid || text.len() > ADDRESS_BYTES_MAX {
        errors.push(format!("{key} must be host:port, as in 0.0.0.0:7420"));
    }
    text
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[') {
        return address.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    }
    // No domain ends in a number, so what does is meant as an address.
    let numeric = host.rsplit('.').next().is_some_and(|end| end.bytes().all(|byte| byte.is_ascii_digit()));
    let name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !host.is_empty() && host.bytes().all(name) && (!numeric || host.parse::<Ipv4Addr>().is_ok())
}

/// Whether two listeners can't have these addresses at once.
pub fn overlap(one: &str, other: &str) -> bool {
    let (Some((host, port)), Some((other_host, other_port))) = (one.rsplit_once(':'), other.rsplit_once(':'))
    else {
        return false;
    };
    let all = |host: &str| matches!(host, "0.0.0.0" | "[::]");
    let named = |host: &str| if host == "localhost" { "127.0.0.1".to_owned() } else { host.to_owned() };
    // Port 0 is another one each time.
    port == other_port && port != "0" && (all(host) || all(other_host) || named(host) == named(other_host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_or_addresses() {
        for good in ["0.0.0.0:7420", "[::]:7420", "[::1]:0", "db_1.example-a.com:1", "localhost:65535"] {
            let mut errors = Vec::new();
            address("k", good.to_owned(), &mut errors);
            assert!(errors.is_empty(), "{good}");
        }
        for wrong in ["", ":1", "a", "a:", "a:65536", "::1:7420", "[::1:7420", "[x]:1", "a b:1", "1.2.3:1"] {
            let mut errors = Vec::new();
            address("k", wrong.to_owned(), &mut errors);
            assert_eq!(errors, ["k must be host:port, as in 0.0.0.0:7420"], "{wrong}");
        }
    }

    #[test]
    fn one_port_serves_one_purpose() {
        for (one, other) in [
            ("127.0.0.1:7420", "127.0.0.1:7420"),
            ("0.0.0.0:7420", "127.0.0.1:7420"),
            ("[::1]:7420", "[::]:7420"),
            ("localhost:7420", "127.0.0.1:7420"),
        ] {
            assert!(overlap(one, other) && overlap(other, one), "{one} {other}");
        }
        for (one, other) in
            [("127.0.0.1:0", "127.0.0.1:0"), ("0.0.0.0:1", "0.0.0.0:2"), ("127.0.0.1:1", "127.0.0.2:1")]
        {
            assert!(!overlap(one, other), "{one} {other}");
        }
    }
}
