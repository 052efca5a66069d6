//! Prints what a document changes: a line for each setting.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use forebay_client::{AppliedSettings, SettingsDifference, TopicSettings};

use crate::{
    failure::Failure,
    output::{self, Cell, Format, Output, Table},
};

/// Prints them.
pub fn print(applied: &AppliedSettings, format: &Format) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match format.output {
        Output::Json | Output::Jsonl => {
            let document = output::to_json("ApplySettingsResponse", &output::applied(applied))?;
            match format.output {
                Output::Json => writeln!(out, "{document:#}")?,
                _ => writeln!(out, "{document}")?,
            }
        }
        Output::Name => applied.differences.iter().try_for_each(|it| {
            writeln!(out, "{} {}", output::visible(&it.namespace), output::visible(&it.topic))
        })?,
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
    let before = values(difference.before.unwrap_or_default());
    let after = values(difference.after.unwrap_or_default());
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

/// The settings by name, as they are shown.
fn values(settings: TopicSettings) -> [(&'static str, Option<String>); 5] {
    let span = |span: Duration| humantime::format_duration(span).to_string();
    let kept = |time: Duration| if time.is_zero() { "for ever".to_owned() } else { span(time) };
    [
        ("default lease", settings.default_lease.map(span)),
        ("default max attempts", settings.default_max_attempts.map(|number| number.to_string())),
        ("retry delay", settings.retry_delay.map(span)),
        ("dead letter retention", settings.dead_letter_retention.map(kept)),
        ("dedupe window", settings.dedupe_window.map(span)),
    ]
}
