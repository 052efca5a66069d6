//! Prints what a document changes: a line for each setting.

use std::io::{self, Write as _};

use forebay_client::v1::{ApplySettingsResponse, SettingsDifference};

use crate::{
    failure::Failure,
    output::{self, Cell, Format, Output, Table},
    verbs::settings::values,
};

/// Prints them.
pub fn print(applied: &ApplySettingsResponse, format: &Format) -> Result<(), Failure> {
    match format.output {
        Output::Json | Output::Jsonl => {
            let rows = applied.differences.iter().map(|it| output::to_json("SettingsDifference", it));
            let rest = vec![("version", applied.version.to_string().into())];
            let rows = rows.collect::<anyhow::Result<Vec<_>>>()?;
            return output::print_json(format.output, "differences", rows, rest);
        }
        Output::Name => {
            let mut out = io::stdout().lock();
            applied.differences.iter().try_for_each(|it| {
                writeln!(out, "{} {}", output::visible(&it.namespace), output::visible(&it.topic))
            })?;
        }
        Output::Table | Output::Wide if applied.differences.is_empty() => {
            format.look.note("all is set so already");
        }
        Output::Table | Output::Wide => {
            let mut table = Table::new(["NAMESPACE", "TOPIC", "SETTING", "BEFORE", "AFTER"]);
            applied.differences.iter().for_each(|difference| rows(&mut table, difference));
            table.print(&format.look.style())?;
        }
    }
    Ok(())
}

fn rows(table: &mut Table, difference: &SettingsDifference) {
    let before = values(&difference.before.unwrap_or_default());
    let after = values(&difference.after.unwrap_or_default());
    for ((name, before), (_, after)) in before.into_iter().zip(after).filter(|(one, other)| one != other) {
        let cell = |value: Option<String>| Cell::from(value.unwrap_or_else(|| "-".to_owned()));
        table.row([
            Cell::from(&difference.namespace),
            Cell::from(&difference.topic),
            name.into(),
            cell(before),
            cell(after),
        ]);
    }
}
