//! Defaults, overrides and error messages of a configuration.

use std::{path::Path, time::Duration};

use forebay_edge::admission::LoadLimits;
use forebay_engine::Settings;
use forebay_store::Password;

use super::*;

const SHARD: &str = "[[shard]]\nid = 1\nurl = \"sqlite:///tmp/1.db\"\n";

fn parse(text: &str, variables: &[(&str, &str)], flags: Flags) -> Result<Config, Vec<String>> {
    let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    Config::parse(text, variables, flags).map_err(|error| error.0)
}

fn errors(text: &str) -> Vec<String> {
    parse(text, &[], vec![]).err().unwrap_or_default()
}

#[test]
fn every_sample_is_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/config");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            // In place of files that are not on this machine, and of what the image sets.
            let mut variables = vec![("FOREBAY_MYSQL_PASSWORD", "secret"), ("FOREBAY_PEER", "0.0.0.0:7422")];
            if text.contains("[catalog]") {
                variables.push(("FOREBAY_PEER_SECRET", "sixteen-bytes-or-more"));
            }
            let config =
                parse(&text, &variables, vec![]).unwrap_or_else(|errors| panic!("{path:?}: {errors:?}"));
            assert!(!config.shards.is_empty());
            seen += 1;
        }
    }
    assert!(seen > 0, "there are samples");
}

#[test]
fn a_short_file_has_the_documented_defaults() {
    let config = parse(SHARD, &[], vec![]).unwrap();
    assert_eq!(config.settings, Settings::default());
    assert_eq!((config.grpc.as_str(), config.http.as_str()), ("127.0.0.1:7420", "127.0.0.1:7421"));
    assert_eq!(config.drain, Duration::from_secs(5));
    assert!(!config.allow_not_durable && config.rules.namespaces.is_none());
    assert_eq!(config.load, LoadLimits::default());
}

#[test]
fn every_wrong_key_is_reported_at_once() {
    let text = "
        colour = 1
        [node]
        grcp = 'x'
        http = 7421
        [limits]
        payload_bytes = -1
        payload = 5
        lease_min_ms = 60000
        [namespace.a]
        window = 1
        [[shard]]
        id = 0
        url = 'sqlite:///1'
        [[shard]]
        id = 2
        url = 'postgres://user:hidden@db/x'
        [[shard]]
        id = 2
        host = 'x'
    ";
    let errors = errors(text);
    let reported =
        |start: &str| assert!(errors.iter().any(|error| error.starts_with(start)), "{start}: {errors:#?}");
    for start in [
        "unknown key colour",
        "node.grcp: unknown field `grcp`",
        "node.http: invalid type",
        "limits.payload_bytes: invalid value",
        "limits.payload: unknown field",
        "limits.lease_default_ms must be at least lease_min_ms",
        "namespace.a.window: unknown field",
        "shard[0].id must be",
        "shard[1].url must begin with",
        "shard[2].id 2 is used by another shard",
        "shard[2].host: unknown field",
        "shard[2].url is missing",
    ] {
        reported(start);
    }
    assert!(errors.iter().all(|error| !error.contains("hidden")), "{errors:#?}");
}

