//! `forebay check-config`

use std::{fs, path::Path};

use forebay_testkit::servers::{self, Kind, free_port};
use tempfile::TempDir;

use super::{forebay, run, run_with};

/// A folder with a configuration.
struct ConfigFolder {
    folder: TempDir,
    config: String,
}

impl ConfigFolder {
    fn new(text: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("forebay-cli-").tempdir().unwrap();
        let config = folder.path().join("forebay.toml");
        fs::write(&config, text).unwrap();
        Self { config: config.display().to_string(), folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Returns the message of both verbs on a configuration that neither takes.
async fn refused(text: &str, variables: &[(&str, &str)]) -> String {
    let configured = ConfigFolder::new(text);
    let mut said = Vec::new();
    for verb in ["check-config", "serve"] {
        let mut command = forebay(&[verb, "--config", &configured.config]);
        command.envs(variables.iter().copied());
        said.push(run_with(command, Vec::new()).await.failed(1));
    }
    assert_eq!(said[0], said[1]);
    said.remove(0)
}

#[tokio::test]
async fn it_says_what_serve_says() {
    let shard = "[[shard]]\nid = 1\nurl = \"sqlite:///nowhere/1.db\"\n";
    let text = format!(
        "[node]\ngrpc = \"0.0.0.0:7420\"\nhttp = \"0.0.0.0:7420\"\nlog = \"inof\"\n\
         mysql_tls_ca_file = \"/nowhere/ca.pem\"\n[namespace.\"a b\"]\n{shard}"
    );
    let said = refused(&text, &[("FOREBAY_GRCP", "x")]).await;
    for wrong in [
        "same port",
        "there is no TLS ([tls]) for gRPC at 0.0.0.0:7420 and HTTP at 0.0.0.0:7420",
        "there is no access control ([access])",
        "cannot read /nowhere/ca.pem",
        "\"inof\" is not a level",
        "unknown environment variable FOREBAY_GRCP",
        "namespace.\"a b\"",
    ] {
        assert!(said.contains(wrong), "{wrong}: {said}");
    }
    assert_eq!(said.lines().count(), 7, "{said}");
    assert!(refused(shard, &[("RUST_LOG", "x=loud")]).await.contains("RUST_LOG"));
}

#[tokio::test]
async fn it_asks_the_databases_on_demand() {
    let configured = ConfigFolder::new("");
    let path = |file: &str| configured.path().join(file).display().to_string();
    let shard = |id: u32, url: &str| format!("[[shard]]\nid = {id}\nurl = \"{url}\"\n");
    let (good, empty) = (format!("sqlite://{}", path("1.db")), format!("sqlite://{}", path("2.db")));
    fs::write(&configured.config, shard(1, &good)).unwrap();
    let check = ["check-config", "--config", &configured.config, "--connect"];
    let missing = run(&check).await.failed(1);
    assert!(missing.contains("shard 1") && missing.contains("forebay migrate"), "{missing}");
    run(&["migrate", "--config", &configured.config]).await.done();
    let valid = run(&check).await.done();
    assert!(valid.contains("SQLite") && valid.contains("as it must be"), "{valid}");

    // Without the flag nobody is asked.
    let nobody = format!("mysql://u@127.0.0.1:{}/schema", free_port().unwrap());
    fs::write(&configured.config, shard(1, &good) + &shard(3, &nobody)).unwrap();
    run(&check[..3]).await.done();
    let unreachable = run(&check).await.failed(6);
    assert!(unreachable.contains("cannot reach shard 3"), "{unreachable}");
    fs::write(&configured.config, shard(2, &empty) + &shard(3, &nobody)).unwrap();
    let both = run(&check).await.failed(1);
    assert!(both.contains("shard 2: ") && both.contains("cannot reach shard 3"), "{both}");
}

#[tokio::test]
async fn it_shows_the_version_of_a_server() {
    let server = servers::shared(Kind::MariaDb).await;
    let url = server.fresh_url().await;
    let configured = ConfigFolder::new(&format!("[[shard]]\nid = 1\nurl = \"{url}\"\n"));
    run(&["migrate", "--config", &configured.config]).await.done();
    let ran = run(&["check-config", "--config", &configured.config, "--connect"]).await;
    assert!(ran.stdout.contains("MariaDB"), "{}{}", ran.stdout, ran.stderr);
}

#[tokio::test]
async fn what_cargo_run_hands_on_is_no_unknown_variable() {
    // Cargo sets for the program what its build script names.
    let script = include_str!("../../../crates/forebay/build.rs");
    let names: Vec<&str> =
        script.split("rustc-env=").skip(1).map(|rest| rest.split('=').next().unwrap()).collect();
    assert!(!names.is_empty());
    let configured = ConfigFolder::new("[[shard]]\nid = 1\nurl = \"sqlite://1.db\"\n");
    let mut command = forebay(&["check-config", "--config", &configured.config]);
    command.envs(names.into_iter().map(|name| (name, "1")));
    run_with(command, Vec::new()).await.done();
}
