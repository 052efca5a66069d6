//! Content of the screen: only known figures, and since when.

use forebay_client::{
    Timestamp,
    v1::{GetTopicResponse, Rates, Topic},
};
use forebay_proto::time::from_timestamp;

use super::{seen::FrameAnswer, view::View};
use crate::{
    output::{Cell, One as _, Style, Table, visible},
    verbs::flow::{per_second, rate},
};

/// Lines above the topics.
const HEAD_LINES: usize = 4;

/// Figures that are known.
pub struct Frame {
    /// Whose topics these are.
    title: String,
    /// Names have their namespaces.
    all_namespaces: bool,
    /// The topics, in the order of the server.
    topics: Vec<Topic>,
    /// One of them alone.
    report: Option<Box<GetTopicResponse>>,
    /// When the last answer came, by the clock of this machine.
    asked: Option<Timestamp>,
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
            asked: None,
            incomplete: Vec::new(),
            error: None,
        }
    }

    /// Takes an answer.
    pub fn take(&mut self, seen: FrameAnswer, wall: Timestamp) {
        self.error = None;
        match seen {
            FrameAnswer::Topic(report) => {
                self.incomplete = report.incomplete_shards.clone();
                self.report = Some(report);
            }
            FrameAnswer::Topics(topics, incomplete) => {
                self.report = None;
                (self.topics, self.incomplete) = (topics, incomplete);
            }
        }
        self.asked = Some(wall);
    }

    /// Keeps what is known, and says that it grows old.
    pub fn fail(&mut self, why: String) {
        self.error = Some(why);
    }

    fn name(&self, topic: &Topic) -> String {
        let Topic { namespace, topic, .. } = topic;
        if self.all_namespaces { format!("{namespace}/{topic}") } else { topic.clone() }
    }

    /// The names of the topics, in their order.
    pub fn names(&self) -> Vec<String> {
        self.topics.iter().map(|topic| self.name(topic)).collect()
    }

    /// The lines, without anything that could change a terminal.
    pub fn lines(&self, view: &View) -> Vec<String> {
        let style = Style::relative_to(self.asked);
        let mut lines = vec![
            visible(&format!("{}  {}", self.title, view.describe())).into_owned(),
            self.sums(&style),
            self.trouble(),
        ];
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
        let sum = |figure: fn(&Topic) -> u64| self.topics.iter().map(figure).sum::<u64>();
        let oldest = self.topics.iter().filter_map(|topic| topic.oldest_ready_at).map(from_timestamp).min();
        let known = self.topics.iter().any(|topic| topic.rates.is_some());
        let rate = |which: fn(&Rates) -> f64| {
            let sum: f64 = self.topics.iter().filter_map(|topic| topic.rates.as_ref()).map(which).sum();
            if known { format!("{}/s", per_second(sum)) } else { "-".to_owned() }
        };
        format!(
            "{}  topics {}  ready {}  leased {}  scheduled {}  dead {}  in {}  out {}  failed {}  oldest {}",
            Style::iso().time(wall).get(11..19).unwrap_or_default(),
            self.topics.len(),
            sum(|it| it.ready_count),
            sum(|it| it.leased_count),
            sum(|it| it.scheduled_count),
            sum(|it| it.dead_count),
            rate(|it| it.enqueued),
            rate(|it| it.delivered),
            rate(|it| it.failed),
            style.optional_time(oldest),
        )
    }

    /// Tells why the figures are doubtful.
    fn trouble(&self) -> String {
        match (&self.error, self.incomplete.as_slice()) {
            (Some(error), _) => visible(&format!("NOT RENEWED: {error}")).into_owned(),
            (None, []) => String::new(),
            (None, shards) => {
                format!("TOO LOW: {} shards could not be asked, as {}", shards.len(), shards[0])
            }
        }
    }

    fn table(&self, style: &Style) -> Table {
        let counts = ["TOPIC", "OLDEST READY", "READY", "LEASED", "SCHEDULED", "DEAD", "WAITING"];
        let mut table = Table::new(counts.into_iter().chain(["IN/S", "OUT/S", "FAILED/S"]));
        for topic in &self.topics {
            let name = self.name(topic);
            let rates: [fn(&Rates) -> f64; 3] = [|it| it.enqueued, |it| it.delivered, |it| it.failed];
            let rates = rates.map(|which| rate(topic.rates.as_ref(), which));
            let counts = [
                topic.ready_count,
                topic.leased_count,
                topic.scheduled_count,
                topic.dead_count,
                topic.waiting_calls,
            ];
            let first = [Cell::from(name), style.optional_time(topic.oldest_ready_at).into()];
            table.row(first.into_iter().chain(counts.map(Cell::from)).chain(rates));
        }
        table
    }
}

