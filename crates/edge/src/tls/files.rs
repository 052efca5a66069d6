//! A certificate, its key and authorities, read from files and checked.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use forebay_types::Timestamp;
use tokio_rustls::rustls::{
    self, InconsistentKeys, RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::{self, CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};

use super::certificate;

/// A larger file is none of these.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why TLS can't be used: the key of the configuration, the file, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tls.{key}: {what}")]
pub struct TlsError {
    /// The key, without its section.
    key: &'static str,
    /// The error, with the file's name.
    what: String,
}

/// A file, and the key of the configuration that names it.
#[derive(Debug, Clone)]
pub struct NamedFile {
    /// The key, without its section.
    pub key: &'static str,
    /// Where it is.
    pub path: PathBuf,
}

/// The files of one or more ports.
#[derive(Debug, Clone)]
pub struct Files {
    /// The certificate and those between it and its authority.
    pub cert: NamedFile,
    /// Its private key.
    pub key: NamedFile,
    /// The authorities of those at the other end.
    pub ca: Option<NamedFile>,
}

/// Contents of the files.
#[derive(PartialEq, Eq)]
pub struct Contents {
    /// Of the certificates' file.
    cert: Vec<u8>,
    /// Of the key's file.
    key: Vec<u8>,
    /// Of the authorities' file.
    ca: Option<Vec<u8>>,
}

impl Contents {
    /// Whether the authorities are the same.
    pub(crate) fn has_authorities_of(&self, other: &Self) -> bool {
        self.ca == other.ca
    }
}

/// The same, understood and checked.
pub struct ParsedFiles {
    /// The certificate, those between it and its authority, and its key.
    pub certified: Arc<CertifiedKey>,
    /// The authorities of those at the other end.
    pub roots: Option<Arc<RootCertStore>>,
    /// When the certificate ends.
    pub ends: Timestamp,
}

/// The cryptography of every port.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

impl NamedFile {
    /// An error about it. `what` follows the file's name.
    pub fn wrong(&self, what: impl std::fmt::Display) -> TlsError {
        TlsError { key: self.key, what: format!("{} {what}", self.path.display()) }
    }

    fn read(&self) -> Result<Vec<u8>, TlsError> {
        let unreadable = |error: std::io::Error| TlsError {
            key: self.key,
            what: format!("cannot read {}: {error}", self.path.display()),
        };
        let mut content = Vec::new();
        let file = File::open(&self.path).map_err(unreadable)?;
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(unreadable)?;
        if content.len() as u64 > FILE_BYTES_MAX {
            return Err(self.wrong("is larger than 1 MiB"));
        }
        Ok(content)
    }

    fn certificates(&self, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let certificates = certificates.map_err(|error| self.wrong(format!("is not PEM: {error}")))?;
        if certificates.is_empty() {
            return Err(self.wrong("holds no certificate"));
        }
        Ok(certificates)
    }

    fn private_key(&self, pem: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
            pki_types::pem::Error::NoItemsFound => {
                self.wrong("holds no private key (one with a passphrase can't be read)")
            }
            error => self.wrong(format!("is not PEM: {error}")),
        })
    }

    fn roots(&self, pem: &[u8]) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for (index, certificate) in self.certificates(pem)?.into_iter().enumerate() {
            roots.add(certificate).map_err(|error| {
                self.wrong(format!(
                    "holds a certificate that is no authority (number {}): {error}",
                    index + 1
                ))
            })?;
        }
        Ok(roots)
    }
}

