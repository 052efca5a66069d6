//! The connections, and one attempt of a call.

use std::{sync::Arc, time::Duration};

use forebay_proto::v1::queue_service_client::QueueServiceClient;
use tokio::time::Instant;
use tonic::{Code, Request, Response, Status, transport::Channel};

use crate::{
    address::Address,
    config::ClientConfig,
    endpoints::{Dialer, Endpoints, Learner, Route},
    error::Error,
    next_shards::NextShards,
    retry::{Attempts, Target},
    rng::SharedRng,
    tls::Tls,
    token::{Bearer, Link},
};

/// The generated client.
pub(crate) type Grpc = QueueServiceClient<Link>;

/// A client of one cluster and one namespace. Cheap to clone. The clones share one connection to each server,
/// which is opened by the first call there and reopened after it broke.
///
/// Calls go to all servers in turn. A call that one cannot serve goes to another. See
/// [the crate's documentation](crate#several-nodes).
#[derive(Debug, Clone)]
pub struct Client {
    /// The servers.
    pub(crate) endpoints: Arc<Endpoints>,
    /// Learns more servers; `None`: there are only those that were given.
    pub(crate) learner: Option<Arc<Learner>>,
    /// For whom and how patiently to call.
    pub(crate) config: Arc<ClientConfig>,
    /// Secures connections. `None`: no address has TLS.
    pub(crate) tls: Option<Tls>,
    /// The source of retry pauses and request ids.
    pub(crate) rng: Arc<SharedRng>,
    /// The shards that the next enqueues of topics name.
    pub(crate) next_shards: Arc<NextShards>,
    /// Where enqueues and dequeues go.
    route: Route,
    /// Where topics are listed: a page token is of use to the server that gave it.
    pub(crate) listing: Route,
}

impl Client {
    /// Prepares connections. Must be called inside a Tokio runtime. Fails only if there is no address, one is
    /// not valid, or the settings of TLS are not: the first call connects.
    pub fn connect(config: ClientConfig) -> Result<Self, Error> {
        let has_tls = addresses(&config)?.iter().any(|(_, address)| address.has_tls());
        let tls = if has_tls { Some(Tls::new(&config.tls)?) } else { None };
        let bearer = Bearer::new(config.token.as_ref())?;
        let client =
            Self::dialled(Dialer::tcp(&config, tls.clone()).showing(bearer, config.insecure), config)?;
        Ok(Self { tls, ..client })
    }

    /// A client on a channel of the caller's own, for load balancing or another transport. All calls go
    /// there, and no nodes are learnt. The configuration's first endpoint only names the server in messages,
    /// and its connection settings and token have no effect: the channel's owner shows one.
    pub fn over_channel(channel: Channel, config: ClientConfig) -> Self {
        let name = config.endpoints.first().map_or("the server", String::as_str).to_owned();
        let rng = Arc::new(SharedRng::new(config.seed));
        let endpoints = Arc::new(Endpoints::given([(name, None, Bearer::default().on(channel))], &rng));
        Self::of(endpoints, None, config, rng)
    }

    /// A client whose connections are made by `dialer`.
    pub(crate) fn dialled(dialer: Dialer, config: ClientConfig) -> Result<Self, Error> {
        let addresses = addresses(&config)?;
        let tls = addresses.iter().any(|(_, address)| address.has_tls());
        let dial = |(addr, address): (String, Address)| {
            let channel = dialer.dial(&address)?;
            Ok((addr, Some(address), channel))
        };
        let given = addresses.into_iter().map(dial).collect::<Result<Vec<_>, Error>>()?;
        let rng = Arc::new(SharedRng::new(config.seed));
        let endpoints = Arc::new(Endpoints::given(given, &rng));
        let learner = config
            .learn_nodes
            .then(|| Learner::new(endpoints.clone(), dialer, rng.clone(), config.connect_timeout, tls));
        Ok(Self::of(endpoints, learner, config, rng))
    }

    fn of(
        endpoints: Arc<Endpoints>,
        learner: Option<Arc<Learner>>,
        config: ClientConfig,
        rng: Arc<SharedRng>,
    ) -> Self {
        let (route, listing) = (Route::InTurn, Route::sticky());
        let next_shards = Arc::default();
        Self { endpoints, learner, config: Arc::new(config), tls: None, rng, next_shards, route, listing }
    }

    /// The namespace that calls are made for.
    pub fn namespace(&self) -> &str {
        &self.config.namespace
    }

    /// The addresses of the servers that calls go to at present, given or learnt.
    pub fn servers(&self) -> Vec<String> {
        self.endpoints.in_use().iter().map(|endpoint| endpoint.address().to_owned()).collect()
    }

