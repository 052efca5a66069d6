//! The token of `forebay dev`, where other machines reach it.

use std::path::{Path, PathBuf};

use forebay_access::{Grant, Namespaces, Scopes};
use forebay_config::Config;
use forebay_types::is_loopback;

use super::token;
use crate::failure::Failure;

/// The file of tokens, in the folder of the shards.
const FILE: &str = "tokens.toml";

/// The file of tokens that nodes ask callers for. `None`: only this machine reaches them, or the environment
/// names another file. The first time a token for everything is made, and printed.
pub fn tokens_file(folder: &Path, config: &Config) -> Result<Option<PathBuf>, Failure> {
    let local = [&config.grpc, &config.http].into_iter().all(|address| is_loopback(address));
    if local || config.access.is_on() {
        return Ok(None);
    }
    let path = folder.join(FILE);
    if path.exists() {
        eprintln!("other machines reach this node: calls need a token of {}", path.display());
        return Ok(Some(path));
    }
    let all = Grant { namespaces: Namespaces::All, scopes: Scopes::all() };
    let made = token::create(&path, "made by forebay dev", vec![all], None)?;
    let what = "This one may do everything, and is shown this once:";
    eprintln!("other machines reach this node: calls need a token. {what}\n{}", made.reveal());
    Ok(Some(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_where_others_reach_the_node() {
        let folder = tempfile::tempdir().unwrap();
        let config = |grpc: &str| {
            let flags = vec![("grpc", grpc.into()), ("insecure", true.into())];
            // Whatever variables the test runs with.
            Config::parse("[[shard]]\nid = 1\nurl = \"sqlite://1.db\"", [], flags).unwrap()
        };
        assert_eq!(tokens_file(folder.path(), &config("127.0.0.1:7420")).unwrap(), None);
        let path = tokens_file(folder.path(), &config("0.0.0.0:7420")).unwrap().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(forebay_access::parse(&text).unwrap().len(), 1);
        tokens_file(folder.path(), &config("0.0.0.0:7420")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}
