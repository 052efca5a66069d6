//! Nodes that show each other certificates, and one that shows another authority's.

use std::{fmt::Write as _, fs, path::Path, time::Duration};

use forebay_client::{Client, ClientConfig, NewItem, Tls, TlsConfig};
use forebay_testkit::{
    certificates::{Authority, IssuedCertificate},
    servers::Kind,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

use super::nodes::{Nodes, metric_becomes, metric_of_all, owned_by};
use crate::node::Node;

/// A name that all nodes share.
const NAME: &str = "node.forebay.test";
/// Expected events happen within this time.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The keys of `[tls]`: what a node shows clients, and what other nodes.
fn keys(
    folder: &Path,
    clients: &IssuedCertificate,
    nodes: (&Authority, &IssuedCertificate),
    name: &str,
) -> String {
    let [cert, key] = clients.write(folder, &format!("{name}-clients"));
    let [peer_cert, peer_key] = nodes.1.write(folder, &format!("{name}-nodes"));
    let ca = nodes.0.write(folder, &format!("{name}.ca"));
    let mut text = "\n[tls]\n".to_owned();
    for (name, path) in [
        ("cert_file", cert),
        ("key_file", key),
        ("peer_cert_file", peer_cert),
        ("peer_key_file", peer_key),
        ("peer_ca_file", ca),
    ] {
        writeln!(text, "{name} = \"{}\"", path.display()).unwrap();
    }
    text + &format!("peer_name = \"{NAME}\"\n")
}

/// Writes the configurations of three nodes, of which the last shows what another authority has signed.
fn configure(cluster: &Nodes, folder: &TempDir, [ours, other]: [&Authority; 2]) {
    let names = ["127.0.0.1", NAME];
    for node in 0..3 {
        let authority = if node == 2 { other } else { ours };
        let nodes = (authority, &authority.issue(&names));
        let keys = keys(folder.path(), &ours.issue(&names), nodes, &format!("node{node}"));
        let text = fs::read_to_string(cluster.config(node)).unwrap();
        fs::write(cluster.config(node), text + &keys).unwrap();
    }
}

/// Stores an item in each shard, by calls to one node.
async fn store_everywhere(client: &Client, shards: usize) {
    let item = |shard| NewItem { shard: Some(shard), ..NewItem::new("t", "x") };
    let shards = u32::try_from(shards).unwrap();
    let results = client.enqueue((1..=shards).map(item).collect()).await.unwrap();
    for result in results {
        result.unwrap();
    }
}

/// Waits until both nodes own shards, and all are owned.
async fn both_own(cluster: &Nodes, nodes: &[Node]) {
    let begun = Instant::now();
    loop {
        let [first, second] = [owned_by(&nodes[0]).await, owned_by(&nodes[1]).await];
        if !first.is_empty() && !second.is_empty() && first.len() + second.len() == cluster.shards {
            return;
        }
        assert!(begun.elapsed() < 2 * TIMEOUT, "{first:?} and {second:?}");
        sleep(Duration::from_millis(20)).await;
    }
}

/// Connects to the port for other nodes, and waits until it is closed. No frame of HTTP/2 comes back.
async fn is_not_let_in(address: &str, tls: Option<TlsConfig>) {
    let mut answer = Vec::new();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let asked = async {
        match tls {
            None => {
                stream.write_all(preface).await?;
                stream.read_to_end(&mut answer).await
            }
            Some(tls) => {
                let mut stream = Tls::new(&tls).unwrap().connect(stream, NAME, "h2").await?;
                stream.write_all(preface).await?;
                stream.read_to_end(&mut answer).await
            }
        }
    };
    // An error means the same as the end.
    let _ = timeout(TIMEOUT, asked).await.expect("closed");
    assert!(answer.len() < 10, "an alert at most: {answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_show_each_other_certificates_and_let_no_other_in() {
    let cluster = Nodes::new(Kind::MariaDb, 3, 4).await;
    let folder = tempfile::tempdir().unwrap();
    let (ours, other) = (Authority::new("ours"), Authority::new("another"));
    configure(&cluster, &folder, [&ours, &other]);
    let believed = TlsConfig::default().ca_certificate(ours.pem());
    let tls = || Tls::new(&believed).unwrap();
    let nodes = [cluster.start(0).await.with_tls(tls()), cluster.start(1).await.with_tls(tls())];
    both_own(&cluster, &nodes).await;

    // One node passes on what belongs to the other. A client learns both, and calls them with TLS.
    let config =
        ClientConfig { tls: believed.clone(), ..ClientConfig::new(format!("https://{}", nodes[0].grpc)) };
    let one = Client::connect(config.clone().learn_nodes(false)).unwrap();
    store_everywhere(&one, cluster.shards).await;
    let answered = "forebay_forwarded_calls_total{verb=\"enqueue\",outcome=\"answered\"}";
    assert!(metric_of_all(&nodes, answered).await >= 1.0);
    let learning = Client::connect(config).unwrap();
    let begun = Instant::now();
    while learning.servers().len() < 2 {
        store_everywhere(&learning, cluster.shards).await;
        assert!(begun.elapsed() < TIMEOUT, "{:?}", learning.servers());
    }
    store_everywhere(&learning, cluster.shards).await;

    // The port for nodes takes nobody without a certificate, nor with one that is not a node's.
    let peer = cluster.peer_address(0);
    is_not_let_in(&peer, None).await;
    is_not_let_in(&peer, Some(believed.clone())).await;
    let (foreign, nameless) = (other.issue(&[NAME]), ours.issue(&["worker.forebay.test"]));
    for shown in [foreign, nameless] {
        is_not_let_in(&peer, Some(believed.clone().client_certificate(shown.cert, shown.key))).await;
    }
    for (reason, count) in [("not_tls", 1.0), ("no_certificate", 1.0), ("bad_certificate", 2.0)] {
        let labels = format!("{{listener=\"peer\",reason=\"{reason}\"}}");
        let failed = format!("forebay_tls_handshake_failures_total{labels}");
        metric_becomes(&nodes[..1], &failed, |failures| failures >= count).await;
    }

    // A node of another authority knows the secret and joins the catalog. It is let in nowhere, and the
    // shards stay with the others or go back to them.
    let stranger = cluster.start(2).await.with_tls(tls());
    let begun = Instant::now();
    let unreached = "node node2 does not answer this one";
    while !nodes[0].fetch("/status.json").await.1.contains(unreached) {
        assert!(begun.elapsed() < TIMEOUT, "the other node is reached");
        sleep(Duration::from_millis(20)).await;
    }
    let refused = "forebay_tls_handshake_failures_total{listener=\"peer\",reason=\"refused_by_client\"}";
    metric_becomes(&nodes[..1], refused, |count| count >= 1.0).await;
    cluster.all_owned(&nodes.iter().collect::<Vec<_>>()).await;
    assert_eq!(owned_by(&stranger).await.len(), 0);
    store_everywhere(&one, cluster.shards).await;
}

/// Lets nodes look at their files, and waits until each has taken what they hold into use.
async fn renewed(cluster: &Nodes, nodes: &[Node], times: usize) {
    for (number, node) in nodes.iter().enumerate() {
        node.hang_up();
        let begun = Instant::now();
        let log = || fs::read_to_string(cluster.log(number)).unwrap();
        while log().matches("the certificate of peer is renewed").count() < times {
            assert!(begun.elapsed() < TIMEOUT, "{}", log());
            sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_change_to_another_authority_one_step_at_a_time() {
    let cluster = Nodes::new(Kind::MariaDb, 2, 4).await;
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let names = ["127.0.0.1", NAME];
    for node in 0..2 {
        let nodes = (&old, &old.issue(&names));
        let keys = keys(folder.path(), &old.issue(&names), nodes, &format!("node{node}"));
        let text = fs::read_to_string(cluster.config(node)).unwrap();
        fs::write(cluster.config(node), text + &keys).unwrap();
    }
    let believed = TlsConfig::default().ca_certificate(old.pem());
    let tls = || Tls::new(&believed).unwrap();
    let [first, second] = [cluster.start(0).await.with_tls(tls()), cluster.start(1).await.with_tls(tls())];
    let mut nodes = vec![first, second];
    both_own(&cluster, &nodes).await;
    let config = ClientConfig::new(format!("https://{}", nodes[0].grpc)).tls(believed.clone());
    let client = Client::connect(config.learn_nodes(false)).unwrap();
    store_everywhere(&client, cluster.shards).await;

    // Both authorities, then certificates of the new one, then the new one alone.
    let authorities = |text: String| {
        for node in 0..2 {
            fs::write(folder.path().join(format!("node{node}.ca")), &text).unwrap();
        }
    };
    authorities(old.pem() + &new.pem());
    renewed(&cluster, &nodes, 1).await;
    store_everywhere(&client, cluster.shards).await;
    for node in 0..2 {
        new.issue(&names).write(folder.path(), &format!("node{node}-nodes"));
    }
    renewed(&cluster, &nodes, 2).await;
    store_everywhere(&client, cluster.shards).await;
    authorities(new.pem());
    renewed(&cluster, &nodes, 3).await;
    store_everywhere(&client, cluster.shards).await;

    // The next calls had other connections after each step. A restart shows that the files alone suffice.
    assert!(nodes.pop().unwrap().terminate().await.0.success());
    nodes.push(cluster.start(1).await.with_tls(tls()));
    both_own(&cluster, &nodes).await;
    store_everywhere(&client, cluster.shards).await;
    let answered = "forebay_forwarded_calls_total{verb=\"enqueue\",outcome=\"answered\"}";
    let before = metric_of_all(&nodes[..1], answered).await;
    store_everywhere(&client, cluster.shards).await;
    assert!(metric_of_all(&nodes[..1], answered).await > before);
}
