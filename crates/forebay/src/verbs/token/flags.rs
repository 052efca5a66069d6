//! The flags of `forebay token`.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use forebay_access::{Grant, TokenId};

use crate::{output::Format, parse, verbs::connection::Connection};

/// The flags of `forebay token create`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay token create --name admin --bootstrap --config forebay.toml --out admin.token
  forebay token create --name mailer --grant 'team-*:produce,consume' --ends 90d --out mailer.token
  forebay token create --name admin --grant '*:all' --tokens-file tokens.toml --out admin.token")]
pub struct Create {
    /// The node that makes it. Without --namespace: where the grants are.
    #[command(flatten)]
    pub connection: Connection,
    /// Name of the holder, for people
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Rights in namespaces, as in team-*:produce,consume or *:all; may be given several times. The
    /// rights are produce, consume, observe, inspect, operate, admin and metrics
    #[arg(long = "grant", required_unless_present = "bootstrap", value_name = "NAMESPACES:RIGHTS")]
    pub grants: Vec<Grant>,
    /// For how long it is of use, as in 90d; without it 365 days, or in a file for ever. It ends no later
    /// than the token that makes it
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub ends: Option<Duration>,
    /// Why, for the audit record
    #[arg(long, value_name = "TEXT", value_parser = parse::free_text(), default_value = "")]
    #[arg(hide_default_value = true)]
    pub reason: String,
    /// Add it to this file, which nodes have as access.tokens_file, and ask no node; created if missing
    #[arg(long, value_name = "FILE")]
    pub tokens_file: Option<PathBuf>,
    /// Write the token to this file, which nobody else can read, and do not print it
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write a token with all rights straight into the catalog of --config, and ask no node: the first one
    #[arg(long, conflicts_with_all = ["grants", "ends", "tokens_file", "reason"])]
    pub bootstrap: bool,
    /// The configuration file, which names the catalog
    #[arg(long, env = "FOREBAY_CONFIG", default_value = "forebay.toml", value_name = "FILE")]
    pub config: PathBuf,
}

/// The flags of `forebay token list`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay token list --namespace -
  forebay token list --tokens-file tokens.toml -o json")]
pub struct List {
    /// Server and namespace: those whose rights lie in it.
    #[command(flatten)]
    pub connection: Connection,
    /// List those of this file, and ask no node
    #[arg(long, value_name = "FILE")]
    pub tokens_file: Option<PathBuf>,
    /// The most tokens to list
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// How the list is printed
    #[command(flatten)]
    pub format: Format,
}

/// The flags of `forebay token rotate`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay token rotate 0Ab1Cd2Ef3Gh --overlap 24h --namespace - --out new.token
  forebay token rotate 0Ab1Cd2Ef3Gh --overlap 0s --tokens-file tokens.toml")]
pub struct Rotate {
    /// Server and namespace: where the rights of the token lie.
    #[command(flatten)]
    pub connection: Connection,
    /// The token's id
    #[arg(value_parser = id)]
    pub id: TokenId,
    /// For how long the secret of before holds too, as in 24h; with 0s it ends at once
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub overlap: Duration,
    /// Why, for the audit record
    #[arg(long, value_name = "TEXT", value_parser = parse::free_text(), default_value = "")]
    #[arg(hide_default_value = true)]
    pub reason: String,
    /// Change it in this file, and ask no node
    #[arg(long, value_name = "FILE")]
    pub tokens_file: Option<PathBuf>,
    /// Write the secret to this file, which nobody else can read, and do not print it
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// The flags of `forebay token revoke`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay token revoke 0Ab1Cd2Ef3Gh --namespace - --reason 'it was in a log'
  forebay token revoke 0Ab1Cd2Ef3Gh --namespace - --with-descendants
  forebay token revoke 0Ab1Cd2Ef3Gh --tokens-file tokens.toml")]
pub struct Revoke {
    /// Server and namespace: where the rights of the token lie.
    #[command(flatten)]
    pub connection: Connection,
    /// The token's id
    #[arg(value_parser = id)]
    pub id: TokenId,
    /// Why, for the audit record
    #[arg(long, value_name = "TEXT", value_parser = parse::free_text(), default_value = "")]
    #[arg(hide_default_value = true)]
    pub reason: String,
    /// Revoke the tokens too that it made, those that these made, and so on
    #[arg(long, conflicts_with = "tokens_file")]
    pub with_descendants: bool,
    /// Change it in this file, and ask no node
    #[arg(long, value_name = "FILE")]
    pub tokens_file: Option<PathBuf>,
}

fn id(text: &str) -> Result<TokenId, String> {
    TokenId::new(text).ok_or_else(|| "an id has 12 letters and digits".to_owned())
}
