//! A connection of HTTP/2 that ends when its lifetime does.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

use super::Stream;
use crate::connections::Lifetime;

/// Looks at what a client makes of its connection.
pub trait Usage: Unpin {
    /// An error ends the connection. If there is none, the task is woken in time.
    fn poll(&mut self, context: &mut Context<'_>) -> io::Result<()>;
    /// Bytes were sent to the client.
    fn sent(&mut self, bytes: usize);
}

/// Nobody looks.
impl Usage for () {
    fn poll(&mut self, _: &mut Context<'_>) -> io::Result<()> {
        Ok(())
    }

    fn sent(&mut self, _: usize) {}
}

/// One connection. `I`: what each of its calls knows of it.
pub struct GuardedStream<I, U> {
    /// Its bytes.
    stream: Stream,
    /// Tells when it ends.
    lifetime: Lifetime,
    /// Known to each of its calls.
    info: I,
    /// Looks at what its client makes of it.
    usage: U,
}

impl<I, U: Usage> GuardedStream<I, U> {
    /// A connection that has begun.
    pub fn new(stream: Stream, lifetime: Lifetime, info: I, usage: U) -> Self {
        Self { stream, lifetime, info, usage }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if let Poll::Ready(why) = self.lifetime.poll_end(context) {
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        self.usage.poll(context)
    }
}

impl<I, U> Connected for GuardedStream<I, U>
where
    I: Clone + Send + Sync + 'static,
{
    type ConnectInfo = I;

    fn connect_info(&self) -> I {
        self.info.clone()
    }
}

impl<I: Unpin, U: Usage> AsyncRead for GuardedStream<I, U> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<I: Unpin, U: Usage> AsyncWrite for GuardedStream<I, U> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(context)?;
        let sent = ready!(Pin::new(&mut self.stream).poll_write(context, buffer)?);
        self.usage.sent(sent);
        Poll::Ready(Ok(sent))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll(context)?;
        let sent = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, buffers)?);
        self.usage.sent(sent);
        Poll::Ready(Ok(sent))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
