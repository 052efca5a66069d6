//! The report as a page: one file, with its plots in it, that asks for nothing else.

mod parts;
mod plots;

use std::fmt::Write as _;

use super::{Report, escape::escape, palette};

/// Writes it.
pub fn write(report: &Report) -> anyhow::Result<String> {
    let mut page = String::new();
    page.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    // Without an icon of its own a page makes the browser ask for one.
    page.push_str("<link rel=\"icon\" href=\"data:,\">\n<title>Forebay benchmark</title>\n");
    let _ =
        writeln!(page, "<style>\n{}{}</style>\n</head>\n<body>", palette::style(), include_str!("page.css"));
    page.push_str("<h1>Forebay benchmark</h1>\n");
    page.push_str(&parts::pairs(report.machine.facts().iter().map(|(name, value)| (*name, value.as_str()))));
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
        page.push_str(&parts::standings(result));
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
        contest::{Result, Standing},
        machine::Machine,
        outcome::Outcome,
        report::statistics::Summary,
        targets::{State, Verdict},
    };

    fn standing(label: &str, outcome: impl Fn(f64) -> Outcome) -> Standing {
        Standing {
            label: label.to_owned(),
            promise: "on disk",
            settings: vec![("url".to_owned(), "http://127.0.0.1/?a=1&b=<2>".to_owned())],
            rounds: [1.0, 1.2, 0.9].map(outcome).to_vec(),
            statements: Vec::new(),
        }
    }

    fn items(each: f64) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.usage.cpu.insert("load", Duration::from_millis(300));
        outcome.usage.cpu.insert("database", Duration::from_millis(900));
        outcome.more("throughput", "items/s", each * 10_000.0);
        outcome.costs(20_000);
        outcome
    }

    fn times(each: f64) -> Outcome {
        let mut outcome = Outcome::default();
        for (name, value) in [("p99", 8.0), ("p50", 0.9), ("p99.9", 90.0), ("longest", 120.0)] {
            outcome.less(name, "ms", value * each);
        }
        outcome
    }

    fn report() -> Report {
        let races = Result {
            title: "race <1>".to_owned(),
            standings: vec![standing("forebay & co", items), standing("<script>alert('x')</script>", items)],
            absent: vec![("nobody".to_owned(), "not found: \"nobody\"".to_owned())],
        };
        let slow = |each: f64| times(each * 7.0);
        let waits = Result {
            title: "latency".to_owned(),
            standings: vec![
                standing("forebay", times),
                standing("the slow one, with a name of many words", slow),
            ],
            absent: vec![],
        };
        let none = Result { title: "none".to_owned(), standings: vec![], absent: vec![] };
        let verdict = |target: &str, measured, state| Verdict {
            target: target.to_owned(),
            bound: "at least 0.5".to_owned(),
            unit: "",
            measured,
            state,
            why: (state == State::NotMeasured).then(|| "nobody: <gone>".to_owned()),
        };
        let half = Summary { median: 0.5, least: 0.4, most: 0.6 };
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
    fn everyone_is_on_the_page() {
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
    fn nothing_is_fetched_and_nothing_runs() {
        let page = write(&report()).unwrap();
        for text in ["<script", "src=", "@import", "url(", "=\"http", "xmlns"] {
            assert!(!page.contains(text), "{text}:\n{page}");
        }
        for (at, _) in page.match_indices("href=\"") {
            let target = &page[at + 6..];
            assert!(target.starts_with('#') || target.starts_with("data:,"), "{}", &target[..40]);
        }
        // The one address is that of a setting, in writing.
        let mut bare = report();
        bare.results
            .iter_mut()
            .flat_map(|result| &mut result.standings)
            .for_each(|standing| standing.settings.clear());
        let page = write(&bare).unwrap();
        assert!(!page.contains("http://") && !page.contains("https://"), "{page}");
    }
}
