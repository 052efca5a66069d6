//! Rights that end while a call waits.

use std::time::Duration;

use bytes::Bytes;
use forebay_access::{Record, SECRET_BYTES, Token};
use forebay_proto::v1::DequeueRequest;
use forebay_types::{Clock as _, SystemClock};
use futures_util::stream;
use prost::Message as _;
use tokio::time::{Instant, timeout};
use tonic::Request;
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest,
};

use super::{GuardedNode, OWN, Outcome, bearer, file, record, token};
use crate::wire::{asked, http1::Request as Http, raw, seconds};

/// A file that has changed is seen within a second, and a call that waits looks once a second. The rest is
/// for a machine with other things to do. The call itself would wait for 20 s.
const AT_MOST: Duration = Duration::from_secs(12);

/// Returns the outcome of a long poll that begins now.
async fn poll(guarded: &GuardedNode, shown: String) -> Outcome {
    let message = DequeueRequest { namespace: OWN.to_owned(), wait: Some(seconds(20)), ..asked("t", 1) };
    let mut request = Request::new(Bytes::from(message.encode_to_vec()));
    request.metadata_mut().insert("authorization", shown.parse().unwrap());
    let path = "/forebay.v1.QueueService/Dequeue";
    let began = Instant::now();
    let answer = timeout(Duration::from_secs(60), raw::send_to(guarded.node.channel(), path, request)).await;
    let outcome = Outcome::of(&answer.expect("an answer").err());
    assert!(began.elapsed() < AT_MOST, "{:?}: {outcome:?}", began.elapsed());
    outcome
}

/// Waits until so many long polls wait at the node.
async fn until_polls(guarded: &GuardedNode, admin: &str, polls: u64) {
    let begun = Instant::now();
    loop {
        let request = Http::get("/status.json").with("Authorization", admin);
        let status = request.send(&guarded.node.http).await.message();
        if status["engine"]["polls"] == polls {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{status}");
    }
}

#[tokio::test]
async fn a_long_poll_ends_with_its_token() {
    let (worker, admin) = (token(1), token(2));
    let kept = [record(&worker, &["own:consume"]), record(&admin, &["*:all"])];
    let guarded = GuardedNode::start(&file(&kept)).await;
    let [worker, admin] = [bearer(&worker), bearer(&admin)];
    for (changed, expected) in [
        (Record { grants: vec!["own:produce".parse().unwrap()], ..kept[0].clone() }, "SCOPE_MISSING consume"),
        (Record { grants: vec!["other:consume".parse().unwrap()], ..kept[0].clone() }, "WRONG_NAMESPACE"),
        (Record { revoked: true, ..kept[0].clone() }, "BAD_CREDENTIALS"),
    ] {
        let polling = poll(&guarded, worker.clone());
        let revoking = async {
            until_polls(&guarded, &admin, 1).await;
            guarded.replace_tokens(&file(&[changed, kept[1].clone()]));
        };
        let (outcome, ()) = tokio::join!(polling, revoking);
        assert_eq!(outcome.short(), expected);
        until_polls(&guarded, &admin, 0).await;
        guarded.replace_tokens(&file(&kept));
        // The node has the tokens of before again.
        let begun = Instant::now();
        while guarded.grpc(guarded.node.channel(), "/forebay.v1.QueueService/Ack", OWN, &[&worker]).await
            != Outcome::Passed
        {
            assert!(begun.elapsed() < Duration::from_secs(20));
        }
    }
}

#[tokio::test]
async fn a_long_poll_ends_when_its_token_does() {
    let worker = token(1);
    let ends = SystemClock::default().wall().plus(Duration::from_secs(4));
    // The file has whole seconds.
    let guarded =
        GuardedNode::start(&file(&[Record { ends: Some(ends), ..record(&worker, &["own:consume"]) }])).await;
    assert_eq!(poll(&guarded, bearer(&worker)).await.short(), "BAD_CREDENTIALS");
}

#[tokio::test]
async fn a_long_poll_ends_with_the_overlap_of_its_secret() {
    let (old, admin) = (token(1), token(2));
    let new = Token::with_secret(old.id().clone(), &[9; SECRET_BYTES]);
    let ends = SystemClock::default().wall().plus(Duration::from_secs(4));
    let rotated = Record {
        hashes: vec![old.hash(), new.hash()],
        overlap_ends: Some(ends),
        ..record(&old, &["own:consume"])
    };
    let guarded = GuardedNode::start(&file(&[rotated, record(&admin, &["*:all"])])).await;
    assert_eq!(poll(&guarded, bearer(&old)).await.short(), "BAD_CREDENTIALS");
    let path = "/forebay.v1.QueueService/Ack";
    let holder = bearer(&new);
    assert_eq!(guarded.grpc(guarded.node.channel(), path, OWN, &[&holder]).await, Outcome::Passed);
}

#[tokio::test]
async fn a_stream_of_reflection_ends_with_its_token() {
    let (worker, admin) = (token(1), token(2));
    let kept = [record(&worker, &["own:consume"]), record(&admin, &["*:all"])];
    let guarded = GuardedNode::start(&file(&kept)).await;
    let mut client = ServerReflectionClient::new(guarded.node.channel());
    let (questions, asked) = tokio::sync::mpsc::unbounded_channel();
    let ask = || {
        let message_request = Some(MessageRequest::ListServices(String::new()));
        questions.send(ServerReflectionRequest { host: String::new(), message_request })
    };
    let asked = stream::unfold(asked, async |mut asked| Some((asked.recv().await?, asked)));
    let mut request = Request::new(asked);
    request.metadata_mut().insert("authorization", bearer(&worker).parse().unwrap());
    ask().unwrap();
    let mut answers = client.server_reflection_info(request).await.unwrap().into_inner();
    assert!(answers.message().await.unwrap().is_some());
    // It lasts as long as its token, however often that is looked at.
    assert!(timeout(Duration::from_millis(2_500), answers.message()).await.is_err());
    ask().unwrap();
    assert!(answers.message().await.unwrap().is_some());

    guarded.replace_tokens(&file(&[Record { revoked: true, ..kept[0].clone() }, kept[1].clone()]));
    let ended = timeout(AT_MOST, answers.message()).await.expect("it ends").unwrap_err();
    assert_eq!(Outcome::of(&Some(ended)).short(), "BAD_CREDENTIALS");
    // Nobody listens to its questions any more.
    let begun = Instant::now();
    while ask().is_ok() {
        assert!(begun.elapsed() < AT_MOST);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_open_page_ends_with_the_right_to_it() {
    let (watcher, admin) = (token(1), token(2));
    let kept = [record(&watcher, &["*:observe"]), record(&admin, &["*:all"])];
    let guarded = GuardedNode::start(&file(&kept)).await;
    let with = |path: &str, shown: &Token| Http::get(path).with("Authorization", &bearer(shown));
    let page = with("/events?page=shards", &watcher).encoded(&guarded.node.http);
    let narrowing = async {
        let begun = Instant::now();
        while !with("/metrics", &admin).send(&guarded.node.http).await.text().contains("forebay_streams 1") {
            assert!(begun.elapsed() < AT_MOST, "the page does not open");
        }
        let own = Record { grants: vec!["own:observe".parse().unwrap()], ..kept[0].clone() };
        guarded.replace_tokens(&file(&[own, kept[1].clone()]));
        Instant::now()
    };
    // It would last for 50 s.
    let (told, narrowed) = tokio::join!(guarded.node.ask(&page), narrowing);
    assert!(narrowed.elapsed() < AT_MOST, "{:?}", narrowed.elapsed());
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("text/event-stream") && told.contains("data: {"), "{told}");
}
