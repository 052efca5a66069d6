//! When a connection ends that its client would leave open.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Sleep, sleep};

use super::{
    crowd::Stage,
    places::{EvictionSignal, Place},
};

/// A client that has not begun.
const HANDSHAKE: &str = "handshake";
/// A client whose credentials were not accepted.
pub const CREDENTIAL: &str = "credential";

/// Ends once a certificate is not accepted any more. Tells why.
pub type CertificateEnd = Pin<Box<dyn Future<Output = &'static str> + Send>>;

/// Tells when a connection ends: it makes room for another one, it has shown no credential in time, or the
/// certificate that it has shown is not accepted any more.
pub struct Lifetime {
    /// Its place.
    place: Arc<Place>,
    /// It makes room.
    displaced: EvictionSignal,
    /// The time that it has until a credential is accepted. `None`: one was, or it has not begun to run.
    left: Option<Pin<Box<Sleep>>>,
    /// The end of its certificate. `None`: it has shown none.
    certificate: Option<CertificateEnd>,
}

impl Lifetime {
    /// Of a connection that was accepted now.
    pub fn new(place: Arc<Place>, displaced: EvictionSignal) -> Self {
        Self { place, displaced, left: None, certificate: None }
    }

    /// Its place.
    pub fn place(&self) -> &Arc<Place> {
        &self.place
    }

    /// It has so long from now on until a credential must be accepted.
    pub fn begin(&mut self, limit: Duration) {
        self.left = Some(Box::pin(sleep(limit)));
    }

    /// It has shown a certificate.
    pub fn show(&mut self, end: CertificateEnd) {
        self.certificate = Some(end);
    }

    /// Why it ends now, if it does. If not, the task is woken in time.
    pub fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<&'static str> {
        if let Some(displaced) = &mut self.displaced.0
            && let Poll::Ready(told) = Pin::new(displaced).poll(context)
        {
            self.displaced.0 = None;
            // Without a word a credential was accepted.
            if let Ok(why) = told {
                return Poll::Ready(why);
            }
        }
        if self.left.is_some() && self.place.is_accepted() {
            self.left = None;
        }
        if let Some(left) = &mut self.left
            && left.as_mut().poll(context).is_ready()
        {
            self.left = None;
            let has_called = self.place.has_reached(Stage::Called);
            let why = if has_called { CREDENTIAL } else { HANDSHAKE };
            super::count_closed(self.place.port(), why);
            return Poll::Ready(why);
        }
        if let Some(certificate) = &mut self.certificate
            && let Poll::Ready(why) = certificate.as_mut().poll(context)
        {
            self.certificate = None;
            super::count_closed(self.place.port(), why);
            return Poll::Ready(why);
        }
        Poll::Pending
    }
}
