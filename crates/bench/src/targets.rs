//! The targets of `docs/PERFORMANCE.md`: the contests that they need, and what is said of each.

mod list;
mod target;

use anyhow::{Context as _, ensure};
use forebay_servers::locate;
pub use target::{State, Verdict};

use self::list::Section;
use crate::{
    contest::{Contest, Contestant, Result},
    database::Database,
    entries::Common,
    report::table,
};

/// What came of a run of the targets.
#[derive(Debug)]
pub struct Judged {
    /// A contest each.
    pub results: Vec<Result>,
    /// In the order of the list.
    pub verdicts: Vec<Verdict>,
    /// Contests that ended early, and why.
    pub failures: Vec<String>,
}

/// Runs the contests that the targets need, or those whose title contains `only`; each is shown when it is over.
pub async fn run(common: &Common, only: Option<&str>) -> anyhow::Result<Judged> {
    let sections = chosen(list::sections(common), only);
    ensure!(!sections.is_empty(), "--only: no target's title contains {:?}", only.unwrap_or_default());
    let mut judged = Judged { results: Vec::new(), verdicts: Vec::new(), failures: Vec::new() };
    for mut section in sections {
        let absent = without_server(&mut section.contest);
        let mut result = match section.contest.run().await {
            Ok(result) => result,
            // The contests before this one took hours, and those after it say something as well.
            Err(why) => {
                judged.failures.push(format!("{}: {why:#}", section.contest.title));
                failed(&section.contest, &format!("{why:#}"))
            }
        };
        result.absent.extend(absent);
        println!("{}", table::write(&result));
        judged.verdicts.extend(section.targets.iter().map(|target| target.judge(&result)));
        judged.results.push(result);
    }
    Ok(judged)
}

/// Only the targets that are asked for, only the contests that these need, and in those only who is named.
fn chosen(sections: Vec<Section>, only: Option<&str>) -> Vec<Section> {
    let Some(only) = only.map(str::to_lowercase) else { return sections };
    let asked = |mut section: Section| {
        section.targets.retain(|target| target.title.to_lowercase().contains(&only));
        let targets = &section.targets;
        section
            .contest
            .entries
            .retain(|entry| targets.iter().any(|target| target.measure.needs(&entry.label)));
        (!section.targets.is_empty()).then_some(section)
    };
    sections.into_iter().filter_map(asked).collect()
}

/// Takes those out whose database server is not on this machine, and says so of each.
fn without_server(contest: &mut Contest) -> Vec<(String, String)> {
    let mut absent = Vec::new();
    contest.entries.retain(|entry| {
        let needs_server = !matches!(entry.contestant, Contestant::Peer(name) if name != "foqs");
        let Database::Server { kind, .. } = entry.setup.database else { return true };
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

fn failed(contest: &Contest, why: &str) -> Result {
    let absent =
        contest.entries.iter().map(|entry| (entry.label.clone(), format!("the contest failed: {why}")));
    Result { title: contest.title.clone(), standings: Vec::new(), absent: absent.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Arguments;
    use clap::Parser as _;

    fn sections() -> Vec<Section> {
        let options = Arguments::parse_from(["forebay-bench", "targets"]).options;
        list::sections(&Common::new(&options, std::path::Path::new("/forebay")))
    }

    #[test]
    fn targets_name_entries_of_their_contests() {
        for section in sections() {
            let title = &section.contest.title;
            let labels: Vec<_> = section.contest.entries.iter().map(|entry| &entry.label).collect();
            let mut once = labels.clone();
            once.sort();
            once.dedup();
            assert_eq!(once.len(), labels.len(), "{title}: {labels:?}");
            for target in &section.targets {
                assert!(target.title.starts_with(title.as_str()), "{}", target.title);
                for name in target.measure.entries() {
                    assert!(labels.iter().any(|label| *label == name), "{title}: no {name} among {labels:?}");
                }
            }
            for label in labels {
                assert!(
                    section.targets.iter().any(|target| target.measure.needs(label)),
                    "{title}: {label} for nothing"
                );
            }
        }
    }

    #[test]
    fn titles_are_unlike_each_other() {
        let mut titles: Vec<_> =
            sections().into_iter().flat_map(|section| section.targets).map(|target| target.title).collect();
        let count = titles.len();
        titles.sort();
        titles.dedup();
        assert_eq!(titles.len(), count);
    }

    #[test]
    fn only_what_is_asked_for_runs() {
        let chosen = chosen(sections(), Some("PostgreS"));
        assert_eq!(chosen.len(), 3, "lifecycle, latency and singles: {chosen:?}");
        for section in &chosen {
            assert_eq!(section.targets.len(), 1);
            assert_eq!(section.contest.entries.len(), 2);
        }
        assert!(super::chosen(sections(), Some("no such")).is_empty());
    }
}
