//! Which pauses keep items of a topic.

use forebay_proto::v1::BlockerCode;
use forebay_types::{Pause, Refusal, Side, TopicName};

use super::words::FoundBlocker;
use crate::calls::context::Admin;

/// The pauses of a side of a topic: of its namespace, and its own.
pub async fn pauses(admin: &Admin, name: &TopicName, side: Side) -> Result<Vec<FoundBlocker>, Refusal> {
    let namespace = TopicName::new(name.namespace.clone(), "");
    let names = vec![namespace, name.clone()];
    let policies = admin.gather.policies(name.namespace.clone(), names.clone()).await?;
    let found = names.iter().zip(&policies).filter_map(|(name, wanted)| {
        wanted
            .policy
            .pause(side)
            .filter(|pause| !pause.is_over(admin.clock.wall()))
            .map(|it| found(name, side, it))
    });
    Ok(found.collect())
}

fn found(name: &TopicName, side: Side, pause: &Pause) -> FoundBlocker {
    let (code, what) = match name.topic.is_empty() {
        true => (BlockerCode::NamespacePaused, format!("Namespace {}", name.namespace)),
        false => (BlockerCode::Paused, format!("Topic {}", name.topic)),
    };
    let effect = match side {
        Side::Enqueue => "takes no new items",
        Side::Dequeue => "hands nothing out",
    };
    let mut sentence = format!("{what} is paused since {}, and {effect}.", pause.since);
    if let Some(until) = pause.until {
        sentence += &format!(" The pause ends at {}.", until);
    }
    if !pause.by.is_empty() {
        sentence += &format!(" It was paused by {}.", pause.by);
    }
    if !pause.note.is_empty() {
        sentence += &format!(" The note says: {}", pause.note);
    }
    let (since, by) = (Some(pause.since), pause.by.clone());
    FoundBlocker { since, until: pause.until, by, ..FoundBlocker::new(code, sentence) }
}

#[cfg(test)]
mod tests {
    use forebay_types::Timestamp;

    use super::*;

    #[test]
    fn a_pause_says_what_is_paused_and_by_whom_and_why() {
        let at = |seconds: i64| Timestamp::from_micros((1_700_000_000 + seconds) * 1_000_000);
        let pause = Pause {
            by: "ops".to_owned(),
            since: at(0),
            until: Some(at(60)),
            note: "mail is down".to_owned(),
        };
        let topic = found(&TopicName::new("shop", "mail"), Side::Dequeue, &pause);
        assert_eq!(
            topic.sentence,
            "Topic mail is paused since 2023-11-14T22:13:20Z, and hands nothing out. The pause ends at \
             2023-11-14T22:14:20Z. It was paused by ops. The note says: mail is down"
        );
        assert_eq!((topic.code, topic.until), (BlockerCode::Paused, Some(at(60))));
        let bare = Pause { by: String::new(), until: None, note: String::new(), ..pause };
        let namespace = found(&TopicName::new("shop", ""), Side::Enqueue, &bare);
        assert_eq!(namespace.code, BlockerCode::NamespacePaused);
        let expected = "Namespace shop is paused since 2023-11-14T22:13:20Z, and takes no new items.";
        assert_eq!(namespace.sentence, expected);
    }
}
