//! `forebay settings export`

use clap::Args;
use forebay_client::v1::{ExportSettingsRequest, SettingsEntry};

use crate::{
    failure::{Failure, Status},
    output::{self, Output},
    verbs::{connection::Connection, pages},
};

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
            // Entries of another version would not fit to those before them, so the list ends there.
            let (mut version, mut is_whole) = (None, true);
            let pages = pages::collect(u32::MAX, async |page_size, page_token| {
                let namespace = client.namespace().to_owned();
                let page = client.ask(ExportSettingsRequest { namespace, page_size, page_token }).await?;
                is_whole = *version.get_or_insert(page.version) == page.version;
                Ok((page.entries, if is_whole { page.next_page_token } else { String::new() }))
            });
            let (entries, _) = pages.await?;
            if is_whole {
                return print(&entries);
            }
        }
        let why = "the settings change again and again: try it later";
        Err(Failure::new(why).with(Status::Unavailable))
    }
}

fn print(entries: &[SettingsEntry]) -> Result<(), Failure> {
    let entries = entries.iter().map(|entry| output::to_json("SettingsEntry", entry));
    output::print_json(Output::Json, "entries", entries.collect::<anyhow::Result<Vec<_>>>()?, Vec::new())
}
