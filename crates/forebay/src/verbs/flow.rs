//! How much happens in topics, and what has become of their items.

use forebay_client::v1::{Counts, Rates};

use crate::output::{Cell, Style, Table};

/// One of the counts, or `-` where nobody knows it.
pub fn count(counts: Option<&Counts>, which: fn(&Counts) -> u64) -> Cell {
    counts.map_or_else(|| "-".into(), |counts| which(counts).into())
}

/// One of the rates, or `-` where nobody knows it.
pub fn rate(rates: Option<&Rates>, which: fn(&Rates) -> f64) -> Cell {
    rates.map_or_else(|| "-".to_owned(), |rates| per_second(which(rates))).into()
}

/// A rate with one digit behind the point, or two where it is small.
pub fn per_second(rate: f64) -> String {
    if rate > 0.0 && rate < 1.0 { format!("{rate:.2}") } else { format!("{rate:.1}") }
}

/// Adds rows to the table of a topic or a namespace.
pub fn add_rows(table: &mut Table, counts: Option<&Counts>, rates: Option<&Rates>, style: &Style) {
    let since = counts.map(|counts| format!("since {}", style.optional_time(counts.since)));
    let mut row = |name: &str, count: Option<u64>, rate: Option<f64>| {
        let rate = rate.map(|rate| format!("{}/s", per_second(rate)));
        let count = count.map_or_else(|| Cell::from(""), Cell::from);
        let more = [count_note(&since, name), rate].into_iter().flatten().collect::<Vec<_>>().join(", ");
        table.row([name.into(), count, more.into()]);
    };
    row("enqueued", counts.map(|it| it.enqueued), rates.map(|it| it.enqueued));
    row("delivered", counts.map(|it| it.delivered), rates.map(|it| it.delivered));
    row("acked", counts.map(|it| it.acked), rates.map(|it| it.acked));
    row("failed", counts.map(|it| it.failed), rates.map(|it| it.failed));
    row("dead-lettered", counts.map(|it| it.dead_lettered), rates.map(|it| it.dead_lettered));
    row("expired", counts.map(|it| it.expired), None);
    row("removed", counts.map(|it| it.removed), None);
}

/// Since when it is counted is said once.
fn count_note(since: &Option<String>, name: &str) -> Option<String> {
    since.clone().filter(|_| name == "enqueued")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_its_counts_and_rates_and_says_since_when() {
        let counts = Counts {
            enqueued: 5,
            delivered: 4,
            acked: 3,
            failed: 1,
            expired: 6,
            removed: 7,
            ..Default::default()
        };
        let rates = Rates { enqueued: 0.25, delivered: 2.0, failed: 1.0, ..Default::default() };
        let mut table = Table::new(["TOPIC", "", ""]);
        add_rows(&mut table, Some(&counts), Some(&rates), &Style::iso());
        let text = table.render(false);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["enqueued", "5", "since", "-,", "0.25/s"], "{text}");
        assert_eq!(rows[3], ["acked", "3", "0.0/s"], "{text}");
        assert_eq!(rows[6..], [["expired", "6"], ["removed", "7"]], "{text}");
    }

    #[test]
    fn what_nobody_knows_is_no_number() {
        let mut table = Table::new(["TOPIC", "", ""]);
        add_rows(&mut table, None, None, &Style::iso());
        assert!(!table.render(false).contains('0'));
    }
}
