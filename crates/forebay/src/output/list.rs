//! Lists: the one way in which all verbs print their entries.

use std::io::{self, Write as _};

use serde_json::{Map, Value};

use super::{
    flags::{Look, Output},
    table::{Cell, Table},
    text::{Json, visible},
    time::Style,
};
use crate::failure::Failure;

/// A column of a table.
pub struct Column<T> {
    /// Its head, in capitals.
    head: &'static str,
    /// Only `wide` shows it.
    wide: bool,
    /// Makes its cell of an entry.
    cell: fn(&T, &Style) -> Cell,
}

impl<T> Column<T> {
    /// A column of every table.
    pub const fn new(head: &'static str, cell: fn(&T, &Style) -> Cell) -> Self {
        Self { head, wide: false, cell }
    }

    /// A column that only `wide` shows.
    pub const fn wide(head: &'static str, cell: fn(&T, &Style) -> Cell) -> Self {
        Self { wide: true, ..Self::new(head, cell) }
    }
}

/// Entry of a list.
pub trait Row: Sized + 'static {
    /// The columns of its table.
    const COLUMNS: &'static [Column<Self>];

    /// Its name or id. Empty: it has none, and `name` leaves it out.
    fn name(&self) -> String;

    /// The protobuf JSON of its message.
    fn json(&self) -> anyhow::Result<Value>;
}

/// A list to be printed.
pub struct List<'a, T> {
    /// The field of the answer that has the entries.
    pub field: &'static str,
    /// The entries.
    pub rows: &'a [T],
    /// The answer's other fields, in JSON alone.
    pub rest: Vec<(&'static str, Value)>,
}

impl<'a, T: Row> List<'a, T> {
    /// All that there are.
    pub fn all(field: &'static str, rows: &'a [T]) -> Self {
        Self::up_to(field, rows, "")
    }

    /// A list that may go on: with a token, there is more.
    pub fn up_to(field: &'static str, rows: &'a [T], next_page_token: &str) -> Self {
        Self { field, rows, rest: vec![("nextPageToken", next_page_token.into())] }
    }

    /// Prints it.
    pub fn print(self, output: Output, look: &Look) -> Result<(), Failure> {
        let columns = || T::COLUMNS.iter().filter(|column| output == Output::Wide || !column.wide);
        match output {
            Output::Table | Output::Wide => {
                let style = look.style();
                let mut table = Table::new(columns().map(|column| column.head));
                self.rows
                    .iter()
                    .for_each(|row| table.row(columns().map(|column| (column.cell)(row, &style))));
                Ok(table.print(&style)?)
            }
            Output::Json | Output::Jsonl => {
                let rows = self.rows.iter().map(Row::json).collect::<anyhow::Result<Vec<_>>>()?;
                print_json(output, self.field, rows, self.rest)
            }
            Output::Name => {
                let mut out = io::BufWriter::new(io::stdout().lock());
                for name in self.rows.iter().map(Row::name).filter(|name| !name.is_empty()) {
                    writeln!(out, "{}", visible(&name))?;
                }
                Ok(out.flush()?)
            }
        }
    }
}

/// Prints entries as one document, or as one a line.
pub fn print_json(
    output: Output,
    field: &'static str,
    rows: Vec<Value>,
    rest: Vec<(&'static str, Value)>,
) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    if output == Output::Jsonl {
        rows.iter().try_for_each(|row| writeln!(out, "{}", Json(row)))?;
        return Ok(out.flush()?);
    }
    let mut document = Map::new();
    document.insert(field.to_owned(), rows.into());
    document.extend(rest.into_iter().map(|(field, value)| (field.to_owned(), value)));
    writeln!(out, "{:#}", Json(&document.into()))?;
    Ok(out.flush()?)
}
