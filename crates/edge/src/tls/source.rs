//! The settings of a port's handshakes, as of now.

use std::{sync::Arc, time::Duration};

use forebay_types::Timestamp;
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_rustls::rustls::{
    ServerConfig,
    pki_types::{CertificateDer, UnixTime},
    server::danger::ClientCertVerifier,
};

use super::{certificate, live::Live};

/// Why a connection ends whose certificate has ended, or has no authority any more.
const CERTIFICATE: &str = "certificate";
/// How long after the end of a certificate its connection ends: meanwhile its calls are told why they are
/// refused.
const GRACE: Duration = Duration::from_secs(3);
/// The wall clock may be set: it is looked at in this time again.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// The settings of handshakes that begin now, and what checks the certificates of clients. `None`: they show
/// none.
pub type Settings = (Arc<ServerConfig>, Option<Arc<dyn ClientCertVerifier>>);

/// Tells what a port shows and asks for.
#[derive(Clone)]
pub struct Source {
    /// As of now.
    current: Arc<dyn Fn() -> Settings + Send + Sync>,
    /// Changes with the authorities.
    authorities: watch::Receiver<()>,
}

impl Source {
    /// By what is in use for one or more ports.
    pub fn new<T: Send + Sync + 'static>(
        live: Arc<Live<T>>,
        of: impl Fn(&T) -> Settings + Send + Sync + 'static,
    ) -> Self {
        let authorities = live.authorities();
        Self { current: Arc::new(move || of(&live.current())), authorities }
    }

    /// The settings of a handshake that begins now.
    pub fn config(&self) -> Arc<ServerConfig> {
        (self.current)().0
    }

    /// Whether the authorities of now take a certificate.
    fn takes(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((own, between)) = chain.split_first() else { return true };
        (self.current)().1.is_none_or(|it| it.verify_client_cert(own, between, UnixTime::now()).is_ok())
    }

    /// Ends once the certificate that a connection has shown is not accepted any more: some seconds after its
    /// end, or when other authorities are in use that do not take it. `chain`: it, and those between it and
    /// its authority.
    pub(crate) async fn until_refused(self, chain: Vec<CertificateDer<'static>>) -> &'static str {
        let ends = chain.first().and_then(certificate::validity).map(|validity| validity.ends);
        let Self { mut authorities, .. } = self.clone();
        loop {
            let left = ends.map_or(LOOK_EVERY, |ends| ends.plus(GRACE).since(now()));
            if left.is_zero() {
                return CERTIFICATE;
            }
            // The sender lives as long as the settings.
            if let Ok(Ok(())) = timeout(left.min(LOOK_EVERY), changed(&mut authorities)).await
                && !self.takes(&chain)
            {
                return CERTIFICATE;
            }
        }
    }
}

/// Waits for other authorities. Without any more to come it is not asked again and again.
async fn changed(authorities: &mut watch::Receiver<()>) -> Result<(), watch::error::RecvError> {
    let changed = authorities.changed().await;
    if changed.is_err() {
        sleep(LOOK_EVERY).await;
    }
    changed
}

/// The time by which handshakes are decided too.
fn now() -> Timestamp {
    let since = UnixTime::now().as_secs();
    Timestamp::from_micros(i64::try_from(since).unwrap_or(0).saturating_mul(1_000_000))
}
