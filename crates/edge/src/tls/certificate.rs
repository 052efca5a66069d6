//! Parts of a certificate that are read beside the checks of the handshake: how long it is valid, and for
//! whom.

use forebay_types::Timestamp;
use tokio_rustls::rustls::pki_types::CertificateDer;
use x509_cert::{
    Certificate,
    der::Decode as _,
    ext::pkix::{SubjectAltName, name::GeneralName},
};

/// From when until when a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity {
    /// The first moment.
    pub begins: Timestamp,
    /// The last one.
    pub ends: Timestamp,
}

/// The validity of a certificate. `None`: it can't be read.
pub(crate) fn validity(certificate: &CertificateDer<'_>) -> Option<Validity> {
    let parsed = Certificate::from_der(certificate).ok()?;
    let time = |time: x509_cert::time::Time| {
        let micros = i64::try_from(time.to_unix_duration().as_micros()).ok()?;
        Some(Timestamp::from_micros(micros))
    };
    let validity = parsed.tbs_certificate().validity();
    Some(Validity { begins: time(validity.not_before)?, ends: time(validity.not_after)? })
}

/// When a certificate in DER ends. `None`: it can't be read.
pub fn end_of(der: &[u8]) -> Option<Timestamp> {
    validity(&CertificateDer::from(der)).map(|validity| validity.ends)
}

/// The name of whoever has a certificate: its first URI, or else its first DNS name. A common name is none:
/// authorities do not check it.
pub fn name(certificate: &CertificateDer<'_>) -> Option<String> {
    let parsed = Certificate::from_der(certificate).ok()?;
    let (_, SubjectAltName(names)) = parsed.tbs_certificate().get_extension().ok().flatten()?;
    let uri = names.iter().find_map(|name| match name {
        GeneralName::UniformResourceIdentifier(uri) => Some(uri.to_string()),
        _ => None,
    });
    let dns = || {
        names.iter().find_map(|name| match name {
            GeneralName::DnsName(name) => Some(name.to_string()),
            _ => None,
        })
    };
    uri.or_else(dns)
}

#[cfg(test)]
mod tests {
    use forebay_testkit::certificates::Authority;

    use super::*;

    #[test]
    fn a_uri_is_the_name_before_a_dns_name_and_a_common_name_is_none() {
        let authority = Authority::new("authority");
        let name_of = |names: &[&str]| name(&authority.issue(names).der.into());
        assert_eq!(
            name_of(&["a.example", "spiffe://prod/worker", "b.example"]).unwrap(),
            "spiffe://prod/worker"
        );
        assert_eq!(name_of(&["a.example", "b.example"]).unwrap(), "a.example");
        assert_eq!(name_of(&["127.0.0.1"]), None, "an address is no name");
        assert_eq!(name_of(&[]), None, "the common name is none");
        assert_eq!(name(&CertificateDer::from_slice(b"nonsense")), None);
    }

    #[test]
    fn the_validity_is_read() {
        let issued = Authority::new("authority").issue_valid(&["a"], 1_000, 2_000);
        let validity = validity(&issued.der.into()).unwrap();
        let seconds = |time: Timestamp| time.as_micros() / 1_000_000;
        assert_eq!((seconds(validity.begins), seconds(validity.ends)), (1_000, 2_000));
    }
}
