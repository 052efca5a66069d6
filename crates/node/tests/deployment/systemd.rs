//! The unit for systemd fits the program.

use forebay_config::Config;

use crate::files::{STOP_SECONDS, read};

const UNIT: &str = "deploy/systemd/forebay.service";

/// The values of a key of the unit.
fn values(unit: &str, key: &str) -> Vec<String> {
    let lines = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    lines.map(str::to_owned).collect()
}

#[test]
fn the_service_reads_its_secrets_from_credentials() {
    let unit = read(UNIT);
    let folder = tempfile::tempdir().unwrap();
    for credential in values(&unit, "LoadCredential") {
        let (name, _) = credential.split_once(':').unwrap();
        std::fs::write(folder.path().join(name), format!("sixteen-bytes-{name}\n")).unwrap();
    }
    let variables = values(&unit, "Environment").into_iter().map(|pair| {
        let (name, value) = pair.split_once('=').unwrap();
        (name.to_owned(), value.replace("%d", folder.path().to_str().unwrap()))
    });
    let config = Config::parse(&read("deploy/config/cluster.toml"), variables, vec![]);
    let config = config.unwrap_or_else(|error| panic!("{:?}", error.0));
    let password = folder.path().join("mysql_password");
    assert_eq!(config.mysql_password, Some(forebay_store::Password::File(password)));
    assert_eq!(config.peer_secrets[0].reveal(), "sixteen-bytes-peer_secret");
}

#[test]
fn certificates_are_files_that_the_service_reads_itself() {
    let unit = read(UNIT);
    let lines: Vec<_> = unit.lines().filter_map(|line| line.strip_prefix("#Environment=")).collect();
    let variables = lines.iter().flat_map(|line| line.split(' ')).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    });
    let secret = ("FOREBAY_PEER_SECRET".to_owned(), "sixteen-bytes-or-more".to_owned());
    let config = Config::parse(&read("deploy/config/cluster.toml"), variables.chain([secret]), vec![]);
    let config = config.unwrap_or_else(|error| panic!("{:?}", error.0));
    assert!(config.tls.server.is_some() && config.exposed.is_empty(), "{:?}", config.exposed);
    assert_eq!(values(&unit, "ExecReload"), ["/bin/kill -HUP $MAINPID"]);
}

#[test]
fn a_node_has_time_to_stop() {
    let seconds = values(&read(UNIT), "TimeoutStopSec");
    assert!(seconds[0].parse::<u64>().unwrap() > STOP_SECONDS);
}
