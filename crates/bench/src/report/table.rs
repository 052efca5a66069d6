//! The result as text: a line an entry, its settings below.

use std::fmt::Write as _;

use super::{
    statistics::{names, ratio, summary},
    words::{number, spread},
};
use crate::{
    contest::{Result, Standing},
    machine::Machine,
    targets::Verdict,
};

/// Where the run is made, in one line.
pub fn machine(machine: &Machine) -> String {
    let facts: Vec<_> = machine.facts().into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    format!("{}\n", facts.join(", "))
}

/// What is said of the targets.
pub fn verdicts(verdicts: &[Verdict]) -> String {
    let mut text = "## targets\n\n| target | bound | measured | |\n| --- | --- | ---: | --- |\n".to_owned();
    for verdict in verdicts {
        let measured = verdict.measured.as_ref().map(|of| format!("{} {}", spread(of), verdict.unit));
        let measured = measured.unwrap_or_default();
        let why = verdict.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let state = verdict.state.words();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {state}{why} |",
            verdict.target,
            verdict.bound,
            measured.trim_end()
        );
    }
    text
}

/// Writes the table in the form of Markdown.
pub fn write(result: &Result) -> String {
    let mut text = format!("## {}\n\n", result.title);
    if let Some(first) = result.standings.first() {
        text.push_str(&standings(&result.standings, first));
    }
    for standing in &result.standings {
        let settings: Vec<_> =
            standing.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let _ = writeln!(text, "- {}: {}", standing.label, settings.join(", "));
    }
    for (label, why) in &result.absent {
        let _ = writeln!(text, "- {label} did not take part: {why}");
    }
    text
}

fn standings(standings: &[Standing], first: &Standing) -> String {
    let mut text = String::new();
    let names = names(standings);
    text.push_str("| | OK means |");
    for (name, unit) in &names {
        let _ = write!(text, " {name}, {unit} |");
    }
    let main = names.first().map_or("", |(name, _)| name);
    let _ = writeln!(text, " ratio of {main} |");
    let _ = writeln!(text, "| --- | --- |{}", " ---: |".repeat(names.len() + 1));
    for standing in standings {
        let _ = write!(text, "| {} | {} |", standing.label, standing.promise);
        for (at, (name, _)) in names.iter().enumerate() {
            let cell = match summary(standing, name) {
                None => String::new(),
                Some(of) if at == 0 => spread(&of),
                Some(of) => number(of.median),
            };
            let _ = write!(text, " {cell} |");
        }
        let cell = match ratio(first, standing, main) {
            Some(of) if standing.label != first.label => spread(&of),
            _ => String::new(),
        };
        let _ = writeln!(text, " {cell} |");
    }
    text.push('\n');
    text
}
