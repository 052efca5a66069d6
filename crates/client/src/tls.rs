//! TLS: who is believed to be a server, and what this side shows.

use std::{
    fmt, fs, io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::Instant,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        self, CertificateError, ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
        version::{TLS12, TLS13},
    },
};
use tonic::Code;

use crate::{error::Error, seen_certificate::CertificateRecorder};

/// Files that were read within this time are not read again.
const READ_EVERY: Duration = Duration::from_secs(10);

/// Authorities that a client believes, and certificate that it shows, at addresses that begin with
/// `https://`.
///
/// By default the authorities of the system are believed, and no certificate is shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// The only authorities that are believed.
    ca: Option<Pem>,
    /// A certificate, and its key.
    certificate: Option<(Pem, Pem)>,
    /// Name that servers' certificates are for, in place of the host of their address.
    server_name: Option<String>,
}

impl TlsConfig {
    /// The same, believing these authorities and no others.
    pub fn ca_certificate(self, pem: impl Into<Vec<u8>>) -> Self {
        Self { ca: Some(Pem::Given(pem.into())), ..self }
    }

    /// The same with authorities in a file. It is read again when a connection is opened, if it was not for a
    /// while. What it holds then is used if it can be.
    pub fn ca_certificate_file(self, path: impl Into<PathBuf>) -> Self {
        Self { ca: Some(Pem::File(path.into())), ..self }
    }

    /// The same, showing a certificate. `chain_pem`: it, and those between it and its authority.
    pub fn client_certificate(self, chain_pem: impl Into<Vec<u8>>, key_pem: impl Into<Vec<u8>>) -> Self {
        Self { certificate: Some((Pem::Given(chain_pem.into()), Pem::Given(key_pem.into()))), ..self }
    }

    /// The same with files, which are read again as [that of the authorities](Self::ca_certificate_file) is.
    pub fn client_certificate_files(self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { certificate: Some((Pem::File(chain.into()), Pem::File(key.into()))), ..self }
    }

    /// The same, where servers' certificates are for `name` and not for the hosts of their addresses.
    pub fn server_name(self, name: impl Into<String>) -> Self {
        Self { server_name: Some(name.into()), ..self }
    }

    /// Whether it says anything.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    fn has_files(&self) -> bool {
        let certificate = self.certificate.iter().flat_map(|(chain, key)| [chain, key]);
        self.ca.iter().chain(certificate).any(|pem| matches!(pem, Pem::File(_)))
    }

    /// Reads what it holds now.
    fn read(&self) -> Result<Contents, Error> {
        let certificate = |(chain, key): &(Pem, Pem)| Ok((chain.read()?, key.read()?));
        Ok(Contents {
            ca: self.ca.as_ref().map(Pem::read).transpose()?,
            certificate: self.certificate.as_ref().map(certificate).transpose()?,
        })
    }
}

impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConfig")
            .field("ca", &self.ca.is_some())
            .field("certificate", &self.certificate.is_some())
            .field("server_name", &self.server_name)
            .finish()
    }
}

/// Something in PEM.
#[derive(Clone, PartialEq, Eq)]
enum Pem {
    /// It does not change.
    Given(Vec<u8>),
    /// It is in a file, which may.
    File(PathBuf),
}

impl Pem {
    fn read(&self) -> Result<Vec<u8>, Error> {
        match self {
            Self::Given(pem) => Ok(pem.clone()),
            Self::File(path) => {
                fs::read(path).map_err(|error| invalid(format!("cannot read {}: {error}", path.display())))
            }
        }
    }
}

/// Contents of a configuration and its files.
#[derive(PartialEq, Eq)]
struct Contents {
    /// Authorities.
    ca: Option<Vec<u8>>,
    /// A certificate, and its key.
    certificate: Option<(Vec<u8>, Vec<u8>)>,
}

/// Secures connections. A program that reads a node's HTTP port may use it too.
#[derive(Clone)]
pub struct Tls {
    /// Where everything comes from.
    config: TlsConfig,
    /// Settings in use, shared by the clones.
    in_use: Arc<Mutex<InUse>>,
    /// Name that certificates are for, in place of the host of an address.
    server_name: Option<ServerName<'static>>,
}

