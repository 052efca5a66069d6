//! The result as text: a line an entry, its settings below.

use std::fmt::Write as _;

use super::{
    statistics::{better, names, ratio, summary},
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
    for standing in result.standings.iter().filter(|standing| !standing.statements.is_empty()) {
        let _ = writeln!(
            text,
            "\n{}, by statement:\n\n| ms in all | times | |\n| ---: | ---: | --- |",
            standing.label
        );
        for of in &standing.statements {
            let _ = writeln!(text, "| {:.0} | {} | `{}` |", of.total_ms, of.count, of.text.replace('`', ""));
        }
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
    let compared = standings.len() > 1;
    if compared {
        // For a latency a ratio below 1 is in favour of the first, for a throughput one above 1.
        let _ = write!(text, " {main}: {} ÷ this, {} |", first.label, better(standings, main));
    }
    let _ = writeln!(text, "\n| --- | --- |{}", " ---: |".repeat(names.len() + usize::from(compared)));
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
        if compared {
            let of = ratio(first, standing, main).filter(|_| standing.label != first.label);
            let _ = write!(text, " {} |", of.as_ref().map(spread).unwrap_or_default());
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    fn standing(label: &str, p99: f64) -> Standing {
        let mut outcome = Outcome::default();
        outcome.less("p99", "ms", p99);
        outcome.more("throughput", "items/s", 7.0);
        Standing {
            label: label.to_owned(),
            promise: "on disk",
            settings: Vec::new(),
            rounds: vec![outcome],
            statements: Vec::new(),
        }
    }

    #[test]
    fn a_ratio_says_which_way_is_better() {
        let absent = vec![("nobody".to_owned(), "not found".to_owned())];
        let standings = vec![standing("a", 2.0), standing("b", 4.0)];
        let mut result = Result { title: "race".to_owned(), standings, absent };
        let text = write(&result);
        assert!(text.contains("| throughput, items/s | p99: a ÷ this, less is better |\n"), "{text}");
        assert!(text.contains("| b | on disk | 4.00 (4.00–4.00) | 7.00 | 0.50 (0.50–0.50) |\n"), "{text}");
        assert!(text.contains("| a | on disk | 2.00 (2.00–2.00) | 7.00 |  |\n"), "{text}");
        assert!(text.contains("- nobody did not take part: not found\n"), "{text}");
        result.standings.pop();
        let text = write(&result);
        assert!(!text.contains('÷') && text.contains("| --- | --- | ---: | ---: |\n"), "{text}");
    }
}
