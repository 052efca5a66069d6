//! Views of a client and a target of each other through a proxy.

use std::time::Duration;

use forebay_testkit::proxy::{Proxy, Spring, Toward, Ways};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};

/// Bytes that come, come within this time.
const COMES: Duration = Duration::from_secs(5);
/// Bytes that must not come are waited for this long.
const NOTHING: Duration = Duration::from_millis(50);

/// A connection through a proxy, with both of its ends.
struct Pair {
    /// In the middle.
    proxy: Proxy,
    /// The target's listener.
    listener: TcpListener,
    /// The end of the client.
    client: TcpStream,
    /// The end of the target.
    target: TcpStream,
}

async fn pair() -> Pair {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::to(&listener.local_addr().unwrap().to_string()).await;
    let client = TcpStream::connect(proxy.address()).await.unwrap();
    let (target, _) = timeout(COMES, listener.accept()).await.unwrap().unwrap();
    Pair { proxy, listener, client, target }
}

async fn send(to: &mut TcpStream, text: &str) {
    to.write_all(text.as_bytes()).await.unwrap();
}

/// These bytes come next.
async fn comes(from: &mut TcpStream, text: &str) {
    let mut got = vec![0; text.len()];
    timeout(COMES, from.read_exact(&mut got)).await.unwrap().unwrap();
    assert_eq!(String::from_utf8(got).unwrap(), text);
}

async fn nothing_comes(from: &mut TcpStream) {
    let mut byte = [0];
    let got = timeout(NOTHING, from.read(&mut byte)).await;
    assert!(got.is_err(), "{got:?}");
}