/// Settings in use, and their origin.
struct InUse {
    /// The settings, but for what is spoken inside.
    settings: Arc<ClientConfig>,
    /// Contents that they were made of.
    contents: Contents,
    /// When the files were read last.
    read_at: Instant,
    /// Why what they hold now is not in use.
    failed: Option<Error>,
}

impl Tls {
    /// Fails if a certificate or a key can't be understood, or if no authority is known.
    pub fn new(config: &TlsConfig) -> Result<Self, Error> {
        let contents = config.read()?;
        let settings = Arc::new(settings(&contents)?);
        let name = |name: &String| {
            ServerName::try_from(name.clone())
                .map_err(|_| invalid(format!("{name:?} is not a server's name")))
        };
        let server_name = config.server_name.as_ref().map(name).transpose()?;
        let in_use = InUse { settings, contents, read_at: Instant::now(), failed: None };
        Ok(Self { config: config.clone(), in_use: Arc::new(Mutex::new(in_use)), server_name })
    }

    /// Secures a connection to `host`, over which `protocol` is spoken (`h2` for gRPC, or `http/1.1`).
    pub async fn connect(
        &self,
        stream: TcpStream,
        host: &str,
        protocol: &str,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + use<>> {
        let name = self.name_of(host)?;
        if self.config.has_files() && self.in_use().read_at.elapsed() >= READ_EVERY {
            let tls = self.clone();
            // Reading a file may take long. Nobody waits for more than that.
            let _ = tokio::task::spawn_blocking(move || tls.renew()).await;
        }
        let mut settings = (*self.in_use().settings).clone();
        settings.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        TlsConnector::from(Arc::new(settings)).connect(name, stream).await
    }

    /// Name that the certificate of a host is to be for.
    fn name_of(&self, host: &str) -> io::Result<ServerName<'static>> {
        match &self.server_name {
            Some(name) => Ok(name.clone()),
            // An IPv6 address has brackets.
            None => ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(io::Error::other),
        }
    }

    /// Begins TLS only to see which certificate the server of `host` shows. Returns it in DER, also if it is
    /// not accepted, and whether the connection would be of use.
    pub async fn shown_certificate(
        &self,
        stream: TcpStream,
        host: &str,
    ) -> (Option<Vec<u8>>, io::Result<()>) {
        let (mut settings, ca) = {
            let in_use = self.in_use();
            ((*in_use.settings).clone(), in_use.contents.ca.clone())
        };
        let seen = match roots(ca.as_deref()).map_err(io::Error::other).and_then(CertificateRecorder::new) {
            Ok(seen) => Arc::new(seen),
            Err(error) => return (None, Err(error)),
        };
        settings.dangerous().set_certificate_verifier(seen.clone());
        let end = match self.name_of(host) {
            Ok(name) => TlsConnector::from(Arc::new(settings)).connect(name, stream).await.map(drop),
            Err(error) => Err(error),
        };
        (seen.take(), end)
    }

    /// Takes what the files hold into use, if it is something else and can be used.
    fn renew(&self) {
        let read = self.config.read();
        let mut in_use = self.in_use();
        in_use.read_at = Instant::now();
        let renewed = read.and_then(|contents| {
            let same = contents == in_use.contents;
            let settings = if same { in_use.settings.clone() } else { Arc::new(settings(&contents)?) };
            Ok((settings, contents))
        });
        match renewed {
            Ok((settings, contents)) => {
                (in_use.settings, in_use.contents, in_use.failed) = (settings, contents, None);
            }
            Err(error) if in_use.failed.as_ref() == Some(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "a certificate is not renewed; the one before stays in use");
                in_use.failed = Some(error);
            }
        }
    }

    fn in_use(&self) -> MutexGuard<'_, InUse> {
        // A panic while the lock is held leaves valid values.
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

fn settings(contents: &Contents) -> Result<ClientConfig, Error> {
    let broken = |error: rustls::Error| invalid(format!("TLS can't be used: {error}"));
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(broken)?
        .with_root_certificates(roots(contents.ca.as_deref())?);
    let Some((chain, key)) = &contents.certificate else { return Ok(builder.with_no_client_auth()) };
    let chain = certificates("client_certificate", chain)?;
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|error| invalid(format!("the client certificate's key can't be read: {error}")))?;
    builder
        .with_client_auth_cert(chain, key)
        .map_err(|error| invalid(format!("the client certificate can't be used: {error}")))
}