#[test]
fn a_file_that_is_not_toml_has_one_error() {
    let errors = errors("[node\n");
    assert_eq!(errors.len(), 1, "{errors:#?}");
    assert!(self::errors("").iter().any(|error| error.contains("[[shard]]")));
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let text =
        format!("[node]\ngrpc = \"a:1\"\nhttp = \"a:2\"\nadvertise = \"a:3\"\ninsecure = true\n{SHARD}");
    let variables = [
        ("FOREBAY_GRPC", "b:1"),
        ("FOREBAY_HTTP", "b:2"),
        ("FOREBAY_PEER_SECRET", "sixteen-bytes-or-more"),
        ("FOREBAY_LIMITS_PAYLOAD_BYTES", "100"),
        ("FOREBAY_ENGINE_POLLS", "7"),
        ("FOREBAY_MEMORY_INDEX_BYTES", "2000000"),
        ("FOREBAY_ALLOW_NOT_DURABLE", "true"),
        ("FOREBAY_ADDR", "http://elsewhere"),
        ("FOREBAY_TEST_REQUIRE", "mysql"),
        ("FOREBAY_PORT", "tcp://10.0.0.1:7420"),
        ("FOREBAY_HTTP_SERVICE_HOST", "10.0.0.2"),
        ("FOREBAY_PORT_7420_TCP_PROTO", "tcp"),
        ("HOME", "/root"),
    ];
    let config = parse(&text, &variables, vec![("grpc", "c:1".into())]).unwrap();
    assert_eq!((config.grpc.as_str(), config.http.as_str()), ("c:1", "b:2"));
    assert_eq!(config.advertise.as_deref(), Some("a:3"));
    assert_eq!((config.rules.limits.payload_bytes, config.settings.limits.payload_bytes), (100, 100));
    assert_eq!((config.settings.polls, config.settings.index_bytes), (7, 2_000_000));
    assert!(config.allow_not_durable);
    let wrong = parse(&text, &[("FOREBAY_LIMITS_COLOUR", "1")], vec![]).err().unwrap();
    assert!(wrong[0].starts_with("limits.colour"), "{wrong:?}");
}

#[test]
fn spans_go_where_the_file_or_a_variable_says() {
    assert_eq!(parse(SHARD, &[], vec![]).unwrap().traces, None);
    let text = format!("[traces]\nendpoint = \"http://a:4317\"\nratio = 1\n{SHARD}");
    let variables = [("FOREBAY_TRACES_ENDPOINT", "https://b:4317"), ("FOREBAY_TRACES_RATIO", "0.25")];
    let of = |variables| parse(&text, variables, vec![]).unwrap().traces.unwrap();
    assert_eq!((of(&[]).endpoint.as_str(), of(&[]).ratio), ("http://a:4317", 1.0));
    assert_eq!((of(&variables).endpoint.as_str(), of(&variables).ratio), ("https://b:4317", 0.25));
    for (variables, start) in [
        ([("FOREBAY_TRACES_RATIO", "2")], "traces.ratio is 2"),
        ([("FOREBAY_TRACES_RATIO", "half")], "traces.ratio: invalid type"),
        ([("FOREBAY_TRACES_ENDPOINT", "collector:4317")], "traces.endpoint must be"),
        ([("FOREBAY_TRACES_COLOUR", "1")], "traces.colour: unknown field"),
    ] {
        let wrong = parse(&text, &variables, vec![]).err().unwrap();
        assert!(wrong.len() == 1 && wrong[0].starts_with(start), "{wrong:?}");
    }
}

