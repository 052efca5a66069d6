//! `forebay whoami`

use clap::Args;
use forebay_client::v1::{WhoAmIRequest, WhoAmIResponse};
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
        let caller = self.connection.client().await?.ask(WhoAmIRequest {}).await?;
        output::print_one(&caller, &self.format)
    }
}

impl One for WhoAmIResponse {
    fn name(&self) -> String {
        self.id.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("WhoAmIResponse", self)
    }

    fn table(&self, style: &Style) -> Table {
        let grants = self.grants.iter().map(|it| format!("{}:{}", it.namespaces, it.scopes.join(",")));
        let grants = grants.collect::<Vec<_>>().join(" ");
        let ends = style.optional_time(self.ends_at).into();
        let mut table = Table::new(["KIND", "ID", "ENDS", "NAME", "GRANTS"]);
        let kind = output::word(self.kind().as_str_name(), "PRINCIPAL_KIND_");
        table.row([kind.into(), dash(&self.id), ends, dash(&self.name), dash(&grants)]);
        table
    }
}

fn dash(text: &str) -> Cell {
    if text.is_empty() { "-".into() } else { text.into() }
}
