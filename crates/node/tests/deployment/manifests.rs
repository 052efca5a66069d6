//! Reads the manifests of `deploy/k8s-insecure`, and holds each against the type of its kind.

use std::fmt::Debug;

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::Job,
    core::v1::{Namespace, Secret, Service},
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::files::{documents, path, read, text};

/// The folder of the manifests.
pub const FOLDER: &str = "deploy/k8s-insecure";

/// The manifests of the folder with their files' names: all but the one for kustomize itself.
pub fn all() -> Vec<(String, Value)> {
    let mut manifests = Vec::new();
    for entry in std::fs::read_dir(path(FOLDER)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".yaml") && name != "kustomization.yaml" {
            let documents = documents(&read(&format!("{FOLDER}/{name}")));
            manifests.extend(documents.into_iter().map(|document| (name.clone(), document)));
        }
    }
    manifests
}

/// The manifest of this kind and name.
pub fn one(kind: &str, name: &str) -> Value {
    let mut found = all().into_iter().map(|(_, manifest)| manifest);
    let is = |manifest: &Value| text(manifest, "/kind") == kind && text(manifest, "/metadata/name") == name;
    found.find(is).unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// Fails on a field of a wrong type, and on one that the kind does not have.
fn check(manifest: &Value) -> Result<(), String> {
    match text(manifest, "/kind") {
        "Job" => round_trip::<Job>(manifest),
        "Namespace" => round_trip::<Namespace>(manifest),
        "NetworkPolicy" => round_trip::<NetworkPolicy>(manifest),
        "PodDisruptionBudget" => round_trip::<PodDisruptionBudget>(manifest),
        "Secret" => round_trip::<Secret>(manifest),
        "Service" => round_trip::<Service>(manifest),
        "StatefulSet" => round_trip::<StatefulSet>(manifest),
        other => Err(format!("no type for the kind {other}: give it one here")),
    }
}

/// Unknown fields are dropped by the type, so they are missing in what it writes.
fn round_trip<T: DeserializeOwned + Serialize + Debug>(manifest: &Value) -> Result<(), String> {
    let typed: T = serde_json::from_value(manifest.clone()).map_err(|error| error.to_string())?;
    let written = serde_json::to_value(&typed).map_err(|error| error.to_string())?;
    if written == *manifest { Ok(()) } else { Err(format!("{manifest} is read as {written}")) }
}

#[test]
fn every_manifest_is_what_kubernetes_reads() {
    let all = all();
    assert!(all.len() > 6, "{all:?}");
    for (file, manifest) in &all {
        check(manifest).unwrap_or_else(|wrong| panic!("{file}: {wrong}"));
    }
}

#[test]
fn a_wrong_manifest_is_found() {
    let good = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": "x" },
        "spec": { "maxUnavailable": 1 },
    });
    check(&good).unwrap();
    for (pointer, wrong) in [
        ("/apiVersion", json!("policy/v2")),
        ("/kind", json!("DisruptionBudget")),
        ("/spec", json!({ "maxUnavailable": true })),
        ("/spec", json!({ "maxUnavailable": 1, "minUnavailable": 1 })),
    ] {
        let mut manifest = good.clone();
        *manifest.pointer_mut(pointer).unwrap() = wrong;
        check(&manifest).unwrap_err();
    }
}

#[test]
fn kustomize_is_told_of_every_manifest() {
    let kustomization = &documents(&read(&format!("{FOLDER}/kustomization.yaml")))[0];
    let listed = |pointer: &str| -> Vec<String> {
        let list = crate::files::list(kustomization, pointer).iter();
        list.map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let mut resources = listed("/resources");
    // An example is not applied.
    resources.push("secret-example.yaml".to_owned());
    let mut files: Vec<_> = all().into_iter().map(|(file, _)| file).collect();
    files.dedup();
    resources.sort();
    files.sort();
    assert_eq!(resources, files);
    for file in listed("/configMapGenerator/0/files") {
        assert!(path(FOLDER).join(&file).exists(), "{file}");
    }
    assert_eq!(text(kustomization, "/namespace"), text(&one("Namespace", "forebay"), "/metadata/name"));
}
