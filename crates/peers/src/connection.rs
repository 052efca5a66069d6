//! Connections of other nodes. One on which no call was accepted within some seconds is closed, so that
//! nobody can hold the port's places who does not know the secret.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use forebay_edge::{
    connections::Place,
    tls::{AcceptedConnection, GuardedStream, Listener},
};
use futures_util::Stream;

/// Accepts connections. Their calls know their places.
pub struct PeerListener(pub Listener);

impl Stream for PeerListener {
    type Item = io::Result<GuardedStream<Arc<Place>, ()>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let AcceptedConnection { stream, lifetime, .. } = ready!(self.0.poll_accept(context));
        let place = lifetime.place().clone();
        Poll::Ready(Some(Ok(GuardedStream::new(stream, lifetime, place, ()))))
    }
}
