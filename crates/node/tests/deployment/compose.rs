//! `docker-compose.yml` fits the program and the files that it mounts.

use std::collections::{BTreeMap, BTreeSet};

use forebay_config::ShardUrl;
use serde_json::Value;

use crate::files::{STOP_SECONDS, at, configuration, documents, list, path, read, secret_files, text};

const CONFIGURATION: &str = "deploy/config/compose.toml";

fn compose() -> Value {
    documents(&read("docker-compose.yml")).remove(0)
}

/// The host and the schema of a URL.
fn host_and_schema(url: &ShardUrl) -> (String, String) {
    let ShardUrl::MySql(url) = url else { panic!("{url:?}") };
    let (host, schema) = url.strip_prefix("mysql://forebay@").unwrap().split_once(":3306/").unwrap();
    (host.to_owned(), schema.to_owned())
}

#[test]
fn there_is_a_server_for_each_shard_and_a_shard_for_each_node() {
    let compose = compose();
    let config = configuration(CONFIGURATION, &BTreeMap::new());
    let replicas = at(&compose, "/services/forebay/deploy/replicas").as_u64().unwrap();
    assert!(config.shards.len() as u64 >= replicas);
    // A shard has a schema of its own, and the grants are for all of them.
    let grants = read("deploy/mysql/grants.sql");
    assert!(grants.contains("ON `forebay\\_%`.* TO forebay;"));
    let urls = std::iter::once(&config.catalog).chain(config.shards.iter().map(|shard| &shard.url));
    for (host, schema) in urls.map(host_and_schema) {
        assert!(schema.starts_with("forebay_"), "{schema}");
        let server = at(&compose, &format!("/services/{host}"));
        assert_eq!(text(server, "/environment/MYSQL_USER"), "forebay");
        let mounts = list(server, "/volumes").iter().map(|mount| mount.as_str().unwrap());
        assert!(mounts.into_iter().any(|mount| mount.starts_with("./deploy/mysql/grants.sql:")), "{host}");
    }
}

#[test]
fn secrets_are_files_and_nowhere_else() {
    let compose = compose();
    for service in ["forebay", "migrate"] {
        let service = at(&compose, &format!("/services/{service}"));
        let secrets = list(service, "/secrets").iter().map(|name| name.as_str().unwrap());
        let mounted: BTreeSet<_> = secrets.map(|name| format!("/run/secrets/{name}")).collect();
        assert_eq!(mounted, secret_files(CONFIGURATION));
        assert_eq!(service["environment"], Value::Null);
    }
    for (name, secret) in at(&compose, "/secrets").as_object().unwrap() {
        let file = text(secret, "/file").replace("${FOREBAY_SECRETS:-./deploy/secrets}", "deploy/secrets");
        assert_eq!(file, format!("deploy/secrets/{name}"));
        assert!(read(&file).trim_end().len() >= 8, "{file}");
    }
}

#[test]
fn no_service_has_more_capabilities_than_it_needs() {
    let compose = compose();
    for (name, service) in at(&compose, "/services").as_object().unwrap() {
        assert_eq!(service["cap_drop"], serde_json::json!(["ALL"]), "{name}");
        assert_eq!(service["security_opt"], serde_json::json!(["no-new-privileges:true"]), "{name}");
        assert_eq!(service.get("cap_add").is_some(), name.starts_with("mysql"), "{name}");
    }
}

#[test]
fn what_is_mounted_exists() {
    let compose = compose();
    for (name, service) in at(&compose, "/services").as_object().unwrap() {
        let mounts = list(service, "/volumes").iter().map(|mount| mount.as_str().unwrap());
        let files: Vec<_> = mounts.filter_map(|mount| mount.strip_prefix("./")).collect();
        assert!(!files.is_empty(), "{name}");
        for file in files.into_iter().map(|mount| mount.split(':').next().unwrap()) {
            assert!(path(file).exists(), "{name}: {file}");
        }
    }
}

#[test]
fn a_node_is_waited_for_and_has_time_to_stop() {
    let compose = compose();
    let node = at(&compose, "/services/forebay");
    assert_eq!(*at(node, "/healthcheck/test"), serde_json::json!(["CMD", "forebay", "health"]));
    let seconds = text(node, "/stop_grace_period").strip_suffix('s').unwrap();
    assert!(seconds.parse::<u64>().unwrap() > STOP_SECONDS);
    assert_eq!(text(node, "/depends_on/migrate/condition"), "service_completed_successfully");
}

#[test]
fn several_nodes_find_a_port_on_the_machine() {
    let compose = compose();
    let node = at(&compose, "/services/forebay");
    let replicas = at(node, "/deploy/replicas").as_u64().unwrap();
    for published in list(node, "/ports") {
        let range = published.as_str().unwrap().strip_prefix("127.0.0.1:").unwrap();
        let (first, last) = range.split_once(':').unwrap().0.split_once('-').unwrap();
        let [first, last] = [first, last].map(|port| port.parse::<u64>().unwrap());
        assert!(last + 1 - first > replicas, "{published}");
        // These ports are for a node outside of a container.
        assert!(!(7420..=7422).any(|port| (first..=last).contains(&port)), "{published}");
    }
}
