//! Checks of single fields. Each refusal names the field's path.

use std::{fmt, time::Duration};

use forebay_types::{
    Limits, NameError, Namespace, Reason, Receipt, ReceiptError, Refusal, Timestamp, Topic, check_name,
    check_namespace,
};

/// The path of a field in its request. It is formatted only for a refusal.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    /// The list and index of the member; `None` for a field of the request.
    member: Option<(&'a str, usize)>,
    /// The field's name.
    field: &'a str,
}

impl<'a> Path<'a> {
    /// `list[index].field`
    pub fn of_member(list: &'a str, index: usize, field: &'a str) -> Self {
        Self { member: Some((list, index)), field }
    }
}

impl<'a> From<&'a str> for Path<'a> {
    fn from(field: &'a str) -> Self {
        Self { member: None, field }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.member {
            Some((list, index)) => write!(f, "{list}[{index}].{}", self.field),
            None => f.write_str(self.field),
        }
    }
}

impl From<Path<'_>> for String {
    fn from(path: Path<'_>) -> Self {
        path.to_string()
    }
}

/// A refusal of a field that is part of this one.
pub fn below(path: impl fmt::Display, refusal: Refusal) -> Refusal {
    Refusal { field: refusal.field.map(|field| format!("{path}.{field}")), ..refusal }
}

/// The namespace of a call: present, of allowed characters, and one.
pub fn namespace(limits: &Limits, text: &str) -> Result<Namespace, Refusal> {
    name(limits, "namespace", text, check_namespace)?;
    Ok(text.into())
}

/// A topic's name.
pub fn topic<'a>(limits: &Limits, path: impl Into<Path<'a>>, text: &str) -> Result<Topic, Refusal> {
    let path = path.into();
    name(limits, path, text, check_name)?;
    Ok(text.into())
}

/// A topic's name, or a pattern: with `*` behind it all topics that begin so.
pub fn topic_or_pattern<'a>(
    limits: &Limits,
    path: impl Into<Path<'a>>,
    text: &str,
) -> Result<Topic, Refusal> {
    let path = path.into();
    let Some(begin) = text.strip_suffix('*') else { return topic(limits, path, text) };
    bytes(path, text.len(), limits.name_bytes)?;
    prefix(limits, path, begin)?;
    Ok(text.into())
}

/// A prefix of topic names; may be empty.
pub fn prefix<'a>(limits: &Limits, path: impl Into<Path<'a>>, text: &str) -> Result<(), Refusal> {
    let path = path.into();
    if text.is_empty() { Ok(()) } else { name(limits, path, text, check_name) }
}

fn name<'a>(
    limits: &Limits,
    path: impl Into<Path<'a>>,
    text: &str,
    check: fn(&str) -> Result<(), NameError>,
) -> Result<(), Refusal> {
    let path = path.into();
    bytes(path, text.len(), limits.name_bytes)?;
    check(text).map_err(|error| Refusal::field(path, error.to_string()))
}

/// A size against its limit.
pub fn bytes<'a>(path: impl Into<Path<'a>>, size: usize, max: usize) -> Result<(), Refusal> {
    let path = path.into();
    if size > max {
        return Err(Refusal::too_large(path, format!("has {size} bytes; at most {max} are allowed")));
    }
    Ok(())
}

/// How many members a call has: at least one, and not too many.
pub fn members<'a>(path: impl Into<Path<'a>>, count: usize, max: usize) -> Result<(), Refusal> {
    let path = path.into();
    if count == 0 {
        return Err(Refusal::field(path, "must not be empty"));
    }
    if count > max {
        return Err(Refusal::too_large(path, format!("has {count} members; at most {max} are allowed")));
    }
    Ok(())
}

/// A number in a range.
pub fn within<'a>(
    path: impl Into<Path<'a>>,
    number: usize,
    min: usize,
    max: usize,
) -> Result<usize, Refusal> {
    let path = path.into();
    if (min..=max).contains(&number) {
        Ok(number)
    } else {
        Err(Refusal::field(path, format!("is {number}; it must be from {min} to {max}")))
    }
}

