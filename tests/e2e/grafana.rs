//! Each question of the dashboard for Grafana has an answer: a node of `forebay dev --demo`, and a real
//! Prometheus that reads its metrics.

use std::{
    fs::{self, File},
    process::Stdio,
    time::Duration,
};

use forebay_testkit::servers::{free_port, prometheus};
use serde_json::{Value, json};
use tokio::{net::TcpStream, process::Command, time::Instant};

use crate::{node::Node, wire::http1::Request};

/// Values that Grafana puts in the place of its variables.
const VARIABLES: [(&str, &str); 4] =
    [("$instance", ".*"), ("$namespace", ".*"), ("$topic", ".*"), ("$__rate_interval", "1m")];
/// Prometheus must start, and the demonstration must have had each kind of event, in this time.
const AT_MOST: Duration = Duration::from_secs(90);

/// The questions of all panels, with their titles.
fn questions() -> Vec<(String, String)> {
    let dashboard: Value =
        serde_json::from_str(include_str!("../../deploy/grafana/dashboards/forebay.json")).unwrap();
    let mut questions = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let mut question = target["expr"].as_str().unwrap().to_owned();
            for (name, value) in VARIABLES {
                question = question.replace(name, value);
            }
            questions.push((panel["title"].as_str().unwrap().to_owned(), question));
        }
    }
    questions
}

/// Returns the series with which Prometheus answers a question. `None`: it does not answer yet.
async fn ask(address: &str, question: &str) -> Option<Vec<Value>> {
    let encoded: String = question.bytes().map(|byte| format!("%{byte:02X}")).collect();
    TcpStream::connect(address).await.ok()?;
    let answer = Request::get(&format!("/api/v1/query?query={encoded}")).send(address).await;
    // 503 until it has begun.
    if answer.status == 503 {
        return None;
    }
    let answer = answer.message();
    assert_eq!(answer["status"], "success", "{question}: {answer}");
    answer["data"]["result"].as_array().cloned()
}

#[tokio::test]
async fn each_question_of_the_dashboard_has_an_answer() {
    let folder = tempfile::Builder::new().prefix("forebay-grafana-").tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let any = "127.0.0.1:0";
    let arguments = ["dev", "--demo", "--data-dir", &at("data"), "--grpc", any, "--http", any];
    let node = Node::start(&arguments.map(str::to_owned), &folder.path().join("log")).await;

    // In JSON, which is YAML too. The rules are those that are delivered.
    fs::write(at("alerts.yml"), include_str!("../../deploy/prometheus/alerts.yml")).unwrap();
    let config = json!({
        "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
        "rule_files": ["alerts.yml"],
        "scrape_configs": [{ "job_name": "forebay", "static_configs": [{ "targets": [node.http] }] }],
    });
    fs::write(at("prometheus.yml"), config.to_string()).unwrap();
    let address = format!("127.0.0.1:{}", free_port().unwrap());
    let mut server = Command::new(prometheus().unwrap());
    server.arg(format!("--config.file={}", at("prometheus.yml")));
    server.arg(format!("--storage.tsdb.path={}", at("figures")));
    server.arg(format!("--web.listen-address={address}"));
    let log = File::create(at("prometheus.log")).unwrap();
    server.stdout(Stdio::null()).stderr(log).kill_on_drop(true);
    let mut server = server.spawn().unwrap();

    let begun = Instant::now();
    let mut open = questions();
    assert!(open.len() > 50, "{}", open.len());
    while !open.is_empty() {
        let mut unanswered = Vec::new();
        for (title, question) in open {
            if ask(&address, &question).await.is_none_or(|series| series.is_empty()) {
                unanswered.push((title, question));
            }
        }
        open = unanswered;
        let log = || fs::read_to_string(at("prometheus.log")).unwrap_or_default();
        assert!(begun.elapsed() < AT_MOST, "without an answer: {open:#?}\n{}", log());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    server.kill().await.unwrap();
    let (status, _) = node.terminate().await;
    assert!(status.success(), "{status}");
}
