//! The members of the workspace, from their manifests.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use toml::{Table, Value};

/// One crate of the workspace.
pub struct Member {
    /// The package's name.
    pub name: String,
    /// Its folder, as seen from the tree's root.
    pub folder: PathBuf,
    /// Dependencies that its manifest lists, in all sections.
    pub dependencies: Vec<Dependency>,
    /// The files that its manifest names as targets, as seen from the tree's root.
    pub targets: Vec<PathBuf>,
}

/// One line of a manifest.
pub struct Dependency {
    /// The name by which the member's code knows it, with `-`.
    pub name: String,
    /// The package that it is, if the manifest says so; else as the name.
    pub package: String,
    /// For what it is there.
    pub section: Section,
    /// The manifest's line, from 1.
    pub line: usize,
}

/// A section of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// `[dependencies]`
    Normal,
    /// `[dev-dependencies]`
    Dev,
}

impl Section {
    /// Its name in a manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "dependencies",
            Self::Dev => "dev-dependencies",
        }
    }
}

impl Member {
    /// The manifest, as seen from the tree's root.
    pub fn manifest(&self) -> String {
        self.folder.join("Cargo.toml").display().to_string()
    }
}

/// The members of the workspace at `root`, by name.
pub fn members(root: &Path) -> anyhow::Result<Vec<Member>> {
    let workspace = read(&root.join("Cargo.toml"))?.1;
    let workspace = workspace.get("workspace").context("Cargo.toml has no [workspace]")?;
    let mut members = Vec::new();
    for pattern in strings(workspace.get("members")) {
        for folder in folders(root, &pattern)? {
            members.push(member(root, folder, workspace)?);
        }
    }
    members.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(members)
}

/// The folders with a manifest that a pattern names: one folder, or `folder/*`.
fn folders(root: &Path, pattern: &str) -> anyhow::Result<Vec<PathBuf>> {
    let Some(parent) = pattern.strip_suffix("/*") else {
        return Ok(vec![pattern.into()]);
    };
    let mut folders = Vec::new();
    for entry in fs::read_dir(root.join(parent)).with_context(|| format!("{parent} can't be listed"))? {
        let folder = Path::new(parent).join(entry?.file_name());
        if root.join(&folder).join("Cargo.toml").exists() {
            folders.push(folder);
        }
    }
    folders.sort();
    Ok(folders)
}

fn member(root: &Path, folder: PathBuf, workspace: &Value) -> anyhow::Result<Member> {
    let path = root.join(&folder).join("Cargo.toml");
    let (text, manifest) = read(&path)?;
    let name = manifest.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
    let name = name.with_context(|| format!("{} names no package", path.display()))?.to_owned();
    let mut targets = Vec::new();
    for key in ["lib", "bin", "test", "example", "bench"] {
        let named = match manifest.get(key) {
            Some(Value::Array(several)) => several.iter().collect(),
            Some(one) => vec![one],
            None => Vec::new(),
        };
        let paths = named.iter().filter_map(|target| target.get("path")?.as_str());
        targets.extend(paths.map(|path| folder.join(path)));
    }
    let dependencies = dependencies(&text, &manifest, workspace);
    Ok(Member { name, folder, dependencies, targets })
}

fn dependencies(text: &str, manifest: &Table, workspace: &Value) -> Vec<Dependency> {
    let platforms = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let tables = platforms.filter_map(|(_, platform)| platform.as_table());
    let mut dependencies = Vec::new();
    for table in std::iter::once(manifest).chain(tables) {
        for section in [Section::Normal, Section::Dev] {
            let Some(listed) = table.get(section.name()).and_then(Value::as_table) else { continue };
            dependencies.extend(listed.iter().map(|(name, value)| Dependency {
                name: name.clone(),
                package: package(name, value, workspace),
                section,
                line: line_of(text, section, name),
            }));
        }
    }
    dependencies
}

/// The package that a dependency stands for, which may have another name.
fn package(name: &str, value: &Value, workspace: &Value) -> String {
    let inherited = value.get("workspace").and_then(Value::as_bool) == Some(true);
    let shared = workspace.get("dependencies").and_then(|shared| shared.get(name));
    let said = if inherited { shared } else { Some(value) };
    let package = said.and_then(|said| said.get("package")).and_then(Value::as_str);
    package.unwrap_or(name).to_owned()
}

/// Where the dependency stands, for the reader; the manifest's first line if it is written unusually.
fn line_of(text: &str, section: Section, name: &str) -> usize {
    let heading = format!("{}]", section.name());
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix('[') {
            inside = rest == heading || rest.ends_with(&format!(".{heading}"));
        }
        let rest = line.strip_prefix(name);
        if inside && rest.is_some_and(|rest| rest.starts_with([' ', '=', '.'])) {
            return index + 1;
        }
    }
    1
}

fn read(path: &Path) -> anyhow::Result<(String, Table)> {
    let text = fs::read_to_string(path).with_context(|| format!("{} can't be read", path.display()))?;
    let table = text.parse().with_context(|| format!("{} is not TOML", path.display()))?;
    Ok((text, table))
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let values = value.and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::fixture::Fixture;

    #[test]
    fn members_are_listed_with_what_they_depend_on() {
        let fixture = Fixture::new()
            .workspace_dependency("renamed = { package = \"other-name\", version = \"1\" }")
            .member("b", "[dependencies]\nserde = \"1\"\nrenamed.workspace = true\n")
            .member(
                "a",
                "[dev-dependencies]\nrand = \"1\"\n[target.'cfg(unix)'.dependencies]\nnix = \"1\"\n",
            );
        let members = members(fixture.root()).unwrap();
        let listed = members.iter().flat_map(|member| {
            let dependencies = member.dependencies.iter();
            dependencies.map(|it| (member.name.as_str(), it.package.as_str(), it.section, it.line))
        });
        let mut listed: Vec<_> = listed.collect();
        listed.sort_by_key(|(member, package, _, _)| (*member, *package));
        let expected = [
            ("a", "nix", Section::Normal, 6),
            ("a", "rand", Section::Dev, 4),
            ("b", "other-name", Section::Normal, 5),
            ("b", "serde", Section::Normal, 4),
        ];
        assert_eq!(listed, expected);
    }
}
