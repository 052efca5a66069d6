//! What is on the screen: only what is known, and since when.

use std::collections::HashMap;

use forebay_client::{Timestamp, TopicFigures, TopicReport};
use tokio::time::Instant;

use super::{seen::Seen, view::View};
use crate::output::{Cell, One as _, Style, Table, visible};

/// Lines above the topics.
const HEAD_LINES: usize = 4;

/// What is known.
pub struct Frame {
    /// Whose topics these are.
    title: String,
    /// Names have their namespaces.
    all_namespaces: bool,
    /// The topics, in the order of the server.
    topics: Vec<TopicFigures>,
    /// One of them alone.
    report: Option<Box<TopicReport>>,
    /// How many items a second came and stayed, less those that went, by topic.
    net: HashMap<String, f64>,
    /// When the last answer came, by the clock of this machine.
    asked: Option<Timestamp>,
    /// When the topics came.
    topics_at: Option<Instant>,
    /// Shards that could not be asked.
    incomplete: Vec<u32>,
    /// Why there is nothing newer.
    error: Option<String>,
}

impl Frame {
    /// Nothing is known yet.
    pub fn new(title: String, all_namespaces: bool) -> Self {
        Self {
            title,
            all_namespaces,
            topics: Vec::new(),
            report: None,
            net: HashMap::new(),
            asked: None,
            topics_at: None,
            incomplete: Vec::new(),
            error: None,
        }
    }

    /// Takes an answer.
    pub fn take(&mut self, seen: Seen, now: Instant, wall: Timestamp) {
        self.error = None;
        match seen {
            Seen::Topic(report) => {
                self.incomplete = report.incomplete_shards.clone();
                self.report = Some(report);
            }
            Seen::Topics(topics, incomplete) => {
                self.report = None;
                // With other shards missing than before, the difference would say nothing.
                let comparable = incomplete.is_empty() && self.incomplete.is_empty();
                let span = self.topics_at.filter(|_| comparable).map(|at| (now - at).as_secs_f64());
                let before: HashMap<String, u64> =
                    self.topics.iter().map(|topic| (self.name(topic), stored(topic))).collect();
                let rate = |topic: &TopicFigures| {
                    let (before, span) = (before.get(&self.name(topic))?, span.filter(|span| *span > 0.0)?);
                    // Counts are far below 2^53.
                    Some((self.name(topic), (stored(topic) as f64 - *before as f64) / span))
                };
                self.net = topics.iter().filter_map(rate).collect();
                (self.topics, self.incomplete, self.topics_at) = (topics, incomplete, Some(now));
            }
        }
        self.asked = Some(wall);
    }

    /// Keeps what is known, and says that it grows old.
    pub fn fail(&mut self, why: String) {
        self.error = Some(why);
    }

    fn name(&self, topic: &TopicFigures) -> String {
        let TopicFigures { namespace, topic, .. } = topic;
        if self.all_namespaces { format!("{namespace}/{topic}") } else { topic.clone() }
    }

    /// The names of the topics, in their order.
    pub fn names(&self) -> Vec<String> {
        self.topics.iter().map(|topic| self.name(topic)).collect()
    }

    /// The lines, without anything that could change a terminal.
    pub fn lines(&self, view: &View) -> Vec<String> {
        let style = Style::relative_to(self.asked);
        let mut lines =
            vec![visible(&format!("{}  {}", self.title, view.describe())), self.sums(&style), self.trouble()];
        let table = match (&self.report, view.open()) {
            (Some(report), Some(_)) => report.table(&style),
            _ => self.table(&style),
        };
        lines.extend(table.render(false).lines().map(str::to_owned));
        lines
    }

    /// The sums over the topics of the page.
    fn sums(&self, style: &Style) -> String {
        let Some(wall) = self.asked else { return "asking ...".to_owned() };
        let sum = |figure: fn(&TopicFigures) -> u64| self.topics.iter().map(figure).sum::<u64>();
        let oldest = self.topics.iter().filter_map(|topic| topic.oldest_ready_at).min();
        let net: Option<f64> = (!self.net.is_empty()).then(|| self.net.values().sum());
        format!(
            "{}  topics {}  ready {}  leased {}  scheduled {}  dead {}  net {}  oldest {}",
            Style::iso().time(wall).get(11..19).unwrap_or_default(),
            self.topics.len(),
            sum(|it| it.ready),
            sum(|it| it.leased),
            sum(|it| it.scheduled),
            sum(|it| it.dead),
            net.map_or_else(|| "-".to_owned(), |net| format!("{net:+.1}/s")),
            style.optional_time(oldest),
        )
    }

