//! `forebay context list`

use clap::Args;
use serde_json::{Value, json};

use crate::{
    contexts::{Context, Contexts},
    failure::Failure,
    output::{Cell, Column, Format, List, Row},
};

/// The flags.
#[derive(Args)]
#[command(after_help = "\
Examples:
  forebay context list
  forebay context list -o name")]
pub struct ListContexts {
    /// How the list is printed.
    #[command(flatten)]
    format: Format,
}

impl ListContexts {
    /// Lists the contexts by name.
    pub fn run(self) -> Result<(), Failure> {
        let Contexts { current, context } = Contexts::load()?;
        let named = |(name, context)| {
            let is_current = current.as_ref() == Some(&name);
            NamedContext { name, context, is_current }
        };
        let rows: Vec<_> = context.into_iter().map(named).collect();
        List { field: "contexts", rows: &rows, rest: Vec::new() }.print(self.format.output, &self.format.look)
    }
}

/// A context with its name.
struct NamedContext {
    /// The name.
    name: String,
    /// The context.
    context: Context,
    /// Whether it holds where no other is named.
    is_current: bool,
}

impl Row for NamedContext {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("CONTEXT", |row, _| Cell::from(&row.name)),
        Column::new("CURRENT", |row, _| if row.is_current { "yes" } else { "" }.into()),
        Column::new("SERVERS", |row, _| row.context.addr.join(",").into()),
        Column::new("NAMESPACE", |row, _| row.context.namespace.clone().unwrap_or_default().into()),
    ];

    fn name(&self) -> String {
        self.name.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        let mut value = serde_json::to_value(&self.context)?;
        value["name"] = json!(self.name);
        value["current"] = json!(self.is_current);
        Ok(value)
    }
}
