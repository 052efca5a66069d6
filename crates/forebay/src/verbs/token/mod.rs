//! `forebay token`: tokens of the catalog, through a node, and those of a file.

mod create;
mod file;
mod flags;
mod list;
mod node;
mod rotate;
mod secret_file;

use std::{io::Write as _, path::Path};

use clap::{Args, Subcommand};
use forebay_access::TokenId;
use forebay_config::Config;

pub use self::create::create;
use self::secret_file::SecretFile;
use crate::failure::Failure;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay token create --name admin --bootstrap --config forebay.toml --out admin.token
  forebay token create --name mailer --grant 'team-*:produce,consume' --ends 90d --out mailer.token
  forebay token list --namespace -
  forebay token rotate 0Ab1Cd2Ef3Gh --overlap 24h --namespace -
  forebay token revoke 0Ab1Cd2Ef3Gh --tokens-file tokens.toml")]
pub struct TokenCommand {
    /// The verb.
    #[command(subcommand)]
    verb: TokenVerb,
}

#[derive(Subcommand)]
enum TokenVerb {
    /// Make a token, and print it or write it to a file: it is shown this once
    Create(flags::Create),
    /// List tokens
    List(flags::List),
    /// Give a token another secret, which is shown this once. The one before holds for a while too
    Rotate(flags::Rotate),
    /// Let a token be of no use any more; nodes notice within two seconds
    Revoke(flags::Revoke),
}

impl TokenCommand {
    /// Does it.
    pub async fn run(self) -> Result<(), Failure> {
        match self.verb {
            TokenVerb::Create(flags) => make(flags).await,
            TokenVerb::List(flags) => match &flags.tokens_file {
                Some(path) => list::list(path, &flags.format),
                None => node::list(&flags).await,
            },
            TokenVerb::Rotate(flags) => {
                let out = out(flags.out.as_deref())?;
                let secret = match &flags.tokens_file {
                    Some(path) => rotate::rotate(path, &flags.id, flags.overlap)?.reveal(),
                    None => node::rotate(&flags).await?,
                };
                let before = match flags.overlap.is_zero() {
                    true => "the one before has ended".to_owned(),
                    false => {
                        format!("the one before holds for {}", humantime::format_duration(flags.overlap))
                    }
                };
                show(&format!("token {} has another secret, and {before}", flags.id), &secret, out)
            }
            TokenVerb::Revoke(flags) => {
                let descendants = match &flags.tokens_file {
                    Some(path) => {
                        revoke(path, &flags.id)?;
                        0
                    }
                    None => node::revoke(&flags).await?,
                };
                print(&revoked(&flags.id, descendants, flags.with_descendants))
            }
        }
    }
}

/// Makes a token in a file, in the catalog, or through a node.
async fn make(flags: flags::Create) -> Result<(), Failure> {
    let out = out(flags.out.as_deref())?;
    if flags.bootstrap {
        return bootstrap(&flags.config, &flags.name, out).await;
    }
    if let Some(path) = &flags.tokens_file {
        let token = create(path, &flags.name, flags.grants, flags.ends)?;
        return show(&format!("token {} is in {}", token.id(), path.display()), &token.reveal(), out);
    }
    let made = node::create(flags).await?;
    let id = made.token.unwrap_or_default().id;
    show(&format!("token {id} is in the catalog"), &made.secret, out)
}

/// Writes a token with all rights into the catalog.
async fn bootstrap(path: &Path, name: &str, out: Option<SecretFile>) -> Result<(), Failure> {
    let config = Config::load(path, Vec::new())?;
    let token = create::random()?;
    forebay_operators::cluster::bootstrap(&config, &token.reveal(), name)
        .await
        .map_err(Failure::from_display)?;
    if !config.access.catalog_tokens {
        eprintln!("nodes with this configuration do not accept it: set catalog_tokens = true under [access]");
    }
    show(&format!("token {} is in the catalog and may do everything", token.id()), &token.reveal(), out)
}

/// The file for a secret, if one is named.
fn out(path: Option<&Path>) -> Result<Option<SecretFile>, Failure> {
    path.map(SecretFile::begin).transpose()
}

/// Shows a secret this once, after what was done.
fn show(done: &str, secret: &str, out: Option<SecretFile>) -> Result<(), Failure> {
    match out {
        Some(out) => {
            let path = out.path().display().to_string();
            // Nothing else knows it.
            if let Err(failure) = out.finish(secret) {
                print(secret)?;
                return Err(failure);
            }
            eprintln!("{done}; its secret is in {path}");
            Ok(())
        }
        None => {
            eprintln!("{done}; it is shown this once:");
            print(secret)
        }
    }
}

/// Reports that a token is revoked, from which so many descend.
fn revoked(id: &TokenId, descendants: u32, with_descendants: bool) -> String {
    let tokens = if descendants == 1 { "1 token descends" } else { &format!("{descendants} tokens descend") };
    match (descendants, with_descendants) {
        (0, _) => format!("token {id} is revoked"),
        (_, true) => format!("token {id} is revoked; {tokens} from it, revoked too"),
        (_, false) => format!(
            "token {id} is revoked; {tokens} from it and still hold: revoke them too with --with-descendants"
        ),
    }
}

fn revoke(path: &Path, id: &TokenId) -> Result<(), Failure> {
    file::change(path, |text| {
        let changed = forebay_access::revoke(text, id).map_err(Failure::from_display)?;
        changed.ok_or_else(|| file::no_token(id, path))
    })
}

fn print(line: &str) -> Result<(), Failure> {
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_revokes_a_token_hears_what_descends_from_it() {
        let id = TokenId::new("0Ab1Cd2Ef3Gh").unwrap();
        assert_eq!(revoked(&id, 0, true), "token 0Ab1Cd2Ef3Gh is revoked");
        assert!(revoked(&id, 1, false).ends_with("still hold: revoke them too with --with-descendants"));
        assert!(revoked(&id, 3, true).ends_with("3 tokens descend from it, revoked too"));
    }
}