#[test]
fn the_password_comes_from_the_environment_or_a_file_and_is_never_printed() {
    let config = parse(SHARD, &[("FOREBAY_MYSQL_PASSWORD", "hidden")], vec![]).unwrap();
    let password = config.mysql_password.unwrap();
    assert_eq!(password, Password::Text("hidden".to_owned()));
    assert!(!format!("{password:?}").contains("hidden"));
    assert!(
        errors(&format!("[node]\nmysql_password = \"x\"\n{SHARD}"))[0].starts_with("node.mysql_password")
    );
    let missing = errors(&format!("[node]\nmysql_password_file = \"/nowhere\"\n{SHARD}"));
    assert!(missing[0].starts_with("node.mysql_password_file: cannot read /nowhere"), "{missing:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("password");
    std::fs::write(&path, "hidden").unwrap();
    let text = format!("[node]\nmysql_password_file = {:?}\n{SHARD}", path.display().to_string());
    assert_eq!(parse(&text, &[], vec![]).unwrap().mysql_password, Some(Password::File(path)));
}

#[test]
fn namespaces_have_windows_and_may_be_the_only_ones() {
    let text = format!(
        "[node]\nstrict_namespaces = true\n[namespace.a]\ndedupe_window_ms = 5000\n[namespace.b]\n{SHARD}"
    );
    let config = parse(&text, &[], vec![]).unwrap();
    assert_eq!(config.settings.dedupe_windows["a"], Duration::from_secs(5));
    let known: Vec<_> = config.rules.namespaces.unwrap().into_iter().collect();
    assert_eq!(known, ["a", "b"]);
}

#[test]
fn a_namespace_may_keep_dead_letters_for_another_time() {
    let days = |days: u64| Duration::from_secs(days * 86_400);
    assert_eq!(parse(SHARD, &[], vec![]).unwrap().settings.dead_letter_retention, days(14));
    let text = format!(
        "[engine]\ndead_letter_retention_ms = 86400000\n[namespace.a]\ndead_letter_retention_ms = 0\n{SHARD}"
    );
    let settings = parse(&text, &[], vec![]).unwrap().settings;
    assert_eq!((settings.dead_letter_retention, settings.dead_letter_retentions["a"]), (days(1), days(0)));
}

#[test]
fn a_memory_limit_below_another_names_both() {
    let errors = errors(&format!("[memory]\nadmit_bytes = 5\n{SHARD}"));
    let expected = "memory.admit_bytes is 5; it must be at least memory.admit_shard_bytes (33554432)";
    assert_eq!(errors, [expected]);
}

#[test]
fn an_unknown_variable_is_named() {
    for name in ["FOREBAY_GRCP", "FOREBAY_SHARDS", "FOREBAY_", "FOREBAY_NODE_GRPC"] {
        let wrong = parse(SHARD, &[(name, "1")], vec![]).err().unwrap();
        assert!(wrong[0].starts_with(&format!("unknown environment variable {name};")), "{wrong:?}");
    }
}

#[test]
fn one_port_may_not_be_both() {
    let text =
        format!("[node]\ngrpc = \"0.0.0.0:7420\"\nhttp = \"127.0.0.1:7420\"\ninsecure = true\n{SHARD}");
    assert_eq!(errors(&text), ["node.grpc and node.http are the same port: 0.0.0.0:7420 and 127.0.0.1:7420"]);
}

#[test]
fn a_file_of_authorities_must_hold_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        errors(&format!("[node]\nmysql_tls_ca_file = {path:?}\n{SHARD}"))
    };
    assert!(wrong("empty", "")[0].ends_with("empty holds no certificate"));
    assert!(wrong("text", "hello")[0].contains("holds no certificate"));
    assert!(
        wrong("broken", "-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n")[0].contains("not PEM")
    );
    let good = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(wrong("good", good).is_empty());
    let missing = errors(&format!("[node]\nmysql_tls_ca_file = \"/nowhere\"\n{SHARD}"));
    assert!(missing[0].starts_with("node.mysql_tls_ca_file: cannot read /nowhere"), "{missing:?}");
}

#[test]
fn a_senseless_log_filter_is_refused_wherever_it_comes_from() {
    let text = format!("[node]\nlog = \"inof\"\n{SHARD}");
    assert!(errors(&text)[0].contains("\"inof\" is not a level"));
    // RUST_LOG overrides it.
    assert_eq!(parse(&text, &[("RUST_LOG", "warn"), ("FOREBAY_LOG", "debug")], vec![]).unwrap().log, "warn");
    assert!(parse(SHARD, &[("RUST_LOG", "x=loud")], vec![]).err().unwrap()[0].contains("RUST_LOG"));
    assert_eq!(parse(SHARD, &[("RUST_LOG", "")], vec![]).unwrap().log, "info,h2=error");
}

#[test]
fn a_namespace_that_no_request_may_name_is_refused() {
    let errors = errors(&format!("[namespace.\"a b\"]\n[namespace.{}]\n{SHARD}", "x".repeat(201)));
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].starts_with("namespace.\"a b\": the name must contain only A-Z"), "{errors:?}");
}

#[test]
fn a_url_that_the_driver_refuses_is_found() {
    let errors = errors("[[shard]]\nid = 1\nurl = 'mysql://u:hidden@db:port/schema'");
    assert!(errors[0].starts_with("shard[0].url is not the URL of a shard"), "{errors:?}");
    assert!(!errors[0].contains("hidden"));
}

