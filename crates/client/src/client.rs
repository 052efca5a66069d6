//! The connection, and how one attempt is made.

use std::{sync::Arc, time::Duration};

use forebay_proto::v1::queue_service_client::QueueServiceClient;
use tokio::time::Instant;
use tonic::{
    Code, Request, Response, Status,
    transport::{Channel, Endpoint},
};

use crate::{
    ClientConfig, Error,
    retry::{Attempts, Dice},
};

/// The generated client.
pub(crate) type Grpc = QueueServiceClient<Channel>;

/// The longest answer that is read: 15 MiB of items and what is around them.
const ANSWER_BYTES: usize = 24 << 20;

/// A client of one server and one namespace. Cheap to clone; the clones share one connection, which comes
/// about with the first call and again after it broke.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) grpc: Grpc,
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) dice: Arc<Dice>,
}

impl Client {
    /// Prepares a connection; must be called inside a Tokio runtime. Fails only if the address makes no
    /// sense: whether the server is there shows at the first call.
    pub fn connect(config: ClientConfig) -> Result<Self, Error> {
        let invalid = |error: tonic::transport::Error| {
            Error::local(Code::InvalidArgument, format!("the address {:?} is wrong: {error}", config.addr))
        };
        let endpoint = Endpoint::from_shared(config.addr.clone())
            .map_err(invalid)?
            .user_agent(concat!("forebay-client/", env!("CARGO_PKG_VERSION")))
            .map_err(invalid)?
            .connect_timeout(config.connect_timeout)
            .http2_keep_alive_interval(config.keepalive)
            .keep_alive_timeout(config.keepalive_timeout)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true);
        Ok(Self::over(endpoint.connect_lazy(), config))
    }

    /// Over a channel that is there already.
    pub(crate) fn over(channel: Channel, config: ClientConfig) -> Self {
        let grpc = QueueServiceClient::new(channel).max_decoding_message_size(ANSWER_BYTES);
        Self { grpc, dice: Arc::new(Dice::new(config.seed)), config: Arc::new(config) }
    }

    /// The namespace that calls are made for.
    pub fn namespace(&self) -> &str {
        &self.config.namespace
    }

    /// The attempts of a call that may take `wait` longer than others.
    pub(crate) fn attempts(&self, wait: Duration) -> Attempts {
        Attempts::new(self.config.retry, Instant::now() + self.config.call_timeout + wait)
    }

    /// One attempt, with a deadline that the server knows too.
    pub(crate) async fn attempt<Q, A, F>(
        &self,
        wait: Duration,
        until: Instant,
        message: Q,
        call: impl FnOnce(Grpc, Request<Q>) -> F,
    ) -> Result<A, Error>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let span = (self.config.attempt_timeout + wait).min(until.saturating_duration_since(Instant::now()));
        let mut request = Request::new(message);
        request.set_timeout(span);
        // The server answers at its deadline; a server that is silent is given a moment more.
        let patience = span + Duration::from_millis(250);
        match tokio::time::timeout(patience, call(self.grpc.clone(), request)).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(Error::of_call(&status)),
            Err(_) => Err(Error::timed_out(patience)),
        }
    }
}

/// An answer that has not one result per member.
pub(crate) fn miscounted(sent: usize, answered: usize) -> Error {
    Error::local(Code::Internal, format!("{sent} members were sent and {answered} results came back"))
}