/// Explains an error of a connection to `at` that is about TLS, for people. `None`: it is not about TLS.
pub fn explain(at: &str, error: &io::Error) -> Option<String> {
    let tls = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(match tls {
        rustls::Error::InvalidMessage(_) => format!("{at} does not speak TLS; use http://"),
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            format!(
                "the certificate of {at} is of an authority that is not known here (ca_certificate, --ca)"
            )
        }
        rustls::Error::InvalidCertificate(_) => format!("the certificate of {at} is not accepted: {tls}"),
        rustls::Error::AlertReceived(_) => {
            format!("{at} ended the TLS handshake: {tls}; does it want another client certificate?")
        }
        _ => format!("TLS with {at} failed: {tls}"),
    })
}

fn roots(ca: Option<&[u8]>) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(pem) => {
            for certificate in certificates("ca_certificate", pem)? {
                roots
                    .add(certificate)
                    .map_err(|error| invalid(format!("ca_certificate can't be used: {error}")))?;
            }
        }
        None => {
            // Some authorities of a system may be of no use; the others are.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(invalid(
                    "this system knows no certificate authorities; name the server's".to_owned(),
                ));
            }
        }
    }
    Ok(roots)
}

fn certificates(what: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, Error> {
    let list: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match list {
        Ok(list) if list.is_empty() => Err(invalid(format!("{what} holds no certificate"))),
        Ok(list) => Ok(list),
        Err(error) => Err(invalid(format!("{what} is not PEM: {error}"))),
    }
}

fn invalid(message: String) -> Error {
    Error::local(Code::InvalidArgument, message)
}

#[cfg(test)]
mod tests {
    use forebay_testkit::certificates::Authority;

    use super::*;

    #[test]
    fn what_can_not_be_used_is_named_and_no_key_is_shown() {
        let authority = Authority::new("authority");
        let (issued, other) = (authority.issue(&["a"]), authority.issue(&["a"]));
        let none = TlsConfig::default;
        let error = |config: TlsConfig| Tls::new(&config).unwrap_err().message().to_owned();
        assert!(Tls::new(&none().ca_certificate(authority.pem())).is_ok());
        assert_eq!(error(none().ca_certificate("")), "ca_certificate holds no certificate");
        let own = none().ca_certificate(authority.pem());
        assert!(Tls::new(&own.clone().client_certificate(&*issued.cert, &*issued.key)).is_ok());
        let mismatch = error(own.clone().client_certificate(&*issued.cert, &*other.key));
        assert!(mismatch.starts_with("the client certificate can't be used"), "{mismatch}");
        let keyless = error(own.clone().client_certificate(&*issued.cert, ""));
        assert!(keyless.starts_with("the client certificate's key can't be read"), "{keyless}");
        assert!(error(own.clone().server_name("a b")).contains("not a server's name"));
        let shown = format!("{:?}", own.client_certificate(&*issued.cert, &*issued.key));
        assert_eq!(shown, "TlsConfig { ca: true, certificate: true, server_name: None }");
    }
    #[test]
    fn files_that_change_are_taken_into_use_if_they_can_be() {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new("authority"));
        let ca = authority.write(folder.path(), "ca");
        let [cert, key] = authority.issue(&["a"]).write(folder.path(), "client");
        let config = TlsConfig::default().ca_certificate_file(ca).client_certificate_files(&cert, &key);
        let tls = Tls::new(&config).unwrap();
        let in_use = || tls.in_use().settings.clone();
        let first = in_use();
        tls.renew();
        assert!(Arc::ptr_eq(&in_use(), &first), "they have not changed");

        let other = authority.issue(&["a"]);
        fs::write(&key, &other.key).unwrap();
        tls.renew();
        assert!(Arc::ptr_eq(&in_use(), &first) && tls.in_use().failed.is_some());
        fs::write(&cert, &other.cert).unwrap();
        tls.renew();
        assert!(!Arc::ptr_eq(&in_use(), &first) && tls.in_use().failed.is_none());

        fs::remove_file(&cert).unwrap();
        let error = Tls::new(&config).unwrap_err();
        assert!(
            error.message().starts_with("cannot read ") && error.message().contains("client.crt"),
            "{error}"
        );
    }
}