#[test]
fn the_catalog_is_beside_the_first_shard_unless_one_is_named() {
    let url = |text: &str| match parse(text, &[], vec![]).unwrap().catalog {
        ShardUrl::MySql(url) => url,
        ShardUrl::Sqlite(path) => path.display().to_string(),
    };
    let shard = |id: u32, url: &str| format!("[[shard]]\nid = {id}\nurl = \"{url}\"\n");
    let two =
        shard(2, "mysql://forebay@db2/forebay_0002") + &shard(1, "mysql://forebay@db1:3306/forebay_0001");
    assert_eq!(url(&two), "mysql://forebay@db1:3306/forebay_0001_catalog");
    assert_eq!(url(&shard(1, "mysql://a@db/q?charset=utf8mb4")), "mysql://a@db/q_catalog?charset=utf8mb4");
    assert_eq!(url(&shard(1, "sqlite:///var/lib/forebay/0001.db")), "/var/lib/forebay/catalog.db");
    assert_eq!(url(&shard(1, "sqlite://0001.db")), "catalog.db");
    assert_eq!(url(&format!("[catalog]\nurl = \"mysql://f@db/c\"\n{two}")), "mysql://f@db/c");
}

#[test]
fn a_password_in_the_url_of_a_shard_is_refused_and_not_repeated() {
    let errors = errors("[[shard]]\nid = 1\nurl = 'mysql://u:hidden@db/schema'");
    assert!(errors[0].starts_with("shard[0].url has a password: put it into node.mysql_password_file"));
    assert!(!errors[0].contains("hidden"));
}

#[test]
fn a_node_that_others_join_has_a_secret_and_a_port() {
    let catalog = "[catalog]\nurl = \"mysql://forebay@127.0.0.1:3306/forebay_catalog\"\n";
    let secret = ("FOREBAY_PEER_SECRET", "sixteen-bytes-or-more");
    let config = parse(catalog, &[secret, ("FOREBAY_NAME", "queue1")], vec![]).unwrap();
    assert!(!config.is_alone() && config.shards.is_empty(), "the catalog names the shards");
    assert_eq!(config.name.unwrap().as_str(), "queue1");
    assert_eq!(config.peer, "127.0.0.1:7422");
    assert!(!format!("{:?}", config.peer_secrets).contains("sixteen"));
    let wrong = |text: &str, variables: &[(&str, &str)], says: &str| {
        let errors = parse(text, variables, vec![]).err().unwrap();
        assert!(errors.iter().any(|error| error.starts_with(says)), "{says}: {errors:?}");
    };
    let advertised = [("FOREBAY_ADVERTISE", "127.0.0.1:7422")];
    wrong(catalog, &advertised, "node.peer_secret_file (or FOREBAY_PEER_SECRET) is missing");
    let same = [secret, advertised[0], ("FOREBAY_ADVERTISE_CLIENTS", "127.0.0.1:7422")];
    wrong(catalog, &same, "node.advertise and node.advertise_clients are the same");
    // The port is not opened, whatever its key says.
    let peer_is_grpc = [("FOREBAY_PEER", "127.0.0.1:7420")];
    assert!(parse(catalog, &peer_is_grpc, vec![]).unwrap().is_alone());
    wrong(
        catalog,
        &[("FOREBAY_PEER_SECRET", "short")],
        "node.peer_secret_file must hold at least 16 bytes in each line",
    );
    wrong(
        catalog,
        &[("FOREBAY_PEER_SECRET", "sixteen bytes or more")],
        "node.peer_secret_file must hold printable",
    );
    wrong(
        catalog,
        &[secret, ("FOREBAY_PEER", "127.0.0.1:7420")],
        "node.peer and node.grpc are the same port",
    );
    wrong(catalog, &[secret, ("FOREBAY_NAME", "queue 1")], "node.name: a node's name has letters");
    wrong("[catalog]\nurl = \"postgres://db/x\"\n", &[secret], "catalog.url must begin with");
    let elsewhere = "[catalog]\nurl = \"mysql://forebay:p%2Fw@db1:3306/c\"\n";
    wrong(elsewhere, &[secret], "other nodes can't reach this one at 127.0.0.1:7422");
    wrong(
        elsewhere,
        &[secret, ("FOREBAY_PEER", "0.0.0.0:7422"), ("FOREBAY_ADVERTISE", "localhost:7422")],
        "other nodes can't reach this one at localhost:7422",
    );
    let reached = [secret, ("FOREBAY_PEER", "0.0.0.0:7422"), ("FOREBAY_ADVERTISE", "queue1:7422")];
    let plain = [&reached[..], &[("FOREBAY_INSECURE", "true")]].concat();
    assert!(parse(elsewhere, &plain, vec![]).is_ok());
    wrong(elsewhere, &reached, "there is no TLS (tls.peer_cert_file) for other nodes at 0.0.0.0:7422");
    let two = [("FOREBAY_PEER_SECRET", "sixteen-bytes-or-more\nthe-one-before-it")];
    assert_eq!(parse(catalog, &two, vec![]).unwrap().peer_secrets.len(), 2);
    wrong("[catalog]\nuri = \"x\"\n", &[secret], "catalog.uri: unknown field");
}

