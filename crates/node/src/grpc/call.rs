//! One call in progress: its deadline, and the seat that it takes up on its connection and on the node.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use forebay_types::{Reason, Refusal};
use http::HeaderMap;
use tokio::time::Instant;
use tonic::Status;

use super::{connection::ConnectionLoad, gate::Load, status};

/// The longest that a call may take, whatever its caller allows.
const LONGEST: Duration = Duration::from_secs(30);
/// With less than this left nothing useful can be done.
const SHORTEST: Duration = Duration::from_millis(5);

/// A call. The last clone that goes gives its seat back.
#[derive(Clone)]
pub struct Call {
    deadline: Instant,
    seat: Arc<Seat>,
}

/// What a call counts as: at work, until it parks.
struct Seat {
    node: Arc<Load>,
    connection: Arc<ConnectionLoad>,
    parked: AtomicBool,
}

impl Call {
    /// Lets a call in, or says why not.
    pub fn admit(
        headers: &HeaderMap,
        node: &Arc<Load>,
        connection: &Arc<ConnectionLoad>,
    ) -> Result<Self, Refusal> {
        let allowed = timeout(headers).unwrap_or(LONGEST).min(LONGEST);
        if allowed < SHORTEST {
            return Err(Refusal::new(Reason::DeadlineExceeded, "the call's deadline is too near"));
        }
        if !connection.working.take() {
            return Err(Refusal::new(Reason::Overloaded, "too many calls at work on this connection"));
        }
        if !node.working.take() {
            connection.working.give();
            return Err(Refusal::new(Reason::Overloaded, "too many calls at work on this node"));
        }
        let (node, connection) = (node.clone(), connection.clone());
        let seat = Arc::new(Seat { node, connection, parked: AtomicBool::new(false) });
        Ok(Self { deadline: Instant::now() + allowed, seat })
    }

    /// The call that a request belongs to; the gate has put it there.
    pub fn of<T>(request: &tonic::Request<T>) -> Result<Self, Status> {
        let missing = || status::of_call(&Refusal::new(Reason::Overloaded, "the call came past the gate"));
        request.extensions().get().cloned().ok_or_else(missing)
    }

    /// When the answer must be on its way.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// How long is left until the deadline.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// From here on the call waits and no longer counts as at work. `false`: too many wait on its connection.
    pub fn park(&self) -> bool {
        let Seat { node, connection, parked } = &*self.seat;
        if !connection.parked.take() {
            return false;
        }
        if parked.swap(true, Ordering::AcqRel) {
            connection.parked.give();
        } else {
            connection.working.give();
            node.working.give();
        }
        true
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if *self.parked.get_mut() {
            self.connection.parked.give();
        } else {
            self.connection.working.give();
            self.node.working.give();
        }
    }
}

/// The header `grpc-timeout`: up to 8 digits and a unit. One that makes no sense counts as absent.
fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let plain = (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| plain)?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3_600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::gate::LoadLimits;

    fn headers(timeout: &str) -> HeaderMap {
        HeaderMap::from_iter([(http::HeaderName::from_static("grpc-timeout"), timeout.parse().unwrap())])
    }

    #[test]
    fn a_timeout_has_digits_and_a_unit() {
        for (text, expected) in [
            ("5m", Some(Duration::from_millis(5))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3_600))),
            ("1S", Some(Duration::from_secs(1))),
            ("123456789S", None),
            ("S", None),
            ("+1S", None),
            ("1", None),
            ("1x", None),
        ] {
            assert_eq!(timeout(&headers(text)), expected, "{text}");
        }
        assert_eq!(timeout(&HeaderMap::new()), None);
    }

    #[tokio::test]
    async fn a_call_gives_its_seat_back_wherever_it_sat() {
        let limits =
            LoadLimits { calls: 2, calls_per_connection: 1, parked_per_connection: 1, ..Default::default() };
        let node = Arc::new(Load::new(&limits));
        let one = Arc::new(ConnectionLoad::new(&limits));
        let none = HeaderMap::new();

        let first = Call::admit(&none, &node, &one).unwrap();
        assert_eq!(Call::admit(&none, &node, &one).err().unwrap().reason, Reason::Overloaded);
        assert!(first.park());
        let second = Call::admit(&none, &node, &one).unwrap();
        assert!(!second.park(), "one seat to wait in");
        assert_eq!((node.working.taken(), one.working.taken(), one.parked.taken()), (1, 1, 1));
        drop((first, second));
        assert_eq!((node.working.taken(), one.working.taken(), one.parked.taken()), (0, 0, 0));
    }

    #[tokio::test]
    async fn a_deadline_that_is_too_near_is_refused() {
        let limits = LoadLimits::default();
        let (node, one) = (Arc::new(Load::new(&limits)), Arc::new(ConnectionLoad::new(&limits)));
        let refused = Call::admit(&headers("4m"), &node, &one).err().unwrap();
        assert_eq!(refused.reason, Reason::DeadlineExceeded);
        assert!(Call::admit(&headers("50m"), &node, &one).unwrap().left() <= Duration::from_millis(50));
        assert!(Call::admit(&headers("1H"), &node, &one).unwrap().left() <= LONGEST);
    }
}
