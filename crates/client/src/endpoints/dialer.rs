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
    /// Token that its calls show.
    bearer: Bearer,
    /// They show it to other machines without TLS too.
    insecure: bool,
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
        Self { dial: Arc::new(dial), bearer: Bearer::default(), insecure: false }
    }

    /// The same, with calls that show a token. `insecure`: to other machines without TLS too.
    pub(crate) fn showing(self, bearer: Bearer, insecure: bool) -> Self {
        Self { bearer, insecure, ..self }
    }

    /// A connection to an address.
    pub(crate) fn dial(&self, address: &Address) -> Result<Link, Error> {
        if self.bearer.shows() && !self.insecure && !address.is_private() {
            let message = format!(
                "the token would go to {} without TLS, and whoever is on the way could use it; write \
                 https://, or allow it (ClientConfig::insecure, --insecure)",
                address.host_port()
            );
            return Err(Error::local(Code::InvalidArgument, message));
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Token;

    #[tokio::test]
    async fn a_token_goes_to_other_machines_with_tls_alone_unless_that_is_allowed() {
        let config = ClientConfig::new("db1:7420");
        let tls = Tls::new(&config.tls).unwrap();
        let token = Bearer::new(Some(&Token::Given("secret".to_owned()))).unwrap();
        let dials = |bearer: &Bearer, insecure, address: &str| {
            let dialer = Dialer::tcp(&config, Some(tls.clone())).showing(bearer.clone(), insecure);
            dialer.dial(&Address::parse(address, false).unwrap()).map(drop)
        };
        let refused = dials(&token, false, "http://db1:7420").unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        assert!(refused.message().contains("db1:7420 without TLS") && !refused.message().contains("secret"));
        for (bearer, insecure, address) in [
            (&token, true, "http://db1:7420"),
            (&token, false, "https://db1:7420"),
            (&token, false, "http://127.0.0.1:7420"),
            (&token, false, "localhost:7420"),
            (&Bearer::default(), false, "http://db1:7420"),
        ] {
            dials(bearer, insecure, address).unwrap();
        }
        let config = config.token("secret");
        assert!(crate::Client::connect(config.clone()).is_err());
        assert!(crate::Client::connect(config.insecure(true)).is_ok());
    }
}
