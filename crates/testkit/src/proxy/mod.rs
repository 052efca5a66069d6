//! A way over TCP that a test can disturb: it listens on a port of its own and passes bytes on to a target.
//!
//! A new proxy passes everything on. Each method changes what happens to all connections, open ones and those
//! to come, until [`Proxy::pass`]. Nothing is lost or damaged inside a connection that goes on, as in TCP.
//! Faults stop bytes, hold them up, or end the connection.

mod connection;
mod rules;
mod trap;

use std::{sync::Arc, time::Duration};

use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinHandle, JoinSet},
};

use rules::{Cut, Rules};
pub use rules::{Toward, Ways};
pub use trap::Spring;
use trap::Trap;

/// How COMMIT of a batch looks on its way to a server.
pub const BATCH_COMMIT: &[u8] = b"/* forebay batch */ COMMIT";

/// How a renewal of claims begins.
pub const RENEWAL: &[u8] = b"/* forebay renewal */";

/// Beginnings of each transaction of a node that changes something, or of its COMMIT.
pub const EACH_COMMIT: [&[u8]; 4] =
    [BATCH_COMMIT, RENEWAL, b"/* forebay probe */", b"/* forebay take-over */ UPDATE heartbeat"];

/// A proxy. Its connections end and its port is closed when it is dropped.
pub struct Proxy {
    /// The port on 127.0.0.1.
    port: u16,
    /// Rules of the connections.
    rules: watch::Sender<Rules>,
    /// How many traps have gone off, and how many connections were cut.
    sprung: watch::Sender<u32>,
    /// How many connections are open.
    open: watch::Sender<usize>,
    /// Accepts connections, and owns them.
    listening: JoinHandle<()>,
}

impl Proxy {
    /// A proxy in front of `target`, as in `127.0.0.1:3306`. Panics if there is no port.
    pub async fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("a bound listener").port();
        let (rules, watching) = watch::channel(Rules::default());
        let (sprung, open) = (watch::Sender::new(0), watch::Sender::new(0));
        let listening = tokio::spawn(accept(listener, target.to_owned(), watching, open.clone()));
        Self { port, rules, sprung, open, listening }
    }

    /// Its address, as in `127.0.0.1:40123`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A proxy in front of the server of a URL. Panics if the URL has no port.
    pub async fn of_url(url: &str) -> Self {
        Self::to(parts(url).1).await
    }

    /// The URL with this proxy in place of the server's address. Panics if the URL has none.
    pub fn through(&self, url: &str) -> String {
        let (before, _, after) = parts(url);
        format!("{before}{}{after}", self.address())
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        *self.open.borrow()
    }

    /// Everything passes again, without delay. Connections that a trap has made silent stay so.
    pub fn pass(&self) {
        self.rules.send_modify(|rules| {
            *rules = Rules { resets: rules.resets, cuts: rules.cuts, ..Rules::default() };
        });
    }

    /// Reads nothing more in these directions. The bytes wait until [`Proxy::pass`].
    pub fn stall(&self, ways: Ways) {
        self.rules.send_modify(|rules| rules.stalled = ways.set());
    }

    /// Resets new connections. Open ones go on.
    pub fn refuse(&self) {
        self.rules.send_modify(|rules| rules.refuse = true);
    }

    /// Resets the connections that are open.
    pub fn reset(&self) {
        self.rules.send_modify(|rules| rules.resets += 1);
    }

    /// Holds each piece of bytes up for so long.
    pub fn delay(&self, ways: Ways, delay: Duration) {
        self.rules
            .send_modify(|rules| rules.delays = ways.set().map(|on| if on { delay } else { Duration::ZERO }));
    }

    /// Resets each connection once it has passed so many bytes more in one direction.
    pub fn cut_after(&self, toward: Toward, bytes: usize) {
        self.rules.send_modify(|rules| {
            rules.cuts += 1;
            rules.cut = Some(Cut { toward, bytes, number: rules.cuts, sprung: self.sprung.clone() });
        });
    }

    /// Does something to each of the next `times` connections on which the client sends these bytes.
    pub fn trap(&self, marker: &[u8], spring: Spring, times: u32) {
        self.trap_any(&[marker], spring, times);
    }

    /// The same for one of several markers.
    pub fn trap_any(&self, markers: &[&[u8]], spring: Spring, times: u32) {
        let trap = Arc::new(Trap::new(markers, spring, times, self.sprung.clone()));
        self.rules.send_modify(|rules| rules.trap = Some(trap));
    }

    /// The same for the next connection on which the client sends `marker` behind `after`.
    pub fn trap_after(&self, after: &[u8], marker: &[u8], spring: Spring) {
        let trap = Arc::new(Trap::new(&[marker], spring, 1, self.sprung.clone()).after(after));
        self.rules.send_modify(|rules| rules.trap = Some(trap));
    }

    /// How many traps have gone off, and how many connections were cut, since the proxy began.
    pub fn sprung(&self) -> u32 {
        *self.sprung.borrow()
    }

    /// Waits until so many traps have gone off, or connections were cut, since the proxy began.
    pub async fn wait_sprung(&self, count: u32) {
        let mut sprung = self.sprung.subscribe();
        sprung.wait_for(|sprung| *sprung >= count).await.expect("the proxy has the other end");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn accept(
    listener: TcpListener,
    target: String,
    rules: watch::Receiver<Rules>,
    open: watch::Sender<usize>,
) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((client, _)) = listener.accept().await else { continue };
        if rules.borrow().refuse {
            connection::reset(client);
            continue;
        }
        let (target, rules, open) = (target.clone(), rules.clone(), open.clone());
        connections.spawn(async move {
            open.send_modify(|open| *open += 1);
            connection::run(client, &target, rules).await;
            open.send_modify(|open| *open -= 1);
        });
        while connections.try_join_next().is_some() {}
    }
}

/// Returns the parts of a URL: the text before the address, the address, and the text after it.
fn parts(url: &str) -> (&str, &str, &str) {
    let scheme = url.find("://").map_or(0, |at| at + 3);
    let end = url[scheme..].find(['/', '?']).map_or(url.len(), |at| scheme + at);
    let begin = url[scheme..end].rfind('@').map_or(scheme, |at| scheme + at + 1);
    assert!(url[begin..end].contains(':'), "{url} has no port");
    (&url[..begin], &url[begin..end], &url[end..])
}