    /// The address of the only server that calls can go to at present; `None`: there are several, or it is
    /// not known.
    pub(crate) fn only_server(&self) -> Option<Address> {
        match &*self.endpoints.in_use() {
            [only] => only.checked_address(),
            _ => None,
        }
    }

    /// A client whose enqueues and dequeues stay with one server while it works, so that items come out in
    /// the order of the enqueues. Its clones stay there too. A [`Producer`](crate::Producer) does this by
    /// itself.
    pub fn in_order(&self) -> Self {
        Self { route: Route::sticky(), ..self.clone() }
    }

    /// The same with no more time for an attempt than this.
    pub(crate) fn with_attempt_timeout(&self, timeout: Duration) -> Self {
        let attempt_timeout = self.config.attempt_timeout.min(timeout);
        let config = Arc::new(ClientConfig { attempt_timeout, ..(*self.config).clone() });
        Self { config, ..self.clone() }
    }

    /// The attempts of a call whose long poll takes up to `wait`.
    pub(crate) fn attempts(&self, wait: Duration) -> Attempts {
        self.attempts_by(self.route.clone(), wait)
    }

    /// The attempts of a call that goes to this endpoint first, if nothing else is wanted.
    pub(crate) fn attempts_near(&self, id: Option<u32>) -> Attempts {
        self.attempts_by(self.route.or_to(id), Duration::ZERO)
    }

    /// The attempts of a call by another route.
    pub(crate) fn attempts_by(&self, route: Route, wait: Duration) -> Attempts {
        let until = Instant::now() + self.config.call_timeout + wait;
        Attempts::new(self.config.retry, until, self.endpoints.clone(), route, self.rng.clone())
    }

    /// One attempt, with a deadline that is sent to the server.
    pub(crate) async fn attempt<Q, A, F>(
        &self,
        target: &Target,
        wait: Duration,
        message: Q,
        call: impl FnOnce(Grpc, Request<Q>) -> F,
    ) -> Result<A, Error>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let (endpoint, began) = (&target.endpoint, Instant::now());
        let full = self.config.attempt_timeout + wait;
        let timeout = full.min(target.until.saturating_duration_since(began));
        let mut request = Request::new(message);
        request.set_timeout(timeout);
        // The server answers by the deadline; the answer needs a moment to arrive.
        let receive_timeout = timeout + Duration::from_millis(250);
        let answer = match tokio::time::timeout(receive_timeout, call(endpoint.queue(), request)).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => Err(Error::of_call(&status).at(endpoint.address())),
            Err(_) => Err(Error::timed_out(endpoint.address(), receive_timeout)),
        };
        match &answer {
            Ok(_) => {
                endpoint.works(began);
                self.learner.iter().for_each(Learner::on_success);
            }
            // A call that had less time than usual says nothing about the server.
            Err(error) if error.code() == Code::DeadlineExceeded && timeout < full => {}
            Err(error) if error.is_servers_fault() => {
                if endpoint.failed(began, &self.rng) {
                    self.learner.iter().for_each(|learner| learner.on_failure());
                }
            }
            Err(error) if error.reason().is_some() => {
                endpoint.works(began);
                if error.another_may_serve() {
                    self.learner.iter().for_each(Learner::on_refusal);
                }
            }
            Err(_) => {}
        }
        answer
    }
}

/// The servers that the user named, each once: as written, and checked.
fn addresses(config: &ClientConfig) -> Result<Vec<(String, Address)>, Error> {
    let mut given: Vec<(String, Address)> = Vec::new();
    for addr in &config.endpoints {
        let address = Address::parse(addr, !config.tls.is_default())?;
        if !given.iter().any(|(_, other)| other.host_port() == address.host_port()) {
            given.push((addr.clone(), address));
        }
    }
    if given.is_empty() {
        return Err(Error::local(Code::InvalidArgument, "no address of a server is given"));
    }
    Ok(given)
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
        assert!((6..=7).contains(&calls.len()), "{}", calls.len());
        assert!(calls.iter().all(|call| *call == calls[0]));
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_said_of_traces_where_there_are_none() {
        let (fake, client) = Fake::start().await;
        let item = || NewItem::new("a", "1");
        client.enqueue(vec![item()]).await.unwrap();
        client.enqueue(vec![item(), item()]).await.unwrap();
        assert!(fake.enqueue.metadata().iter().all(|call| call.get("traceparent").is_none()));
        let calls = fake.enqueue.calls();
        assert!(calls.iter().flat_map(|call| &call.items).all(|item| item.headers.is_empty()));
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
