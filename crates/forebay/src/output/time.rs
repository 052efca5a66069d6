//! Times in tables.

use std::time::Duration;

use clap::ValueEnum;
use forebay_client::Timestamp;
use forebay_proto::time::{from_duration, from_timestamp};
use forebay_types::{Clock as _, SystemClock};

/// How times are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TimeForm {
    /// Since or until now by this machine's clock, as in "3m 12s ago"
    Relative,
    /// As in 2026-01-31T12:00:00.000000Z
    Iso,
    /// As seconds since 1970
    Unix,
}

/// Style of cells: all that they depend on beside their values.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// How times are shown.
    form: TimeForm,
    /// Now, for relative times.
    now: Timestamp,
    /// Whether there are colours.
    pub(super) color: bool,
}

impl Style {
    /// As of now.
    pub fn new(form: TimeForm, color: bool) -> Self {
        Self { form, now: SystemClock::default().wall(), color }
    }

    /// Relative to a time, or to now, without colours.
    pub fn relative_to(now: Option<Timestamp>) -> Self {
        let style = Self::new(TimeForm::Relative, false);
        Self { now: now.unwrap_or(style.now), ..style }
    }

    /// As machines read times.
    pub fn iso() -> Self {
        Self::new(TimeForm::Iso, false)
    }

    /// A time.
    pub fn time(&self, at: Timestamp) -> String {
        match self.form {
            TimeForm::Iso => format!("{at:.6}"),
            TimeForm::Unix => {
                let micros = u64::try_from(at.as_micros()).unwrap_or(0);
                format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
            }
            TimeForm::Relative => relative(at, self.now),
        }
    }

    /// A time that may be absent.
    pub fn optional_time(&self, at: Option<impl Time>) -> String {
        at.map_or_else(|| "-".to_owned(), |at| self.time(at.timestamp()))
    }
}

/// A time of the client or of a message.
pub trait Time {
    /// The time.
    fn timestamp(self) -> Timestamp;
}

impl Time for Timestamp {
    fn timestamp(self) -> Timestamp {
        self
    }
}

impl Time for prost_types::Timestamp {
    fn timestamp(self) -> Timestamp {
        from_timestamp(self)
    }
}

/// A span of a message, or `-` where there is none.
pub fn optional_span(length: Option<prost_types::Duration>) -> String {
    length.map_or_else(|| "-".to_owned(), |length| span(from_duration(length)))
}

/// A span.
pub fn span(span: Duration) -> String {
    match span.as_secs() {
        0 => format!("{}ms", span.as_millis()),
        _ => two_units(span),
    }
}

fn relative(at: Timestamp, now: Timestamp) -> String {
    let micros = at.as_micros().saturating_sub(now.as_micros());
    let span = two_units(Duration::from_micros(micros.unsigned_abs()));
    match micros {
        ..=-1_000_000 => format!("{span} ago"),
        -999_999..1_000_000 => "now".to_owned(),
        _ => format!("in {span}"),
    }
}

/// A span in its two largest units.
fn two_units(span: Duration) -> String {
    let text = humantime::format_duration(Duration::from_secs(span.as_secs())).to_string();
    text.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_readable() {
        let now = Timestamp::from_micros(1_700_000_000_000_001);
        let show = |form, at| Style { form, now, color: false }.time(at);
        assert_eq!(show(TimeForm::Iso, now), "2023-11-14T22:13:20.000001Z");
        assert_eq!(show(TimeForm::Unix, now), "1700000000.000001");
        let after = |micros| Timestamp::from_micros(now.as_micros() + micros);
        assert_eq!(show(TimeForm::Relative, now), "now");
        assert_eq!(show(TimeForm::Relative, after(-192_500_000)), "3m 12s ago");
        assert_eq!(show(TimeForm::Relative, after(3_605_000_000)), "in 1h 5s");
        assert_eq!(show(TimeForm::Relative, after(90_061_000_000)), "in 1day 1h");
        assert_eq!([0, 999, 61_500].map(|ms| span(Duration::from_millis(ms))), ["0ms", "999ms", "1m 1s"]);
    }
}