/// A short text such as a dedupe key. Empty means absent.
pub fn key<'a>(limits: &Limits, path: impl Into<Path<'a>>, text: String) -> Result<Option<String>, Refusal> {
    let path = path.into();
    bytes(path, text.len(), limits.key_bytes)?;
    Ok(if text.is_empty() { None } else { Some(text) })
}

/// A duration that is not negative. It is rounded up to a microsecond, so that nothing happens early.
pub fn duration<'a>(path: impl Into<Path<'a>>, span: &prost_types::Duration) -> Result<Duration, Refusal> {
    let path = path.into();
    // Protobuf's own range: 10,000 years, and nanoseconds with the sign of the seconds.
    let in_range = span.seconds.unsigned_abs() <= 315_576_000_000
        && span.nanos.unsigned_abs() <= 999_999_999
        && span.seconds.signum() * i64::from(span.nanos.signum()) >= 0;
    if !in_range {
        return Err(Refusal::field(path, "is not a valid duration"));
    }
    let (Ok(seconds), Ok(nanos)) = (u64::try_from(span.seconds), u64::try_from(span.nanos)) else {
        return Err(Refusal::field(path, "must not be negative"));
    };
    Ok(Duration::from_secs(seconds) + Duration::from_micros(nanos.div_ceil(1_000)))
}

/// A delay: 0 means now.
pub fn delay<'a>(
    limits: &Limits,
    path: impl Into<Path<'a>>,
    given: &prost_types::Duration,
) -> Result<Duration, Refusal> {
    let path = path.into();
    let span = duration(path, given)?;
    at_most(path, span, limits.span)?;
    Ok(span)
}

/// A time to live: above 0.
pub fn ttl<'a>(
    limits: &Limits,
    path: impl Into<Path<'a>>,
    given: &prost_types::Duration,
) -> Result<Duration, Refusal> {
    let path = path.into();
    let span = duration(path, given)?;
    if span.is_zero() {
        return Err(Refusal::field(path, "must not be 0; omit it for an item that never expires"));
    }
    at_most(path, span, limits.span)?;
    Ok(span)
}

/// A lease duration; absent stays absent.
pub fn lease<'a>(
    limits: &Limits,
    path: impl Into<Path<'a>>,
    given: Option<&prost_types::Duration>,
) -> Result<Option<Duration>, Refusal> {
    let path = path.into();
    let Some(given) = given else { return Ok(None) };
    let span = duration(path, given)?;
    if span < limits.lease_min || span > limits.lease_max {
        let (min, max) = (limits.lease_min, limits.lease_max);
        return Err(Refusal::field(path, format!("is {span:?}; it must be from {min:?} to {max:?}")));
    }
    Ok(Some(span))
}

fn at_most<'a>(path: impl Into<Path<'a>>, span: Duration, max: Duration) -> Result<(), Refusal> {
    let path = path.into();
    if span > max {
        return Err(Refusal::field(path, format!("is {span:?}; it must be at most {max:?}")));
    }
    Ok(())
}

/// A point in time, rounded up to a microsecond.
pub fn timestamp<'a>(path: impl Into<Path<'a>>, time: &prost_types::Timestamp) -> Result<Timestamp, Refusal> {
    let path = path.into();
    // Protobuf's own range: the years 1 to 9999.
    let in_range = (-62_135_596_800..=253_402_300_799).contains(&time.seconds)
        && (0..=999_999_999).contains(&time.nanos);
    if !in_range {
        return Err(Refusal::field(path, "is not a valid timestamp"));
    }
    let micros = i64::from(time.nanos.unsigned_abs().div_ceil(1_000));
    Ok(Timestamp::from_micros(time.seconds * 1_000_000 + micros))
}

/// A receipt of this namespace. Malformed and foreign receipts are detected from the string alone.
pub fn receipt<'a>(namespace: &str, path: impl Into<Path<'a>>, text: &str) -> Result<Receipt, Refusal> {
    let path = path.into();
    Receipt::decode(namespace, text).map_err(|error| {
        let reason = match error {
            ReceiptError::Malformed => Reason::InvalidReceipt,
            ReceiptError::Foreign => Reason::WrongNamespace,
        };
        Refusal { field: Some(path.into()), ..Refusal::new(reason, error.to_string()) }
    })
}

