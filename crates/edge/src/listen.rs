//! Ports, and the addresses under which others reach them.

use std::{io, net::SocketAddr};

use tokio::net::{TcpListener, TcpSocket, lookup_host};

/// Connections that may wait to be accepted. Where they are too many for that, clients try again only after
/// seconds, and think meanwhile that they are connected. `net.core.somaxconn` bounds it too.
const BACKLOG: u32 = 4_096;

/// A port is not available.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {}", reason(error, flag))]
pub struct BindError {
    /// The configured address.
    address: String,
    /// The flag or key that sets another address.
    flag: &'static str,
    /// Why.
    error: io::Error,
}

fn reason(error: &io::Error, flag: &str) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => format!("already in use (try `{flag}`)"),
        _ => error.to_string(),
    }
}

/// Binds an address; returns the real one too, since the configured port may be 0.
pub async fn listen(address: &str, flag: &'static str) -> Result<(TcpListener, SocketAddr), BindError> {
    let failed = |error| BindError { address: address.to_owned(), flag, error };
    let listener = bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Listens at the first address of a name that can be bound.
async fn bind(address: &str) -> io::Result<TcpListener> {
    let mut failed = io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
    for address in lookup_host(address).await? {
        let listen = || {
            let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            socket.listen(BACKLOG)
        };
        match listen() {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// The default of an address that is told to others: the bound one, or the host's name if every one is bound.
pub fn reachable(bound: SocketAddr) -> String {
    if !bound.ip().is_unspecified() {
        return bound.to_string();
    }
    match host_name().as_str() {
        "" => format!("127.0.0.1:{}", bound.port()),
        name => format!("{name}:{}", bound.port()),
    }
}

/// The host's name. Empty: it has none.
pub fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_in_use_names_the_address_and_the_flag() {
        let (_listener, bound) = listen("127.0.0.1:0", "--grpc").await.unwrap();
        let error = listen(&bound.to_string(), "--grpc").await.unwrap_err();
        assert_eq!(error.to_string(), format!("cannot listen on {bound}: already in use (try `--grpc`)"));
    }
}
