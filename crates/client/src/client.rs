//! The connection, and one attempt of a call.

use std::{sync::Arc, time::Duration};

use forebay_proto::v1::queue_service_client::QueueServiceClient;
use tokio::time::Instant;
use tonic::{
    Code, Request, Response, Status,
    transport::{Channel, Endpoint},
};

use crate::{
    address::Address,
    config::ClientConfig,
    error::Error,
    retry::{Attempts, SharedRng},
};

/// The generated client.
pub(crate) type Grpc = QueueServiceClient<Channel>;

/// The largest response that is accepted: 15 MiB of items and their encoding.
const RESPONSE_BYTES_MAX: usize = 24 << 20;

/// A client of one server and one namespace. Cheap to clone. The clones share one connection, which is
/// opened by the first call and reopened after it broke.
#[derive(Debug, Clone)]
pub struct Client {
    /// The generated client; a clone of it makes one call.
    pub(crate) grpc: Grpc,
    /// Where, for whom and how patiently to call.
    pub(crate) config: Arc<ClientConfig>,
    /// The source of retry pauses and request ids.
    pub(crate) rng: Arc<SharedRng>,
}

impl Client {
    /// Prepares a connection. Must be called inside a Tokio runtime. Fails only if the address is not valid:
    /// the first call connects.
    pub fn connect(config: ClientConfig) -> Result<Self, Error> {
        let invalid = |error: tonic::transport::Error| {
            Error::local(Code::InvalidArgument, format!("{:?} is not a valid address: {error}", config.addr))
        };
        let endpoint = Endpoint::from_shared(Address::parse(&config.addr)?.uri())
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

    /// A client on an existing channel.
    pub(crate) fn over(channel: Channel, config: ClientConfig) -> Self {
        let grpc = QueueServiceClient::new(channel).max_decoding_message_size(RESPONSE_BYTES_MAX);
        Self { grpc, rng: Arc::new(SharedRng::new(config.seed)), config: Arc::new(config) }
    }

    /// The namespace that calls are made for.
    pub fn namespace(&self) -> &str {
        &self.config.namespace
    }

    /// The attempts of a call whose long poll takes up to `wait`.
    pub(crate) fn attempts(&self, wait: Duration) -> Attempts {
        Attempts::new(self.config.retry, Instant::now() + self.config.call_timeout + wait)
    }

    /// One attempt, with a deadline that is sent to the server.
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
        let timeout =
            (self.config.attempt_timeout + wait).min(until.saturating_duration_since(Instant::now()));
        let mut request = Request::new(message);
        request.set_timeout(timeout);
        // The server answers by the deadline; the answer needs a moment to arrive.
        let receive_timeout = timeout + Duration::from_millis(250);
        match tokio::time::timeout(receive_timeout, call(self.grpc.clone(), request)).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(Error::of_call(&status).at(&self.config.addr)),
            Err(_) => Err(Error::timed_out(receive_timeout)),
        }
    }
}

/// An answer without exactly one result per member.
pub(crate) fn miscounted(sent: usize, answered: usize) -> Error {
    Error::local(Code::Internal, format!("the server returned {answered} results for {sent} members"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{calls::dequeue::DequeueCall, config::RetryPolicy, item::NewItem, testing::Fake};

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_is_retried_until_the_call_times_out() {
        let (fake, client) = Fake::start().await;
        fake.enqueue.hold(true);
        let started = Instant::now();
        let error = client.enqueue(vec![NewItem::new("a", "1")]).await.unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded);
        assert!(error.maybe_done());
        assert!(started.elapsed() <= Duration::from_secs(31), "{:?}", started.elapsed());
        let calls = fake.enqueue.calls();
        assert!((3..=4).contains(&calls.len()), "{}", calls.len());
        assert!(calls.iter().all(|call| *call == calls[0]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_poll_adds_its_wait_to_the_timeout() {
        let (fake, client) = Fake::start().await;
        let started = Instant::now();
        let call = DequeueCall::topic("a", 1).wait(Duration::from_secs(20));
        assert_eq!(client.dequeue(call).await.unwrap(), []);
        assert!(started.elapsed() >= Duration::from_secs(20));
        assert_eq!(fake.dequeue.calls().len(), 1);
    }

    #[tokio::test]
    async fn a_refused_connection_is_reported_in_one_line() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = ClientConfig::new(format!("http://127.0.0.1:{port}")).retry(RetryPolicy::never());
        let client = Client::connect(config).unwrap();
        let error = client.active_topics(Default::default()).await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable);
        let text = error.to_string();
        assert!(
            text.contains("refused") && text.contains(&format!("127.0.0.1:{port}")) && !text.contains('\n'),
            "{text}"
        );
    }

    #[tokio::test]
    async fn a_malformed_address_is_refused_at_once() {
        let error = Client::connect(ClientConfig::new("not an address")).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains("not an address"));
    }
}