/// The line of the topic at a place.
pub fn line_of(place: usize) -> usize {
    place + HEAD_LINES
}

#[cfg(test)]
mod tests {
    use forebay_proto::time::to_timestamp;

    use super::*;

    fn topic(name: &str, ready_count: u64, dead_count: u64) -> Topic {
        Topic {
            namespace: "n".to_owned(),
            topic: name.to_owned(),
            ready_count,
            leased_count: 1,
            dead_count,
            oldest_ready_at: Some(to_timestamp(at(1))),
            waiting_calls: 2,
            rates: Some(Rates {
                enqueued: 12.0,
                delivered: 9.5,
                acked: 9.0,
                failed: 0.5,
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn a_frame_has_the_rates_of_its_topics_and_their_sum() {
        let (mut frame, view) = (Frame::new("title".to_owned(), false), View::new(false));
        assert_eq!(frame.lines(&view)[1], "asking ...");
        let mut unknown = topic("b", 1, 0);
        unknown.rates = None;
        frame.take(
            FrameAnswer::Topics(vec![topic("a", 10, 3), topic("c", 0, 0), unknown.clone()], Vec::new()),
            at(61),
        );
        let lines = frame.lines(&view);
        assert_eq!(lines[0], "title  by oldest");
        assert_eq!(
            lines[1],
            "00:01:01  topics 3  ready 11  leased 3  scheduled 0  dead 3  in 24.0/s  out 19.0/s  \
             failed 1.0/s  oldest 1m ago"
        );
        let row = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(
            row(&lines[line_of(0)]),
            ["a", "1m", "ago", "10", "1", "0", "3", "2", "12.0", "9.5", "0.50"]
        );
        assert_eq!(row(&lines[line_of(2)])[8..], ["-", "-", "-"], "a server of the release before");
        frame.take(FrameAnswer::Topics(vec![unknown], vec![3]), at(65));
        let lines = frame.lines(&view);
        assert!(
            lines[2].starts_with("TOO LOW: 1 shards") && lines[1].contains("  in -  out -  "),
            "{lines:?}"
        );
    }

    #[test]
    fn what_is_old_is_kept_and_said_to_be_old() {
        let mut frame = Frame::new(String::new(), true);
        frame.take(FrameAnswer::Topics(vec![topic("a", 10, 3)], Vec::new()), at(61));
        frame.fail("no\nanswer\u{1b}[2J".to_owned());
        let lines = frame.lines(&View::new(true));
        assert!(lines[2].starts_with("NOT RENEWED: ") && lines[line_of(0)].starts_with("n/a "), "{lines:?}");
    }

    #[test]
    fn nothing_from_elsewhere_reaches_the_terminal_as_it_is() {
        let hostile = "\u{1b}[2J\u{9b}31m\n\u{202e}x";
        let mut frame = Frame::new(hostile.to_owned(), true);
        let mut topic = topic(hostile, 1, 1);
        topic.namespace = hostile.to_owned();
        frame.take(FrameAnswer::Topics(vec![topic], Vec::new()), at(61));
        for line in frame.lines(&View::new(true)) {
            assert!(!line.chars().any(|c| c.is_control() || c == '\u{202e}'), "{line:?}");
        }
    }
}
