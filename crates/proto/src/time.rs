//! Times and durations to and from protobuf.

use std::time::Duration;

use forebay_types::Timestamp;

/// A duration in protobuf. One beyond its range becomes the longest one, which the server refuses.
pub fn to_duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        // Below 10^9, so it fits.
        nanos: duration.subsec_nanos().cast_signed(),
    }
}

/// A duration from protobuf. A negative one, which servers do not send, becomes none.
pub fn from_duration(span: prost_types::Duration) -> Duration {
    span.try_into().unwrap_or_default()
}

/// A time in protobuf.
pub fn to_timestamp(at: Timestamp) -> prost_types::Timestamp {
    let micros = at.as_micros();
    prost_types::Timestamp {
        seconds: micros.div_euclid(1_000_000),
        // Below 10^9, so it fits.
        nanos: i32::try_from(micros.rem_euclid(1_000_000) * 1_000).unwrap_or(0),
    }
}

/// A time from protobuf.
pub fn from_timestamp(at: prost_types::Timestamp) -> Timestamp {
    Timestamp::from_micros(
        at.seconds.saturating_mul(1_000_000).saturating_add(i64::from(at.nanos.div_euclid(1_000))),
    )
}

/// The earlier one of two times, if there is one.
pub fn earlier(
    one: Option<prost_types::Timestamp>,
    other: Option<prost_types::Timestamp>,
) -> Option<prost_types::Timestamp> {
    one.into_iter().chain(other).min_by_key(|time| (time.seconds, time.nanos))
}

/// The later one of two times, if there is one.
pub fn later(
    one: Option<prost_types::Timestamp>,
    other: Option<prost_types::Timestamp>,
) -> Option<prost_types::Timestamp> {
    one.into_iter().chain(other).max_by_key(|time| (time.seconds, time.nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_a_round_trip() {
        for micros in [-1_000_001, -1, 0, 1, 999_999, 1_700_000_000_123_456] {
            let at = Timestamp::from_micros(micros);
            assert_eq!(from_timestamp(to_timestamp(at)), at);
        }
    }
}
