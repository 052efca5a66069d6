//! `forebay token`: the file of tokens.

mod create;
mod file;
mod list;
mod rotate;

use std::{io::Write as _, path::PathBuf, time::Duration};

use clap::{Args, Subcommand};
use forebay_access::{Grant, TokenId};

pub use self::create::create;
use crate::{failure::Failure, output::Format};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay token create --name admin --grant '*:all' --tokens-file /etc/forebay/tokens.toml
  forebay token create --name mailer --grant 'team-*:produce,consume' --ends 365d --tokens-file tokens.toml
  forebay token list --tokens-file tokens.toml
  forebay token rotate 0Ab1Cd2Ef3Gh --overlap 24h --tokens-file tokens.toml
  forebay token revoke 0Ab1Cd2Ef3Gh --tokens-file tokens.toml")]
pub struct TokenCommand {
    /// What is done.
    #[command(subcommand)]
    verb: TokenVerb,
}

#[derive(Subcommand)]
enum TokenVerb {
    /// Make a token, add its hash to the file of tokens, and print it: it is shown this once
    #[command(after_help = "\
Examples:
  forebay token create --name admin --grant '*:all' --tokens-file /etc/forebay/tokens.toml
  forebay token create --name mailer --grant 'team-*:produce,consume' --ends 365d --tokens-file tokens.toml")]
    Create {
        /// Who gets it, for people
        #[arg(long, value_name = "NAME")]
        name: String,
        /// Rights in namespaces, as in team-*:produce,consume or *:all; may be given several times. The
        /// rights are produce, consume, observe, inspect, operate, admin and metrics
        #[arg(long = "grant", required = true, value_name = "NAMESPACES:RIGHTS")]
        grants: Vec<Grant>,
        /// For how long it is of use, as in 365d; without it for ever
        #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
        ends: Option<Duration>,
        /// The file of tokens, which nodes have as access.tokens_file; created if missing
        #[arg(long, value_name = "FILE")]
        tokens_file: PathBuf,
    },
    /// List the tokens of the file
    #[command(after_help = "\
Examples:
  forebay token list --tokens-file tokens.toml
  forebay token list --tokens-file tokens.toml -o json")]
    List {
        /// The file of tokens
        #[arg(long, value_name = "FILE")]
        tokens_file: PathBuf,
        /// How the list is printed
        #[command(flatten)]
        format: Format,
    },
    /// Give a token another secret, and print it: it is shown this once. The one before holds for a while too
    #[command(after_help = "\
Examples:
  forebay token rotate 0Ab1Cd2Ef3Gh --overlap 24h --tokens-file tokens.toml > new.token
  forebay token rotate 0Ab1Cd2Ef3Gh --overlap 0s --tokens-file tokens.toml")]
    Rotate {
        /// The token's id
        #[arg(value_parser = id)]
        id: TokenId,
        /// For how long the secret of before holds too, as in 24h; with 0s it ends at once
        #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
        overlap: Duration,
        /// The file of tokens
        #[arg(long, value_name = "FILE")]
        tokens_file: PathBuf,
    },
    /// Let a token be of no use any more; nodes notice within two seconds
    #[command(after_help = "\
Examples:
  forebay token revoke 0Ab1Cd2Ef3Gh --tokens-file tokens.toml")]
    Revoke {
        /// The token's id
        #[arg(value_parser = id)]
        id: TokenId,
        /// The file of tokens
        #[arg(long, value_name = "FILE")]
        tokens_file: PathBuf,
    },
}

impl TokenCommand {
    /// Does it.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            TokenVerb::Create { name, grants, ends, tokens_file } => {
                let token = create(&tokens_file, &name, grants, ends)?;
                eprintln!("token {} is in {}; it is shown this once:", token.id(), tokens_file.display());
                Ok(writeln!(std::io::stdout().lock(), "{}", token.reveal())?)
            }
            TokenVerb::List { tokens_file, format } => list::list(&tokens_file, &format),
            TokenVerb::Rotate { id, overlap, tokens_file } => {
                let token = rotate::rotate(&tokens_file, &id, overlap)?;
                let before = match overlap.is_zero() {
                    true => "the one before has ended".to_owned(),
                    false => format!("the one before holds for {}", humantime::format_duration(overlap)),
                };
                eprintln!("token {id} has another secret, and {before}; it is shown this once:");
                Ok(writeln!(std::io::stdout().lock(), "{}", token.reveal())?)
            }
            TokenVerb::Revoke { id, tokens_file } => {
                file::change(&tokens_file, |text| {
                    let changed = forebay_access::revoke(text, &id).map_err(Failure::from_display)?;
                    changed.ok_or_else(|| file::no_token(&id, &tokens_file))
                })?;
                Ok(writeln!(std::io::stdout().lock(), "token {id} is revoked")?)
            }
        }
    }
}

fn id(text: &str) -> Result<TokenId, String> {
    TokenId::new(text).ok_or_else(|| "an id has 12 letters and digits".to_owned())
}
