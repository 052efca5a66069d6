//! ExportSettings and ApplySettings

use forebay_proto::v1::{
    ApplySettingsRequest, ApplySettingsResponse, ExportSettingsRequest, ExportSettingsResponse,
    NamespaceSettings, PauseTopicRequest, SettingsEntry, Side, admin_service_client::AdminServiceClient,
};
use tonic::{Code, Status, transport::Channel};

use super::{RefusalDetails, Wire, seconds};

fn admin(wire: &Wire) -> AdminServiceClient<Channel> {
    AdminServiceClient::new(wire.node.channel())
}

async fn export(wire: &Wire, request: ExportSettingsRequest) -> Result<ExportSettingsResponse, Status> {
    Ok(admin(wire).export_settings(request).await?.into_inner())
}

async fn apply(wire: &Wire, request: ApplySettingsRequest) -> Result<ApplySettingsResponse, Status> {
    Ok(admin(wire).apply_settings(request).await?.into_inner())
}

fn entry(namespace: &str, topic: &str, attempts: u32) -> SettingsEntry {
    let settings = NamespaceSettings { default_max_attempts: attempts, ..Default::default() };
    SettingsEntry { namespace: namespace.into(), topic: topic.into(), settings: Some(settings) }
}

fn all() -> ExportSettingsRequest {
    ExportSettingsRequest { namespace: "-".into(), ..Default::default() }
}

fn document(entries: Vec<SettingsEntry>) -> ApplySettingsRequest {
    ApplySettingsRequest { namespace: "-".into(), entries, ..Default::default() }
}

#[tokio::test]
async fn a_document_is_applied_whole_or_not_at_all() {
    let wire = Wire::start().await;
    let three = vec![entry("club", "", 2), entry("shop", "mail", 3), entry("shop", "sms", 4)];
    let tried = ApplySettingsRequest { dry_run: true, ..document(three.clone()) };
    assert_eq!(apply(&wire, tried).await.unwrap().differences.len(), 3);
    assert!(export(&wire, all()).await.unwrap().entries.is_empty(), "a dry run changes nothing");
    let applied = apply(&wire, document(three.clone())).await.unwrap();
    assert!(applied.differences.iter().all(|it| it.before.is_none() && it.after.is_some()));
    let exported = export(&wire, all()).await.unwrap();
    assert_eq!((&exported.entries, exported.version), (&three, applied.version));

    // Settings that are so already are not written.
    let again = apply(&wire, document(three.clone())).await.unwrap();
    assert_eq!((again.differences.len(), again.version), (0, applied.version));
    let bad = vec![entry("club", "", 9), entry("shop", "mail", 5_000_000)];
    RefusalDetails::call(apply(&wire, document(bad)).await)
        .invalid("entries[1].settings.default_max_attempts");
    assert_eq!(export(&wire, all()).await.unwrap().entries, three, "nothing of it was done");

    // Of one namespace. What is missing goes, and what is of others stays.
    let shop = ApplySettingsRequest { namespace: "shop".into(), ..document(vec![entry("shop", "mail", 7)]) };
    let kept = ApplySettingsRequest { keep_others: true, dry_run: true, ..shop.clone() };
    assert_eq!(apply(&wire, kept).await.unwrap().differences.len(), 1);
    let changed = apply(&wire, shop).await.unwrap().differences;
    assert_eq!(changed.len(), 2);
    assert!(changed[0].before.is_some() && changed[0].after.is_some() && changed[1].after.is_none());
    let left = [entry("club", "", 2), entry("shop", "mail", 7)];
    assert_eq!(export(&wire, all()).await.unwrap().entries, left);
}

