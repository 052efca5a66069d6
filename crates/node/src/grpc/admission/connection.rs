//! Connections, each with its own load counters, which its calls share.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

use super::{
    load::{AdmissionLoad, ConnectionLoad},
    watch::Watch,
};
use crate::tls::{self, Accepted, Listener, Principal};

/// Accepts connections.
pub struct Incoming {
    /// The bound port.
    listener: Listener,
    /// The node's counters.
    load: Arc<AdmissionLoad>,
}

impl Incoming {
    /// Accepts from a port whose connections `load` counts.
    pub fn new(listener: Listener, load: Arc<AdmissionLoad>) -> Self {
        Self { listener, load }
    }
}

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Accepted { stream, principal, client, open } = ready!(self.listener.poll_accept(context));
        let load = Arc::new(ConnectionLoad::new(&self.load.limits, open));
        let watch = Watch::new(load.clone(), self.load.limits.timeouts);
        Poll::Ready(Some(Ok(Connection { stream, caller: Caller { load, principal, client }, watch })))
    }
}

/// Whose calls come over a connection, and what they have taken on.
#[derive(Clone)]
pub struct Caller {
    /// Shared by the calls of the connection.
    pub load: Arc<ConnectionLoad>,
    /// Who is at the other end.
    pub principal: Principal,
    /// Where that is.
    pub client: SocketAddr,
}

/// One connection.
pub struct Connection {
    /// Its bytes.
    stream: tls::Stream,
    /// Known to each of its calls.
    caller: Caller,
    /// Closes it if it is of no use.
    watch: Watch,
}

impl Connected for Connection {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.watch.poll(context)?;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer)?);
        self.watch.received = self.watch.received.saturating_add(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.watch.poll(context)?;
        let sent = ready!(Pin::new(&mut self.stream).poll_write(context, buffer)?);
        self.watch.sent = self.watch.sent.saturating_add(sent);
        Poll::Ready(Ok(sent))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.watch.poll(context)?;
        let sent = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, buffers)?);
        self.watch.sent = self.watch.sent.saturating_add(sent);
        Poll::Ready(Ok(sent))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watch.poll(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