#[cfg(test)]
mod tests {
    use forebay_proto::time::to_timestamp;

    use super::*;

    fn proto(seconds: i64, nanos: i32) -> prost_types::Duration {
        prost_types::Duration { seconds, nanos }
    }

    #[test]
    fn names_have_allowed_characters_and_a_limit() {
        let limits = Limits::default();
        for good in ["a", "Orders.eu-1:high/low_2", &"x".repeat(200)] {
            assert_eq!(&*topic(&limits, "t", good).unwrap(), good);
        }
        for wrong in ["", " ", "a b", "ä", "a\0", "a*"] {
            assert_eq!(topic(&limits, "t", wrong).unwrap_err().reason, Reason::InvalidField, "{wrong:?}");
        }
        assert_eq!(topic(&limits, "t", &"x".repeat(201)).unwrap_err().reason, Reason::TooLarge);
    }

    #[test]
    fn a_pattern_has_its_star_at_the_end() {
        let limits = Limits::default();
        for good in ["a", "calls/*", "*", &format!("{}*", "x".repeat(199))] {
            assert_eq!(&*topic_or_pattern(&limits, "t", good).unwrap(), good);
        }
        for wrong in ["", "a**", "a*b", "*a", "a b*", "ä*"] {
            let refusal = topic_or_pattern(&limits, "t", wrong).unwrap_err();
            assert_eq!(
                (refusal.reason, refusal.field.as_deref()),
                (Reason::InvalidField, Some("t")),
                "{wrong:?}"
            );
        }
        let long = format!("{}*", "x".repeat(200));
        assert_eq!(topic_or_pattern(&limits, "t", &long).unwrap_err().reason, Reason::TooLarge);
    }

    #[test]
    fn a_duration_is_neither_negative_nor_out_of_range() {
        for (seconds, nanos) in [
            (-1, 0),
            (0, -1),
            (1, -1),
            (-1, 1),
            (0, 1_000_000_000),
            (0, i32::MIN),
            (i64::MAX, 0),
            (i64::MIN, 0),
        ] {
            assert!(duration("s", &proto(seconds, nanos)).is_err(), "{seconds} {nanos}");
        }
        assert_eq!(duration("s", &proto(1, 1)).unwrap(), Duration::from_micros(1_000_001));
    }

    #[test]
    fn zero_means_now_for_a_delay_and_nothing_else() {
        let limits = Limits::default();
        assert_eq!(delay(&limits, "d", &proto(0, 0)).unwrap(), Duration::ZERO);
        assert!(ttl(&limits, "t", &proto(0, 0)).is_err());
        assert!(lease(&limits, "l", Some(&proto(0, 0))).is_err());
        assert_eq!(lease(&limits, "l", None).unwrap(), None);
    }

    #[test]
    fn durations_reach_their_limits() {
        let limits = Limits::default();
        let year = 366 * 86_400;
        assert!(delay(&limits, "d", &proto(year, 0)).is_ok());
        assert!(delay(&limits, "d", &proto(year, 1)).is_err());
        assert!(ttl(&limits, "t", &proto(year, 0)).is_ok());
        assert!(ttl(&limits, "t", &proto(year + 1, 0)).is_err());
        for (seconds, nanos, good) in
            [(1, 0, true), (0, 999_999_000, false), (43_200, 0, true), (43_200, 1_000, false)]
        {
            assert_eq!(lease(&limits, "l", Some(&proto(seconds, nanos))).is_ok(), good, "{seconds}");
        }
    }

    #[test]
    fn times_are_rounded_up_and_read_back() {
        let time = timestamp("t", &prost_types::Timestamp { seconds: -1, nanos: 999_999_001 }).unwrap();
        assert_eq!(time.as_micros(), 0);
        for micros in [-1, 0, 1, 1_700_000_000_123_456] {
            let time = Timestamp::from_micros(micros);
            assert_eq!(timestamp("t", &to_timestamp(time)).unwrap(), time);
        }
        for (seconds, nanos) in [(0, -1), (0, 1_000_000_000), (253_402_300_800, 0), (i64::MIN, 0)] {
            assert!(timestamp("t", &prost_types::Timestamp { seconds, nanos }).is_err());
        }
    }
}
