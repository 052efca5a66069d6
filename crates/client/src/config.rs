//! How a client connects and repeats.

use std::time::Duration;

/// Where the server is and how patient the client is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// The server, as `http://host:port`.
    pub addr: String,
    /// The tenant that all calls are made for.
    pub namespace: String,
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
    /// How long one attempt may take, beside the wait of a long poll. Sent along as the call's deadline.
    pub attempt_timeout: Duration,
    /// How long a call may take with all its attempts and pauses.
    pub call_timeout: Duration,
    /// An idle connection is probed this often.
    pub keepalive: Duration,
    /// A connection that leaves a probe unanswered this long is given up.
    pub keepalive_timeout: Duration,
    /// When and how often to repeat.
    pub retry: RetryPolicy,
    /// Makes pauses and request ids foreseeable, for tests; `None`: from the system's randomness.
    pub seed: Option<u64>,
}

impl ClientConfig {
    /// For a server at `addr`, the namespace `default`, and the usual patience: 10 s an attempt, 30 s a call.
    pub fn new(addr: impl Into<String>) -> Self {
        Self {
            addr: addr.into(),
            namespace: "default".to_owned(),
            connect_timeout: Duration::from_secs(5),
            attempt_timeout: Duration::from_secs(10),
            call_timeout: Duration::from_secs(30),
            keepalive: Duration::from_secs(30),
            keepalive_timeout: Duration::from_secs(10),
            retry: RetryPolicy::default(),
            seed: None,
        }
    }

    /// The same for another namespace.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), ..self }
    }

    /// The same with another policy of repeating.
    pub fn retry(self, retry: RetryPolicy) -> Self {
        Self { retry, ..self }
    }

    /// The same with another bound on a call with all its attempts.
    pub fn call_timeout(self, span: Duration) -> Self {
        Self { call_timeout: span, ..self }
    }
}

/// Exponential backoff with full jitter: the n-th pause is a random span up to `initial · 2ⁿ`, at most
/// `max`. Where the server said when to come back, the pause is that span and the random one on top.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The bound of the first pause.
    pub initial: Duration,
    /// The bound of every pause.
    pub max: Duration,
    /// How many attempts a call has, the first one included.
    pub attempts: u32,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { initial: Duration::from_millis(50), max: Duration::from_secs(5), attempts: u32::MAX }
    }
}

impl RetryPolicy {
    /// One attempt and no more.
    pub fn never() -> Self {
        Self { attempts: 1, ..Self::default() }
    }
}
