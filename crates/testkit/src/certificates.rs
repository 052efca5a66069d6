//! Authorities, and certificates that they sign, for tests of TLS.

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SanType, date_time_ymd,
};

/// Signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate with its key.
pub struct IssuedCertificate {
    /// The certificate, as PEM.
    pub cert: String,
    /// Its key, as PEM.
    pub key: String,
    /// The certificate, encoded.
    pub der: Vec<u8>,
}

impl Authority {
    /// One that nobody else knows.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Its own certificate, as PEM.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Writes its own certificate to a file of a folder.
    pub fn write(&self, folder: &Path, file: &str) -> PathBuf {
        put(folder, file, &self.pem())
    }

    /// A certificate for these names: URIs, addresses or DNS names. It is of use to servers and clients.
    pub fn issue(&self, names: &[&str]) -> IssuedCertificate {
        self.sign(names, |_| {})
    }

    /// The same, valid from so many seconds after 1970 until so many.
    pub fn issue_valid(&self, names: &[&str], begins: u64, ends: u64) -> IssuedCertificate {
        let time = |seconds| date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
        self.sign(names, |params| {
            params.not_before = time(begins);
            params.not_after = time(ends);
        })
    }

    fn sign(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> IssuedCertificate {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "common name");
        params.subject_alt_names = names.iter().map(|name| alternative(name)).collect();
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap();
        IssuedCertificate { cert: cert.pem(), key: key.serialize_pem(), der: cert.der().to_vec() }
    }
}

impl IssuedCertificate {
    /// Writes both to files of a folder, `NAME.crt` and `NAME.key`. Each appears at once and whole.
    pub fn write(&self, folder: &Path, name: &str) -> [PathBuf; 2] {
        let key = put(folder, &format!("{name}.key"), &self.key);
        [put(folder, &format!("{name}.crt"), &self.cert), key]
    }
}

fn alternative(name: &str) -> SanType {
    let text = || name.to_owned().try_into().unwrap();
    match name.parse::<IpAddr>() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) if name.contains("://") => SanType::URI(text()),
        Err(_) => SanType::DnsName(text()),
    }
}

fn put(folder: &Path, file: &str, text: &str) -> PathBuf {
    let (path, new) = (folder.join(file), folder.join(format!("{file}.new")));
    fs::write(&new, text).unwrap();
    fs::rename(&new, &path).unwrap();
    path
}
