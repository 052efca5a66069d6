//! Named servers, in a file of the user's configuration folder that only the user can read.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use forebay_access::toml_error;
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Status};

/// Settings for some servers. A setting that is absent has its usual default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// The addresses of the servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addr: Vec<String>,
    /// The namespace of calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The file with the authorities of servers' certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// The file with the certificate that is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    /// The file with its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// The name that servers' certificates are for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// The file with the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// The token may go to other machines without TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
}

/// The file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contexts {
    /// The name of the one that holds if no other is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// By name.
    #[serde(default)]
    pub context: BTreeMap<String, Context>,
}

impl Contexts {
    /// Reads the file, if there is one.
    pub fn load() -> Result<Self, Failure> {
        let Some(path) = path() else { return Ok(Self::default()) };
        let wrong = |why: String| Failure::new(format!("{}: {why}", path.display()));
        match fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).map_err(|error| wrong(toml_error(&text, &error))),
            Err(error) if is_absent(&error) => Ok(Self::default()),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// Replaces the file.
    pub fn save(&self) -> Result<(), Failure> {
        let path = path().ok_or_else(|| Failure::new("neither XDG_CONFIG_HOME nor HOME is set"))?;
        let text = toml::to_string(self).map_err(anyhow::Error::from)?;
        write(&path, &text).map_err(|error| Failure::new(format!("cannot write {}: {error}", path.display())))
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Result<&Context, Failure> {
        self.context.get(name).ok_or_else(|| {
            let line =
                format!("there is no context {name}; `forebay context list` shows those that there are");
            Failure::new(line).with(Status::NotThere)
        })
    }
}

/// The context of this name, or else the current one, if there is any.
pub fn chosen(name: Option<&str>) -> Result<Context, Failure> {
    let contexts = Contexts::load()?;
    match name.or(contexts.current.as_deref()) {
        Some(name) => contexts.get(name).cloned(),
        None => Ok(Context::default()),
    }
}

fn path() -> Option<PathBuf> {
    let folder = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(folder.join("forebay").join("contexts.toml"))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Writes the file at once or not at all, for the user alone.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o600))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
