//! How connections to addresses are made.

use std::{fmt, sync::Arc};

use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::{
    Code,
    codegen::http::Uri,
    transport::{self, Channel},
};
use tower::ServiceExt as _;

use crate::{
    address::Address,
    config::ClientConfig,
    error::Error,
    tls::Tls,
    token::{Bearer, Link},
};

type Dial = dyn Fn(&Address) -> Result<Channel, Error> + Send + Sync;

/// Makes a connection that is opened by its first call.
#[derive(Clone)]
pub(crate) struct Dialer {
    /// Makes the connection.
    dial: Arc<Dial>,
    /// What its calls show.
    bearer: Bearer,
}

impl Dialer {
    /// Over TCP, with the timeouts of `config`, and with `tls` where an address asks for it. Dialling must
    /// happen inside a Tokio runtime.
    pub(crate) fn tcp(config: &ClientConfig, tls: Option<Tls>) -> Self {
        let (connect_timeout, keepalive, keepalive_timeout) =
            (config.connect_timeout, config.keepalive, config.keepalive_timeout);
        Self::with(move |address| {
            let invalid = |error: transport::Error| {
                let at = address.host_port();
                Error::local(Code::InvalidArgument, format!("{at:?} is not a valid address: {error}"))
            };
            let endpoint = transport::Endpoint::from_shared(address.uri())
                .map_err(invalid)?
                .user_agent(concat!("forebay-client/", env!("CARGO_PKG_VERSION")))
                .map_err(invalid)?
                .connect_timeout(connect_timeout)
                .http2_keep_alive_interval(keepalive)
                .keep_alive_timeout(keepalive_timeout)
                .keep_alive_while_idle(true)
                .tcp_nodelay(true);
            if !address.has_tls() {
                return Ok(endpoint.connect_lazy());
            }
            let host = address.host().to_owned();
            let missing = || Error::local(Code::InvalidArgument, "there are no settings for TLS");
            let tls = tls.clone().ok_or_else(missing)?;
            let connector = tower::service_fn(move |uri| secured(uri, tls.clone(), host.clone()));
            Ok(endpoint.connect_with_connector_lazy(connector))
        })
    }

    /// In some other way.
    pub(crate) fn with(dial: impl Fn(&Address) -> Result<Channel, Error> + Send + Sync + 'static) -> Self {
        Self { dial: Arc::new(dial), bearer: Bearer::default() }
    }

    /// The same, with calls that show a token.
    pub(crate) fn showing(self, bearer: Bearer) -> Self {
        Self { bearer, ..self }
    }

    /// A connection to an address.
    pub(crate) fn dial(&self, address: &Address) -> Result<Link, Error> {
        Ok(self.bearer.on((self.dial)(address)?))
    }
}

/// Opens a connection and secures it.
async fn secured(
    uri: Uri,
    tls: Tls,
    host: String,
) -> Result<TokioIo<impl AsyncRead + AsyncWrite + Send + Unpin>, Box<dyn std::error::Error + Send + Sync>> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let stream = tcp.oneshot(uri).await?.into_inner();
    Ok(TokioIo::new(tls.connect(stream, &host, "h2").await?))
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dialer")
    }
}
