//! Results as Markdown tables, each followed by settings.

use std::fmt::Write as _;

use super::format::{number, spread};
use crate::{
    comparison::{CandidateResult, ComparisonResult},
    machine::Machine,
    statistics::{better, metric_names, ratio, summary},
    target::Verdict,
};

/// The machine of the run, in one line.
pub fn machine(machine: &Machine) -> String {
    let properties: Vec<_> =
        machine.properties().into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    format!("{}\n", properties.join(", "))
}

/// The verdicts on the targets.
pub fn verdicts(verdicts: &[Verdict]) -> String {
    let mut text = "## targets\n\n| target | bound | measured | |\n| --- | --- | ---: | --- |\n".to_owned();
    for verdict in verdicts {
        let measured = verdict.measured.as_ref().map(|of| format!("{} {}", spread(of), verdict.unit));
        let measured = measured.unwrap_or_default();
        let why = verdict.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let state = verdict.state.text();
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

/// The results of a comparison.
pub fn write(result: &ComparisonResult) -> String {
    let mut text = format!("## {}\n\n", result.title);
    if let Some(first) = result.candidates.first() {
        text.push_str(&candidates(&result.candidates, first));
    }
    for candidate in &result.candidates {
        let settings: Vec<_> =
            candidate.settings.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let _ = writeln!(text, "- {}: {}", candidate.label, settings.join(", "));
    }
    for candidate in result.candidates.iter().filter(|candidate| !candidate.statements.is_empty()) {
        let _ = writeln!(
            text,
            "\n{}, by statement:\n\n| total ms | count | |\n| ---: | ---: | --- |",
            candidate.label
        );
        for of in &candidate.statements {
            let _ = writeln!(text, "| {:.0} | {} | `{}` |", of.total_ms, of.count, of.text.replace('`', ""));
        }
    }
    for (label, why) in &result.absent {
        let _ = writeln!(text, "- {label} was not measured: {why}");
    }
    text
}

fn candidates(candidates: &[CandidateResult], first: &CandidateResult) -> String {
    let mut text = String::new();
    let names = metric_names(candidates);
    text.push_str("| | OK means |");
    for (name, unit) in &names {
        let _ = write!(text, " {name}, {unit} |");
    }
    let main = names.first().map_or("", |(name, _)| name);
    let compared = candidates.len() > 1;
    if compared {
        // A latency ratio below 1 favours the first candidate, as does a throughput ratio above 1.
        let _ = write!(text, " {main}: {} ÷ this, {} |", first.label, better(candidates, main));
    }
    let _ = writeln!(text, "\n| --- | --- |{}", " ---: |".repeat(names.len() + usize::from(compared)));
    for candidate in candidates {
        let _ = write!(text, "| {} | {} |", candidate.label, candidate.durability);
        for (at, (name, _)) in names.iter().enumerate() {
            let cell = match summary(candidate, name) {
                None => String::new(),
                Some(of) if at == 0 => spread(&of),
                Some(of) => number(of.median),
            };
            let _ = write!(text, " {cell} |");
        }
        if compared {
            let of = ratio(first, candidate, main).filter(|_| candidate.label != first.label);
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
    use crate::round_result::RoundResult;

    fn candidate(label: &str, p99: f64) -> CandidateResult {
        let mut result = RoundResult::default();
        result.add_less_is_better("p99", "ms", p99);
        result.add_more_is_better("throughput", "items/s", 7.0);
        CandidateResult {
            label: label.to_owned(),
            durability: "on disk",
            settings: Vec::new(),
            rounds: vec![result],
            statements: Vec::new(),
        }
    }

    #[test]
    fn a_ratio_says_which_way_is_better() {
        let absent = vec![("nobody".to_owned(), "not found".to_owned())];
        let candidates = vec![candidate("a", 2.0), candidate("b", 4.0)];
        let mut result = ComparisonResult { title: "race".to_owned(), candidates, absent };
        let text = write(&result);
        assert!(text.contains("| throughput, items/s | p99: a ÷ this, less is better |\n"), "{text}");
        assert!(text.contains("| b | on disk | 4.00 (4.00–4.00) | 7.00 | 0.50 (0.50–0.50) |\n"), "{text}");
        assert!(text.contains("| a | on disk | 2.00 (2.00–2.00) | 7.00 |  |\n"), "{text}");
        assert!(text.contains("- nobody was not measured: not found\n"), "{text}");
        result.candidates.pop();
        let text = write(&result);
        assert!(!text.contains('÷') && text.contains("| --- | --- | ---: | ---: |\n"), "{text}");
    }
}