#[tokio::test]
async fn a_document_names_the_version_that_it_was_compared_with() {
    let wire = Wire::start().await;
    let none = export(&wire, all()).await.unwrap().version;
    let from = |version, attempts| ApplySettingsRequest {
        version: Some(version),
        ..document(vec![entry("shop", "", attempts)])
    };
    let first = apply(&wire, from(none, 2)).await.unwrap().version;
    let stale = RefusalDetails::call(apply(&wire, from(none, 3)).await);
    stale.is(Code::Aborted, "VERSION_MISMATCH", Some("version"));
    let repeated = apply(&wire, from(none, 2)).await.unwrap();
    assert_eq!((repeated.differences.len(), repeated.version), (0, first), "all is so already");
    // A pause is no setting.
    let pause = PauseTopicRequest {
        namespace: "shop".into(),
        topic: "mail".into(),
        sides: vec![Side::Dequeue.into()],
        ..Default::default()
    };
    admin(&wire).pause_topic(pause).await.unwrap();
    let second = apply(&wire, from(first, 4)).await.unwrap().version;
    assert!(second > first);
    // Settings of another tenant are no change of this one's.
    let shop = ExportSettingsRequest { namespace: "shop".into(), ..Default::default() };
    assert_eq!(export(&wire, shop.clone()).await.unwrap().version, second);
    apply(&wire, ApplySettingsRequest { keep_others: true, ..document(vec![entry("club", "", 5)]) })
        .await
        .unwrap();
    assert_eq!(export(&wire, shop).await.unwrap().version, second);
    let of_shop = ApplySettingsRequest { namespace: "shop".into(), ..from(second, 6) };
    assert!(apply(&wire, of_shop).await.unwrap().version > second);
}

#[tokio::test]
async fn a_document_comes_in_pages() {
    let wire = Wire::start().await;
    let entries: Vec<_> = (10..35).map(|number| entry("shop", &format!("t{number}"), number)).collect();
    apply(&wire, document(entries.clone())).await.unwrap();
    let (mut found, mut page_token) = (Vec::new(), String::new());
    loop {
        let page = export(&wire, ExportSettingsRequest { page_size: 10, page_token, ..all() }).await.unwrap();
        found.extend(page.entries);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(found, entries);
    let other = ExportSettingsRequest { namespace: "club".into(), ..Default::default() };
    assert!(export(&wire, other).await.unwrap().entries.is_empty());
    let foreign = ExportSettingsRequest { page_token: "x".into(), ..all() };
    RefusalDetails::call(export(&wire, foreign).await).invalid("page_token");
}

#[tokio::test]
async fn each_wrong_value_of_a_document_is_named() {
    let wire = Wire::start().await;
    let refused = async |request| RefusalDetails::call(apply(&wire, request).await);
    let window = NamespaceSettings { dedupe_window: Some(seconds(60)), ..Default::default() };
    let of_topic = SettingsEntry { settings: Some(window), ..entry("shop", "mail", 0) };
    refused(document(vec![of_topic])).await.invalid("entries[0].settings.dedupe_window");
    refused(document(vec![entry("", "mail", 1)])).await.invalid("entries[0].namespace");
    refused(document(vec![entry("shop", "a b", 1)])).await.invalid("entries[0].topic");
    let twice = vec![entry("shop", "a", 1), entry("shop", "b", 1), entry("shop", "a", 2)];
    refused(document(twice)).await.invalid("entries[2].topic");
    let foreign = ApplySettingsRequest { namespace: "club".into(), ..document(vec![entry("shop", "a", 1)]) };
    refused(foreign).await.invalid("entries[0].namespace");
    refused(ApplySettingsRequest { namespace: String::new(), ..document(vec![]) }).await.invalid("namespace");
    let many = document((0..1_001).map(|number| entry("shop", &format!("t{number}"), 1)).collect());
    refused(many).await.is(Code::ResourceExhausted, "TOO_MANY_POLICIES", None);
    assert!(export(&wire, all()).await.unwrap().entries.is_empty());
    let too_many = (0..2_001).map(|number| entry(&format!("n{}", number / 500), &format!("t{number}"), 1));
    refused(document(too_many.collect())).await.is(Code::InvalidArgument, "TOO_LARGE", Some("entries"));
}
