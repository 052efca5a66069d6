//! The plots of a comparison: its main metric, and CPU time by role.

use std::fmt::Write as _;

use crate::{
    comparison::{CandidateResult, ComparisonResult},
    report::{
        escape::escape,
        format::number,
        palette::{FIRST, OTHER, QUANTILES, Shade, role},
        plot::{Bar, Row, Scale, draw},
    },
    statistics::{metric_names, summary},
};

const QUANTILE_NAMES: [&str; 3] = ["p50", "p99", "p99.9"];
/// Units of CPU time by role.
const CPU_UNITS: [&str; 2] = ["CPU µs/item", "% of a core"];
const LEGEND_NOTE: &str = "Bars are medians, dots are rounds, and lines join minimum and maximum.";

/// All plots of a comparison.
pub fn of(result: &ComparisonResult) -> anyhow::Result<String> {
    let names = metric_names(&result.candidates);
    let Some(&main) = names.first() else { return Ok(String::new()) };
    let mut text = "<div class=\"plots\">\n".to_owned();
    let about_times = QUANTILE_NAMES.iter().all(|quantile| names.iter().any(|(name, _)| name == quantile));
    let about_cpu = CPU_UNITS.contains(&main.1);
    if about_times {
        text.push_str(&quantiles(&result.candidates, main.1)?);
    } else if !about_cpu {
        text.push_str(&bars(&result.candidates, main)?);
    }
    let cpu = names.iter().find(|(_, unit)| CPU_UNITS.contains(unit));
    if let Some((_, unit)) = cpu {
        let roles: Vec<_> = names.iter().filter(|(_, of)| of == unit).map(|(name, _)| *name).collect();
        text.push_str(&stacks(&result.candidates, unit, &roles)?);
    }
    text.push_str("</div>\n");
    Ok(text)
}

fn bars(
    candidates: &[CandidateResult],
    (name, unit): (&'static str, &'static str),
) -> anyhow::Result<String> {
    let row = |(at, candidate): (usize, &CandidateResult)| {
        let shade = if at == 0 { FIRST } else { OTHER };
        let value = summary(candidate, name).map(|of| number(of.median)).unwrap_or_default();
        Row { label: candidate.label.clone(), value, bars: vec![bar(candidate, name, shade)] }
    };
    let rows: Vec<_> = candidates.iter().enumerate().map(row).collect();
    figure(name, unit, Scale::Linear, &rows, &[])
}

fn quantiles(candidates: &[CandidateResult], unit: &str) -> anyhow::Result<String> {
    let row = |candidate: &CandidateResult| {
        let median = |name| summary(candidate, name).map(|of| number(of.median)).unwrap_or_default();
        Row {
            label: candidate.label.clone(),
            value: QUANTILE_NAMES.map(median).join(" · "),
            bars: QUANTILE_NAMES
                .iter()
                .zip(QUANTILES)
                .map(|(name, shade)| bar(candidate, name, shade))
                .collect(),
        }
    };
    let rows: Vec<_> = candidates.iter().map(row).collect();
    let legend: Vec<_> = QUANTILE_NAMES.into_iter().zip(QUANTILES).collect();
    figure("times", unit, Scale::Logarithmic, &rows, &legend)
}

fn stacks(candidates: &[CandidateResult], unit: &str, roles: &[&'static str]) -> anyhow::Result<String> {
    // The load comes last: it is the cost of the measurement.
    let mut roles = roles.to_vec();
    roles.sort_by_key(|name| {
        ["node", "broker", "database"].iter().position(|known| known == name).unwrap_or(3)
    });
    let row = |candidate: &CandidateResult| {
        let median = |name: &&'static str| Some((role(name), summary(candidate, name)?.median));
        let segments: Vec<_> = roles.iter().filter_map(median).collect();
        let value = number(segments.iter().map(|(_, median)| median).sum());
        let bar = Bar { segments, spread: None, rounds: Vec::new() };
        Row { label: candidate.label.clone(), value, bars: vec![bar] }
    };
    let rows: Vec<_> = candidates.iter().map(row).collect();
    let legend: Vec<_> = roles.iter().map(|name| (*name, role(name))).collect();
    figure("CPU time by role", unit, Scale::Linear, &rows, &legend)
}

fn bar(candidate: &CandidateResult, name: &str, shade: Shade) -> Bar {
    let of = summary(candidate, name);
    Bar {
        segments: of.map(|of| (shade, of.median)).into_iter().collect(),
        spread: of,
        rounds: candidate.rounds.iter().filter_map(|round| Some(round.metric(name)?.value)).collect(),
    }
}

fn figure(
    title: &str,
    unit: &str,
    scale: Scale,
    rows: &[Row],
    legend: &[(&str, Shade)],
) -> anyhow::Result<String> {
    let mut text = format!("<figure>\n<h3>{}, {}</h3>\n<p class=\"legend\">", escape(title), escape(unit));
    for (name, shade) in legend {
        let _ = write!(
            text,
            "<span><i style=\"background:var({})\"></i>{}</span>",
            shade.variable(),
            escape(name)
        );
    }
    if rows.iter().flat_map(|row| &row.bars).any(|bar| bar.spread.is_some()) {
        let _ = write!(text, "<span>{LEGEND_NOTE}</span>");
    }
    let _ = write!(text, "</p>\n{}</figure>\n", draw(&format!("{title}, {unit}"), unit, scale, rows)?);
    Ok(text)
}