#[test]
fn who_may_use_the_http_port_is_a_list_in_the_file_or_in_a_variable() {
    let file = format!("[http]\nhosts = ['queue1']\ncors_origins = ['https://a.example']\n{SHARD}");
    let config = parse(&file, &[("FOREBAY_HTTP_HOSTS", "queue2, *.example.com,")], vec![]).unwrap();
    assert_eq!(config.http_access.hosts, ["queue2", "*.example.com"]);
    assert_eq!(config.http_access.cors_origins, ["https://a.example"]);
    let template = "https://g.example/d/x?a={namespace},{topic}";
    let config = parse(SHARD, &[("FOREBAY_HTTP_GRAFANA", template)], vec![]).unwrap();
    assert_eq!(config.http_access.grafana, template.parse().ok());
    let wrong = parse(SHARD, &[("FOREBAY_HTTP_CORS_ORIGINS", "a.example")], vec![]).err().unwrap();
    assert!(wrong[0].starts_with("http.cors_origins: \"a.example\""), "{wrong:?}");
    assert!(errors(&format!("[http]\nhost = 'a'\n{SHARD}"))[0].starts_with("http.host: unknown field"));
    // Kubernetes describes a service `forebay-http` so.
    parse(
        SHARD,
        &[("FOREBAY_HTTP_SERVICE_HOST", "10.0.0.1"), ("FOREBAY_HTTP_PORT", "tcp://10.0.0.1:1")],
        vec![],
    )
    .unwrap();
}

#[test]
fn the_page_lists_every_key_as_the_code_has_it() {
    let written = include_str!("../../../docs/CONFIGURATION.md");
    assert!(written == crate::page(), "write it anew: forebay config keys > docs/CONFIGURATION.md");
}

#[test]
fn a_variable_has_the_type_of_its_key() {
    let variables =
        [("FOREBAY_NAME", "7"), ("FOREBAY_METRICS_TOPICS", "shop/*, mail/in"), ("FOREBAY_TRACES_RATIO", "1")];
    let config = parse(SHARD, &variables, vec![]).unwrap();
    assert_eq!(config.name.unwrap().as_str(), "7");
    assert_eq!(config.settings.reported.patterns, ["shop/*", "mail/in"]);
    let wrong =
        parse(SHARD, &[("FOREBAY_INSECURE", "1"), ("FOREBAY_DRAIN_MS", "soon")], vec![]).err().unwrap();
    assert!(wrong[0].starts_with("node.drain_ms: invalid type"), "{wrong:?}");
    assert!(wrong[1].starts_with("node.insecure: invalid type"), "{wrong:?}");
}
