//! GetHistory.

use std::time::Duration;

use forebay_edge::rpc::{fields, rules::ALL_NAMESPACES};
use forebay_peers::history::{STEPS, TOPIC_STEPS};
use forebay_proto::{peer, v1};
use forebay_types::Refusal;
use prost::Message as _;

use super::{context::Admin, ctx::Ctx};

/// How far back, if the request does not say.
const RANGE: Duration = Duration::from_secs(15 * 60);
/// How far back at most.
const RANGE_MAX: Duration = Duration::from_secs(86_400);
/// Nodes look once a second, and need a moment for it.
const LAG_SECONDS: u64 = 2;
/// Bytes that the lines of one node may take.
const LINES_BYTES: usize = 64 << 10;
/// Series that one request may name.
const SERIES_MAX: usize = 32;

/// Serves GetHistory.
pub async fn get(
    admin: &Admin,
    ctx: &Ctx,
    request: v1::GetHistoryRequest,
) -> Result<v1::GetHistoryResponse, Refusal> {
    let namespace = admin.rules.namespace_or_all(&request.namespace)?;
    ctx.call.request().count_for(&namespace)?;
    if !request.topic.is_empty() {
        fields::topic(&admin.rules.limits, "topic", &request.topic)?;
        if &*namespace == ALL_NAMESPACES {
            return Err(Refusal::field("topic", "needs the namespace that it is in"));
        }
    }
    if request.shard.is_some() && (&*namespace != ALL_NAMESPACES || !request.topic.is_empty()) {
        return Err(Refusal::field(
            "shard",
            "is of the whole cluster: the namespace must be -, and no topic",
        ));
    }
    if !request.series.is_empty() {
        fields::members("series", request.series.len(), SERIES_MAX)?;
    }
    let is_known = |series: &i32| v1::HistorySeries::try_from(*series).is_ok_and(|it| it as i32 != 0);
    if let Some(at) = request.series.iter().position(|series| !is_known(series)) {
        return Err(Refusal::field(format!("series[{at}]"), "is no series"));
    }
    let (steps, step) = span(&request)?;
    let until = until(admin, step);
    let asked = peer::GetHistoryRequest {
        namespace: namespace.to_string(),
        topic: request.topic,
        step: u32::try_from(step).unwrap_or(u32::MAX),
        from: until.saturating_sub(steps),
        until,
        shard: request.shard,
    };
    let _look = admin.gather.admit(&namespace, LINES_BYTES)?;
    let response = admin.gather.history(&asked, &request.series).await?;
    ctx.call.reserve_answer(response.encoded_len())?;
    Ok(response)
}

/// The number of the step behind the last one that is over, and that nodes have looked at.
pub fn until(admin: &Admin, step: u64) -> u64 {
    let now = u64::try_from(admin.clock.wall().as_micros() / 1_000_000).unwrap_or(0);
    now.saturating_sub(LAG_SECONDS) / step
}

/// How many steps back, and how many seconds a step has. No more than is kept: a caller's range decides how
/// long the lines are.
fn span(request: &v1::GetHistoryRequest) -> Result<(u64, u64), Refusal> {
    let range = match &request.range {
        Some(range) => fields::duration("range", range)?,
        None => RANGE,
    };
    if range < Duration::from_secs(1) || range > RANGE_MAX {
        return Err(Refusal::field("range", "must be 1 second to 1 day"));
    }
    let is_whole = request.topic.is_empty() && request.shard.is_none();
    let kept: &[(u64, usize)] = if is_whole { &STEPS } else { &TOPIC_STEPS };
    let step = match &request.step {
        Some(step) => fields::duration("step", step)?,
        None => {
            let reaches = |(step, keep): &&(u64, usize)| Duration::from_secs(*step * *keep as u64) >= range;
            let (step, _) = kept.iter().find(reaches).or(kept.last()).copied().unwrap_or_default();
            Duration::from_secs(step)
        }
    };
    match kept.iter().find(|(seconds, _)| Duration::from_secs(*seconds) == step) {
        Some((seconds, keep)) => Ok((range.as_secs().div_ceil(*seconds).min(*keep as u64), *seconds)),
        None => {
            let steps: Vec<String> = kept.iter().map(|(step, _)| format!("{step} s")).collect();
            Err(Refusal::field("step", format!("must be one of {}", steps.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(topic: &str, range: Option<u64>, step: Option<u64>) -> v1::GetHistoryRequest {
        let seconds = |seconds: u64| prost_types::Duration { seconds: seconds as i64, nanos: 0 };
        v1::GetHistoryRequest {
            topic: topic.to_owned(),
            range: range.map(seconds),
            step: step.map(seconds),
            ..v1::GetHistoryRequest::default()
        }
    }

    #[test]
    fn the_finest_step_that_reaches_back_far_enough_is_taken() {
        let step = |topic, range| span(&request(topic, range, None)).unwrap().1;
        assert_eq!((step("", Some(300)), step("", None), step("", Some(3_600))), (1, 10, 10));
        assert_eq!((step("", Some(3_601)), step("", Some(86_400))), (300, 300));
        assert_eq!((step("t", Some(600)), step("t", None)), (10, 300));
    }

    #[test]
    fn a_range_is_cut_to_what_is_kept() {
        let steps = |topic, range, step| span(&request(topic, Some(range), step)).unwrap().0;
        assert_eq!((steps("", 86_400, Some(1)), steps("", 86_400, Some(10))), (300, 360));
        assert_eq!((steps("", 86_400, None), steps("", 61, Some(1)), steps("", 61, Some(10))), (288, 61, 7));
        assert_eq!(steps("t", 86_400, Some(10)), 60);
    }

    #[test]
    fn what_is_not_kept_is_refused_by_its_field() {
        let field = |request| span(&request).unwrap_err().field.unwrap();
        assert_eq!(field(request("", Some(0), None)), "range");
        assert_eq!(field(request("", Some(86_401), None)), "range");
        assert_eq!(field(request("", None, Some(2))), "step");
        assert_eq!(field(request("t", None, Some(1))), "step");
        let shard = v1::GetHistoryRequest { shard: Some(1), ..request("", None, Some(1)) };
        assert_eq!(field(shard), "step");
    }
}
