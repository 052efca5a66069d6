//! The token that client verbs show.

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use clap::Args;
use forebay_client::Token;

use crate::{contexts::Context, failure::Failure};

/// Holds the token itself. There is no flag for it: others see the arguments of a process.
const VARIABLE: &str = "FOREBAY_TOKEN";

/// Where the token is.
#[derive(Args, Default)]
pub struct TokenFlags {
    /// A file with the token to show, where nodes ask for one; or the token itself in FOREBAY_TOKEN
    #[arg(long, env = "FOREBAY_TOKEN_FILE", value_name = "FILE", help_heading = "Server")]
    token_file: Option<PathBuf>,
    /// Show the token to servers on other machines without TLS too: whoever is on the way can use it then
    #[arg(long, env = "FOREBAY_CLIENT_INSECURE", help_heading = "Server")]
    insecure: bool,
}

impl TokenFlags {
    /// The same with what a context says where neither a flag nor a variable does.
    pub fn or(&self, context: &Context) -> Self {
        let of_context = || context.token_file.clone().filter(|_| given().is_none());
        Self {
            token_file: self.token_file.clone().or_else(of_context),
            insecure: self.insecure || context.insecure,
        }
    }

    /// Whether the token may go to other machines without TLS.
    pub fn is_insecure(&self) -> bool {
        self.insecure
    }

    /// The token. `None`: none is shown.
    pub fn token(&self) -> Result<Option<Token>, Failure> {
        let (token, name) = match (&self.token_file, given()) {
            (Some(path), _) => (Token::File(path.clone()), "--token-file"),
            (None, Some(text)) => (Token::Given(text), VARIABLE),
            (None, None) => return Ok(None),
        };
        if let Err(error) = token.read() {
            return Err(Failure::usage(format!("{name}: {}", error.message())));
        }
        if let Token::File(path) = &token
            && let Some(mode) = exposed_mode(path)
        {
            let path = path.display();
            eprintln!("warning: others can read the token in {path} (mode {mode:04o}): chmod 600 {path}");
        }
        Ok(Some(token))
    }
}

/// The mode of a file of this account's that other accounts can read or change, as ssh looks at keys.
fn exposed_mode(path: &Path) -> Option<u32> {
    let file = std::fs::metadata(path).ok()?;
    let mode = file.mode() & 0o777;
    // The file of another account was mounted so, as the secrets of a container are.
    let is_own = file.uid() == rustix::process::geteuid().as_raw();
    (file.is_file() && is_own && mode & 0o077 != 0).then_some(mode)
}

/// The token itself, from the environment.
fn given() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_that_others_can_read_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "fby1_x").unwrap();
        let with = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            exposed_mode(&path)
        };
        assert_eq!([0o600, 0o400, 0o644, 0o640].map(with), [None, None, Some(0o644), Some(0o640)]);
        assert_eq!(exposed_mode(folder.path()), None);
        assert_eq!(exposed_mode(&path.join("none")), None);
    }
}
