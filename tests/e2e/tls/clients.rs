//! Clients that believe the node or not, and that show a certificate or not.

use std::process::{Command, Stdio};

use forebay_client::{Client, ClientConfig, DequeueCall, TlsConfig};
use forebay_testkit::{certificates::Authority, program};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::{TIMEOUT, TlsFolder, TlsNode, enqueue};

/// Runs `forebay`. Returns whether it succeeded, and what it said.
async fn forebay(arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(program());
    command.args(arguments).stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[tokio::test]
async fn a_client_that_knows_the_authority_is_served() {
    let secured = TlsNode::start().await;
    let client = Client::connect(secured.config()).unwrap();
    client.check_server().await.unwrap();
    enqueue(secured.config()).await.unwrap();
    let items = client.dequeue(DequeueCall::topic("t", 5)).await.unwrap();
    assert_eq!(items.len(), 1);

    // So does the command line.
    let ca = secured.path("ca.crt").display().to_string();
    let (addr, http) = (format!("https://{}", secured.node.grpc), format!("https://{}", secured.node.http));
    let (done, text) = forebay(&["enqueue", "--addr", &addr, "--ca", &ca, "--topic", "t", "y"]).await;
    assert!(done, "{text}");
    // With a CA an address without a scheme has TLS.
    let (done, text) = forebay(&["topics", "--addr", &secured.node.grpc, "--ca", &ca]).await;
    assert!(done && text.contains('t'), "{text}");
    let (done, text) = forebay(&["topic", "list", "--addr", &addr, "--ca", &ca]).await;
    assert!(done && text.contains('t'), "{text}");
    let (done, text) = forebay(&["health", "--http", &http, "--ca", &ca]).await;
    assert!(done, "{text}");
    let wrong_name = ["health", "--http", &http, "--ca", &ca, "--server-name", "queue1"];
    let (done, text) = forebay(&wrong_name).await;
    assert!(!done && text.contains("not valid for name"), "{text}");
    let (done, text) = forebay(&["health", "--http", &secured.node.http]).await;
    assert!(!done && text.contains("https://"), "{text}");
}

#[tokio::test]
async fn a_client_that_does_not_know_the_authority_says_so() {
    let secured = TlsNode::start().await;
    let other = Authority::new("another");
    for config in [secured.config_without_ca().ca_certificate(other.pem()), secured.config_without_ca()] {
        // A system may have no authorities at all, which is an error as well.
        let Ok(client) = Client::connect(config.clone()) else { continue };
        let checked = client.check_server().await.unwrap_err();
        assert!(checked.message().contains("authority that is not known here"), "{checked}");
        let error = enqueue(config).await.unwrap_err();
        assert!(error.message().contains("UnknownIssuer"), "{error}");
    }
    let refused = "forebay_tls_handshake_failures_total{listener=\"grpc\",reason=\"refused_by_client\"}";
    secured.metric_becomes(refused, |count| count >= 2.0).await;
}

#[tokio::test]
async fn plain_text_is_not_served() {
    let secured = TlsNode::start().await;
    let plain = ClientConfig::new(format!("http://{}", secured.node.grpc));
    let error = Client::connect(plain).unwrap().check_server().await.unwrap_err();
    let text = format!("{0} speaks TLS; use https://{0}", secured.node.grpc);
    assert!(error.message() == text || error.message().contains("closed at once"), "{error}");
    for address in [&secured.node.grpc, &secured.node.http] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        let mut answer = Vec::new();
        // An error means the same as the end.
        let _ = timeout(TIMEOUT, stream.read_to_end(&mut answer)).await.expect("closed");
        assert!(answer.len() < 10, "an alert at most: {answer:?}");
    }
    for listener in ["grpc", "http"] {
        let labels = format!("{{listener=\"{listener}\",reason=\"not_tls\"}}");
        let name = format!("forebay_tls_handshake_failures_total{labels}");
        secured.metric_becomes(&name, |count| count >= 1.0).await;
    }
}

#[tokio::test]
async fn clients_without_a_certificate_are_refused_where_one_is_required() {
    let keys = "client_ca_file = \"FOLDER/ca.crt\"\nclient_auth = \"required\"";
    let prepared = TlsFolder::new(|authority| authority.issue(&["127.0.0.1"]), keys).await;
    let shown = prepared.authority.issue(&["spiffe://test/worker"]);
    let [cert, key] = shown.write(prepared.folder.path(), "client").map(|path| path.display().to_string());
    let tls = TlsConfig::default().ca_certificate(prepared.authority.pem());
    let secured = prepared.start(tls.client_certificate(&*shown.cert, &*shown.key)).await;

    enqueue(secured.config().client_certificate(&*shown.cert, &*shown.key)).await.unwrap();
    let (ca, http) = (secured.path("ca.crt").display().to_string(), format!("https://{}", secured.node.http));
    let probe = ["health", "--http", &http, "--ca", &ca, "--cert", &cert, "--key", &key];
    let (done, text) = forebay(&probe).await;
    assert!(done, "{text}");
    let (done, text) = forebay(&probe[..5]).await;
    assert!(!done && text.contains("client certificate"), "{text}");

    let foreign = Authority::new("another").issue(&["spiffe://test/worker"]);
    for config in [secured.config(), secured.config().client_certificate(&*foreign.cert, &*foreign.key)] {
        enqueue(config.clone()).await.unwrap_err();
        let error = Client::connect(config).unwrap().check_server().await.unwrap_err();
        assert!(error.message().contains("client certificate"), "{error}");
    }
    for reason in ["no_certificate", "bad_certificate"] {
        let labels = format!("{{listener=\"grpc\",reason=\"{reason}\"}}");
        let name = format!("forebay_tls_handshake_failures_total{labels}");
        assert!(secured.metric(&name).await >= 1.0, "{reason}");
    }
}
