//! `forebay whoami`

use clap::Args;
use forebay_client::Caller;
use serde_json::Value;

use super::connection::Connection;
use crate::{
    failure::Failure,
    output::{self, Cell, Format, One, Style, Table},
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
        output::print_one(&caller, &self.format)
    }
}

impl One for Caller {
    fn name(&self) -> String {
        self.id.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("WhoAmIResponse", &output::caller(self))
    }

    fn table(&self, style: &Style) -> Table {
        let grants = self.grants.iter().map(|it| format!("{}:{}", it.namespaces, it.scopes.join(",")));
        let grants = grants.collect::<Vec<_>>().join(" ");
        let ends = style.optional_time(self.ends_at).into();
        let mut table = Table::new(["KIND", "ID", "ENDS", "NAME", "GRANTS"]);
        table.row([self.kind.into(), dash(&self.id), ends, dash(&self.name), dash(&grants)]);
        table
    }
}

fn dash(text: &str) -> Cell {
    if text.is_empty() { "-".into() } else { text.into() }
}
