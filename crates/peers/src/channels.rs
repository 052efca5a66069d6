//! Connections to other nodes. Each is opened when it is first used, and anew after it broke or the
//! certificate was renewed: the other node ends one whose authority it gives up, with all calls that are
//! under way there.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use forebay_edge::tls::PeerTls;
use forebay_proto::peer::{PingRequest, peer_service_client::PeerServiceClient};
use tokio::time::Instant;
use tonic::{
    Code,
    service::interceptor::InterceptedService,
    transport::{Channel, Endpoint},
};

use super::{
    credentials::{AddCredentials, Credentials},
    dial::Dial,
    room::Room,
};

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// How often a connection in use is checked. A node that was cut off without a sign is noticed by this.
const KEEPALIVE: Duration = Duration::from_secs(1);
/// How often another connection is tried with a renewed certificate that the other node does not take. Until
/// then the one before works.
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// The largest answer: one refusal for each member of the largest call.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Numbers the connections of the process.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// The client of one node.
pub type Client = PeerServiceClient<InterceptedService<Channel, AddCredentials>>;

/// One connection to each node.
pub(crate) struct Channels {
    /// Opens connections.
    dial: Dial,
    /// Credentials that every call carries.
    credentials: Credentials,
    /// How long the other side may take to answer a check of the connection.
    keepalive_timeout: Duration,
    /// The most bytes on their way to one node.
    bytes: usize,
    /// The connections, by address.
    links: Mutex<HashMap<String, Arc<Link>>>,
}

/// The connection to one node.
pub struct Link {
    /// Opens it.
    dial: Dial,
    /// Where and how it is opened.
    endpoint: Endpoint,
    /// Credentials that every call carries.
    credentials: Credentials,
    /// The connection. Whoever opens it holds the lock, so that all who wait get what came of one attempt.
    state: tokio::sync::Mutex<State>,
    /// Bounds of what is on its way to the node.
    pub room: Room,
}

/// A connection, as far as is known.
enum State {
    /// It is not open.
    Closed,
    /// It was open when it was last used.
    Open(Box<OpenConnection>),
    /// It could not be opened, and is not tried again before this time.
    Down(Instant, String),
}

/// A connection that was open when it was last used.
struct OpenConnection {
    /// Tells it from those before.
    number: u64,
    /// Calls over it. It closes once nobody has a copy.
    client: Client,
    /// The settings with which it was made.
    tls: Option<Arc<PeerTls>>,
    /// When another one is tried again with the renewed certificate. `None`: none has failed.
    renew_at: Option<Instant>,
}

impl OpenConnection {
    /// Whether it was made with these settings.
    fn has(&self, tls: Option<&Arc<PeerTls>>) -> bool {
        self.tls.as_ref().map(Arc::as_ptr) == tls.map(Arc::as_ptr)
    }
}

impl Channels {
    /// None is open yet. At most so many bytes are on their way to one node.
    pub fn new(dial: Dial, credentials: Credentials, keepalive_timeout: Duration, bytes: usize) -> Self {
        Self { dial, credentials, keepalive_timeout, bytes, links: Mutex::default() }
    }

    /// The connection to a node. `None`: the address is not valid.
    pub fn link(&self, address: &str) -> Option<Arc<Link>> {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = links.get(address) {
            return Some(link.clone());
        }
        let endpoint = Endpoint::from_shared(self.dial.uri(address)).ok()?;
        let endpoint = endpoint
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(self.keepalive_timeout);
        let (dial, credentials) = (self.dial.clone(), self.credentials.clone());
        let (state, room) = (tokio::sync::Mutex::new(State::Closed), Room::new(self.bytes));
        let link = Arc::new(Link { dial, endpoint, credentials, state, room });
        links.insert(address.to_owned(), link.clone());
        Some(link)
    }

    /// The bytes on their way to the node to which most are, and how many may be.
    pub(crate) fn used_bytes(&self) -> (usize, usize) {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        (links.values().map(|link| link.room.used_bytes()).max().unwrap_or(0), self.bytes)
    }

    /// Forgets the connections to all nodes but these.
    pub fn retain(&self, addresses: &[&str]) {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|address, _| addresses.contains(&address.as_str()));
    }
}

impl Link {
    /// The open connection, and its number. Opens it if need be; of many who wait for that, one tries. Fails
    /// with the reason why it can't be opened.
    pub async fn client(&self) -> Result<(u64, Client), String> {
        let mut state = self.state.lock().await;
        let (tls, now) = (self.dial.settings(), Instant::now());
        let before = match &mut *state {
            State::Open(open) if open.has(tls.as_ref()) || open.renew_at.is_some_and(|at| now < at) => {
                return Ok((open.number, open.client.clone()));
            }
            State::Down(until, why) if now < *until => return Err(why.clone()),
            // Said before it is tried: whoever waits for that may go away.
            State::Open(open) => {
                let is_first = open.renew_at.replace(now + RENEW_EVERY).is_none();
                Some((open.number, open.client.clone(), is_first))
            }
            State::Down(..) | State::Closed => None,
        };
        match (self.open(tls.clone(), before.is_some()).await, before) {
            (Ok(client), _) => {
                let number = OPENED.fetch_add(1, Ordering::Relaxed);
                let open = OpenConnection { number, client: client.clone(), tls, renew_at: None };
                *state = State::Open(Box::new(open));
                Ok((number, client))
            }
            (Err(failed), Some((number, client, is_first))) => {
                if is_first {
                    let node = self.endpoint.uri();
                    tracing::warn!(
                        "no connection to {node} with the renewed certificate; the one before stays in use: \
                         {failed}"
                    );
                }
                Ok((number, client))
            }
            (Err(failed), None) => {
                *state = State::Down(Instant::now() + CONNECT_TIMEOUT, failed.clone());
                Err(failed)
            }
        }
    }

