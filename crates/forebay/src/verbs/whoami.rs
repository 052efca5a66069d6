//! `forebay whoami`

use std::io::Write as _;

use clap::Args;
use forebay_client::Caller;
use serde_json::Value;

use super::connection::Connection;
use crate::{
    failure::Failure,
    output::{self, Cell, Column, Format, List, Output, Row},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay whoami
  forebay whoami --token-file token --output json")]
pub struct WhoAmI {
    /// Which node is asked.
    #[command(flatten)]
    connection: Connection,
    /// How the answer is printed.
    #[command(flatten)]
    format: Format,
}

impl WhoAmI {
    /// Prints as whom the node knows the caller, and what the caller may do.
    pub async fn run(self) -> Result<(), Failure> {
        let caller = self.connection.client().await?.who_am_i().await?;
        let line = match self.format.output {
            Output::Json => format!("{:#}", caller.json()?),
            Output::Jsonl => caller.json()?.to_string(),
            table => return List::all("callers", &[caller]).print(table, &self.format.look),
        };
        Ok(writeln!(std::io::stdout().lock(), "{line}")?)
    }
}

impl Row for Caller {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("KIND", |caller, _| caller.kind.into()),
        Column::new("ID", |caller, _| dash(&caller.id)),
        Column::new("ENDS", |caller, style| style.optional_time(caller.ends_at).into()),
        Column::new("NAME", |caller, _| dash(&caller.name)),
        Column::new("GRANTS", |caller, _| {
            let grants = caller.grants.iter().map(|it| format!("{}:{}", it.namespaces, it.scopes.join(",")));
            dash(&grants.collect::<Vec<_>>().join(" "))
        }),
    ];

    fn name(&self) -> String {
        self.id.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("WhoAmIResponse", &output::caller(self))
    }
}

fn dash(text: &str) -> Cell {
    if text.is_empty() { "-".into() } else { text.into() }
}
