//! Parts that `topic delete` and `namespace delete` share: the table of the settings and pauses that were
//! removed, and the flags for items.

use std::io::{self, IsTerminal as _};

use clap::Args;
use forebay_client::v1::{NamespaceSettings, Pause};

use super::{bulk::confirm, pauses, settings};
use crate::{
    failure::Failure,
    output::{self, Format, One, Output, Style, Table},
};

/// Flags for items.
#[derive(Args)]
pub struct Force {
    /// Remove its items too, wherever they are, dead letters included: an operation does it
    #[arg(long)]
    pub force: bool,
    /// Remove items without a question
    #[arg(long)]
    yes: bool,
}

impl Force {
    /// Asks before items go: whoever sits at the terminal must say yes. `what`: what they go with.
    pub fn confirm(&self, what: &str, dry_run: bool) -> Result<(), Failure> {
        if !self.force || self.yes || dry_run {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            let message = "this removes items, and there is no terminal to ask: add --yes, or --dry-run";
            return Err(Failure::usage(message));
        }
        confirm(&format!("{what} will be deleted with its items."))
    }
}

/// Prints the answer, or says that there was nothing to remove. `what`: of what.
pub fn print(deleted: &impl One, was_there: bool, what: &str, format: &Format) -> Result<(), Failure> {
    if !was_there {
        format.look.note(&format!("{what} has no items, settings or pauses: nothing was to be done"));
        if !matches!(format.output, Output::Json | Output::Jsonl) {
            return Ok(());
        }
    }
    output::print_one(deleted, format)
}

/// Returns the table of the removed settings and pauses, for people, with the operations that remove items.
pub fn table(
    title: &'static str,
    name: &str,
    own: &NamespaceSettings,
    pauses: &[Pause],
    operations: &[String],
    style: &Style,
) -> Table {
    let mut table = Table::new([title, "", ""]);
    table.row(["name".into(), name.into(), "".into()]);
    settings::add_rows(&mut table, own, own);
    for pause in pauses {
        let since = format!("since {}", style.optional_time(pause.since));
        table.row(["paused".into(), pauses::side_name(pause).into(), since.into()]);
    }
    for operation in operations {
        table.row(["its items".into(), "are removed".into(), format!("operation {operation}").into()]);
    }
    table
}
