//! The initial handshake of the MySQL protocol: it shows that a server is up, and of which kind it is.

use std::{
    io::Read as _,
    net::{TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};

use crate::kind::Kind;

/// How long connecting and reading may take, each.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// MariaDB up to 10.x puts this before its version so that old replicas accept it.
const OLD_REPLICA_PREFIX: &str = "5.5.5-";

/// The part of a server's first packet that identifies the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    /// The kind of server.
    pub kind: Kind,
    /// The version that the server states, without the prefix for old replicas.
    pub version: String,
}

/// Connects and reads the handshake, which a server sends once it accepts connections.
pub fn read_handshake(address: &str) -> anyhow::Result<Handshake> {
    let target = address.to_socket_addrs()?.next().context("the host name has no address")?;
    let mut stream = TcpStream::connect_timeout(&target, HANDSHAKE_TIMEOUT)?;
    stream.set_read_timeout(Some(HANDSHAKE_TIMEOUT))?;
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let length = usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
    ensure!(length <= 1024, "not a MySQL server: its handshake has {length} bytes");
    let mut packet = vec![0; length];
    stream.read_exact(&mut packet)?;
    parse(&packet)
}

/// Protocol 10: one byte of protocol version, then the server's version, ended by a zero.
fn parse(packet: &[u8]) -> anyhow::Result<Handshake> {
    match packet.split_first() {
        Some((10, rest)) => {
            let end = rest.iter().position(|byte| *byte == 0).context("the handshake has no version")?;
            let stated = String::from_utf8_lossy(&rest[..end]);
            let kind = if stated.contains("MariaDB") { Kind::MariaDb } else { Kind::MySql };
            let version = stated.strip_prefix(OLD_REPLICA_PREFIX).unwrap_or(&stated).to_owned();
            Ok(Handshake { kind, version })
        }
        Some((255, rest)) => {
            bail!(
                "the server refused the connection: {}",
                String::from_utf8_lossy(rest.get(2..).unwrap_or_default())
            )
        }
        _ => bail!("not a MySQL server: unknown handshake"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_are_told_apart() {
        let maria = parse(b"\x0a5.5.5-10.11.19-MariaDB-log\0rest").unwrap();
        assert_eq!(maria, Handshake { kind: Kind::MariaDb, version: "10.11.19-MariaDB-log".into() });
        let mysql = parse(b"\x0a9.7.0\0rest").unwrap();
        assert_eq!(mysql, Handshake { kind: Kind::MySql, version: "9.7.0".into() });
    }

    #[test]
    fn a_refusal_is_an_error() {
        let error = parse(b"\xff\x10\x04Too many connections").unwrap_err();
        assert!(error.to_string().contains("Too many connections"), "{error}");
        assert!(parse(b"SSH-2.0").is_err());
        assert!(parse(b"").is_err());
    }
}
