//! How connections to addresses are made.

use std::{fmt, sync::Arc};

use tonic::{
    Code,
    transport::{self, Channel},
};

use crate::{address::Address, config::ClientConfig, error::Error};

type Dial = dyn Fn(&Address) -> Result<Channel, Error> + Send + Sync;

/// Makes a connection that is opened by its first call.
#[derive(Clone)]
pub(crate) struct Dialer(Arc<Dial>);

impl Dialer {
    /// Over TCP, with the timeouts of `config`. Dialling must happen inside a Tokio runtime.
    pub(crate) fn tcp(config: &ClientConfig) -> Self {
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
            Ok(endpoint.connect_lazy())
        })
    }

    /// In some other way.
    pub(crate) fn with(dial: impl Fn(&Address) -> Result<Channel, Error> + Send + Sync + 'static) -> Self {
        Self(Arc::new(dial))
    }

    /// A connection to an address.
    pub(crate) fn dial(&self, address: &Address) -> Result<Channel, Error> {
        (self.0)(address)
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dialer")
    }
}
