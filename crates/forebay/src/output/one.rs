//! A single answer: the one way in which all verbs print it.

use std::io::{self, Write as _};

use serde_json::Value;

use super::{
    flags::{Format, Output},
    table::Table,
    text::{Json, visible},
    time::Style,
};
use crate::failure::Failure;

/// An answer to be printed.
pub trait One {
    /// Its name or id.
    fn name(&self) -> String;

    /// The protobuf JSON of its message.
    fn json(&self) -> anyhow::Result<Value>;

    /// It, for people.
    fn table(&self, style: &Style) -> Table;
}

/// Prints an answer.
pub fn print_one(answer: &impl One, format: &Format) -> Result<(), Failure> {
    let line = match format.output {
        Output::Json => format!("{:#}", Json(&answer.json()?)),
        Output::Jsonl => Json(&answer.json()?).to_string(),
        Output::Name => visible(&answer.name()).into_owned(),
        Output::Table | Output::Wide => {
            let style = format.look.style();
            return Ok(answer.table(&style).print(&style)?);
        }
    };
    Ok(writeln!(io::stdout().lock(), "{line}")?)
}
