//! An answer that lasts, as a stream of events does, ends with the rights of whoever reads it.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, Bytes};
use forebay_edge::access::Rechecks;
use http_body::{Body as _, Frame, SizeHint};

/// How often the rights are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// An answer that ends once its rights are gone. One that is there as a whole stays as it is. `may`: whether
/// they are still there.
pub(crate) fn while_allowed<F>(body: Body, may: impl Fn() -> F + Send + 'static) -> Body
where
    F: Future<Output = bool> + Send + 'static,
{
    if body.is_end_stream() || body.size_hint().exact().is_some() {
        return body;
    }
    let look = move || {
        let may = may();
        async move { (!may.await).then_some(()) }
    };
    Body::new(GuardedBody { body, rights: Rechecks::new(LOOK_EVERY, look) })
}

/// An answer that ends with the rights to it.
struct GuardedBody {
    /// The answer.
    body: Body,
    /// Ends it.
    rights: Rechecks<()>,
}

impl http_body::Body for GuardedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rights.poll_ended(context).is_some() {
            self.body = Body::empty();
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    };

    use futures_util::{StreamExt as _, stream};
    use http_body_util::BodyExt as _;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_within_a_second_of_its_rights() {
        let (allowed, looks) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
        let (told, counted) = (allowed.clone(), looks.clone());
        let may = move || {
            let told = told.clone();
            counted.fetch_add(1, Ordering::Relaxed);
            async move { told.load(Ordering::Relaxed) }
        };
        let ticks = stream::unfold(0_u8, async |tick| {
            tokio::time::sleep(Duration::from_millis(100)).await;
            Some((Ok::<_, std::io::Error>(vec![tick]), tick.wrapping_add(1)))
        });
        let mut body = while_allowed(Body::from_stream(ticks), may);
        let begun = Instant::now();
        for tick in 0..55 {
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), vec![tick]);
        }
        assert_eq!((begun.elapsed().as_millis(), looks.load(Ordering::Relaxed)), (5_500, 5));
        allowed.store(false, Ordering::Relaxed);
        let mut rest = 0;
        while body.frame().await.is_some() {
            rest += 1;
        }
        assert!(rest <= 10 && begun.elapsed() <= Duration::from_millis(6_500), "{rest}");

        // A reader of a silent stream is let go too.
        allowed.store(false, Ordering::Relaxed);
        let silent = Body::from_stream(stream::pending::<Result<Vec<u8>, std::io::Error>>());
        let mut body = while_allowed(silent, || async { false }).into_data_stream();
        assert!(body.next().await.is_none());
    }

    #[tokio::test]
    async fn an_answer_that_is_there_stays_as_it_is() {
        let body = while_allowed(Body::from("whole"), || async { false });
        assert_eq!(body.size_hint().exact(), Some(5));
    }
}
