//! Closes a connection whose client makes no use of it: it is idle for long, or it does not read its answers.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::time::{Instant, Sleep, sleep};

use super::load::{ConnectionLoad, ConnectionTimeouts};
use crate::{connections::count_closed, tls::Usage};

/// Of what is unread a client must read this part in each span.
const READ_PART: usize = 32;

/// Looks at one connection from time to time.
pub struct Watch {
    /// Load that the connection's calls have taken on.
    load: Arc<ConnectionLoad>,
    /// The limits.
    timeouts: ConnectionTimeouts,
    /// Runs until the next look.
    timer: Pin<Box<Sleep>>,
    /// Bytes that were sent to the client since the last look.
    sent: usize,
    /// When the last look that found a call was.
    busy_at: Instant,
    /// How many calls had begun at the last look.
    begun: usize,
    /// How often everything had been read; `None` if nothing was unread at the last look.
    emptied: Option<usize>,
}

impl Watch {
    /// Of a connection that was accepted now.
    pub fn new(load: Arc<ConnectionLoad>, timeouts: ConnectionTimeouts) -> Self {
        Self {
            load,
            timeouts,
            timer: Box::pin(sleep(timeouts.unread.min(timeouts.idle))),
            sent: 0,
            busy_at: Instant::now(),
            begun: 0,
            emptied: None,
        }
    }

    /// Why the connection is of no use, if it is not.
    fn useless(&mut self) -> Option<&'static str> {
        let load = &self.load;
        let begun = load.begun();
        let calls = load.calls.in_use() + load.parked.in_use() + load.side_calls.in_use();
        if calls > 0 || begun != std::mem::replace(&mut self.begun, begun) {
            self.busy_at = Instant::now();
        }
        // Nothing was read to its end since the last look, and little was read at all.
        let unread = load.unread.in_use();
        let emptied = (unread > 0).then(|| load.unread.emptied());
        let stuck = emptied.is_some() && emptied == std::mem::replace(&mut self.emptied, emptied);
        if stuck && std::mem::take(&mut self.sent) < unread / READ_PART {
            return Some("unread");
        }
        self.sent = 0;
        let idle = unread == 0 && self.busy_at.elapsed() >= self.timeouts.idle;
        idle.then_some("idle")
    }
}

impl Usage for Watch {
    fn poll(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while let Poll::Ready(()) = self.timer.as_mut().poll(context) {
            if let Some(reason) = self.useless() {
                count_closed("grpc", reason);
                return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
            }
            let next = Instant::now() + self.timeouts.unread.min(self.timeouts.idle);
            self.timer.as_mut().reset(next);
        }
        Ok(())
    }

    fn sent(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::admission::load::{AdmissionLoad, LoadLimits};

    fn watch() -> (Watch, Arc<ConnectionLoad>) {
        let node = Arc::new(AdmissionLoad::new(&LoadLimits::default()));
        let load = Arc::new(ConnectionLoad::open(&node).unwrap());
        (Watch::new(load.clone(), ConnectionTimeouts::default()), load)
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_closed_unless_it_has_a_call() {
        let (mut watch, load) = watch();
        assert!(load.parked.try_acquire());
        tokio::time::advance(Duration::from_secs(900)).await;
        assert_eq!(watch.useless(), None, "a long poll waits");
        load.parked.release();
        tokio::time::advance(Duration::from_secs(600)).await;
        assert_eq!(watch.useless(), None);
        load.begin();
        tokio::time::advance(Duration::from_secs(600)).await;
        assert_eq!(watch.useless(), None, "there was a call");
        tokio::time::advance(Duration::from_secs(900)).await;
        assert_eq!(watch.useless(), Some("idle"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_must_read() {
        let (mut watch, load) = watch();
        load.unread.acquire_anyway(32_000);
        assert_eq!(watch.useless(), None, "it may have been answered a moment ago");
        watch.sent = 1_000;
        assert_eq!(watch.useless(), None, "it reads slowly");
        load.unread.release_many(32_000);
        load.unread.acquire_anyway(32_000);
        assert_eq!(watch.useless(), None, "it has read everything in between");
        assert_eq!(watch.useless(), Some("unread"));
    }
}
