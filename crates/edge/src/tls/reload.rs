//! The certificates of a node, and how they are renewed while it runs.

use std::{collections::HashMap, sync::Arc, time::Duration};

use forebay_types::{Clock, Monotonic, Timestamp};
use tokio::{sync::Notify, task::JoinHandle};

use super::{
    files::TlsError,
    live::{CertificateSource, Live, Look},
    peer::PeerTls,
    server::ServerTls,
    settings::TlsSettings,
    source::Source,
};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// A certificate that ends within this time is written to the log.
const WARN_BEFORE: Duration = Duration::from_secs(14 * 86_400);
/// How often that is.
const WARN_EVERY: Duration = Duration::from_secs(86_400);
/// A certificate that ends within this time is among what is wrong with the node.
const TROUBLE_BEFORE: Duration = Duration::from_secs(7 * 86_400);

/// The certificate of one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertificateState {
    /// The port, as metrics name it.
    pub listener: &'static str,
    /// When the certificate in use ends.
    pub ends: Timestamp,
    /// The files hold something else, which can't be used.
    pub renewal_failed: bool,
}

/// The certificates of a node's ports.
#[derive(Clone, Default)]
pub struct Certificates {
    /// Of the ports for clients and operators.
    server: Option<Arc<Live<ServerTls>>>,
    /// Between nodes.
    peer: Option<Arc<Live<PeerTls>>>,
}

impl Certificates {
    /// Reads all files. Fails with everything that is wrong.
    pub fn load(settings: &TlsSettings, now: Timestamp) -> Result<Self, Vec<TlsError>> {
        let server = settings.server.as_ref().map(|files| ServerTls::load(files, now)).transpose();
        let peer = settings.peer.as_ref().map(|files| PeerTls::load(files, now)).transpose();
        match (server, peer) {
            (Ok(server), Ok(peer)) => Ok(Self { server, peer }),
            (server, peer) => Err(server.err().into_iter().chain(peer.err()).collect()),
        }
    }

    /// Of the gRPC port. `None`: it has no TLS.
    pub fn grpc(&self) -> Option<Source> {
        Some(Source::new(self.server.clone()?, |tls| (tls.grpc.clone(), tls.clients.clone())))
    }

    /// Of the HTTP port. `None`: it has no TLS.
    pub fn http(&self) -> Option<Source> {
        Some(Source::new(self.server.clone()?, |tls| (tls.http.clone(), tls.clients.clone())))
    }

    /// Between nodes. `None`: there is no TLS.
    pub fn peer(&self) -> Option<Arc<Live<PeerTls>>> {
        self.peer.clone()
    }

    /// Problems with the certificates, for people.
    pub fn troubles(&self, now: Timestamp) -> Vec<String> {
        let mut troubles = Vec::new();
        for live in self.all() {
            let failed = live.trouble();
            troubles.extend(failed.map(|error| format!("{error}; the certificate before stays in use")));
            let left = live.ends().since(now);
            if left < TROUBLE_BEFORE {
                troubles.push(ends(&*live, now));
            }
        }
        troubles
    }

    /// States of the certificates, by port.
    pub fn states(&self) -> Vec<CertificateState> {
        let of = |live: Arc<dyn CertificateSource>| {
            let (ends, renewal_failed) = (live.ends(), live.trouble().is_some());
            let state = move |listener: &&'static str| CertificateState { listener, ends, renewal_failed };
            live.listeners().iter().map(state)
        };
        self.all().flat_map(of).collect()
    }

    fn all(&self) -> impl Iterator<Item = Arc<dyn CertificateSource>> {
        let server = self.server.clone().map(|live| live as Arc<dyn CertificateSource>);
        let peer = self.peer.clone().map(|live| live as Arc<dyn CertificateSource>);
        server.into_iter().chain(peer)
    }
}

/// When a certificate ends, in words.
fn ends(live: &dyn CertificateSource, now: Timestamp) -> String {
    let (ports, ends) = (live.listeners().join(" and "), live.ends());
    if ends < now {
        return format!("the certificate of {ports} has ended at {}", ends);
    }
    let hours = ends.since(now).as_secs() / 3_600;
    let left = match (hours / 24, hours) {
        (0, 0) => "in less than an hour".to_owned(),
        (0, 1) => "in 1 hour".to_owned(),
        (0, hours) => format!("in {hours} hours"),
        (1, _) => "in 1 day".to_owned(),
        (days, _) => format!("in {days} days"),
    };
    format!("the certificate of {ports} ends {left}, at {}", ends)
}

/// Looks at the files from time to time. Ends when it is dropped.
pub struct ReloadTask {
    /// Makes it look at once.
    now: Arc<Notify>,
    /// Looks.
    task: JoinHandle<()>,
}

