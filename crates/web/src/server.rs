//! The HTTP server and its routes.

use std::{future::poll_fn, pin::pin, sync::Arc, time::Duration};

use axum::{
    Extension, Json, Router,
    http::{HeaderName, HeaderValue, StatusCode, header::CONNECTION},
    middleware,
    response::{IntoResponse as _, Response},
    routing::{MethodRouter, get, post},
};
use forebay_access::{FORMS, PAGES};
use forebay_edge::{
    admission::{AdmissionLoad, Caller, ConnectionLoad},
    connections::{CREDENTIAL, Lifetime, Place, count_closed},
    tls::{AcceptedConnection, HandshakeConfig, Listener, Source, Stream},
};
use http::Request;
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::TcpListener,
    sync::{oneshot, watch},
    task::{JoinHandle, JoinSet},
    time::{Instant, sleep, timeout},
};
use tower::util::{MapRequest, MapResponse};

use super::{
    assets,
    connect::{Connect, PATHS},
    dashboard::{self, SharedLists},
    gate::{self, Gate},
    guard,
    info::{NodeInfo, NodeStatus, State},
    metrics, probes,
};

/// Of the head of a request.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// A connection is closed after this time, between two requests. Operators' tools connect again.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(60);
/// How long the last answer of a connection may take: as long as a call, and the time to read its answer.
const LAST_ANSWER_TIMEOUT: Duration = Duration::from_secs(30 + 10);

/// A running HTTP server.
pub struct HttpServer {
    /// Starts the graceful shutdown.
    shutdown: oneshot::Sender<()>,
    /// Ends when the port is closed and all connections have ended.
    task: JoinHandle<()>,
    /// Moves metric samples into their buckets; aborted at the end.
    upkeep: JoinHandle<()>,
}

/// Serves the pages and the calls, with TLS or without.
pub fn serve(
    listener: TcpListener,
    tls: Option<Source>,
    info: Arc<NodeInfo>,
    connect: Connect,
    gate: Gate,
    header_timeout: Duration,
) -> HttpServer {
    let upkeep = tokio::spawn(metrics::upkeep(info.metrics.recorder.clone()));
    let (load, calls, connect) = (info.load.clone(), connect.calls().clone(), Arc::new(connect));
    let beginning = HandshakeConfig { tls, http2: false, limit: header_timeout };
    let listener = Listener::new(listener, load.http_connections.clone(), beginning);
    let pages = PAGES.iter().filter_map(|(path, ..)| Some((*path, page_handler(path)?)));
    let forms = FORMS.iter().filter_map(|(path, _)| Some((*path, form_handler(path)?)));
    let router = pages
        .chain(forms)
        .fold(Router::new(), |router, (path, handler)| router.route(path, handler))
        .with_state(info)
        .fallback(move |request| call(connect.clone(), request))
        .layer(Extension(gate.keeper.clone()))
        .layer(Extension(calls))
        .layer(Extension(Arc::new(SharedLists::default())))
        .layer(middleware::from_fn_with_state(Arc::new(gate), gate::pass));
    let (shutdown, closed) = oneshot::channel::<()>();
    let task = tokio::spawn(accept(listener, router, load, header_timeout, closed));
    HttpServer { shutdown, task, upkeep }
}

/// The handler of a page. Only pages are reached that have a row in the list of their needs.
fn page_handler(path: &'static str) -> Option<MethodRouter<Arc<NodeInfo>>> {
    Some(match path {
        "/events" => get(dashboard::events),
        "/metrics" => get(metrics::metrics),
        "/healthz" => get(probes::alive),
        "/readyz" => get(probes::ready),
        "/status.json" => get(status),
        "/login" => get(guard::login_form),
        "/assets/app.css" => get(assets::style),
        "/assets/app.js" => get(assets::script),
        "/assets/icon.svg" => get(assets::icon),
        path => return dashboard::page_handler(path),
    })
}

/// The handler of a form. Its keeper has read it, and knows that a page of this node has sent it.
fn form_handler(path: &str) -> Option<MethodRouter<Arc<NodeInfo>>> {
    Some(match path {
        "/login" => post(guard::log_in),
        "/logout" => post(guard::log_out),
        path => return dashboard::form_handler(path),
    })
}

/// Accepts connections until `closed`, then waits for them to end.
async fn accept(
    mut listener: Listener,
    router: Router,
    load: Arc<AdmissionLoad>,
    header_timeout: Duration,
    mut closed: oneshot::Receiver<()>,
) {
    let (stop, stopped) = watch::channel(());
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            // A dropped sender means the same as a message.
            _ = &mut closed => break,
            Some(_) = connections.join_next() => continue,
            accepted = poll_fn(|context| listener.poll_accept(context)) => accepted,
        };
        let AcceptedConnection { stream, principal, client, lifetime } = accepted;
        let load = Arc::new(ConnectionLoad::new(&load.limits, lifetime.place().clone()));
        let peer = Peer { stream, lifetime, caller: Caller { load, principal, client } };
        connections.spawn(connection(peer, router.clone(), header_timeout, stopped.clone()));
    }
    drop((listener, stop));
    while connections.join_next().await.is_some() {}
}

/// A connection, and what its requests carry as an extension.
struct Peer {
    /// Its bytes.
    stream: Stream,
    /// Tells when it ends.
    lifetime: Lifetime,
    /// The other end, whose requests they are.
    caller: Caller,
}

