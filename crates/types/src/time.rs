//! Points in time.

use std::{
    fmt,
    num::NonZeroU64,
    str::FromStr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

/// A point in civil time: microseconds since the Unix epoch. All stored times are of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Before every other time.
    pub const MIN: Self = Self(i64::MIN);
    /// After every other time.
    pub const MAX: Self = Self(i64::MAX);

    /// From microseconds since the Unix epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// This time and `span` more; stops at [`Timestamp::MAX`].
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }

    /// This time less `span`; stops at [`Timestamp::MIN`].
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(micros(span)))
    }

    /// How long it is from `earlier` to this time; zero if it lies before.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// A time before the Unix epoch counts as the epoch.
impl From<Timestamp> for SystemTime {
    fn from(time: Timestamp) -> Self {
        UNIX_EPOCH + time.since(Timestamp::from_micros(0))
    }
}

/// In UTC and to the second, as in `2026-11-27T18:00:00Z`; with a precision (`{:.6}`), to the microsecond. A
/// time after the year 9999, which that form has no place for, is shown as its end.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = SystemTime::from((*self).min(Self(253_402_300_799_999_999)));
        match f.precision() {
            Some(_) => write!(f, "{}", humantime::format_rfc3339_micros(time)),
            None => write!(f, "{}", humantime::format_rfc3339_seconds(time)),
        }
    }
}

/// Why a text is no point in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    /// It does not say where it is that late.
    #[error("it has no time zone: say {0}Z for UTC, or {0}+01:00 with another offset from it")]
    NoZone(String),
    /// It is written in another way.
    #[error("write it as 2026-11-27T18:00:00Z, or with another offset from UTC as 2026-11-27T18:00:00+01:00")]
    Form,
    /// No time of ours is before that.
    #[error("it is before 1970")]
    Early,
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// From the form of RFC 3339, with any offset.
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let text = text.trim().to_ascii_uppercase();
        let read = |local: &str| humantime::parse_rfc3339_weak(local);
        let Some((local, offset)) = zone(&text) else {
            // A day alone has no time, so that a zone would not help it.
            return Err(match read(&text) {
                Ok(_) => TimestampError::NoZone(text.replace(' ', "T")),
                Err(_) => TimestampError::Form,
            });
        };
        let is_early = local.get(..4).is_some_and(|year| ("0000".."1970").contains(&year));
        let wrong = if is_early { TimestampError::Early } else { TimestampError::Form };
        let since = read(local).ok().and_then(|local| local.duration_since(UNIX_EPOCH).ok()).ok_or(wrong)?;
        let at = Self(micros(since).saturating_sub(offset * 60_000_000));
        if at.0 < 0 { Err(TimestampError::Early) } else { Ok(at) }
    }
}

/// Splits a time into the text before its zone, and the zone in minutes. `None`: it has no zone.
fn zone(text: &str) -> Option<(&str, i64)> {
    if let Some(local) = text.strip_suffix('Z') {
        return Some((local, 0));
    }
    // A sign before it is one of the date.
    let at = text.rfind(['+', '-']).filter(|at| *at > "2026-11-27".len())?;
    let (hours, minutes) = text[at + 1..].split_once(':')?;
    let number = |text: &str, below: i64| {
        let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|number| is_plain && *number < below)
    };
    let offset = number(hours, 24)? * 60 + number(minutes, 60)?;
    Some((&text[..at], if text[at..].starts_with('-') { -offset } else { offset }))
}

/// A point on a clock that never steps: it compares only with others of the same process. It takes 8 bytes,
/// also where there may be none: a topic has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(
    /// Nanoseconds since the clock's start, and one.
    NonZeroU64,
);

impl Default for Monotonic {
    fn default() -> Self {
        Self::from_start(Duration::ZERO)
    }
}

