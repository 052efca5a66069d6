//! Packages of others are what `deny.toml` allows: their licences, where they come from, and none of those
//! that are named there. `cargo deny` would look at advisories too; it is not needed to build or to test.

use std::{collections::BTreeSet, path::Path, process::Command};

use anyhow::Context as _;
use serde_json::Value;

use super::finding::Finding;

/// The only registry.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Licences and packages that are allowed.
#[derive(Default)]
struct AllowList {
    /// Licences of any package.
    licences: BTreeSet<String>,
    /// Licences of these packages.
    exceptions: BTreeSet<(String, String)>,
    /// Packages that must not be there.
    banned: BTreeSet<String>,
}

/// Holds every package that the workspace needs on this platform against `deny.toml`.
pub fn check(root: &Path) -> anyhow::Result<Vec<Finding>> {
    let path = root.join("deny.toml");
    if !path.exists() {
        return Ok(Vec::new());
    }
    let deny: toml::Table = toml::from_str(&std::fs::read_to_string(&path)?).context("deny.toml")?;
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let arguments = ["metadata", "--format-version=1", "--locked", "--filter-platform", &platform];
    let output = Command::new("cargo").args(arguments).current_dir(root).output()?;
    anyhow::ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let allowed = AllowList::of(&deny);
    let packages = metadata["packages"].as_array().into_iter().flatten();
    Ok(packages.filter(|package| !package["source"].is_null()).filter_map(|it| allowed.finding(it)).collect())
}

impl AllowList {
    fn of(deny: &toml::Table) -> Self {
        let list = |table: &str, key: &str| {
            deny.get(table).and_then(|table| table.get(key)?.as_array().cloned()).unwrap_or_default()
        };
        let text = |value: &toml::Value| value.as_str().unwrap_or_default().to_owned();
        let named = |value: &toml::Value| value.get("crate").map(text).unwrap_or_default();
        let mut exceptions = BTreeSet::new();
        for exception in list("licenses", "exceptions") {
            let licences = exception.get("allow").and_then(toml::Value::as_array);
            let pair = |licence| (named(&exception), text(licence));
            exceptions.extend(licences.into_iter().flatten().map(pair));
        }
        Self {
            licences: list("licenses", "allow").iter().map(text).collect(),
            exceptions,
            banned: list("bans", "deny").iter().map(named).collect(),
        }
    }

    /// Returns the finding on a package, if a rule is broken.
    fn finding(&self, package: &Value) -> Option<Finding> {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let (name, version, licence, source) =
            (text("name"), text("version"), text("license"), text("source"));
        let is_fine = |licence: &str| {
            self.licences.contains(licence)
                || self.exceptions.contains(&(name.to_owned(), licence.to_owned()))
        };
        let wrong = if self.banned.contains(name) {
            format!("{name} {version} is built, and denied")
        } else if source != REGISTRY {
            format!("{name} {version} comes from {source}")
        } else if !holds(licence, is_fine) {
            format!("the licence of {name} {version} is {licence:?}, which is not allowed")
        } else {
            return None;
        };
        let remedy = "take another one, or allow it there".to_owned();
        Some(Finding { path: "deny.toml".to_owned(), line: None, rule: "packages", wrong, remedy })
    }
}

/// Whether an expression of licences can be met with those that are fine.
fn holds(expression: &str, is_fine: impl Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let spaced = spaced.replace(" WITH ", "\0");
    let words: Vec<String> = spaced.split_whitespace().map(|word| word.replace('\0', " WITH ")).collect();
    let mut at = 0;
    any(&words, &mut at, &is_fine) && at == words.len()
}

/// Words up to the end, or to a closing bracket: one of the parts between OR.
fn any(words: &[String], at: &mut usize, is_fine: &impl Fn(&str) -> bool) -> bool {
    let mut found = all(words, at, is_fine);
    while words.get(*at).is_some_and(|word| word == "OR") {
        *at += 1;
        found |= all(words, at, is_fine);
    }
    found
}

/// Each of the parts between AND.
fn all(words: &[String], at: &mut usize, is_fine: &impl Fn(&str) -> bool) -> bool {
    let mut found = true;
    loop {
        let Some(word) = words.get(*at) else { return false };
        *at += 1;
        found &= if word == "(" {
            let inner = any(words, at, is_fine);
            *at += 1;
            inner
        } else {
            is_fine(word)
        };
        if words.get(*at).is_none_or(|word| word != "AND") {
            return found;
        }
        *at += 1;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_expression_holds_if_it_can_be_met() {
        let fine = |licence: &str| ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].contains(&licence);
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "Apache-2.0/MIT",
            "MIT AND ISC",
            "(GPL-3.0 OR MIT) AND ISC",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(holds(good, fine), "{good}");
        }
        for wrong in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND GPL-3.0", "Apache-2.0", "MIT)"] {
            assert!(!holds(wrong, fine), "{wrong}");
        }
    }

    #[test]
    fn what_the_file_denies_is_found() {
        let deny = "[licenses]\nallow = ['MIT']\nexceptions = [{ crate = 'odd', allow = ['NCSA'] }]\n\
                    [bans]\ndeny = [{ crate = 'openssl' }]";
        let allowed = AllowList::of(&toml::from_str(deny).unwrap());
        let wrong = |name: &str, license: Option<&str>, source: &str| {
            let package = json!({ "name": name, "version": "1.0.0", "license": license, "source": source });
            allowed.finding(&package).map(|finding| finding.wrong)
        };
        assert_eq!(wrong("good", Some("MIT"), REGISTRY), None);
        assert_eq!(wrong("odd", Some("NCSA"), REGISTRY), None);
        for (name, licence, source) in [
            ("openssl", Some("MIT"), REGISTRY),
            ("good", Some("NCSA"), REGISTRY),
            ("good", None, REGISTRY),
            ("good", Some("MIT"), "git+https://example.com/good"),
        ] {
            assert!(wrong(name, licence, source).is_some_and(|wrong| wrong.contains(name)));
        }
    }
}
