//! The configurations of several nodes in one folder, for `forebay dev --nodes`.

use std::{
    fmt::Write as _,
    fs, io,
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use forebay_config::{Config, Flags};
use forebay_edge::random::random;

use crate::failure::Failure;

/// The ports of a node are so far from those of the one before.
const PORTS_APART: u16 = 10;

/// The file of the catalog.
const CATALOG: &str = "catalog.db";
/// The file of the secret that the nodes share.
const SECRET: &str = "peer_secret";

/// Where the first node serves, as the user gave it.
pub struct Addresses {
    /// gRPC.
    pub grpc: SocketAddr,
    /// HTTP.
    pub http: SocketAddr,
}

/// Writes a configuration file for each node, and reads them. They are files so that the verbs of operators
/// can be tried with them.
pub fn configure(folder: &Path, shards: u32, nodes: u16, first: &Addresses) -> Result<Vec<Config>, Failure> {
    write_secret(&folder.join(SECRET))?;
    let configure_one = |index| {
        let (file, flags) = write(folder, shards, index, first)?;
        Ok(Config::load(&file, flags)?)
    };
    (0..nodes).map(configure_one).collect()
}

/// Writes the file of a node. Returns it, with what is not in it. The path of the folder is absolute.
fn write(folder: &Path, shards: u32, index: u16, first: &Addresses) -> Result<(PathBuf, Flags), Failure> {
    let secret = folder.join(SECRET);
    let name = format!("node{}", index + 1);
    let mut text = format!(
        "# Written by `forebay dev --nodes`. The verbs of operators find the catalog by it:\n\
         #   forebay node drain {name} --config THIS_FILE\n\n\
         [node]\nname = \"{name}\"\ndrain_ms = 0\npeer_secret_file = {secret:?}\n\n\
         [catalog]\nurl = {:?}\n",
        format!("sqlite://{}", folder.join(CATALOG).display()),
    );
    for id in 1..=shards {
        let url = format!("sqlite://{}", folder.join(format!("{id:04}.db")).display());
        // Writing to a string never fails.
        let _ = write!(text, "\n[[shard]]\nid = {id}\nurl = {url:?}\n");
    }
    let file: PathBuf = folder.join(format!("{name}.toml"));
    fs::write(&file, text)?;
    let grpc = moved(first.grpc, index)?;
    let given = [
        ("name", name),
        ("grpc", grpc.to_string()),
        ("http", moved(first.http, index)?.to_string()),
        // Any port will do: other nodes learn it from the catalog.
        ("peer", SocketAddr::new(grpc.ip(), 0).to_string()),
    ];
    // As flags, because variables of the environment would be the same for all.
    let flags = given.into_iter().map(|(key, text)| (key, toml::Value::String(text)));
    // Where others reach the nodes, they ask for a token.
    let flags = flags.chain([("insecure", true.into())]);
    Ok((file, flags.collect()))
}

/// The address of a later node. Port 0 means any port.
fn moved(first: SocketAddr, index: u16) -> Result<SocketAddr, Failure> {
    let port = match first.port() {
        0 => Some(0),
        port => PORTS_APART.checked_mul(index).and_then(|apart| port.checked_add(apart)),
    };
    let none = || Failure::new(format!("there is no port for node {} behind {first}", index + 1));
    Ok(SocketAddr::new(first.ip(), port.ok_or_else(none)?))
}

/// Makes a secret, if there is none.
fn write_secret(path: &Path) -> Result<(), Failure> {
    let number = || random().map_err(Failure::from_display);
    let secret = format!("{:016x}{:016x}", number()?, number()?);
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => Ok(io::Write::write_all(&mut file, secret.as_bytes())?),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(Failure::new(format!("cannot write {}: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_ports_of_its_own() {
        let first: SocketAddr = "127.0.0.1:7420".parse().unwrap();
        let ports = [0, 1, 2].map(|index| moved(first, index).unwrap().port());
        assert_eq!(ports, [7_420, 7_430, 7_440]);
        assert_eq!(moved("[::1]:0".parse().unwrap(), 2).unwrap().port(), 0);
        assert!(moved("127.0.0.1:65530".parse().unwrap(), 1).is_err());
    }

    #[test]
    fn the_files_are_configurations_and_the_secret_stays() {
        let folder = tempfile::tempdir().unwrap();
        let any = || "127.0.0.1:0".parse().unwrap();
        let first = Addresses { grpc: any(), http: any() };
        let path = folder.path().join(SECRET);
        write_secret(&path).unwrap();
        let secret = fs::read(&path).unwrap();
        assert_eq!(secret.len(), 32);
        let (file, flags) = write(folder.path(), 3, 1, &first).unwrap();
        let text = fs::read_to_string(file).unwrap();
        let config = Config::parse(&text, [], flags).unwrap();
        assert_eq!((config.name.unwrap().as_str(), config.shards.len()), ("node2", 3));
        write_secret(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), secret);
    }
}
