//! A node that is told to use certificates that are of no use.

use std::fs;

use super::TlsFolder;
use crate::node::Node;

/// Returns the message of `serve`, which is that of `check-config` too.
async fn refused(prepared: &TlsFolder) -> String {
    let [served, checked] =
        [Node::refused(&prepared.verb("serve")).await, Node::refused(&prepared.verb("check-config")).await];
    assert_eq!(served, checked);
    served
}

#[tokio::test]
async fn a_node_does_not_start_with_a_certificate_of_no_use() {
    let prepared = TlsFolder::new(|authority| authority.issue_valid(&["127.0.0.1"], 1_000, 2_000), "").await;
    let (cert, key) = (prepared.path("node.crt"), prepared.path("node.key"));
    let expired = format!(
        "forebay: tls.cert_file: {} has expired: its certificate ended at 1970-01-01T00:33:20Z\n",
        cert.display()
    );
    assert_eq!(refused(&prepared).await, expired);

    prepared.authority.issue(&["127.0.0.1"]).write(prepared.folder.path(), "node");
    fs::write(&key, prepared.authority.issue(&["127.0.0.1"]).key).unwrap();
    let mismatch = refused(&prepared).await;
    assert!(
        mismatch.starts_with("forebay: tls.key_file: ") && mismatch.contains("is not the key"),
        "{mismatch}"
    );

    fs::remove_file(&cert).unwrap();
    let missing = refused(&prepared).await;
    assert!(missing.starts_with("forebay: tls.cert_file: cannot read "), "{missing}");
}

#[tokio::test]
async fn a_node_whose_certificate_others_would_not_take_does_not_start() {
    let keys = "peer_cert_file = \"FOLDER/node.crt\"\npeer_key_file = \"FOLDER/node.key\"\n\
                peer_ca_file = \"FOLDER/other.crt\"";
    let prepared = TlsFolder::new(|authority| authority.issue(&["127.0.0.1"]), keys).await;
    forebay_testkit::certificates::Authority::new("another").write(prepared.folder.path(), "other.crt");
    let text = refused(&prepared).await;
    assert!(text.starts_with("forebay: tls.peer_cert_file: ") && text.contains("UnknownIssuer"), "{text}");
}
