//! The targets of `docs/PERFORMANCE.md`: the comparisons that they need, and a verdict on each target.

mod list;

use anyhow::{Context as _, ensure};
use forebay_servers::locate;

use self::list::Section;
use crate::{
    comparison::{Candidate, Comparison, ComparisonResult},
    database::Database,
    report::table,
    setup::CommonSettings,
    target::Verdict,
};

/// The results of a run of the targets.
#[derive(Debug)]
pub struct TargetResults {
    /// One result per comparison.
    pub comparisons: Vec<ComparisonResult>,
    /// One verdict per target.
    pub verdicts: Vec<Verdict>,
    /// Comparisons that failed, with the reason.
    pub failures: Vec<String>,
}

/// Runs the comparisons that the targets need, and prints each result. `only` selects targets by their title.
pub async fn run(common: &CommonSettings, only: Option<&str>) -> anyhow::Result<TargetResults> {
    let sections = selected(list::sections(common), only);
    ensure!(!sections.is_empty(), "--only: no title of a target contains {:?}", only.unwrap_or_default());
    let mut results = TargetResults { comparisons: Vec::new(), verdicts: Vec::new(), failures: Vec::new() };
    for mut section in sections {
        let absent = without_server(&mut section.comparison);
        let mut result = match section.comparison.run().await {
            Ok(result) => result,
            // Comparisons take hours in total, so a failure does not end the others.
            Err(why) => {
                results.failures.push(format!("{}: {why:#}", section.comparison.title));
                failed(&section.comparison, &format!("{why:#}"))
            }
        };
        result.absent.extend(absent);
        println!("{}", table::write(&result));
        results.verdicts.extend(section.targets.iter().map(|target| target.evaluate(&result)));
        results.comparisons.push(result);
    }
    Ok(results)
}

/// Reduces the sections to the selected targets, and to the entries that these need.
fn selected(sections: Vec<Section>, only: Option<&str>) -> Vec<Section> {
    let Some(only) = only.map(str::to_lowercase) else { return sections };
    let select = |mut section: Section| {
        section.targets.retain(|target| target.title.to_lowercase().contains(&only));
        let targets = &section.targets;
        section
            .comparison
            .entries
            .retain(|entry| targets.iter().any(|target| target.measure.needs(&entry.label)));
        (!section.targets.is_empty()).then_some(section)
    };
    sections.into_iter().filter_map(select).collect()
}

/// Removes the entries whose database server is not available. Returns their labels with the reason.
fn without_server(comparison: &mut Comparison) -> Vec<(String, String)> {
    let mut absent = Vec::new();
    comparison.entries.retain(|entry| {
        let needs_server = !matches!(entry.candidate, Candidate::OtherQueue(name) if name != "foqs");
        let Database::Server { kind, .. } = entry.config.database else { return true };
        let found = if needs_server { locate(kind).map(drop) } else { Ok(()) };
        match found.with_context(|| format!("not found: {kind}")) {
            Ok(()) => true,
            Err(why) => {
                absent.push((entry.label.clone(), format!("{why:#}")));
                false
            }
        }
    });
    absent
}

fn failed(comparison: &Comparison, why: &str) -> ComparisonResult {
    let absent =
        comparison.entries.iter().map(|entry| (entry.label.clone(), format!("the comparison failed: {why}")));
    ComparisonResult { title: comparison.title.clone(), candidates: Vec::new(), absent: absent.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Arguments;
    use clap::Parser as _;

    fn sections() -> Vec<Section> {
        let options = Arguments::parse_from(["forebay-bench", "targets"]).options;
        list::sections(&CommonSettings::new(&options, std::path::Path::new("/forebay")))
    }

    #[test]
    fn targets_name_entries_of_their_comparisons() {
        for section in sections() {
            let title = &section.comparison.title;
            let labels: Vec<_> = section.comparison.entries.iter().map(|entry| &entry.label).collect();
            let mut once = labels.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), labels.len(), "{title}: {labels:?}");
            for target in &section.targets {
                assert!(target.title.starts_with(title.as_str()), "{}", target.title);
                for name in target.measure.labels() {
                    assert!(
                        labels.iter().any(|label| *label == name),
                        "{title}: no entry {name} in {labels:?}"
                    );
                }
            }
            for label in labels {
                assert!(
                    section.targets.iter().any(|target| target.measure.needs(label)),
                    "{title}: no target uses {label}"
                );
            }
        }
    }

    #[test]
    fn titles_are_unique() {
        let mut titles: Vec<_> =
            sections().into_iter().flat_map(|section| section.targets).map(|target| target.title).collect();
        let count = titles.len();
        titles.sort();
        titles.dedup();
        assert_eq!(titles.len(), count);
    }

    #[test]
    fn only_selected_targets_run() {
        let selected = selected(sections(), Some("PostgreS"));
        assert_eq!(selected.len(), 3, "lifecycle, latency and singles: {selected:?}");
        for section in &selected {
            assert_eq!(section.targets.len(), 1);
            assert_eq!(section.comparison.entries.len(), 2);
        }
        assert!(super::selected(sections(), Some("no such")).is_empty());
    }
}
