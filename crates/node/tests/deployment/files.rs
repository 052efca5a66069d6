//! Reads what is deployed: files of the tree, YAML, and a node's configuration with its environment.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use forebay_config::Config;
use serde_json::Value;

/// A stopping node exits within so many seconds, whatever clients and databases do.
pub const STOP_SECONDS: u64 = 25;

/// A path in the tree.
pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// A file of the tree.
pub fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The documents of a YAML text, with its merge keys (`<<`) applied.
pub fn documents(text: &str) -> Vec<Value> {
    let read = |document| {
        let mut yaml: serde_yaml_ng::Value = serde::Deserialize::deserialize(document).unwrap();
        yaml.apply_merge().unwrap();
        serde_json::to_value(yaml).unwrap()
    };
    serde_yaml_ng::Deserializer::from_str(text).map(read).collect()
}

/// The value that `pointer` leads to (RFC 6901). Panics where nothing is there.
#[track_caller]
pub fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or_else(|| panic!("nothing at {pointer} of {value}"))
}

/// The same of a text.
#[track_caller]
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    at(value, pointer).as_str().unwrap_or_else(|| panic!("no text at {pointer} of {value}"))
}

/// The same of a list.
#[track_caller]
pub fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    at(value, pointer).as_array().unwrap_or_else(|| panic!("no list at {pointer} of {value}"))
}

/// The variables that the image sets.
pub fn image_variables() -> BTreeMap<String, String> {
    let dockerfile = read("deploy/Dockerfile").replace("\\\n", " ");
    let (_, last_stage) = dockerfile.rsplit_once("\nFROM ").unwrap();
    let lines = last_stage.lines().filter_map(|line| line.strip_prefix("ENV "));
    let pairs = lines.flat_map(str::split_whitespace).map(|pair| pair.split_once('=').unwrap());
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A node's configuration from a file of the tree, in a container of the image with these variables. Secrets
/// come from the environment, since their files are not on this machine.
pub fn configuration(name: &str, variables: &BTreeMap<String, String>) -> Config {
    let mut all = image_variables();
    all.extend(variables.clone());
    all.insert("FOREBAY_MYSQL_PASSWORD".to_owned(), "secret".to_owned());
    all.insert("FOREBAY_PEER_SECRET".to_owned(), "sixteen-bytes-or-more".to_owned());
    Config::parse(&read(name), all, vec![]).unwrap_or_else(|error| panic!("{name}: {:?}", error.0))
}

/// The files with secrets that a configuration names.
pub fn secret_files(name: &str) -> BTreeSet<String> {
    let table: toml::Table = toml::from_str(&read(name)).unwrap();
    let node = table["node"].as_table().unwrap();
    let files = node.iter().filter(|(key, _)| key.ends_with("_file"));
    files.map(|(_, path)| path.as_str().unwrap().to_owned()).collect()
}
