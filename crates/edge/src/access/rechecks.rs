//! Rights that are looked at again and again while an answer lasts.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep};

/// A look. It tells why the answer ends, if it does.
type Look<E> = Pin<Box<dyn Future<Output = Option<E>> + Send>>;

/// Looks, one after the other, with a pause before each.
pub struct Rechecks<E> {
    /// The pause.
    every: Duration,
    /// Ends with the present pause.
    pause: Pin<Box<Sleep>>,
    /// The look that is under way.
    look: Option<Look<E>>,
    /// Begins a look.
    begin: Box<dyn FnMut() -> Look<E> + Send>,
}

impl<E> Rechecks<E> {
    /// With this pause. `look` tells why the answer ends, if it does.
    pub fn new<F>(every: Duration, mut look: impl FnMut() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Option<E>> + Send + 'static,
    {
        let begin = Box::new(move || Box::pin(look()) as Look<E>);
        Self { every, pause: Box::pin(sleep(every)), look: None, begin }
    }

    /// Why the answer ends now, if it does. If not, the task is woken in time.
    pub fn poll_ended(&mut self, context: &mut Context<'_>) -> Option<E> {
        loop {
            if let Some(look) = &mut self.look {
                let Poll::Ready(ended) = look.as_mut().poll(context) else { return None };
                self.look = None;
                self.pause.as_mut().reset(Instant::now() + self.every);
                if ended.is_some() {
                    return ended;
                }
            }
            if self.pause.as_mut().poll(context).is_pending() {
                return None;
            }
            self.look = Some((self.begin)());
        }
    }
}