    /// What makes the figures doubtful.
    fn trouble(&self) -> String {
        match (&self.error, self.incomplete.as_slice()) {
            (Some(error), _) => visible(&format!("NOT RENEWED: {error}")),
            (None, []) => String::new(),
            (None, shards) => {
                format!("TOO LOW: {} shards could not be asked, as {}", shards.len(), shards[0])
            }
        }
    }

    fn table(&self, style: &Style) -> Table {
        let heads = ["TOPIC", "OLDEST READY", "READY", "LEASED", "SCHEDULED", "DEAD", "WAITING", "NET/S"];
        let mut table = Table::new(heads);
        for topic in &self.topics {
            let name = self.name(topic);
            let net = self.net.get(&name).map_or_else(|| "-".to_owned(), |net| format!("{net:+.1}"));
            let counts = [topic.ready, topic.leased, topic.scheduled, topic.dead, topic.waiting];
            let first = [Cell::from(name), style.optional_time(topic.oldest_ready_at).into()];
            table.row(first.into_iter().chain(counts.map(Cell::from)).chain([net.into()]));
        }
        table
    }
}

/// Items that wait or are worked on.
fn stored(topic: &TopicFigures) -> u64 {
    topic.ready + topic.leased + topic.scheduled
}

/// The line of the topic at a place.
pub fn line_of(place: usize) -> usize {
    place + HEAD_LINES
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use forebay_client::TopicSettings;

    use super::*;

    fn topic(name: &str, ready: u64, dead: u64) -> TopicFigures {
        TopicFigures {
            namespace: "n".to_owned(),
            topic: name.to_owned(),
            ready,
            leased: 1,
            scheduled: 0,
            dead,
            oldest_ready_at: Some(Timestamp::from_micros(1_000_000)),
            next_due_at: None,
            waiting: 2,
            pauses: Vec::new(),
            settings: TopicSettings::default(),
            settings_version: 0,
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[tokio::test]
    async fn a_frame_says_what_changed_between_two_looks_and_nothing_before() {
        let (mut frame, view, now) =
            (Frame::new("title".to_owned(), false), View::new(false), Instant::now());
        assert_eq!(frame.lines(&view)[1], "asking ...");
        frame.take(Seen::Topics(vec![topic("a", 10, 3)], Vec::new()), now, at(61));
        let lines = frame.lines(&view);
        assert_eq!(lines[0], "title  by oldest");
        assert_eq!(
            lines[1],
            "00:01:01  topics 1  ready 10  leased 1  scheduled 0  dead 3  net -  oldest 1m ago"
        );
        let row: Vec<&str> = lines[line_of(0)].split_whitespace().collect();
        assert_eq!(row, ["a", "1m", "ago", "10", "1", "0", "3", "2", "-"]);
        let topics = vec![topic("b", 1, 0), topic("a", 5, 3)];
        frame.take(Seen::Topics(topics.clone(), Vec::new()), now + Duration::from_secs(2), at(63));
        let lines = frame.lines(&view);
        assert!(lines[line_of(0)].ends_with("  -") && lines[line_of(1)].ends_with("-2.5"), "{lines:?}");
        // Figures that are too low are not compared, and it is said.
        frame.take(Seen::Topics(topics, vec![3]), now + Duration::from_secs(4), at(65));
        let lines = frame.lines(&view);
        assert!(lines[2].starts_with("TOO LOW: 1 shards") && lines[line_of(1)].ends_with("  -"), "{lines:?}");
    }

    #[tokio::test]
    async fn what_is_old_is_kept_and_said_to_be_old() {
        let mut frame = Frame::new(String::new(), true);
        frame.take(Seen::Topics(vec![topic("a", 10, 3)], Vec::new()), Instant::now(), at(61));
        frame.fail("no\nanswer\u{1b}[2J".to_owned());
        let lines = frame.lines(&View::new(true));
        assert!(lines[2].starts_with("NOT RENEWED: ") && lines[line_of(0)].starts_with("n/a "), "{lines:?}");
    }

    #[tokio::test]
    async fn nothing_from_elsewhere_reaches_the_terminal_as_it_is() {
        let hostile = "\u{1b}[2J\u{9b}31m\n\u{202e}x";
        let mut frame = Frame::new(hostile.to_owned(), true);
        let mut topic = topic(hostile, 1, 1);
        topic.namespace = hostile.to_owned();
        frame.take(Seen::Topics(vec![topic], Vec::new()), Instant::now(), at(61));
        for line in frame.lines(&View::new(true)) {
            assert!(!line.chars().any(|c| c.is_control() || c == '\u{202e}'), "{line:?}");
        }
    }
}
