//! How connections to other nodes are opened: with TLS if this node shows others a certificate.

use std::{io, sync::Arc};

use forebay_edge::tls::{Live, PeerTls};
use futures_util::future::BoxFuture;
use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tonic::transport::{Channel, Endpoint, Error};

/// Opens connections.
#[derive(Clone, Default)]
pub struct Dial(Option<Arc<Live<PeerTls>>>);

/// The bytes of a connection.
trait Bytes: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytes for T {}

impl Dial {
    /// With TLS, or without if there is none.
    pub fn new(tls: Option<Arc<Live<PeerTls>>>) -> Self {
        Self(tls)
    }

    /// An address as the transport wants it.
    pub fn uri(&self, address: &str) -> String {
        let scheme = if self.0.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}")
    }

    /// The TLS settings in use, of which the files may make others at any time.
    pub fn settings(&self) -> Option<Arc<PeerTls>> {
        self.0.as_ref().map(|live| live.current())
    }

    /// A connection that is open, made with settings that were in use. Boxed, as each user of a link would
    /// compile it else.
    pub fn connect<'a>(
        &self,
        endpoint: &'a Endpoint,
        tls: Option<Arc<PeerTls>>,
    ) -> BoxFuture<'a, Result<Channel, Error>> {
        let connector = tower::service_fn(move |uri: Uri| {
            let tls = tls.clone();
            async move { open(&uri, tls.as_deref()).await.map(TokioIo::new) }
        });
        Box::pin(endpoint.connect_with_connector(connector))
    }
}

async fn open(uri: &Uri, tls: Option<&PeerTls>) -> io::Result<Box<dyn Bytes>> {
    let authority = uri.authority().ok_or_else(|| io::Error::other("the address has no host"))?;
    let stream = TcpStream::connect(authority.as_str()).await?;
    // Without this option the connection still works.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return Ok(Box::new(stream)) };
    let host = authority.host().trim_matches(['[', ']']);
    Ok(Box::new(tls.connect(stream, host).await?))
}