impl Monotonic {
    /// From the span since the clock's arbitrary start. The latest point is 584 years after it.
    pub const fn from_start(span: Duration) -> Self {
        let nanos = span.as_nanos();
        let nanos = if nanos < u64::MAX as u128 { nanos as u64 } else { u64::MAX - 1 };
        Self(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// The span since the clock's start.
    const fn span(self) -> Duration {
        Duration::from_nanos(self.0.get() - 1)
    }

    /// This point and `span` more.
    pub fn plus(self, span: Duration) -> Self {
        Self::from_start(self.span().saturating_add(span))
    }

    /// How long it is from `earlier` to this point; zero if it lies before.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }

    /// How long it is since the last multiple of `every`, counted from the clock's start.
    pub fn into_interval(self, every: Duration) -> Duration {
        let nanos = self.span().as_nanos().checked_rem(every.as_nanos()).unwrap_or(0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_it_is_read_and_the_year_9999_is_the_last() {
        let at = Timestamp(1_764_266_400_123_456);
        assert_eq!(
            (at.to_string(), format!("{at:.6}")),
            ("2025-11-27T18:00:00Z".into(), "2025-11-27T18:00:00.123456Z".into())
        );
        assert_eq!(format!("{at:.6}").parse(), Ok(at));
        let ends = [Timestamp::MIN, Timestamp::MAX].map(|end| end.to_string());
        assert_eq!(ends, ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]);
    }

    #[test]
    fn a_time_of_the_system_is_the_same_and_not_before_the_epoch() {
        let of = |micros| {
            let time = SystemTime::from(Timestamp::from_micros(micros));
            time.duration_since(UNIX_EPOCH).unwrap().as_micros()
        };
        assert_eq!([of(i64::MIN), of(-1), of(0), of(1_500_001)], [0, 0, 0, 1_500_001]);
        assert_eq!(of(i64::MAX), i64::MAX.unsigned_abs().into());
    }

    #[test]
    fn a_time_is_read_with_any_offset() {
        let at = |micros: i64| Ok(Timestamp::from_micros(1_790_000_000_000_000 + micros));
        for text in [
            "2026-09-21T14:13:20Z",
            "2026-09-21t14:13:20z",
            " 2026-09-21 14:13:20Z ",
            "2026-09-21T16:13:20+02:00",
            "2026-09-21T10:43:20-03:30",
            "2026-09-22T13:13:20+23:00",
            "2026-09-21T14:13:20-00:00",
        ] {
            assert_eq!(text.parse(), at(0), "{text}");
        }
        assert_eq!("2026-09-21T16:13:20.5+02:00".parse(), at(500_000));
        assert_eq!("1970-01-01T01:00:00+01:00".parse(), Ok(Timestamp::default()));
    }

    #[test]
    fn a_time_without_a_zone_is_refused_with_what_to_write() {
        let error = "2026-11-27 18:00:00".parse::<Timestamp>().unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("say 2026-11-27T18:00:00Z") && said.contains("2026-11-27T18:00:00+01:00"),
            "{said}"
        );
        for text in [
            "",
            "now",
            "2026-11-27",
            "2026-11-27Z",
            "2026-11-27T18:00Z",
            "2026-13-27T18:00:00Z",
            "2026-11-27T18:00:00+1:00",
            "2026-11-27T18:00:00+01",
            "2026-11-27T18:00:00+24:00",
            "2026-11-27T18:00:00+01:60",
            "2026-11-27T18:00:00+01:00Z",
            "2026-11-27T18:00:00 CET",
            "\u{e4}026-11-27T18:00:00+01:00",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(TimestampError::Form), "{text}");
        }
        for text in ["1969-12-31T23:59:59Z", "1970-01-01T00:00:00+01:00"] {
            assert_eq!(text.parse::<Timestamp>(), Err(TimestampError::Early), "{text}");
        }
    }

    #[test]
    fn sums_stop_at_the_ends() {
        assert_eq!(Timestamp::MAX.plus(Duration::from_secs(1)), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.minus(Duration::MAX), Timestamp::MIN);
        assert_eq!(Timestamp::from_micros(5).since(Timestamp::from_micros(9)), Duration::ZERO);
    }
}
