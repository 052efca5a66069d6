//! The tables and lists of the page.

use std::{collections::BTreeSet, fmt::Write as _};

use crate::{
    contest::{Result, Standing},
    report::{
        escape::escape,
        statistics::{Summary, better, memory, names, ratio, summary},
        words::number,
    },
    targets::{State, Verdict},
};

/// Names and values.
pub fn pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = "<dl>\n".to_owned();
    for (name, value) in pairs {
        let _ = writeln!(text, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
    }
    text.push_str("</dl>\n");
    text
}

/// A line a target.
pub fn verdicts(verdicts: &[Verdict]) -> String {
    let count = |state| verdicts.iter().filter(|verdict| verdict.state == state).count();
    let (met, missed) = (count(State::Met), count(State::Missed));
    let (reported, not) = (count(State::Reported), count(State::NotMeasured));
    let mut text = "<section id=\"targets\">\n<h2>Targets</h2>\n".to_owned();
    let _ =
        writeln!(text, "<p>{met} met, {missed} missed, {reported} reported only, {not} not measured.</p>");
    // The verdict stands second, so that a phone shows it without scrolling.
    text.push_str("<div class=\"scroll\"><table>\n<thead><tr><th>target</th><th class=\"left\">verdict</th>");
    text.push_str("<th>measured<small>median, spread</small></th>");
    text.push_str("<th class=\"left\">bound</th></tr></thead>\n<tbody>\n");
    for verdict in verdicts {
        let measured = verdict.measured.as_ref().map_or_else(String::new, |of| {
            let median = format!("{} {}", number(of.median), verdict.unit);
            format!("{}<small>{}–{}</small>", escape(median.trim_end()), number(of.least), number(of.most))
        });
        let class = match verdict.state {
            State::Met => "left met",
            State::Missed => "left missed",
            State::Reported | State::NotMeasured => "left",
        };
        // The title of the contest, which the lines share, stands back behind what is compared.
        let (contest, what) = verdict.target.split_once(": ").unwrap_or(("", &verdict.target));
        let why = verdict.why.iter().map(|why| format!("<small>{}</small>", escape(why))).collect::<String>();
        let _ = write!(text, "<tr><th>{}<small>{}</small></th>", escape(what), escape(contest));
        let _ = write!(text, "<td class=\"{class}\">{}{why}</td>", verdict.state.words());
        let _ = writeln!(text, "<td>{measured}</td><td class=\"left\">{}</td></tr>", escape(&verdict.bound));
    }
    text.push_str("</tbody></table></div>\n</section>\n");
    text
}

/// A line an entry, a column a figure.
pub fn standings(result: &Result) -> String {
    let Some(first) = result.standings.first() else { return "<p>Nothing was measured.</p>\n".to_owned() };
    let names = names(&result.standings);
    let main = names.first().map_or("", |(name, _)| name);
    let compared = result.standings.len() > 1;
    let mut text = "<div class=\"scroll\"><table>\n<thead><tr><th></th>".to_owned();
    for (at, (name, unit)) in names.iter().enumerate() {
        let _ = write!(text, "<th>{}<small>{}</small></th>", escape(name), escape(unit));
        if at == 0 && compared {
            let better = better(&result.standings, main);
            let _ = write!(text, "<th>ratio<small>first ÷ this, {better}</small></th>");
        }
    }
    text.push_str("<th class=\"left\">memory<small>MiB</small></th></tr></thead>\n<tbody>\n");
    for (line, standing) in result.standings.iter().enumerate() {
        let (label, promise) = (escape(&standing.label), escape(standing.promise));
        let _ = write!(text, "<tr><th>{label}<small>OK means {promise}</small></th>");
        for (at, (name, _)) in names.iter().enumerate() {
            text.push_str(&cell(summary(standing, name)));
            if at == 0 && compared {
                text.push_str(&cell(ratio(first, standing, main).filter(|_| line > 0)));
            }
        }
        let _ = writeln!(text, "<td class=\"left\">{}</td></tr>", memories(standing));
    }
    let rounds = result.standings.iter().map(|standing| standing.rounds.len()).max().unwrap_or(0);
    let _ = write!(
        text,
        "</tbody></table></div>\n<p class=\"note\">Rounds: {rounds}. Each figure is their median, and below it \
         stands what they spread over. "
    );
    if compared {
        let (name, first) = (escape(main), escape(&first.label));
        let better = better(&result.standings, main);
        let _ = write!(
            text,
            "The ratio is the {name} of {first} by that of the line, round by round; {better}, of it as of the \
             {name}. "
        );
    }
    text.push_str("What OK means: a confirmed item is on disk, or only soon will be.</p>\n");
    text
}

fn cell(of: Option<Summary>) -> String {
    let Some(Summary { median, least, most }) = of else { return "<td></td>".to_owned() };
    format!("<td>{}<small>{}–{}</small></td>", number(median), number(least), number(most))
}

fn memories(standing: &Standing) -> String {
    let roles: BTreeSet<_> = standing.rounds.iter().flat_map(|round| round.usage.memory.keys()).collect();
    let of = |role: &&str| Some(format!("{} {:.0}", escape(role), memory(standing, role)?.median));
    roles.into_iter().filter_map(of).collect::<Vec<_>>().join("<br>")
}

/// Who could not take part.
pub fn absent(result: &Result) -> String {
    if result.absent.is_empty() {
        return String::new();
    }
    let mut text = "<ul class=\"absent\">\n".to_owned();
    for (label, why) in &result.absent {
        let _ = writeln!(text, "<li><b>{}</b> did not take part: {}</li>", escape(label), escape(why));
    }
    text.push_str("</ul>\n");
    text
}

/// What each was set to.
pub fn settings(result: &Result) -> String {
    if result.standings.is_empty() {
        return String::new();
    }
    let mut text = "<details>\n<summary>Settings</summary>\n".to_owned();
    for standing in &result.standings {
        let _ = writeln!(text, "<h3>{}</h3>", escape(&standing.label));
        text.push_str(&pairs(standing.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()))));
    }
    text.push_str("</details>\n");
    text
}