async fn is_reset(from: &mut TcpStream) {
    let got = timeout(COMES, from.read(&mut [0])).await.unwrap();
    assert_eq!(got.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn bytes_and_ends_pass_both_ways() {
    let Pair { proxy, mut client, mut target, .. } = pair().await;
    send(&mut client, "question").await;
    comes(&mut target, "question").await;
    client.shutdown().await.unwrap();
    assert_eq!(timeout(COMES, target.read(&mut [0])).await.unwrap().unwrap(), 0);
    send(&mut target, "answer").await;
    comes(&mut client, "answer").await;
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test]
async fn one_direction_stalls_and_goes_on_without_a_loss() {
    let Pair { proxy, mut client, mut target, .. } = pair().await;
    proxy.stall(Ways::One(Toward::Target));
    send(&mut client, "later").await;
    send(&mut target, "now").await;
    comes(&mut client, "now").await;
    nothing_comes(&mut target).await;
    proxy.pass();
    comes(&mut target, "later").await;
}

#[tokio::test]
async fn both_directions_stall() {
    let Pair { proxy, mut client, mut target, .. } = pair().await;
    proxy.stall(Ways::Both);
    send(&mut client, "a").await;
    send(&mut target, "b").await;
    nothing_comes(&mut target).await;
    nothing_comes(&mut client).await;
    proxy.pass();
    comes(&mut target, "a").await;
    comes(&mut client, "b").await;
}

#[tokio::test]
async fn new_connections_are_refused_and_open_ones_go_on() {
    let Pair { proxy, mut client, mut target, listener } = pair().await;
    proxy.refuse();
    let mut refused = TcpStream::connect(proxy.address()).await.unwrap();
    is_reset(&mut refused).await;
    send(&mut client, "still").await;
    comes(&mut target, "still").await;
    proxy.pass();
    let _client = TcpStream::connect(proxy.address()).await.unwrap();
    timeout(COMES, listener.accept()).await.unwrap().unwrap();
}

#[tokio::test]
async fn open_connections_are_reset_at_both_ends_and_new_ones_pass() {
    let Pair { proxy, mut client, mut target, listener } = pair().await;
    proxy.reset();
    is_reset(&mut client).await;
    is_reset(&mut target).await;
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    let (mut target, _) = timeout(COMES, listener.accept()).await.unwrap().unwrap();
    send(&mut client, "again").await;
    comes(&mut target, "again").await;
}

#[tokio::test]
async fn a_connection_that_is_stalled_can_be_reset() {
    let Pair { proxy, mut client, .. } = pair().await;
    proxy.stall(Ways::Both);
    proxy.reset();
    is_reset(&mut client).await;
}

#[tokio::test]
async fn a_proxy_that_is_gone_leaves_no_connection() {
    let Pair { proxy, mut client, mut target, .. } = pair().await;
    drop(proxy);
    for end in [&mut client, &mut target] {
        let got = timeout(COMES, end.read(&mut [0])).await.unwrap();
        assert!(matches!(got, Ok(0) | Err(_)), "{got:?}");
    }
}

#[tokio::test]
async fn pieces_are_delayed_in_one_direction() {
    let Pair { proxy, mut client, mut target, .. } = pair().await;
    let delay = Duration::from_millis(80);
    proxy.delay(Ways::One(Toward::Client), delay);
    let begun = Instant::now();
    send(&mut client, "question").await;
    comes(&mut target, "question").await;
    send(&mut target, "answer").await;
    comes(&mut client, "answer").await;
    assert!(begun.elapsed() >= delay);
}

#[tokio::test]
async fn a_connection_is_cut_after_so_many_bytes() {
    let Pair { proxy, mut client, mut target, .. } = pair().await;
    send(&mut client, "before").await;
    comes(&mut target, "before").await;
    proxy.cut_after(Toward::Target, 5);
    send(&mut client, "ab").await;
    comes(&mut target, "ab").await;
    send(&mut client, "cdefg").await;
    comes(&mut target, "cde").await;
    is_reset(&mut target).await;
    is_reset(&mut client).await;
    assert_eq!(proxy.sprung(), 1);
}

#[tokio::test]
async fn each_cut_counts_bytes_anew() {
    let Pair { proxy, mut client, mut target, .. } = pair().await;
    proxy.cut_after(Toward::Target, 10);
    send(&mut client, "abcdef").await;
    comes(&mut target, "abcdef").await;
    proxy.pass();
    proxy.cut_after(Toward::Target, 2);
    send(&mut client, "ghi").await;
    comes(&mut target, "gh").await;
    is_reset(&mut target).await;
}

#[tokio::test]
async fn a_connection_is_reset_before_the_marker() {
    let Pair { proxy, mut client, mut target, listener } = pair().await;
    proxy.trap(b"COMMIT", Spring::ResetBefore, 1);
    send(&mut client, "x COM").await;
    comes(&mut target, "x COM").await;
    send(&mut client, "MIT").await;
    proxy.wait_sprung(1).await;
    is_reset(&mut target).await;
    is_reset(&mut client).await;
    // It goes off once.
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    let (mut target, _) = timeout(COMES, listener.accept()).await.unwrap().unwrap();
    send(&mut client, "COMMIT").await;
    comes(&mut target, "COMMIT").await;
    assert_eq!(proxy.sprung(), 1);
}

#[tokio::test]
async fn a_connection_is_reset_when_the_target_answers_the_marker() {
    let Pair { proxy, mut client, mut target, .. } = pair().await;
    proxy.trap(b"COMMIT", Spring::ResetAfter, 1);
    send(&mut client, "a COMMIT b").await;
    comes(&mut target, "a COMMIT b").await;
    nothing_comes(&mut client).await;
    send(&mut target, "done").await;
    is_reset(&mut client).await;
    is_reset(&mut target).await;
}

#[tokio::test]
async fn a_connection_goes_silent_before_or_after_the_marker() {
    for (spring, passed) in [(Spring::SilentBefore, "a "), (Spring::SilentAfter, "a COMMIT b")] {
        let Pair { proxy, mut client, mut target, .. } = pair().await;
        proxy.trap(b"COMMIT", spring, 1);
        send(&mut client, "a COMMIT b").await;
        comes(&mut target, passed).await;
        send(&mut target, "done").await;
        nothing_comes(&mut client).await;
        proxy.pass();
        send(&mut client, "more").await;
        nothing_comes(&mut target).await;
        nothing_comes(&mut client).await;
        proxy.reset();
        is_reset(&mut client).await;
    }
}

#[tokio::test]
async fn a_trap_may_wait_for_other_bytes_first() {
    let Pair { proxy, mut client, mut target, .. } = pair().await;
    proxy.trap_after(b"item", b"COMMIT", Spring::SilentBefore);
    for (sent, passed) in [("COMMIT x", "COMMIT x"), ("COMMIT item", "COMMIT item"), ("y COM", "y COM")] {
        send(&mut client, sent).await;
        comes(&mut target, passed).await;
    }
    assert_eq!(proxy.sprung(), 0);
    send(&mut client, "MIT").await;
    nothing_comes(&mut target).await;
    assert_eq!(proxy.sprung(), 1);
}

#[tokio::test]
async fn the_marker_alone_is_held() {
    let Pair { proxy, mut client, mut target, .. } = pair().await;
    let held = Duration::from_millis(80);
    proxy.trap(b"COMMIT", Spring::Hold(held), u32::MAX);
    for _ in 0..2 {
        send(&mut client, "x").await;
        comes(&mut target, "x").await;
        let begun = Instant::now();
        send(&mut client, "COMMIT").await;
        comes(&mut target, "COMMIT").await;
        assert!(begun.elapsed() >= held);
    }
}

#[tokio::test]
async fn a_url_leads_through_a_proxy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap();
    let proxy = Proxy::of_url(&format!("mysql://root:a@{target}/forebay_1?x=y")).await;
    let _client = TcpStream::connect(proxy.address()).await.unwrap();
    timeout(COMES, listener.accept()).await.unwrap().unwrap();
    let address = proxy.address();
    assert_eq!(
        proxy.through("mysql://root:a@db1:3306/forebay_1?x=y"),
        format!("mysql://root:a@{address}/forebay_1?x=y")
    );
    assert_eq!(proxy.through("mysql://127.0.0.1:1"), format!("mysql://{address}"));
}
