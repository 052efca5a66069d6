//! Tables and lists of the page.

use std::{collections::BTreeSet, fmt::Write as _};

use crate::{
    comparison::{CandidateResult, ComparisonResult},
    report::{escape::escape, format::number},
    statistics::{Summary, better, memory, metric_names, ratio, summary},
    target::{State, Verdict},
};

/// A list of names and values.
pub fn pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = "<dl>\n".to_owned();
    for (name, value) in pairs {
        let _ = writeln!(text, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
    }
    text.push_str("</dl>\n");
    text
}

/// A table with one row per target.
pub fn verdicts(verdicts: &[Verdict]) -> String {
    let count = |state| verdicts.iter().filter(|verdict| verdict.state == state).count();
    let (met, missed) = (count(State::Met), count(State::Missed));
    let (reported, not) = (count(State::Reported), count(State::NotMeasured));
    let mut text = "<section id=\"targets\">\n<h2>Targets</h2>\n".to_owned();
    let _ =
        writeln!(text, "<p>{met} met, {missed} missed, {reported} reported only, {not} not measured.</p>");
    // The verdict is the second column, so that a phone shows it without scrolling.
    text.push_str("<div class=\"scroll\"><table>\n<thead><tr><th>target</th><th class=\"left\">verdict</th>");
    text.push_str("<th>measured<small>median, spread</small></th>");
    text.push_str("<th class=\"left\">bound</th></tr></thead>\n<tbody>\n");
    for verdict in verdicts {
        let measured = verdict.measured.as_ref().map_or_else(String::new, |of| {
            let median = format!("{} {}", number(of.median), verdict.unit);
            format!("{}<small>{}–{}</small>", escape(median.trim_end()), number(of.min), number(of.max))
        });
        let class = match verdict.state {
            State::Met => "left met",
            State::Missed => "left missed",
            State::Reported | State::NotMeasured => "left",
        };
        // Rows share the title of the comparison, so it is less prominent.
        let (comparison, what) = verdict.target.split_once(": ").unwrap_or(("", &verdict.target));
        let why = verdict.why.iter().map(|why| format!("<small>{}</small>", escape(why))).collect::<String>();
        let _ = write!(text, "<tr><th>{}<small>{}</small></th>", escape(what), escape(comparison));
        let _ = write!(text, "<td class=\"{class}\">{}{why}</td>", verdict.state.text());
        let _ = writeln!(text, "<td>{measured}</td><td class=\"left\">{}</td></tr>", escape(&verdict.bound));
    }
    text.push_str("</tbody></table></div>\n</section>\n");
    text
}

/// A table with one row per candidate and one column per metric.
pub fn candidates(result: &ComparisonResult) -> String {
    let Some(first) = result.candidates.first() else { return "<p>Nothing was measured.</p>\n".to_owned() };
    let names = metric_names(&result.candidates);
    let main = names.first().map_or("", |(name, _)| name);
    let compared = result.candidates.len() > 1;
    let mut text = "<div class=\"scroll\"><table>\n<thead><tr><th></th>".to_owned();
    for (at, (name, unit)) in names.iter().enumerate() {
        let _ = write!(text, "<th>{}<small>{}</small></th>", escape(name), escape(unit));
        if at == 0 && compared {
            let better = better(&result.candidates, main);
            let _ = write!(text, "<th>ratio<small>first ÷ this, {better}</small></th>");
        }
    }
    text.push_str("<th class=\"left\">memory<small>MiB</small></th></tr></thead>\n<tbody>\n");
    for (row, candidate) in result.candidates.iter().enumerate() {
        let (label, durability) = (escape(&candidate.label), escape(candidate.durability));
        let _ = write!(text, "<tr><th>{label}<small>OK means {durability}</small></th>");
        for (at, (name, _)) in names.iter().enumerate() {
            text.push_str(&cell(summary(candidate, name)));
            if at == 0 && compared {
                text.push_str(&cell(ratio(first, candidate, main).filter(|_| row > 0)));
            }
        }
        let _ = writeln!(text, "<td class=\"left\">{}</td></tr>", memories(candidate));
    }
    let rounds = result.candidates.iter().map(|candidate| candidate.rounds.len()).max().unwrap_or(0);
    let _ = write!(
        text,
        "</tbody></table></div>\n<p class=\"note\">Rounds: {rounds}. Each value is the median of the rounds, \
         with minimum and maximum below it. "
    );
    if compared {
        let (name, first) = (escape(main), escape(&first.label));
        let better = better(&result.candidates, main);
        let _ = write!(
            text,
            "The ratio is the {name} of {first} divided by the {name} of the row, round by round; \
             {better}. "
        );
    }
    text.push_str("OK means: a confirmed item is on disk, or will soon be on disk.</p>\n");
    text
}

fn cell(of: Option<Summary>) -> String {
    let Some(Summary { median, min, max }) = of else { return "<td></td>".to_owned() };
    format!("<td>{}<small>{}–{}</small></td>", number(median), number(min), number(max))
}

fn memories(candidate: &CandidateResult) -> String {
    let roles: BTreeSet<_> = candidate.rounds.iter().flat_map(|round| round.usage.memory.keys()).collect();
    let of = |role: &&str| Some(format!("{} {:.0}", escape(role), memory(candidate, role)?.median));
    roles.into_iter().filter_map(of).collect::<Vec<_>>().join("<br>")
}

/// Candidates without a result.
pub fn absent(result: &ComparisonResult) -> String {
    if result.absent.is_empty() {
        return String::new();
    }
    let mut text = "<ul class=\"absent\">\n".to_owned();
    for (label, why) in &result.absent {
        let _ = writeln!(text, "<li><b>{}</b> was not measured: {}</li>", escape(label), escape(why));
    }
    text.push_str("</ul>\n");
    text
}

/// The settings of each candidate.
pub fn settings(result: &ComparisonResult) -> String {
    if result.candidates.is_empty() {
        return String::new();
    }
    let mut text = "<details>\n<summary>Settings</summary>\n".to_owned();
    for candidate in &result.candidates {
        let _ = writeln!(text, "<h3>{}</h3>", escape(&candidate.label));
        text.push_str(&pairs(candidate.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()))));
    }
    text.push_str("</details>\n");
    text
}
