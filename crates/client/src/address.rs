//! The address of a server, as users write it.

use std::net::IpAddr;

use tonic::{Code, codegen::http::uri::Authority};

use crate::error::Error;

/// How an address is written, for those who wrote another one.
const FORMAT: &str = "use host:port, as in 127.0.0.1:7420";

/// A checked address: a host and a port, with TLS or without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// The host and the port.
    authority: Authority,
    /// Connections there are secured.
    tls: bool,
}

impl Address {
    /// Parses `host:port`, `http://host:port` or `https://host:port`. `tls`: whether one without a scheme has
    /// TLS.
    pub(crate) fn parse(text: &str, tls: bool) -> Result<Self, Error> {
        parse(text, tls).map_err(|wrong| {
            // A password that does not belong there is not repeated.
            let shown = text.rsplit_once('@').map_or(text, |(_, host)| host);
            Error::local(Code::InvalidArgument, format!("{shown:?} is not a valid address: {wrong}"))
        })
    }

    /// An address that a node gives. `tls`: whether this client has TLS, without which it then goes nowhere.
    pub(crate) fn learnt(text: &str, tls: bool) -> Result<Self, Error> {
        let address = Self::parse(text, tls)?;
        if tls && !address.tls {
            let message = format!("{text:?} is an address without TLS, which this client was given");
            return Err(Error::local(Code::InvalidArgument, message));
        }
        Ok(address)
    }

    /// For the transport, which wants a scheme.
    pub(crate) fn uri(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.authority)
    }

    /// `host:port`.
    pub(crate) fn host_port(&self) -> &str {
        self.authority.as_str()
    }

    /// The host alone, an IPv6 address in brackets.
    pub(crate) fn host(&self) -> &str {
        self.authority.host()
    }

    /// Whether connections there are secured.
    pub(crate) fn has_tls(&self) -> bool {
        self.tls
    }

    /// Whether what is sent there stays on this machine, or is secured.
    pub(crate) fn is_private(&self) -> bool {
        self.tls || is_loopback(self.host())
    }
}

/// Whether a host is this machine, by its name alone: `localhost`, 127.0.0.0/8 or `::1`, in brackets or
/// without.
pub fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let name = bare.to_ascii_lowercase();
    bare.parse::<IpAddr>().map_or_else(
        // RFC 6761: such names never leave the machine.
        |_| name == "localhost" || name.ends_with(".localhost"),
        |address| address.to_canonical().is_loopback(),
    )
}

fn parse(text: &str, tls: bool) -> Result<Address, String> {
    let (scheme, rest) = text.split_once("://").unwrap_or((if tls { "https" } else { "http" }, text));
    let tls = match scheme.to_ascii_lowercase().as_str() {
        "http" => false,
        "https" => true,
        other => return Err(format!("the scheme {other:?} is unknown; {FORMAT}")),
    };
    // A lone slash is the empty path.
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.is_empty() {
        return Err(format!("it names no host; {FORMAT}"));
    }
    if rest.contains(['/', '?', '#']) {
        return Err(format!("it has a path; {FORMAT}"));
    }
    if rest.contains('@') {
        return Err(format!("it has a user; {FORMAT}"));
    }
    let (host, port) = match rest.rsplit_once(':') {
        // The colons of an IPv6 address do not begin a port.
        Some((_, after)) if after.ends_with(']') => return Err(no_port()),
        Some(parts) => parts,
        None => return Err(no_port()),
    };
    if host.is_empty() {
        return Err(format!("it names no host; {FORMAT}"));
    }
    if host.contains(':') && !host.starts_with('[') {
        return Err("an IPv6 address is written in brackets, as in [::1]:7420".into());
    }
    if !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Err(format!("its port {port:?} is not a number from 1 to 65535"));
    }
    let authority = rest.parse().map_err(|_| format!("{host:?} is not a host; {FORMAT}"))?;
    Ok(Address { authority, tls })
}

fn no_port() -> String {
    "it has no port; gRPC is at port 7420 unless configured otherwise".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_and_a_port_are_enough() {
        for (text, uri) in [
            ("127.0.0.1:7420", "http://127.0.0.1:7420"),
            ("localhost:1", "http://localhost:1"),
            ("queue.example.com:65535", "http://queue.example.com:65535"),
            ("[::1]:7420", "http://[::1]:7420"),
            ("http://db_1:7420", "http://db_1:7420"),
            ("HTTP://db1:7420/", "http://db1:7420"),
            ("https://db1:7420", "https://db1:7420"),
            ("HTTPS://[::1]:7420/", "https://[::1]:7420"),
        ] {
            assert_eq!(Address::parse(text, false).unwrap().uri(), uri, "{text}");
        }
    }

    #[test]
    fn what_stays_on_this_machine_is_private() {
        for text in [
            "127.0.0.1:1",
            "127.9.8.7:1",
            "localhost:1",
            "LocalHost:1",
            "a.localhost:1",
            "[::1]:1",
            "https://db1:1",
        ] {
            assert!(Address::parse(text, false).unwrap().is_private(), "{text}");
        }
        for text in [
            "db1:1",
            "10.0.0.1:1",
            "0.0.0.0:1",
            "[::]:1",
            "localhost.example.com:1",
            "127.0.0.1.example.com:1",
        ] {
            assert!(!Address::parse(text, false).unwrap().is_private(), "{text}");
        }
        assert!(is_loopback("::1") && is_loopback("[::ffff:127.0.0.1]"));
    }

    #[test]
    fn a_client_with_tls_goes_nowhere_without_it() {
        assert_eq!(Address::parse("db1:7420", true).unwrap().uri(), "https://db1:7420");
        assert_eq!(Address::parse("http://db1:7420", true).unwrap().uri(), "http://db1:7420", "as asked for");
        assert_eq!(Address::learnt("db1:7420", true).unwrap().uri(), "https://db1:7420");
        assert!(Address::learnt("http://db1:7420", true).is_err());
        assert_eq!(Address::learnt("db1:7420", false).unwrap().uri(), "http://db1:7420");
    }

    #[test]
    fn what_is_no_address_says_why() {
        for (text, why) in [
            ("", "names no host"),
            ("http://", "names no host"),
            (":7420", "names no host"),
            ("localhost", "no port"),
            ("http://localhost", "no port"),
            ("[::1]", "no port"),
            ("localhost:", "port \"\""),
            ("localhost:0", "port \"0\""),
            ("localhost:70000", "port \"70000\""),
            ("localhost:http", "port \"http\""),
            ("::1:7420", "in brackets"),
            ("[::1:7420", "not a host"),
            ("a host:7420", "not a host"),
            ("http://localhost:7420/v1", "has a path"),
            ("localhost:7420?x=1", "has a path"),
            ("ftp://localhost:7420", "scheme \"ftp\" is unknown"),
            ("://localhost:7420", "scheme \"\" is unknown"),
            ("user:hidden@localhost:7420", "has a user"),
        ] {
            let error = Address::parse(text, false).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument);
            assert!(error.message().contains(why), "{text}: {error}");
            assert!(!error.message().contains("hidden"), "{error}");
        }
    }
}
