//! Connections of other nodes. One that does not begin is closed, so that nobody can hold the port's
//! connections who does not even speak its protocol.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::Stream;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpListener,
    time::{Sleep, sleep},
};
use tonic::transport::server::Connected;

use crate::{
    connections::{ConnectionCap, HTTP2_BEGINNING_BYTES, OpenConnection, count_closed},
    tls::{self, Accepted, ConfigSource, Listener},
};

/// Accepts connections.
pub struct Incoming {
    /// The bound port.
    listener: Listener,
    /// How long a connection may take to begin.
    limit: Duration,
}

impl Incoming {
    /// Accepts from a bound port, with TLS or without. A connection has `limit` for a handshake, and as long
    /// again to begin.
    pub fn new(
        listener: TcpListener,
        cap: Arc<ConnectionCap>,
        tls: Option<ConfigSource>,
        limit: Duration,
    ) -> Self {
        Self { listener: Listener::new(listener, cap, tls, limit), limit }
    }
}

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Accepted { stream, open, .. } = ready!(self.listener.poll_accept(context));
        let beginning = Some((HTTP2_BEGINNING_BYTES, Box::pin(sleep(self.limit))));
        Poll::Ready(Some(Ok(Connection { stream, beginning, _open: open })))
    }
}

/// One connection.
pub struct Connection {
    /// Its bytes.
    stream: tls::Stream,
    /// How many bytes are to come until it has begun, and the time that they have. `None`: it has.
    beginning: Option<(usize, Pin<Box<Sleep>>)>,
    /// Counts it.
    _open: OpenConnection,
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some((_, time)) = &mut self.beginning
            && time.as_mut().poll(context).is_ready()
        {
            count_closed("peer", "handshake");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "handshake")));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer)?);
        let came = buffer.filled().len() - before;
        self.beginning = self
            .beginning
            .take()
            .filter(|(missing, _)| *missing > came)
            .map(|(missing, time)| (missing - came, time));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, net::SocketAddr};

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
        time::timeout,
    };

    use super::*;

    /// What a connection has.
    const LIMIT: Duration = Duration::from_millis(500);

    /// A port that takes so many connections.
    async fn port(max: usize) -> (Incoming, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (Incoming::new(listener, ConnectionCap::new("peer", max), None, LIMIT), address)
    }

    async fn next(incoming: &mut Incoming) -> Connection {
        poll_fn(|context| Pin::new(&mut *incoming).poll_next(context)).await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn a_connection_must_begin() {
        let (mut incoming, address) = port(2).await;
        let mut bytes = [0; 64];
        let mut silent = TcpStream::connect(address).await.unwrap();
        let mut slow = next(&mut incoming).await;
        silent.write_all(&[0; HTTP2_BEGINNING_BYTES - 1]).await.unwrap();
        slow.read_exact(&mut bytes[..HTTP2_BEGINNING_BYTES - 1]).await.unwrap();
        let error = timeout(Duration::from_secs(20), slow.read(&mut bytes)).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);

        let mut other = TcpStream::connect(address).await.unwrap();
        let mut begun = next(&mut incoming).await;
        other.write_all(&[0; HTTP2_BEGINNING_BYTES]).await.unwrap();
        begun.read_exact(&mut bytes[..HTTP2_BEGINNING_BYTES]).await.unwrap();
        // It may be silent from now on.
        assert!(timeout(2 * LIMIT, begun.read(&mut bytes)).await.is_err());
    }

    #[tokio::test]
    async fn one_connection_too_many_is_closed_at_once() {
        let (mut incoming, address) = port(1).await;
        let _first = TcpStream::connect(address).await.unwrap();
        let _open = next(&mut incoming).await;
        let mut second = TcpStream::connect(address).await.unwrap();
        let accepting = tokio::spawn(async move { next(&mut incoming).await });
        let closed = timeout(Duration::from_secs(20), second.read(&mut [0; 1])).await.expect("closed");
        assert!(!matches!(closed, Ok(1..)) && !accepting.is_finished());
    }
}
