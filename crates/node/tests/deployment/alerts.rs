//! The alert rules of `deploy/prometheus` are rules, have tests, and name metrics and pages that exist.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use serde_json::Value;

use crate::{
    expressions::{check_metrics, promtool_rules, said},
    files::{at, documents, list, path, read, text},
};

/// The rules.
pub const RULES: &str = "deploy/prometheus/alerts.yml";
const TESTS: &str = "deploy/prometheus/alerts_test.yml";

fn rules() -> Vec<Value> {
    let file = documents(&read(RULES)).remove(0);
    list(&file, "/groups").iter().flat_map(|group| list(group, "/rules").to_vec()).collect()
}

fn alerts() -> Vec<Value> {
    rules().into_iter().filter(|rule| rule["alert"].is_string()).collect()
}

/// The names of what rules record.
pub fn recorded() -> BTreeSet<String> {
    rules().iter().filter_map(|rule| rule["record"].as_str()).map(str::to_owned).collect()
}

#[test]
fn the_rules_are_what_prometheus_reads() {
    let output = promtool_rules("check", &path(RULES));
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn the_alerts_fire_when_they_are_to() {
    let output = promtool_rules("test", &path(TESTS));
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn a_test_of_an_alert_that_does_not_hold_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let rules = read(RULES).replace("(forebay_shard_owned) == 0", "(forebay_shard_owned) == 1");
    std::fs::write(folder.path().join("alerts.yml"), rules).unwrap();
    // Tests of this alert, in JSON, which is YAML too. All of them take some seconds.
    let mut tests = documents(&read(TESTS)).remove(0);
    let of_alert = |test: &Value| text(test, "/name").starts_with("ForebayShardUnserved ");
    tests["tests"].as_array_mut().unwrap().retain(of_alert);
    let file = folder.path().join("alerts_test.yml");
    std::fs::write(&file, tests.to_string()).unwrap();
    let output = promtool_rules("test", &file);
    assert!(!output.status.success());
    assert!(said(&output).contains("ForebayShardUnserved fires"), "{}", said(&output));
}

#[test]
fn every_alert_fires_in_one_test_and_is_silent_in_another() {
    let tests = documents(&read(TESTS)).remove(0);
    let mut tested: BTreeMap<&str, [BTreeSet<&str>; 2]> = BTreeMap::new();
    for test in list(&tests, "/tests") {
        for case in list(test, "/alert_rule_test") {
            let fires = !list(case, "/exp_alerts").is_empty();
            let of_alert = tested.entry(text(case, "/alertname")).or_default();
            of_alert[usize::from(fires)].insert(text(test, "/name"));
        }
    }
    let alerts = alerts();
    assert!(alerts.len() > 20, "{alerts:?}");
    for alert in &alerts {
        let name = text(alert, "/alert");
        let [silent, fires] = tested.remove(name).unwrap_or_default();
        assert!(!silent.is_empty() && !fires.is_empty(), "{name}: silent in {silent:?}, fires in {fires:?}");
        assert!(silent.is_disjoint(&fires), "{name}: {fires:?}");
    }
    assert!(tested.is_empty(), "there is no such alert: {tested:?}");
}

#[test]
fn rules_name_metrics_that_are_documented() {
    let recorded = recorded();
    for rule in rules() {
        let name = rule["alert"].as_str().or(rule["record"].as_str()).unwrap();
        check_metrics(name, text(&rule, "/expr"), &recorded);
    }
}

#[test]
fn an_alert_says_what_is_wrong_and_what_to_do() {
    let mut names = BTreeSet::new();
    for alert in alerts() {
        let name = text(&alert, "/alert");
        assert!(names.insert(name.to_owned()), "{name} is there twice");
        assert!(["critical", "warning", "info"].contains(&text(&alert, "/labels/severity")), "{name}");
        let description = text(&alert, "/annotations/description");
        assert!(description.contains("`forebay "), "{name}: no command in: {description}");
        assert!(text(&alert, "/annotations/summary").ends_with('.'), "{name}");
    }
}

#[test]
fn an_alert_has_an_entry_in_the_documentation() {
    let page = read("docs/ALERTS.md");
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let anchors: BTreeSet<_> = headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect();
    for alert in alerts() {
        let (file, section) = text(&alert, "/annotations/runbook_url").split_once('#').unwrap();
        assert_eq!(file, "docs/ALERTS.md");
        assert_eq!(section, anchor(text(&alert, "/alert")));
        assert!(anchors.contains(section), "docs/ALERTS.md has no {section}");
    }
}

/// How a link names a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn prometheus_is_given_the_rules() {
    let config = documents(&read("deploy/prometheus/prometheus.yml")).remove(0);
    let compose = documents(&read("docker-compose.yml")).remove(0);
    let mounts = list(&compose, "/services/prometheus/volumes");
    let files = list(&config, "/rule_files").iter().map(|file| file.as_str().unwrap());
    let files: Vec<_> = files.collect();
    assert_eq!(files, [Path::new(RULES).file_name().unwrap().to_str().unwrap()]);
    for file in files {
        let mount = format!("./deploy/prometheus/{file}:/etc/prometheus/{file}:ro");
        assert!(mounts.iter().any(|found| *found == *mount), "{mounts:?}");
    }
    // Rules about whether a node answers name the job.
    assert_eq!(text(at(&config, "/scrape_configs/0"), "/job_name"), "forebay");
}
