//! Reads a page of a node's HTTP port.

use std::{io, time::Duration};

use bytes::Bytes;
use forebay_client::{Tls, TlsConfig, Token, explain_tls, is_loopback};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{
    Request, StatusCode,
    client::conn::http1,
    header::{AUTHORIZATION, HOST},
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};

use crate::{
    failure::{Failure, Status},
    token_flags::TokenFlags,
};

/// How long connecting may take, and then the answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// A page is smaller, whatever the node holds.
const PAGE_BYTES_MAX: usize = 16 << 20;

/// The HTTP port of a node.
pub struct HttpPort {
    /// `host:port`.
    address: String,
    /// Secures connections. `None`: without TLS.
    tls: Option<Tls>,
    /// The token that is shown.
    token: Option<Token>,
}

impl HttpPort {
    /// At `https://host:port`, `http://host:port` or `host:port`. The last one has TLS if `config` says
    /// anything.
    pub fn new(address: &str, config: &TlsConfig, token: &TokenFlags) -> Result<Self, Failure> {
        let (token, is_insecure) = (token.token()?, token.is_insecure());
        let (scheme, rest) = match address.split_once("://") {
            Some((scheme, rest)) => (scheme, rest.trim_end_matches('/')),
            None if *config == TlsConfig::default() => ("http", address),
            None => ("https", address),
        };
        let tls = match scheme {
            "http" => None,
            "https" => Some(Tls::new(config).map_err(|error| Failure::usage(error.message()))?),
            _ => return Err(Failure::usage(format!("--http: the scheme {scheme:?} is unknown"))),
        };
        let host = rest.rsplit_once(':').map_or(rest, |(host, _)| host);
        if token.is_some() && tls.is_none() && !is_insecure && !is_loopback(host) {
            let line = format!(
                "--http: the token would go to {rest} without TLS; write https://, or add --insecure"
            );
            return Err(Failure::usage(line));
        }
        Ok(Self { address: rest.to_owned(), tls, token })
    }

    /// The content of a page.
    pub async fn get(&self, path: &str) -> Result<Bytes, Failure> {
        let address = &self.address;
        let unreachable = |why: String| {
            let line = format!("cannot reach the HTTP port {address}: {why}; name another with --http");
            Failure::new(line).with(Status::Unavailable)
        };
        let stream = match timeout(TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                return Err(unreachable("nobody listens there".to_owned()));
            }
            Ok(Err(error)) => return Err(unreachable(error.to_string())),
            Err(_) => return Err(unreachable("no answer".to_owned())),
        };
        match timeout(TIMEOUT, self.exchange(stream, path)).await {
            Ok(Ok((StatusCode::OK, body))) => Ok(body),
            Ok(Ok((status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN), _))) => {
                let line = format!("{address}{path} answers {status}; show a token with --token-file");
                Err(Failure::new(line).with(Status::NotAllowed))
            }
            Ok(Ok((status @ StatusCode::HTTP_VERSION_NOT_SUPPORTED, _))) => {
                Err(unreachable(format!("it answers {status}; is it the gRPC port?")))
            }
            Ok(Ok((status, _))) => Err(Failure::new(format!("{address}{path} answers {status}"))),
            Ok(Err(error)) => match of_tls(address, &error) {
                Some(line) => Err(Failure::new(line).with(Status::Unavailable)),
                None if self.tls.is_some() => Err(unreachable(error.to_string())),
                None => Err(unreachable(format!("{error}; is it the gRPC port? Does it want https://?"))),
            },
            Err(_) => Err(unreachable("no answer".to_owned())),
        }
    }

    async fn exchange(&self, stream: TcpStream, path: &str) -> anyhow::Result<(StatusCode, Bytes)> {
        let host = self.address.rsplit_once(':').map_or(self.address.as_str(), |(host, _)| host);
        match &self.tls {
            None => self.request(stream, path).await,
            Some(tls) => self.request(tls.connect(stream, host, "http/1.1").await?, path).await,
        }
    }

    async fn request(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        path: &str,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut connection = tokio::spawn(connection);
        let mut request = Request::get(path).header(HOST, &self.address);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.read()?));
        }
        let request = request.body(Empty::<Bytes>::new())?;
        let answer = tokio::select! {
            biased;
            answer = sender.send_request(request) => answer.map_err(anyhow::Error::from),
            ended = &mut connection => return Err(why(ended)),
        };
        let (head, body) = match answer {
            Ok(answer) => answer.into_parts(),
            // That the request was given up says less than why the connection ended.
            Err(error) => return Err(connection.await.ok().and_then(Result::err).map_or(error, Into::into)),
        };
        let body = Limited::new(body, PAGE_BYTES_MAX).collect().await.map_err(anyhow::Error::from_boxed)?;
        connection.abort();
        Ok((head.status, body.to_bytes()))
    }
}

/// Why a connection ended without an answer.
fn why(ended: Result<hyper::Result<()>, tokio::task::JoinError>) -> anyhow::Error {
    match ended {
        Ok(Err(error)) => error.into(),
        _ => anyhow::anyhow!("the connection was closed"),
    }
}

/// Returns an error's explanation by TLS, if it is about that.
fn of_tls(address: &str, error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(|cause| explain_tls(address, cause.downcast_ref::<io::Error>()?))
}
