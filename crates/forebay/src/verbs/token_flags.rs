//! The token that client verbs show.

use std::path::PathBuf;

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
        match token.read() {
            Ok(_) => Ok(Some(token)),
            Err(error) => Err(Failure::usage(format!("{name}: {}", error.message()))),
        }
    }
}

/// The token itself, from the environment.
fn given() -> Option<String> {
    std::env::var(VARIABLE).ok().filter(|text| !text.is_empty())
}
