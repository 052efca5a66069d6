//! The deadline of a call, by `Connect-Timeout-Ms`.

use std::time::Duration;

use forebay_types::{Reason, Refusal};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

use super::{failure::Failure, media::text};

/// The header, in whole milliseconds.
const TIMEOUT: HeaderName = HeaderName::from_static("connect-timeout-ms");
/// The longest that a call may take, whatever its caller says.
const TIMEOUT_MAX: Duration = Duration::from_secs(30);

/// When the call must be answered.
pub fn of_call(headers: &HeaderMap) -> Result<Instant, Failure> {
    let now = Instant::now();
    let Some(digits) = text(headers, &TIMEOUT)? else { return Ok(now + TIMEOUT_MAX) };
    let valid = (1..=10).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse().ok().filter(|_| valid) {
        Some(millis) => Ok(now + Duration::from_millis(millis).min(TIMEOUT_MAX)),
        None => {
            Err(Failure::invalid(format!("Connect-Timeout-Ms is {digits:?}; it must have 1 to 10 digits")))
        }
    }
}

/// Refuses to go on with what nobody waits for any more.
pub fn check(deadline: Instant) -> Result<(), Refusal> {
    match Instant::now() < deadline {
        true => Ok(()),
        false => Err(Refusal::new(Reason::DeadlineExceeded, "the deadline passed before the call was made")),
    }
}

/// The value of `grpc-timeout` that leaves a call this time. It has at most 8 digits.
pub(crate) fn as_grpc(deadline: Instant) -> HeaderValue {
    let left = deadline.saturating_duration_since(Instant::now()).min(TIMEOUT_MAX);
    let text = format!("{}u", left.as_micros());
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("0u"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(text: &str) -> Option<Duration> {
        let headers = HeaderMap::from_iter([(TIMEOUT, text.parse().unwrap())]);
        of_call(&headers).ok().map(|deadline| deadline - Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_has_up_to_ten_digits_and_is_clamped() {
        assert_eq!(left("1"), Some(Duration::from_millis(1)));
        assert_eq!(left("0"), Some(Duration::ZERO));
        assert_eq!(left("29999"), Some(Duration::from_millis(29_999)));
        assert_eq!(left("9999999999"), Some(TIMEOUT_MAX));
        for wrong in ["", "12345678901", "+5", "-5", "5s", "1.5", " 5"] {
            assert_eq!(left(wrong), None, "{wrong:?}");
        }
        assert_eq!(of_call(&HeaderMap::new()).unwrap() - Instant::now(), TIMEOUT_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_fits_the_header_of_grpc() {
        assert_eq!(as_grpc(Instant::now() + Duration::from_secs(90)), "30000000u");
        assert_eq!(as_grpc(Instant::now() + Duration::from_millis(5)), "5000u");
        assert_eq!(as_grpc(Instant::now()), "0u");
    }
}