impl Files {
    /// A certificate with its key, and the authorities.
    pub fn new(cert: (&'static str, &Path), key: (&'static str, &Path)) -> Self {
        let named = |(key, path): (&'static str, &Path)| NamedFile { key, path: path.to_owned() };
        Self { cert: named(cert), key: named(key), ca: None }
    }

    /// The same with authorities of those at the other end.
    pub(crate) fn with_ca(self, key: &'static str, path: &Path) -> Self {
        Self { ca: Some(NamedFile { key, path: path.to_owned() }), ..self }
    }

    /// Reads the files as they are now.
    pub fn read(&self) -> Result<Contents, TlsError> {
        Ok(Contents {
            cert: self.cert.read()?,
            key: self.key.read()?,
            ca: self.ca.as_ref().map(NamedFile::read).transpose()?,
        })
    }

    /// Understands and checks it: the key is that of the certificate, which is valid at `now`.
    pub fn parse(&self, contents: &Contents, now: Timestamp) -> Result<ParsedFiles, TlsError> {
        let chain = self.cert.certificates(&contents.cert)?;
        let unreadable = || self.cert.wrong("holds a certificate that can't be understood");
        let validity = chain.first().and_then(certificate::validity).ok_or_else(unreadable)?;
        if validity.ends < now {
            return Err(self.cert.wrong(format!("has expired: its certificate ended at {}", validity.ends)));
        }
        if validity.begins > now {
            let begins = validity.begins;
            return Err(self.cert.wrong(format!("is not valid yet: its certificate begins at {begins}")));
        }
        let key = self.key.private_key(&contents.key)?;
        let certified = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                self.key.wrong(format!("is not the key of the certificate in {}", self.cert.path.display()))
            }
            rustls::Error::InvalidCertificate(_) => unreadable(),
            error => self.key.wrong(format!("holds a key that can't be used: {error}")),
        })?;
        let authorities = self.ca.as_ref().zip(contents.ca.as_ref());
        let roots = authorities.map(|(file, pem)| file.roots(pem)).transpose()?;
        Ok(ParsedFiles { certified: Arc::new(certified), roots: roots.map(Arc::new), ends: validity.ends })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use forebay_testkit::certificates::Authority;

    use super::*;
    use crate::tls::testing::{NOW, NOW_SECONDS};

    /// Parses files with this content: the end of the certificate, or the error.
    fn parsed(cert: &str, key: &str, ca: &str) -> Result<Timestamp, String> {
        let folder = tempfile::tempdir().unwrap();
        let [cert_path, key_path, ca_path] = ["cert", "key", "ca"].map(|name| folder.path().join(name));
        for (path, text) in [(&cert_path, cert), (&key_path, key), (&ca_path, ca)] {
            fs::write(path, text).unwrap();
        }
        let files = Files::new(("cert_file", &cert_path), ("key_file", &key_path));
        let files = files.with_ca("client_ca_file", &ca_path);
        let parsed = files.read().and_then(|contents| files.parse(&contents, NOW));
        let parsed = parsed.map(|parsed| parsed.ends).map_err(|error| error.to_string());
        parsed.map_err(|error| error.replace(&format!("{}/", folder.path().display()), ""))
    }

    #[test]
    fn what_is_wrong_with_which_file_is_said() {
        let authority = Authority::new("authority");
        let (issued, other, ca) = (authority.issue(&["a"]), authority.issue(&["a"]), authority.pem());
        let error = |cert: &str, key: &str, ca: &str| parsed(cert, key, ca).unwrap_err();
        let (cert, key) = (issued.cert.as_str(), issued.key.as_str());
        assert!(parsed(cert, key, &ca).is_ok());
        assert_eq!(error("", key, &ca), "tls.cert_file: cert holds no certificate");
        assert_eq!(error(key, key, &ca), "tls.cert_file: cert holds no certificate");
        let cut = &cert[..cert.len() / 2];
        assert!(error(cut, key, &ca).starts_with("tls.cert_file: cert is not PEM: "));
        let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let not_understood = "tls.cert_file: cert holds a certificate that can't be understood";
        assert_eq!(error(nonsense, key, &ca), not_understood);
        let no_key = "tls.key_file: key holds no private key (one with a passphrase can't be read)";
        assert_eq!(error(cert, cert, &ca), no_key);
        let mismatch = "tls.key_file: key is not the key of the certificate in cert";
        assert_eq!(error(cert, &other.key, &ca), mismatch);
        assert_eq!(error(cert, key, ""), "tls.client_ca_file: ca holds no certificate");
        assert!(error(cert, key, nonsense).contains("is no authority (number 1)"));
        let large = "x".repeat((1 << 20) + 1);
        assert_eq!(error(&large, key, &ca), "tls.cert_file: cert is larger than 1 MiB");
    }

    #[test]
    fn a_certificate_that_is_not_valid_now_is_refused() {
        let authority = Authority::new("authority");
        let error = |begins, ends| {
            let issued = authority.issue_valid(&["a"], begins, ends);
            parsed(&issued.cert, &issued.key, &authority.pem()).map_err(|error| error.to_string())
        };
        let ended = "tls.cert_file: cert has expired: its certificate ended at 2026-09-21T14:13:19Z";
        assert_eq!(error(1_000, NOW_SECONDS - 1).unwrap_err(), ended);
        let early = "tls.cert_file: cert is not valid yet: its certificate begins at 2026-09-21T14:13:21Z";
        assert_eq!(error(NOW_SECONDS + 1, NOW_SECONDS + 2).unwrap_err(), early);
        let ends = error(NOW_SECONDS - 1, NOW_SECONDS + 1).unwrap();
        assert_eq!(ends, NOW.plus(std::time::Duration::from_secs(1)));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let path = Path::new("/nowhere/cert.pem");
        let files = Files::new(("cert_file", path), ("key_file", path));
        let error = files.read().err().unwrap().to_string();
        assert!(error.starts_with("tls.cert_file: cannot read /nowhere/cert.pem: No such file"), "{error}");
    }
}
