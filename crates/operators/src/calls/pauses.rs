//! PauseTopic and ResumeTopic, and the pauses that lists of topics show.

use std::time::Duration;

use forebay_edge::{audit::principal_name, rpc::fields};
use forebay_engine::DesiredSettings;
use forebay_proto::{time::to_timestamp, v1};
use forebay_types::{
    NOTE_BYTES_MAX, Namespace, PAUSED_BY_BYTES_MAX, Pause, Policy, Refusal, Side, Timestamp, Topic,
    TopicName, cut_text,
};

use super::{
    context::{Admin, REASON_BYTES},
    ctx::Ctx,
    settings,
};

/// The longest pause that ends by itself.
const PAUSE_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

/// Serves PauseTopic.
pub async fn pause(
    admin: &Admin,
    ctx: &Ctx,
    mut request: v1::PauseTopicRequest,
) -> Result<v1::PauseTopicResponse, Refusal> {
    let name = name(admin, ctx, &request.namespace, &request.topic)?;
    let sides = sides(&request.sides)?;
    cut_text(&mut request.note, NOTE_BYTES_MAX);
    let since = admin.clock.wall();
    let until = request.until.map(|until| fields::timestamp("until", &until)).transpose()?;
    if until.is_some_and(|until| until <= since || until > since.plus(PAUSE_MAX)) {
        return Err(Refusal::field("until", "must be in the future, and at most 366 days from now"));
    }
    let who = principal_name(&ctx.caller);
    let by = who[..who.floor_char_boundary(PAUSED_BY_BYTES_MAX)].to_owned();
    let pause = Pause { by, since, until, note: request.note };
    let wish = |policy: &mut Policy| {
        for side in &sides {
            let found = policy.pause_mut(*side);
            // A call that is repeated changes nothing.
            let since = found.as_ref().map_or(since, |found| found.since);
            *found = Some(Pause { since, ..pause.clone() });
        }
    };
    let policy = admin.policies.change(&ctx.caller, &name, request.dry_run, wish).await?;
    Ok(v1::PauseTopicResponse { pauses: pauses_of(&policy, name.topic.is_empty(), since) })
}

/// Serves ResumeTopic.
pub async fn resume(
    admin: &Admin,
    ctx: &Ctx,
    mut request: v1::ResumeTopicRequest,
) -> Result<v1::ResumeTopicResponse, Refusal> {
    let name = name(admin, ctx, &request.namespace, &request.topic)?;
    let sides = sides(&request.sides)?;
    cut_text(&mut request.reason, REASON_BYTES);
    let wish = |policy: &mut Policy| sides.iter().for_each(|side| *policy.pause_mut(*side) = None);
    let policy = admin.policies.change(&ctx.caller, &name, request.dry_run, wish).await?;
    if !request.dry_run && !request.reason.is_empty() {
        let (namespace, topic, who, reason) =
            (&*name.namespace, &*name.topic, &*ctx.caller.id, &request.reason);
        tracing::info!(namespace, topic, who, reason, "pauses were ended");
    }
    Ok(v1::ResumeTopicResponse { pauses: pauses_of(&policy, name.topic.is_empty(), admin.clock.wall()) })
}

/// Adds their pauses and settings to topics.
pub(crate) async fn add_to(
    admin: &Admin,
    caller: &Namespace,
    topics: &mut [v1::Topic],
) -> Result<(), Refusal> {
    let own = topics.iter().map(|topic| TopicName::new(topic.namespace.as_str(), topic.topic.as_str()));
    let mut names: Vec<TopicName> = own.collect();
    let count = names.len();
    let mut namespaces: Vec<TopicName> =
        names.iter().map(|name| TopicName::new(name.namespace.clone(), "")).collect();
    namespaces.dedup();
    names.extend(namespaces);
    let policies = admin.gather.policies(caller.clone(), names.clone()).await?;
    let now = admin.clock.wall();
    let of_namespaces: Vec<(&TopicName, &DesiredSettings)> =
        names.iter().zip(&policies).skip(count).collect();
    for (topic, DesiredSettings { policy, settings, version, .. }) in topics.iter_mut().zip(&policies) {
        topic.settings = (!settings.is_nothing()).then(|| settings::topic_message(settings));
        topic.settings_version = *version;
        topic.pauses = pauses_of(policy, false, now);
        let of_namespace = of_namespaces.iter().find(|(name, _)| *name.namespace == *topic.namespace);
        topic.pauses.extend(of_namespace.iter().flat_map(|(_, of)| pauses_of(&of.policy, true, now)));
    }
    Ok(())
}

/// Bytes that pauses take in an answer.
pub fn bytes(pauses: &[v1::Pause]) -> usize {
    pauses.iter().map(|pause| pause.by.len() + pause.note.len() + PAUSE_BYTES).sum()
}

/// Bytes that a pause takes in an answer beside its texts.
const PAUSE_BYTES: usize = 48;

/// The pauses of a policy that are not over.
pub(crate) fn pauses_of(policy: &Policy, of_namespace: bool, now: Timestamp) -> Vec<v1::Pause> {
    let pause = |side: Side| {
        let pause = policy.pause(side).filter(|pause| !pause.is_over(now))?;
        let to = match side {
            Side::Enqueue => v1::Side::Enqueue,
            Side::Dequeue => v1::Side::Dequeue,
        };
        Some(v1::Pause {
            side: to.into(),
            by: pause.by.clone(),
            since: Some(to_timestamp(pause.since)),
            until: pause.until.map(to_timestamp),
            note: pause.note.clone(),
            of_namespace,
        })
    };
    Side::BOTH.into_iter().filter_map(pause).collect()
}

/// The topic, or the namespace if the topic is empty.
fn name(admin: &Admin, ctx: &Ctx, namespace: &str, topic: &str) -> Result<TopicName, Refusal> {
    let namespace = admin.rules.namespace(namespace)?;
    ctx.call.request().count_for(&namespace)?;
    let topic: Topic = match topic {
        "" => "".into(),
        topic => fields::topic(&admin.rules.limits, "topic", topic)?,
    };
    Ok(TopicName { namespace, topic })
}

fn sides(numbers: &[i32]) -> Result<Vec<Side>, Refusal> {
    let mut sides = Vec::new();
    for (index, number) in numbers.iter().enumerate() {
        let side = match v1::Side::try_from(*number) {
            Ok(v1::Side::Enqueue) => Side::Enqueue,
            Ok(v1::Side::Dequeue) => Side::Dequeue,
            Ok(v1::Side::Unspecified) | Err(_) => {
                let message = "must be SIDE_ENQUEUE or SIDE_DEQUEUE";
                return Err(Refusal::field(format!("sides[{index}]"), message));
            }
        };
        if !sides.contains(&side) {
            sides.push(side);
        }
    }
    if sides.is_empty() {
        return Err(Refusal::field("sides", "must name a side: SIDE_ENQUEUE, SIDE_DEQUEUE or both"));
    }
    Ok(sides)
}
