//! `forebay settings export`

use std::io::{self, Write as _};

use clap::Args;
use forebay_client::SettingsEntry;
use forebay_proto::v1;

use crate::{failure::Failure, output, verbs::connection::Connection};

/// The most entries of one page.
const PAGE: u32 = 1_000;
/// How often it is begun anew because settings change meanwhile.
const TRIES_MAX: u32 = 5;

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay settings export --namespace shop
  forebay settings export --namespace - > settings.json")]
pub struct Export {
    /// Server and namespace; `-`: all namespaces.
    #[command(flatten)]
    connection: Connection,
}

impl Export {
    /// Prints the document. Its pages are of one moment.
    pub async fn run(self) -> Result<(), Failure> {
        let client = self.connection.client().await?;
        for _ in 0..TRIES_MAX {
            let mut page = client.export_settings(PAGE, String::new()).await?;
            let (version, mut entries) = (page.version, page.entries);
            while let (Some(token), true) = (page.next.take(), page.version == version) {
                page = client.export_settings(PAGE, token).await?;
                entries.append(&mut page.entries);
            }
            if page.version == version {
                return print(entries);
            }
        }
        Err(Failure::new("the settings change again and again: try it later"))
    }
}

fn print(entries: Vec<SettingsEntry>) -> Result<(), Failure> {
    let entries = entries.into_iter().map(v1::SettingsEntry::from);
    let entries = entries.map(|entry| output::to_json("SettingsEntry", &entry));
    let entries = entries.collect::<anyhow::Result<Vec<_>>>()?;
    writeln!(io::stdout().lock(), "{:#}", serde_json::json!({ "entries": entries }))?;
    Ok(())
}
