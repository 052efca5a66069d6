//! The report as one HTML page that loads nothing else.

mod parts;
mod plots;

use std::fmt::Write as _;

use super::{Report, escape::escape, palette};

/// Writes the page.
pub fn write(report: &Report) -> anyhow::Result<String> {
    let mut page = String::new();
    page.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    // Without this link a browser requests an icon.
    page.push_str("<link rel=\"icon\" href=\"data:,\">\n<title>Forebay benchmark</title>\n");
    let _ =
        writeln!(page, "<style>\n{}{}</style>\n</head>\n<body>", palette::style(), include_str!("page.css"));
    page.push_str("<h1>Forebay benchmark</h1>\n");
    page.push_str(&parts::pairs(
        report.machine.properties().iter().map(|(name, value)| (*name, value.as_str())),
    ));
    if report.results.len() > 1 {
        page.push_str("<nav><ul>\n");
        for (number, result) in report.results.iter().enumerate() {
            let _ = writeln!(page, "<li><a href=\"#c{number}\">{}</a></li>", escape(&result.title));
        }
        page.push_str("</ul></nav>\n");
    }
    if !report.verdicts.is_empty() {
        page.push_str(&parts::verdicts(&report.verdicts));
    }
    for (number, result) in report.results.iter().enumerate() {
        let _ = writeln!(page, "<section id=\"c{number}\">\n<h2>{}</h2>", escape(&result.title));
        page.push_str(&parts::candidates(result));
        page.push_str(&parts::absent(result));
        page.push_str(&plots::of(result)?);
        page.push_str(&parts::settings(result));
        page.push_str("</section>\n");
    }
    page.push_str("</body>\n</html>\n");
    Ok(page)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        comparison::{CandidateResult, ComparisonResult},
        machine::Machine,
        round_result::RoundResult,
        statistics::Summary,
        target::{State, Verdict},
    };

    fn candidate(label: &str, result: impl Fn(f64) -> RoundResult) -> CandidateResult {
        CandidateResult {
            label: label.to_owned(),
            durability: "on disk",
            settings: vec![("url".to_owned(), "http://127.0.0.1/?a=1&b=<2>".to_owned())],
            rounds: [1.0, 1.2, 0.9].map(result).to_vec(),
            statements: Vec::new(),
        }
    }

    fn items(each: f64) -> RoundResult {
        let mut result = RoundResult::default();
        result.usage.cpu.insert("load", Duration::from_millis(300));
        result.usage.cpu.insert("database", Duration::from_millis(900));
        result.add_more_is_better("throughput", "items/s", each * 10_000.0);
        result.add_cpu_time(20_000);
        result
    }

    fn times(each: f64) -> RoundResult {
        let mut result = RoundResult::default();
        for (name, value) in [("p99", 8.0), ("p50", 0.9), ("p99.9", 90.0), ("longest", 120.0)] {
            result.add_less_is_better(name, "ms", value * each);
        }
        result
    }

    fn report() -> Report {
        let races = ComparisonResult {
            title: "race <1>".to_owned(),
            candidates: vec![
                candidate("forebay & co", items),
                candidate("<script>alert('x')</script>", items),
            ],
            absent: vec![("nobody".to_owned(), "not found: \"nobody\"".to_owned())],
        };
        let slow = |each: f64| times(each * 7.0);
        let waits = ComparisonResult {
            title: "latency".to_owned(),
            candidates: vec![
                candidate("forebay", times),
                candidate("the slow one, with a name of many words", slow),
            ],
            absent: vec![],
        };
        let none = ComparisonResult { title: "none".to_owned(), candidates: vec![], absent: vec![] };
        let verdict = |target: &str, measured, state| Verdict {
            target: target.to_owned(),
            bound: "at least 0.5".to_owned(),
            unit: "",
            measured,
            state,
            why: (state == State::NotMeasured).then(|| "nobody: <gone>".to_owned()),
        };
        let half = Summary { median: 0.5, min: 0.4, max: 0.6 };
        Report {
            machine: Machine::here(),
            verdicts: vec![
                verdict("first", Some(half), State::Met),
                verdict("second", Some(half), State::Missed),
                verdict("third", None, State::NotMeasured),
            ],
            results: vec![races, waits, none],
        }
    }

    #[test]
    fn the_page_shows_all_candidates() {
        let page = write(&report()).unwrap();
        for text in
            ["race &lt;1&gt;", "forebay &amp; co", "&lt;script&gt;alert(&#39;x&#39;)", "nobody", "10000"]
        {
            assert!(page.contains(text), "no {text}:\n{page}");
        }
        for text in [
            "met\">met</td>",
            "missed\">missed</td>",
            "nobody: &lt;gone&gt;",
            "not found: &quot;nobody&quot;",
        ] {
            assert!(page.contains(text), "no {text}:\n{page}");
        }
        assert_eq!(page.matches("<svg ").count(), 3, "two plots of the race, one of the times");
        assert_eq!(page.matches("<section ").count(), page.matches("</section>").count());
    }

    #[test]
    fn the_page_loads_and_runs_nothing() {
        let page = write(&report()).unwrap();
        for text in ["<script", "src=", "@import", "url(", "=\"http", "xmlns"] {
            assert!(!page.contains(text), "{text}:\n{page}");
        }
        for (at, _) in page.match_indices("href=\"") {
            let target = &page[at + 6..];
            assert!(target.starts_with('#') || target.starts_with("data:,"), "{}", &target[..40]);
        }
        // The only address is the text of a setting.
        let mut bare = report();
        bare.results
            .iter_mut()
            .flat_map(|result| &mut result.candidates)
            .for_each(|candidate| candidate.settings.clear());
        let page = write(&bare).unwrap();
        assert!(!page.contains("http://") && !page.contains("https://"), "{page}");
    }
}
