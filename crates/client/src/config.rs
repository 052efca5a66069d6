//! How a client connects and retries.

use std::{path::PathBuf, time::Duration};

use crate::{tls::TlsConfig, token::Token, trace_config::TraceConfig};

/// The servers, the namespace, and the timeouts of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// The servers, at least one, each as `https://host:port`, `http://host:port` or `host:port`. The last
    /// form has TLS if `tls` says anything.
    pub endpoints: Vec<String>,
    /// Authorities to believe and certificate to show where there is TLS.
    pub tls: TlsConfig,
    /// The token that calls show. `None`: none, or the certificate of `tls` says who calls.
    pub token: Option<Token>,
    /// Whether the token may go to other machines without TLS. Whoever is on the way can use it then. Without
    /// this such servers are refused, and nodes of which the addresses are so are not learnt.
    pub insecure: bool,
    /// Whether the cluster's other nodes are learnt from the servers and called too. Only those are used that
    /// can be reached at the address that they give, with TLS if any server was given with it. Until all can,
    /// the given servers stay in use.
    pub learn_nodes: bool,
    /// The namespace of all calls.
    pub namespace: String,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long one attempt may take, in addition to the wait of a long poll. Sent as the call's deadline. A
    /// node answers within three seconds, whatever its databases do: one that takes longer does not work.
    pub attempt_timeout: Duration,
    /// How long a call may take, including all attempts and pauses.
    pub call_timeout: Duration,
    /// How often a connection is probed on which nothing comes. A consumer whose node hangs asks another one
    /// once a probe is not answered, not at the end of its poll.
    pub keepalive: Duration,
    /// A connection that does not answer a probe within this time is closed.
    pub keepalive_timeout: Duration,
    /// When and how often to retry.
    pub retry: RetryPolicy,
    /// Which spans there are.
    pub traces: TraceConfig,
    /// Makes pauses and request ids reproducible, for tests; `None`: the system's random numbers.
    pub seed: Option<u64>,
}

impl ClientConfig {
    /// For a server at `addr`, with the namespace `default`, 5 s an attempt and 30 s a call. Several servers
    /// let the first call succeed while one is down: see [`ClientConfig::endpoint`].
    pub fn new(addr: impl Into<String>) -> Self {
        Self {
            endpoints: vec![addr.into()],
            tls: TlsConfig::default(),
            token: None,
            insecure: false,
            learn_nodes: true,
            namespace: "default".to_owned(),
            connect_timeout: Duration::from_secs(5),
            attempt_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(30),
            keepalive: Duration::from_secs(10),
            keepalive_timeout: Duration::from_secs(5),
            retry: RetryPolicy::default(),
            traces: TraceConfig::default(),
            seed: None,
        }
    }

    /// The same with one more server.
    pub fn endpoint(self, addr: impl Into<String>) -> Self {
        self.endpoints([addr])
    }

    /// The same with more servers.
    pub fn endpoints<T: Into<String>>(mut self, addrs: impl IntoIterator<Item = T>) -> Self {
        self.endpoints.extend(addrs.into_iter().map(Into::into));
        self
    }

    /// The same, believing only servers whose certificates are of these authorities, as PEM. By default those
    /// of the system are believed.
    pub fn ca_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.tls = self.tls.ca_certificate(pem);
        self
    }

    /// The same, showing servers a certificate. `chain_pem`: it, and those between it and its authority.
    pub fn client_certificate(mut self, chain_pem: impl Into<Vec<u8>>, key_pem: impl Into<Vec<u8>>) -> Self {
        self.tls = self.tls.client_certificate(chain_pem, key_pem);
        self
    }

    /// The same with other settings of TLS, as those that come from files.
    pub fn tls(self, tls: TlsConfig) -> Self {
        Self { tls, ..self }
    }

    /// The same, where the certificates of all servers are for `name`, and not for the hosts of their
    /// addresses.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.tls = self.tls.server_name(name);
        self
    }

    /// The same, showing a token with each call.
    pub fn token(self, token: impl Into<String>) -> Self {
        Self { token: Some(Token::Given(token.into())), ..self }
    }

    /// The same with a token in a file, which is read again every 10 s, so that another one may take its
    /// place.
    pub fn token_file(self, path: impl Into<PathBuf>) -> Self {
        Self { token: Some(Token::File(path.into())), ..self }
    }

    /// The same, showing the token to other machines without TLS too, or not.
    pub fn insecure(self, insecure: bool) -> Self {
        Self { insecure, ..self }
    }

    /// The same, learning the cluster's nodes or not.
    pub fn learn_nodes(self, learn_nodes: bool) -> Self {
        Self { learn_nodes, ..self }
    }

    /// The same for another namespace.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), ..self }
    }

    /// The same with another retry policy.
    pub fn retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// The same with other settings of traces.
    pub fn traces(self, traces: TraceConfig) -> Self {
        Self { traces, ..self }
    }

    /// The same with another `call_timeout`.
    pub fn call_timeout(self, timeout: Duration) -> Self {
        Self { call_timeout: timeout, ..self }
    }
}

/// Exponential backoff with full jitter: the n-th pause is random, up to `initial · 2ⁿ` and at most `max`.
/// If the server sent a retry delay, the pause is that delay plus the random one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The longest first pause.
    pub initial: Duration,
    /// The longest pause.
    pub max: Duration,
    /// How many attempts a call has, including the first.
    pub attempts: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { initial: Duration::from_millis(50), max: Duration::from_secs(5), attempts: u32::MAX }
    }
}

impl RetryPolicy {
    /// One attempt, no retries.
    pub fn never() -> Self {
        Self { attempts: 1, ..Self::default() }
    }
}
