//! Many members of a call, a slice at a time: between two slices other calls have their turn at the thread.

/// Members of a slice. A thousand refusals take milliseconds to make, and all calls share a few threads.
const SLICE: usize = 128;

/// Makes something of each member.
pub async fn make_each<T, R>(members: impl IntoIterator<Item = T>, mut make: impl FnMut(T) -> R) -> Vec<R> {
    let mut made = Vec::new();
    for member in members {
        made.push(make(member));
        if made.len().is_multiple_of(SLICE) {
            tokio::task::yield_now().await;
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
    };

    use super::*;

    #[test]
    fn others_have_their_turn_after_each_slice() {
        let mut made = pin!(make_each(0..2 * SLICE + 1, |number| number + 1));
        let mut context = Context::from_waker(Waker::noop());
        assert!(made.as_mut().poll(&mut context).is_pending());
        assert!(made.as_mut().poll(&mut context).is_pending());
        assert_eq!(made.as_mut().poll(&mut context), Poll::Ready((1..2 * SLICE + 2).collect()));
    }
}
