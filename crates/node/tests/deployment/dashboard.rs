//! The dashboard of `deploy/grafana` asks for figures that exist, in a language that Prometheus reads.

use std::{collections::BTreeSet, fmt::Write as _};

use serde_json::Value;

use crate::{
    alerts::recorded,
    expressions::{check_metrics, promtool_rules, said},
    files::{documents, list, path, read, text},
};

const DASHBOARDS: &str = "deploy/grafana/dashboards";
/// Variables that Grafana replaces, each with a value that it may have.
const VARIABLES: [(&str, &str); 4] =
    [("$instance", ".*"), ("$namespace", ".*"), ("$topic", ".*"), ("$__rate_interval", "1m")];

/// One question that the dashboard asks, ready for Prometheus.
struct Query {
    /// The panel's title, or the annotation's name.
    of: String,
    /// The expression, with all variables replaced.
    expression: String,
}

fn dashboard() -> Value {
    serde_json::from_str(&read(&format!("{DASHBOARDS}/forebay.json"))).unwrap()
}

/// All of them, in their order.
fn queries() -> Vec<Query> {
    let mut queries = Vec::new();
    collect(&dashboard(), "the dashboard", &mut queries);
    queries
}

fn collect(value: &Value, of: &str, queries: &mut Vec<Query>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, of, queries)),
        Value::Object(fields) => {
            let of = fields.get("title").or(fields.get("name")).and_then(Value::as_str).unwrap_or(of);
            for (name, value) in fields {
                match value.as_str() {
                    Some(expression) if name == "expr" => {
                        queries.push(Query { of: of.to_owned(), expression: replaced(expression) });
                    }
                    _ => collect(value, of, queries),
                }
            }
        }
        _ => {}
    }
}

/// With the values of the variables.
fn replaced(expression: &str) -> String {
    let mut expression = expression.to_owned();
    for (name, value) in VARIABLES {
        expression = expression.replace(name, value);
    }
    expression
}

fn panels(dashboard: &Value) -> impl Iterator<Item = &Value> {
    list(dashboard, "/panels").iter().filter(|panel| panel["type"] != "row")
}

#[test]
fn a_panel_asks_for_metrics_that_are_documented() {
    let queries = queries();
    let recorded = recorded();
    assert!(queries.len() > 30, "{}", queries.len());
    for Query { of, expression } in &queries {
        check_metrics(of, expression, &recorded);
    }
}

#[test]
fn prometheus_reads_what_a_panel_asks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queries.yml");
    // A rule for each, in JSON, which is YAML too.
    let mut rules = "groups: [{ name: queries, rules: [\n".to_owned();
    for (number, Query { of, expression }) in queries().iter().enumerate() {
        assert!(!expression.contains('$'), "{of}: a variable that is not known: {expression}");
        let rule = serde_json::json!({ "record": format!("query:{number}"), "expr": expression });
        writeln!(rules, "{rule},").unwrap();
    }
    let check = |rules: &str| {
        std::fs::write(&file, format!("{rules}] }}]\n")).unwrap();
        promtool_rules("check", &file)
    };
    let output = check(&rules);
    assert!(output.status.success(), "{}", said(&output));
    let output = check(&format!("{rules}{}", r#"{"record":"wrong","expr":"sum(a"}"#));
    assert!(!output.status.success(), "promtool finds nothing");
}

#[test]
fn a_panel_says_what_it_shows_and_asks_the_chosen_source() {
    let dashboard = dashboard();
    let mut ids = BTreeSet::new();
    for panel in list(&dashboard, "/panels") {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        assert!(!text(panel, "/title").is_empty(), "{panel}");
    }
    let variables = list(&dashboard, "/templating/list").iter().map(|variable| text(variable, "/name"));
    assert_eq!(variables.collect::<Vec<_>>(), ["datasource", "instance", "namespace", "topic"]);
    for panel in panels(&dashboard) {
        let title = text(panel, "/title");
        assert!(text(panel, "/description").len() > 10, "{title}");
        for asked in list(panel, "/targets").iter().chain([panel]) {
            assert_eq!(text(asked, "/datasource/uid"), "${datasource}", "{title}");
        }
    }
}

#[test]
fn panels_do_not_cover_each_other() {
    let dashboard = dashboard();
    let mut taken = BTreeSet::new();
    for panel in list(&dashboard, "/panels") {
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|name| panel["gridPos"][name].as_u64().unwrap());
        assert!(x + w <= 24, "{panel}");
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(cell), "{} covers another panel", panel["title"]);
        }
    }
}

#[test]
fn grafana_is_given_the_dashboard() {
    let compose = documents(&read("docker-compose.yml")).remove(0);
    let provisioning = documents(&read("deploy/grafana/provisioning/dashboards/forebay.yml")).remove(0);
    let folder = text(&provisioning, "/providers/0/options/path");
    let mount = format!("./{DASHBOARDS}:{folder}:ro");
    let mounts = list(&compose, "/services/grafana/volumes");
    assert!(mounts.iter().any(|found| *found == *mount), "{mounts:?}");
    for file in std::fs::read_dir(path(DASHBOARDS)).unwrap() {
        let file = std::fs::read_to_string(file.unwrap().path()).unwrap();
        serde_json::from_str::<Value>(&file).unwrap();
    }
}
