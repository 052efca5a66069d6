//! `GetActiveTopics`

use forebay_proto::v1::{
    EnqueueItem, GetActiveTopicsRequest, GetActiveTopicsResponse, Nack, enqueue_item::Schedule,
};
use tonic::{Response, Status};

use super::{NAMESPACE, RefusalDetails, Wire, item, micros, seconds};

async fn call(
    wire: &Wire,
    request: GetActiveTopicsRequest,
) -> Result<Response<GetActiveTopicsResponse>, Status> {
    wire.client().get_active_topics(request).await
}

fn request() -> GetActiveTopicsRequest {
    GetActiveTopicsRequest { namespace: NAMESPACE.into(), ..Default::default() }
}

#[tokio::test]
async fn each_wrong_value_is_named() {
    let wire = Wire::start().await;
    let refused = async |request| RefusalDetails::call(call(&wire, request).await);
    refused(GetActiveTopicsRequest { namespace: String::new(), ..request() }).await.invalid("namespace");
    refused(GetActiveTopicsRequest { page_size: 1_001, ..request() }).await.invalid("page_size");
    refused(GetActiveTopicsRequest { page_token: "x".into(), ..request() }).await.invalid("page_token");
    refused(GetActiveTopicsRequest { topic_prefix: "a b".into(), ..request() }).await.invalid("topic_prefix");
    let topic_prefix = "p".repeat(201);
    refused(GetActiveTopicsRequest { topic_prefix, ..request() }).await.too_large("topic_prefix");
}

#[tokio::test]
async fn topics_come_most_urgent_first_with_their_counts() {
    let wire = Wire::start().await;
    let scheduled = Some(Schedule::Delay(seconds(3_600)));
    wire.stored(vec![
        EnqueueItem { priority: 5, ..item("calm") },
        EnqueueItem { priority: -5, ..item("urgent") },
        EnqueueItem { priority: 9, ..item("urgent") },
        EnqueueItem { schedule: scheduled, ..item("urgent") },
        EnqueueItem { schedule: scheduled, ..item("sleeping") },
        EnqueueItem { priority: 5, ..item("calm-too") },
        item("leased"),
    ])
    .await;
    let leased = wire.take_one("leased").await;
    let answer = call(&wire, request()).await.unwrap().into_inner();
    let found: Vec<_> = answer
        .topics
        .iter()
        .map(|t| (t.topic.as_str(), t.best_priority, t.ready_count, t.leased_count, t.scheduled_count))
        .collect();
    assert_eq!(found, [("urgent", -5, 2, 0, 1), ("calm", 5, 1, 0, 0), ("calm-too", 5, 1, 0, 0)]);
    assert!(answer.topics.iter().all(|topic| micros(&topic.oldest_ready_at) > 0));
    assert!(answer.next_page_token.is_empty() && !answer.incomplete);

    // A nacked item is ready again. Another namespace has no topics.
    assert_eq!(wire.nack(Nack { receipt: leased.receipt, ..Default::default() }).await, None);
    let prefixed = GetActiveTopicsRequest { topic_prefix: "le".into(), ..request() };
    let answer = call(&wire, prefixed).await.unwrap().into_inner();
    assert_eq!(answer.topics.iter().map(|topic| &topic.topic).collect::<Vec<_>>(), ["leased"]);
    let foreign = GetActiveTopicsRequest { namespace: "other".into(), ..request() };
    assert!(call(&wire, foreign).await.unwrap().into_inner().topics.is_empty());
}

#[tokio::test]
async fn pages_follow_each_other() {
    let wire = Wire::start().await;
    let names: Vec<_> = (0..25).map(|number| format!("t{number:02}")).collect();
    let numbered = |(number, name): (usize, &String)| EnqueueItem { priority: number as i32, ..item(name) };
    wire.stored(names.iter().enumerate().map(numbered).collect()).await;

    let (mut found, mut page_token) = (Vec::new(), String::new());
    loop {
        let page = GetActiveTopicsRequest { page_size: 10, page_token, ..request() };
        let answer = call(&wire, page).await.unwrap().into_inner();
        assert!(answer.topics.len() <= 10);
        found.extend(answer.topics.into_iter().map(|topic| topic.topic));
        page_token = answer.next_page_token;
        if page_token.is_empty() {
            break;
        }
        // A token is valid only for its own listing.
        let foreign =
            GetActiveTopicsRequest { namespace: "other".into(), page_token: page_token.clone(), ..request() };
        RefusalDetails::call(call(&wire, foreign).await).invalid("page_token");
    }
    assert_eq!(found, names);
}

#[tokio::test]
async fn a_list_without_some_shards_says_so() {
    let away = "\n[[shard]]\nid = 3\nurl = \"mysql://nobody@127.0.0.1:1/none\"\n";
    let wire = Wire::with_unmigrated(away).await;
    wire.stored(vec![item("there")]).await;
    let answer = call(&wire, request()).await.unwrap().into_inner();
    assert_eq!((answer.topics.len(), answer.incomplete), (1, true));

    let topics = async |output: &'static str| {
        let mut command = std::process::Command::new(forebay_testkit::program());
        command.args(["topics", "--namespace", NAMESPACE, "--output", output]);
        command.args(["--addr", &format!("http://{}", wire.node.grpc)]);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let said = "forebay: some shards could not be asked: the list may be incomplete\n";
    let (done, list, warning) = topics("table").await;
    assert!(done && list.contains("there") && warning == said, "{list} {warning}");
    let (done, list, warning) = topics("json").await;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert!(done && warning == said, "{warning}");
    assert_eq!((&list["incomplete"], &list["topics"][0]["topic"]), (&true.into(), &"there".into()));
}