    /// Opens a connection. One that is to take the place of another must be answered first: a node may refuse
    /// a certificate after the handshake.
    async fn open(&self, tls: Option<Arc<PeerTls>>, is_renewal: bool) -> Result<Client, String> {
        let opening = async {
            let connected = self.dial.connect(&self.endpoint, tls).await;
            let channel = connected.map_err(|error| cause(&error))?;
            let credentials = AddCredentials(self.credentials.clone());
            let mut client = PeerServiceClient::with_interceptor(channel, credentials)
                .max_decoding_message_size(ANSWER_BYTES_MAX);
            if is_renewal
                && let Err(status) = client.ping(PingRequest {}).await
                && status.code() != Code::Unimplemented
            {
                return Err(cause(&status));
            }
            Ok(client)
        };
        // The library's own limit does not hold for all that comes before the first answer.
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, opening).await;
        opened.unwrap_or_else(|_| Err(format!("no connection within {CONNECT_TIMEOUT:?}")))
    }

    /// A call over this connection failed: the next one opens another.
    pub async fn broke(&self, number: u64) {
        let mut state = self.state.lock().await;
        if matches!(&*state, State::Open(open) if open.number == number) {
            *state = State::Closed;
        }
    }
}

/// Root of an error: what it says first of its own.
fn cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, fs, path::Path};

    use forebay_edge::tls::{Certificates, Live, PeerTlsFiles, ReloadTask, TlsSettings};
    use forebay_testkit::certificates::Authority;
    use forebay_types::{Clock as _, ClusterId, SystemClock};
    use hyper::{server::conn::http2, service::service_fn};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_rustls::TlsAcceptor;
    use tonic::{Status, body::Body};

    use super::*;

    /// Writes another certificate of a node, and says where.
    fn issue(authority: &Authority, folder: &Path) -> PeerTlsFiles {
        let [cert, key] = authority.issue(&["127.0.0.1"]).write(folder, "node");
        PeerTlsFiles { cert, key, ca: authority.write(folder, "ca"), name: None }
    }

    /// Serves calls, of which it knows none.
    async fn serve(stream: TcpStream, acceptor: TlsAcceptor) {
        let Ok(stream) = acceptor.accept(stream).await else { return };
        let unknown =
            service_fn(async |_| Ok::<_, Infallible>(Status::unimplemented("").into_http::<Body>()));
        let server = http2::Builder::new(TokioExecutor::new());
        // A client that goes away ends it with an error.
        let _ = server.serve_connection(TokioIo::new(stream), unknown).await;
    }

    /// Takes the files into use, and lets the time pass until which a renewal that failed is not tried again.
    async fn take_into_use(reload: &ReloadTask, live: &Live<PeerTls>) {
        let before = live.current();
        reload.look_now();
        while Arc::ptr_eq(&live.current(), &before) {
            tokio::task::yield_now().await;
        }
        tokio::time::pause();
        tokio::time::advance(RENEW_EVERY).await;
        tokio::time::resume();
    }

    /// Calls until another connection is used.
    async fn renewed(link: &Link, before: u64) -> u64 {
        loop {
            match link.client().await.unwrap().0 {
                number if number == before => tokio::task::yield_now().await,
                number => return number,
            }
        }
    }

    #[tokio::test]
    async fn a_renewed_certificate_has_another_connection_and_leaves_the_calls_of_the_one_before() {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("authority"));
        let clock = Arc::new(SystemClock::default());
        let settings = TlsSettings { server: None, peer: Some(issue(&authority, folder.path())) };
        let certificates = Certificates::load(&settings, clock.wall()).unwrap();
        let live = certificates.peer().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let acceptor = TlsAcceptor::from(live.current().server.clone());
        tokio::spawn(async move {
            loop {
                tokio::spawn(serve(listener.accept().await.unwrap().0, acceptor.clone()));
            }
        });

        let credentials = Credentials::new(ClusterId::default(), Vec::new());
        let channels = Channels::new(Dial::new(Some(live.clone())), credentials, KEEPALIVE, 1);
        let link = channels.link(&address).unwrap();
        let (first, _calls) = link.client().await.unwrap();
        assert_eq!(link.client().await.unwrap().0, first, "the files were not changed");
        issue(&authority, folder.path());
        let reload = ReloadTask::start(&certificates, clock);
        reload.look_now();
        let second = renewed(&link, first).await;
        assert_eq!(link.client().await.unwrap().0, second);
        link.broke(first).await;
        assert_eq!(link.client().await.unwrap().0, second, "another connection broke");

        // Certificates that the other node does not take: of another authority, at first with that node's own
        // among those that this one believes. The one before stays, and its calls are answered.
        let other = Authority::new("other");
        for believed in [authority.pem() + &other.pem(), other.pem()] {
            let files = issue(&other, folder.path());
            fs::write(files.ca, believed).unwrap();
            take_into_use(&reload, &live).await;
            let (number, mut client) = link.client().await.unwrap();
            assert_eq!(number, second);
            assert_eq!(client.ping(PingRequest {}).await.unwrap_err().code(), Code::Unimplemented);
        }
        issue(&authority, folder.path());
        take_into_use(&reload, &live).await;
        assert_ne!(renewed(&link, second).await, second, "it is tried again");
    }
}
