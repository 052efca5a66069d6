//! What a server says first: enough to know that it is up, and of which kind it is.

use std::{
    io::Read as _,
    net::{TcpStream, ToSocketAddrs as _},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};

use crate::Kind;

const PATIENCE: Duration = Duration::from_secs(5);
/// What MariaDB up to 10.x writes before its version, for the sake of old replicas.
const OLD_REPLICA_PREFIX: &str = "5.5.5-";

/// A server's first packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// The family.
    pub kind: Kind,
    /// As the server states it.
    pub version: String,
}

/// Connects and reads the greeting, which a server sends once it takes connections.
pub fn greet(address: &str) -> anyhow::Result<Greeting> {
    let target = address.to_socket_addrs()?.next().context("the name has no address")?;
    let mut stream = TcpStream::connect_timeout(&target, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let length = usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16;
    ensure!(length <= 1024, "not a MySQL server: a greeting of {length} bytes");
    let mut packet = vec![0; length];
    stream.read_exact(&mut packet)?;
    parse(&packet)
}

/// Protocol 10: one byte of protocol version, then the server's version, ended by a zero.
fn parse(packet: &[u8]) -> anyhow::Result<Greeting> {
    match packet.split_first() {
        Some((10, rest)) => {
            let end = rest.iter().position(|byte| *byte == 0).context("a greeting without a version")?;
            let stated = String::from_utf8_lossy(&rest[..end]);
            let kind = if stated.contains("MariaDB") { Kind::MariaDb } else { Kind::MySql };
            let version = stated.strip_prefix(OLD_REPLICA_PREFIX).unwrap_or(&stated).to_owned();
            Ok(Greeting { kind, version })
        }
        Some((255, rest)) => {
            bail!("the server refuses: {}", String::from_utf8_lossy(rest.get(2..).unwrap_or_default()))
        }
        _ => bail!("not a MySQL server"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_are_told_apart() {
        let maria = parse(b"\x0a5.5.5-10.11.19-MariaDB-log\0rest").unwrap();
        assert_eq!(maria, Greeting { kind: Kind::MariaDb, version: "10.11.19-MariaDB-log".into() });
        let mysql = parse(b"\x0a9.7.0\0rest").unwrap();
        assert_eq!(mysql, Greeting { kind: Kind::MySql, version: "9.7.0".into() });
    }

    #[test]
    fn a_refusal_is_an_error() {
        let error = parse(b"\xff\x10\x04Too many connections").unwrap_err();
        assert!(error.to_string().contains("Too many connections"), "{error}");
        assert!(parse(b"SSH-2.0").is_err());
        assert!(parse(b"").is_err());
    }
}
