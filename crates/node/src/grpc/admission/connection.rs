//! Connections, each with its own load counters, which its calls share.

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
    net::{TcpListener, TcpStream},
    time::{Sleep, sleep},
};
use tonic::transport::server::Connected;

use super::{
    load::{AdmissionLoad, ConnectionLoad},
    watch::Watch,
};

/// Pause after a connection could not be accepted: most often the process is out of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Accepts connections.
pub struct Incoming {
    /// The bound port.
    listener: TcpListener,
    /// The node's counters.
    load: Arc<AdmissionLoad>,
    /// Runs after a failed accept.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Incoming {
    /// Accepts from a bound listener.
    pub fn new(listener: TcpListener, load: Arc<AdmissionLoad>) -> Self {
        Self { listener, load, pause: None }
    }
}

impl Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(context));
                self.pause = None;
            }
            match ready!(self.listener.poll_accept(context)) {
                Ok((stream, _)) => {
                    // Over the cap it is closed here.
                    let Some(load) = ConnectionLoad::open(&self.load).map(Arc::new) else { continue };
                    // Send small responses at once. Without this option the connection still works.
                    let _ = stream.set_nodelay(true);
                    let watch = Watch::new(load.clone(), self.load.limits.timeouts);
                    return Poll::Ready(Some(Ok(Connection { stream, load, watch })));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection; retrying in {ACCEPT_RETRY_DELAY:?}");
                    self.pause = Some(Box::pin(sleep(ACCEPT_RETRY_DELAY)));
                }
            }
        }
    }
}

/// One connection.
pub struct Connection {
    /// The socket.
    stream: TcpStream,
    /// Shared by the calls of this connection.
    load: Arc<ConnectionLoad>,
    /// Closes it if it is of no use.
    watch: Watch,
}

impl Connected for Connection {
    type ConnectInfo = Arc<ConnectionLoad>;

    fn connect_info(&self) -> Arc<ConnectionLoad> {
        self.load.clone()
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
