//! The plots of a contest: what it is about, and what that costs.

use std::fmt::Write as _;

use crate::{
    contest::{Result, Standing},
    report::{
        escape::escape,
        palette::{FIRST, OTHER, QUANTILES, Shade, role},
        plot::{Bar, Row, Scale, draw},
        statistics::{names, summary},
        words::number,
    },
};

const QUANTILE_NAMES: [&str; 3] = ["p50", "p99", "p99.9"];
/// In these units figures tell CPU time by role.
const CPU_UNITS: [&str; 2] = ["CPU µs/item", "% of a core"];
const MARKS: &str = "Bars are medians, dots are rounds, and lines join the least with the most.";

/// All plots of a contest.
pub fn of(result: &Result) -> anyhow::Result<String> {
    let names = names(&result.standings);
    let Some(&main) = names.first() else { return Ok(String::new()) };
    let mut text = "<div class=\"plots\">\n".to_owned();
    let about_times = QUANTILE_NAMES.iter().all(|quantile| names.iter().any(|(name, _)| name == quantile));
    let about_cpu = CPU_UNITS.contains(&main.1);
    if about_times {
        text.push_str(&quantiles(&result.standings, main.1)?);
    } else if !about_cpu {
        text.push_str(&bars(&result.standings, main)?);
    }
    let cpu = names.iter().find(|(_, unit)| CPU_UNITS.contains(unit));
    if let Some((_, unit)) = cpu {
        let roles: Vec<_> = names.iter().filter(|(_, of)| of == unit).map(|(name, _)| *name).collect();
        text.push_str(&stacks(&result.standings, unit, &roles)?);
    }
    text.push_str("</div>\n");
    Ok(text)
}

fn bars(standings: &[Standing], (name, unit): (&'static str, &'static str)) -> anyhow::Result<String> {
    let row = |(at, standing): (usize, &Standing)| {
        let shade = if at == 0 { FIRST } else { OTHER };
        let value = summary(standing, name).map(|of| number(of.median)).unwrap_or_default();
        Row { label: standing.label.clone(), value, bars: vec![bar(standing, name, shade)] }
    };
    let rows: Vec<_> = standings.iter().enumerate().map(row).collect();
    figure(name, unit, Scale::Linear, &rows, &[])
}

fn quantiles(standings: &[Standing], unit: &str) -> anyhow::Result<String> {
    let row = |standing: &Standing| {
        let median = |name| summary(standing, name).map(|of| number(of.median)).unwrap_or_default();
        Row {
            label: standing.label.clone(),
            value: QUANTILE_NAMES.map(median).join(" · "),
            bars: QUANTILE_NAMES
                .iter()
                .zip(QUANTILES)
                .map(|(name, shade)| bar(standing, name, shade))
                .collect(),
        }
    };
    let rows: Vec<_> = standings.iter().map(row).collect();
    let legend: Vec<_> = QUANTILE_NAMES.into_iter().zip(QUANTILES).collect();
    figure("times", unit, Scale::Logarithmic, &rows, &legend)
}

fn stacks(standings: &[Standing], unit: &str, roles: &[&'static str]) -> anyhow::Result<String> {
    // The load comes last: it is what the measurement costs, not what is measured.
    let mut roles = roles.to_vec();
    roles.sort_by_key(|name| {
        ["node", "broker", "database"].iter().position(|known| known == name).unwrap_or(3)
    });
    let row = |standing: &Standing| {
        let median = |name: &&'static str| Some((role(name), summary(standing, name)?.median));
        let stretches: Vec<_> = roles.iter().filter_map(median).collect();
        let value = number(stretches.iter().map(|(_, median)| median).sum());
        let bar = Bar { stretches, spread: None, rounds: Vec::new() };
        Row { label: standing.label.clone(), value, bars: vec![bar] }
    };
    let rows: Vec<_> = standings.iter().map(row).collect();
    let legend: Vec<_> = roles.iter().map(|name| (*name, role(name))).collect();
    figure("CPU time by role", unit, Scale::Linear, &rows, &legend)
}

fn bar(standing: &Standing, name: &str, shade: Shade) -> Bar {
    let of = summary(standing, name);
    Bar {
        stretches: of.map(|of| (shade, of.median)).into_iter().collect(),
        spread: of,
        rounds: standing.rounds.iter().filter_map(|round| Some(round.figure(name)?.value)).collect(),
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
        let _ = write!(text, "<span>{MARKS}</span>");
    }
    let _ = write!(text, "</p>\n{}</figure>\n", draw(&format!("{title}, {unit}"), unit, scale, rows)?);
    Ok(text)
}
