//! Database URLs.

use forebay_store::{MySqlOptions, MySqlShard};
use forebay_types::ShardId;

use super::values::ShardUrl;

/// Parses a shard's URL. The messages never repeat it, because it may hold a password.
pub fn shard_url(id: ShardId, url: &str) -> Result<ShardUrl, String> {
    if let Some(path) = url.strip_prefix("sqlite://") {
        return match path {
            "" => Err("url must name a file, as in sqlite:///var/lib/forebay/0001.db".to_owned()),
            path => Ok(ShardUrl::Sqlite(path.into())),
        };
    }
    let rest = url.strip_prefix("mysql://").or_else(|| url.strip_prefix("mariadb://"));
    let Some(rest) = rest else { return Err("url must begin with mysql:// or sqlite://".to_owned()) };
    match rest.split_once('/') {
        Some((server, schema)) if !server.is_empty() && !schema.is_empty() => {
            // The driver has rules of its own.
            let opened = MySqlShard::new(id, url, &MySqlOptions::default());
            opened.map_err(|error| format!("url is {}", error.message))?;
            Ok(ShardUrl::MySql(url.to_owned()))
        }
        _ => {
            Err("url must name a server and a schema, as in mysql://forebay@db1:3306/forebay_0001".to_owned())
        }
    }
}
