//! A connection with or without TLS.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{rustls::pki_types::CertificateDer, server::TlsStream};

/// A connection that was accepted.
#[derive(Debug)]
pub struct Stream {
    /// Read already, and to be read again.
    again: &'static [u8],
    /// Its bytes.
    bytes: Bytes,
}

/// The bytes of a connection.
#[derive(Debug)]
enum Bytes {
    /// Without TLS.
    Plain(TcpStream),
    /// With TLS, after the handshake.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Without TLS.
    pub fn plain(stream: TcpStream) -> Self {
        Self { again: &[], bytes: Bytes::Plain(stream) }
    }

    /// With TLS, after the handshake.
    pub fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self { again: &[], bytes: Bytes::Tls(Box::new(stream)) }
    }

    /// The certificates that the client has shown in the handshake, its own first. `None`: it has shown none.
    pub fn certificates(&self) -> Option<&[CertificateDer<'static>]> {
        match &self.bytes {
            Bytes::Plain(_) => None,
            Bytes::Tls(stream) => stream.get_ref().1.peer_certificates(),
        }
    }

    /// Lets what was read be read once more.
    pub fn put_back(&mut self, read: &'static [u8]) {
        self.again = read;
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { again, bytes } = self.get_mut();
        if !again.is_empty() {
            let (first, rest) = again.split_at(again.len().min(buffer.remaining()));
            buffer.put_slice(first);
            *again = rest;
            return Poll::Ready(Ok(()));
        }
        match bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Bytes::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_write(context, buffer),
            Bytes::Tls(stream) => Pin::new(stream).poll_write(context, buffer),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_write_vectored(context, buffers),
            Bytes::Tls(stream) => Pin::new(stream).poll_write_vectored(context, buffers),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.bytes {
            Bytes::Plain(stream) => stream.is_write_vectored(),
            Bytes::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_flush(context),
            Bytes::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Bytes::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