/// Tells a client how long it may send the next request over its connection, a second less than the server
/// waits for it: else a proxy or a pool sends into a connection that is closing.
fn keeps(place: &Place, age: Duration, idle: Duration) -> Option<(HeaderName, HeaderValue)> {
    let left = CONNECTION_AGE_MAX.saturating_sub(age).min(idle).as_secs().saturating_sub(1);
    match left {
        0 => Some((CONNECTION, HeaderValue::from_static("close"))),
        // Whoever has shown no credential is not kept.
        _ if place.is_accepted() => {
            let value = HeaderValue::try_from(format!("timeout={left}")).ok()?;
            Some((HeaderName::from_static("keep-alive"), value))
        }
        _ => None,
    }
}

/// Serves one connection.
async fn connection(
    Peer { stream, mut lifetime, caller }: Peer,
    router: Router,
    header_timeout: Duration,
    mut stopped: watch::Receiver<()>,
) {
    let (load, place, began) = (caller.load.clone(), caller.load.clone(), Instant::now());
    let service = MapRequest::new(router, move |mut request: Request<Incoming>| {
        caller.load.begin();
        request.extensions_mut().insert(caller.principal.clone());
        request.extensions_mut().insert(caller.clone());
        request
    });
    let service = MapResponse::new(service, move |mut response: Response| {
        if let Some((name, value)) = keeps(place.place(), began.elapsed(), header_timeout) {
            response.headers_mut().insert(name, value);
        }
        response
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut served = pin!(served);
    let ended = tokio::select! {
        ended = &mut served => Some(ended),
        why = poll_fn(|context| lifetime.poll_end(context)) => match why {
            // The request that is being answered comes to its end.
            CREDENTIAL => None,
            _ => return,
        },
        // The sender is dropped when the port is closed.
        _ = stopped.changed() => None,
        () = sleep(CONNECTION_AGE_MAX) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            served.as_mut().graceful_shutdown();
            tokio::select! {
                // A client that does not read its last answer is cut off.
                ended = timeout(LAST_ANSWER_TIMEOUT, served) => ended.unwrap_or(Ok(())),
                _ = poll_fn(|context| lifetime.poll_end(context)) => return,
            }
        }
    };
    if ended.is_err_and(|error| error.is_timeout()) {
        count_closed("http", if load.begun() == 0 { "handshake" } else { "idle" });
    }
}

impl HttpServer {
    /// Closes the port, waits up to `timeout` for connections to end, then drops them.
    pub async fn close(self, timeout: Duration) {
        self.upkeep.abort();
        let _ = self.shutdown.send(());
        let mut task = self.task;
        if tokio::time::timeout(timeout, &mut task).await.is_err() {
            task.abort();
        }
    }
}

/// Serves what has no route: calls, and nothing else.
async fn call(connect: Arc<Connect>, request: axum::extract::Request) -> Response {
    match request.uri().path().starts_with(PATHS) {
        true => connect.answer(request).await,
        false => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn status(state: State) -> Json<NodeStatus> {
    Json(state.status().await)
}

#[cfg(test)]
mod tests {
    use forebay_types::Timestamp;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
    };

    use super::*;
    use forebay_edge::{admission::LoadLimits, tls::Principal};

    #[test]
    fn every_page_and_form_with_a_row_is_served() {
        for (path, ..) in PAGES {
            assert!(page_handler(path).is_some(), "{path}");
        }
        for (path, _) in FORMS {
            assert!(form_handler(path).is_some(), "{path}");
        }
    }

    #[test]
    fn a_client_is_told_how_long_its_connection_is_kept() {
        let node = AdmissionLoad::new(&LoadLimits::default());
        let load = ConnectionLoad::open_at(&node, &node.http_connections).unwrap();
        let seconds = Duration::from_secs;
        let told = |age| keeps(load.place(), seconds(age), seconds(10)).map(|(_, value)| value);
        assert_eq!(told(0), None, "no credential was accepted");
        load.accept();
        assert_eq!(told(0).unwrap(), "timeout=9");
        assert_eq!(told(54).unwrap(), "timeout=5");
        for age in [59, 60, 100] {
            assert_eq!(told(age).unwrap(), "close", "{age}");
        }
    }

    #[tokio::test]
    async fn every_handler_knows_who_asks() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, from) = listener.accept().await.unwrap();
        let node = AdmissionLoad::new(&LoadLimits::default());
        let (place, displaced) = node.http_connections.enter(from.ip()).unwrap();
        let lifetime = Lifetime::new(Arc::new(place), displaced);
        let load = Arc::new(ConnectionLoad::new(&node.limits, lifetime.place().clone()));
        let ends = Timestamp::from_micros(7);
        let principal = Principal::Certificate { name: "a.example".into(), ends };
        let caller = Caller { load, principal, client: from };
        let peer = Peer { stream: Stream::plain(stream), lifetime, caller };
        let who = async |Extension(principal): Extension<Principal>| format!("{principal:?}");
        let router = Router::new().route("/", get(who));
        let (_stop, stopped) = watch::channel(());
        tokio::spawn(connection(peer, router, Duration::from_secs(10), stopped));
        client.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains("Certificate { name: \"a.example\""), "{answer}");
    }
}