impl ReloadTask {
    /// Looks from now on.
    pub fn start(certificates: &Certificates, clock: Arc<dyn Clock>) -> Self {
        let now = Arc::new(Notify::new());
        let (asked, all) = (now.clone(), certificates.all().collect::<Vec<_>>());
        let task = tokio::spawn(async move {
            let mut warned = HashMap::new();
            loop {
                for (place, live) in all.iter().enumerate() {
                    warn(&**live, clock.as_ref(), warned.entry(place).or_default());
                }
                tokio::select! {
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                    () = asked.notified() => {}
                }
                for live in &all {
                    let (live, wall) = (live.clone(), clock.wall());
                    // Reading a file may take long, if it is on a disk that hangs.
                    if let Ok(look) = tokio::task::spawn_blocking(move || (live.look(wall), live)).await {
                        log(&look.0, &*look.1);
                    }
                }
            }
        });
        Self { now, task }
    }

    /// Looks at once.
    pub fn look_now(&self) {
        self.now.notify_one();
    }
}

impl Drop for ReloadTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn log(look: &Look, live: &dyn CertificateSource) {
    let ports = live.listeners().join(" and ");
    match look {
        Look::Same => {}
        Look::Renewed => {
            tracing::info!("the certificate of {ports} is renewed; it ends at {}", live.ends());
        }
        Look::Failed(error) => {
            tracing::error!(
                "the certificate of {ports} is not renewed; the one before stays in use: {error}"
            );
        }
        Look::Restored => tracing::info!("the files of the certificate of {ports} are as before"),
    }
}

/// Writes to the log that a certificate is about to end, once a day.
fn warn(live: &dyn CertificateSource, clock: &dyn Clock, warned: &mut Option<Monotonic>) {
    let wall = clock.wall();
    if is_due(live.ends().since(wall), clock.monotonic(), warned) {
        tracing::warn!("{}", ends(live, wall));
    }
}

/// Whether it is time to warn of a certificate that is valid for so long. `warned`: when that was last.
fn is_due(left: Duration, now: Monotonic, warned: &mut Option<Monotonic>) -> bool {
    if left >= WARN_BEFORE {
        *warned = None;
        return false;
    }
    let due = warned.is_none_or(|last| now.since(last) >= WARN_EVERY);
    if due {
        *warned = Some(now);
    }
    due
}

#[cfg(test)]
mod tests {
    use std::fs;

    use forebay_testkit::certificates::Authority;

    use super::*;
    use crate::tls::testing::{NOW, NOW_SECONDS, server_files};

    #[test]
    fn a_certificate_that_ends_soon_and_one_that_can_not_be_renewed_are_troubles() {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("authority"));
        let ends = NOW_SECONDS + 7 * 86_400;
        let files = server_files(folder.path(), &authority.issue_valid(&["a"], 1_000, ends));
        let settings = TlsSettings { server: Some(files.clone()), peer: None };
        let certificates = Certificates::load(&settings, NOW).unwrap();
        let after =
            |hours: u64| certificates.troubles(NOW.plus(Duration::from_secs(hours * 3_600))).join("; ");
        assert_eq!(after(0), "");
        let at = "at 2026-09-28T14:13:20Z";
        for (hours, left) in [(1, "6 days"), (5 * 24 + 1, "1 day"), (6 * 24 + 1, "23 hours"), (167, "1 hour")]
        {
            assert_eq!(after(hours), format!("the certificate of grpc and http ends in {left}, {at}"));
        }
        assert_eq!(after(169), format!("the certificate of grpc and http has ended {at}"));

        fs::write(&files.key, "").unwrap();
        certificates.server.as_ref().unwrap().look(NOW);
        let trouble = after(0);
        assert!(trouble.starts_with("tls.key_file: ") && trouble.ends_with("stays in use"), "{trouble}");
        let states = certificates.states();
        assert_eq!(states.iter().map(|state| state.listener).collect::<Vec<_>>(), ["grpc", "http"]);
        assert!(states.iter().all(|state| state.renewal_failed && state.ends > NOW));
    }
    #[test]
    fn a_certificate_that_ends_is_in_the_log_once_a_day() {
        let (day, mut warned) = (Duration::from_secs(86_400), None);
        let mut due = |left: Duration, now: Duration| is_due(left, Monotonic::from_start(now), &mut warned);
        assert!(!due(14 * day, day));
        assert!(due(14 * day - Duration::from_secs(1), day));
        assert!(!due(13 * day, 2 * day - Duration::from_secs(1)));
        assert!(due(13 * day, 2 * day));
        // It is renewed, and the next one ends too.
        assert!(!due(90 * day, 2 * day));
        assert!(due(Duration::ZERO, 2 * day));
    }
}
