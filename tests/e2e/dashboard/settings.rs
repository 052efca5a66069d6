//! Settings are seen and changed on pages, and not over those of somebody else.

use forebay_proto::v1::{
    GetNamespaceRequest, Namespace, NamespaceSettings, PutNamespaceRequest, PutTopicRequest, Topic,
    TopicSettings,
};

use super::{
    NAMESPACE, Stage,
    chromium::{Chromium, Looks},
};

#[tokio::test]
async fn the_settings_of_a_topic_are_changed_but_not_over_those_of_somebody_else() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks { scriptless: true, ..Looks::default() }).await;
    let page = format!("topic?ns={NAMESPACE}&name=mail&tab=settings");
    stage.open(&browser, &page).await;
    browser.click("Change the settings of this topic").await;
    browser.fill("input[name=retry]", "90s").await;
    browser.fill("input[name=attempts]", "5").await;
    browser.fill("details[open] input[name=reason]", "the mail server is slow").await;
    browser.picture("settings-form").await;
    browser.click("Change the settings").await;
    browser.until_shown("The settings were changed.").await;
    browser.until_shown("1 min 30 s (set here)").await;
    let own = stage.topic("mail").await.settings.unwrap();
    assert_eq!((own.retry_delay.unwrap().seconds, own.default_max_attempts), (90, 5));
    assert_eq!(own.default_lease, None, "what is empty is inherited");

    // Settings are in the form, and a setting that is taken out of it is inherited again. Meanwhile somebody
    // else changes it.
    browser.click("Change the settings of this topic").await;
    browser.fill("input[name=attempts]", "").await;
    let Topic { settings_version: version, settings, .. } = stage.topic("mail").await;
    let settings = settings.map(|own| TopicSettings { default_max_attempts: 9, ..own });
    let (namespace, topic) = (NAMESPACE.to_owned(), "mail".to_owned());
    let request = PutTopicRequest { namespace, topic, settings, version, ..Default::default() };
    stage.admin().put_topic(request).await.unwrap();
    browser.click("Change the settings").await;
    browser.until_shown("have changed: version").await;
    assert_eq!(stage.topic("mail").await.settings.unwrap().default_max_attempts, 9);
    stage.open(&browser, &page).await;
    browser.click("Change the settings of this topic").await;
    browser.fill("input[name=attempts]", "").await;
    browser.click("Change the settings").await;
    browser.until_shown("The settings were changed.").await;
    let own = stage.topic("mail").await.settings.unwrap();
    assert_eq!((own.default_max_attempts, own.retry_delay.unwrap().seconds), (0, 90));
}

/// The namespace with its settings.
async fn namespace(stage: &Stage) -> Namespace {
    let request = GetNamespaceRequest { namespace: NAMESPACE.to_owned() };
    stage.admin().get_namespace(request).await.unwrap().into_inner().namespace.unwrap()
}

#[tokio::test]
async fn the_settings_of_a_namespace_are_changed_but_not_over_those_of_somebody_else() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks { scriptless: true, ..Looks::default() }).await;
    stage.open(&browser, &format!("topics?ns={NAMESPACE}")).await;
    browser.click("Figures and settings of the namespace").await;
    browser.click("Change the settings of this namespace").await;
    browser.fill("input[name=retry]", "90s").await;
    browser.fill("input[name=window]", "5m").await;
    browser.fill("details[open] input[name=reason]", "the bank is slow").await;
    browser.click("Change the settings").await;
    browser.until_shown("The settings were changed.").await;
    browser.until_shown("1 min 30 s (set here)").await;
    browser.picture("namespace-settings").await;
    let Namespace { settings, settings_version: version, .. } = namespace(&stage).await;
    let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let expected =
        NamespaceSettings { retry_delay: seconds(90), dedupe_window: seconds(300), ..Default::default() };
    assert_eq!(settings, Some(expected));
    let records = stage.audit().await;
    assert_eq!((&*records[0].method, &*records[0].reason), ("PutNamespace", "the bank is slow"));
    // Its topics have them now.
    stage.open(&browser, &format!("topic?ns={NAMESPACE}&name=mail&tab=settings")).await;
    browser.until_shown("1 min 30 s (inherited)").await;

    // A value that the node does not take is named. Meanwhile somebody else changes them.
    browser.click(&format!("the settings of {NAMESPACE}")).await;
    browser.click("Change the settings of this namespace").await;
    browser.fill("input[name=window]", "9000h").await;
    browser.click("Change the settings").await;
    browser.until_shown("dedupe_window").await;
    stage.open(&browser, &format!("namespace?ns={NAMESPACE}")).await;
    let (namespace_name, settings) = (NAMESPACE.to_owned(), settings.unwrap());
    let settings = Some(NamespaceSettings { default_max_attempts: 9, ..settings });
    let request = PutNamespaceRequest { namespace: namespace_name, settings, version, ..Default::default() };
    stage.admin().put_namespace(request).await.unwrap();
    browser.click("Change the settings of this namespace").await;
    browser.fill("input[name=retry]", "").await;
    browser.click("Change the settings").await;
    browser.until_shown("have changed: version").await;
    assert_eq!(namespace(&stage).await.settings, settings);
}

#[tokio::test]
async fn topics_that_begin_alike_have_settings_of_their_own() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks { scriptless: true, ..Looks::default() }).await;
    stage.open(&browser, &format!("namespace?ns={NAMESPACE}")).await;
    browser.until_shown("No topic has settings of its own.").await;
    browser.fill("input[name=name]", "ma*").await;
    browser.click("Show its settings").await;
    browser.until_shown("Nothing is set here.").await;
    browser.click("Change the settings of these topics").await;
    browser.fill("input[name=attempts]", "7").await;
    browser.click("Change the settings").await;
    browser.until_shown("The settings were changed.").await;
    browser.until_shown("7 (set here)").await;
    browser.picture("pattern-settings").await;
    stage.open(&browser, &format!("topic?ns={NAMESPACE}&name=mail&tab=settings")).await;
    browser.until_shown("7 (inherited)").await;
    stage.open(&browser, &format!("namespace?ns={NAMESPACE}")).await;
    browser.until_shown("Failures until an item is dead: 7").await;
    browser.picture("narrower-settings").await;
    browser.click("ma*").await;
    browser.until_shown("7 (set here)").await;
}

#[tokio::test]
async fn a_namespace_has_settings_before_it_has_topics() {
    let stage = Stage::start().await;
    let browser = Chromium::start(Looks { scriptless: true, ..Looks::default() }).await;
    stage.open(&browser, "namespace?ns=fresh").await;
    browser.until_shown("There is nothing of it yet").await;
    browser.click("Change the settings of this namespace").await;
    browser.fill("input[name=attempts]", "7").await;
    browser.click("Change the settings").await;
    browser.until_shown("The settings were changed.").await;
    browser.until_shown("7 (set here)").await;
}
