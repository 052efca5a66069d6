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
            Ok(Err(status)) => Err(Error::of_call(&status).at(&self.config.addr)),
            Err(_) => Err(Error::timed_out(patience)),
        }
    }
}

/// An answer that has not one result per member.
pub(crate) fn miscounted(sent: usize, answered: usize) -> Error {
    Error::local(Code::Internal, format!("{sent} members were sent and {answered} results came back"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DequeueCall, NewItem, RetryPolicy, testing::Fake};

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_is_asked_again_until_the_call_is_over() {
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
    async fn a_long_poll_has_its_wait_on_top() {
        let (fake, client) = Fake::start().await;
        let started = Instant::now();
        let call = DequeueCall::topic("a", 1).wait(Duration::from_secs(20));
        assert_eq!(client.dequeue(call).await.unwrap(), []);
        assert!(started.elapsed() >= Duration::from_secs(20));
        assert_eq!(fake.dequeue.calls().len(), 1);
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_told_in_one_line() {
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
    async fn a_wrong_address_is_told_at_once() {
        let error = Client::connect(ClientConfig::new("not an address")).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains("not an address"));
    }
}
