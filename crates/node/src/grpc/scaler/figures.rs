//! The figures of a trigger's topics, as GetTopic finds them.

use forebay_edge::rpc::fields;
use forebay_operators::calls::{Admin, topic_figures};
use forebay_proto::v1::{self, Side};
use forebay_types::{Refusal, Timestamp, TopicName};

use super::{
    due::{self, unknown},
    metadata::{Counted, Metric, Trigger},
};

/// Items of a topic that are due soon, which are counted at most.
const DUE_MAX: u64 = 10_000;

/// Figures of all topics together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Figures {
    /// The items that are counted.
    backlog: u64,
    /// Seconds that the head has been ready, of the topic where that is longest.
    oldest_age: f64,
}

/// Purpose of the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Their values.
    Values,
    /// Whether there is something to do, which is asked once a second.
    Activity,
}

/// Looks at the topics. If not all of it can be known, it is refused: an outage must not end those who work.
pub async fn look(admin: &Admin, trigger: &Trigger, wanted: Wanted) -> Result<Figures, Refusal> {
    let mut figures = Figures::default();
    for topic in &trigger.topics {
        let name = TopicName { namespace: trigger.namespace.clone(), topic: topic.clone() };
        let found = topic_figures(admin, &name).await?;
        if !found.incomplete_shards.is_empty() {
            return Err(unknown(format!("shards {:?} could not be asked", found.incomplete_shards)));
        }
        if let Some(topic) = found.topic {
            figures.add(&topic, trigger, admin.clock.wall())?;
            if !trigger.lookahead.is_zero() && topic.scheduled_count > 0 && !is_paused(&topic) {
                let most = match wanted {
                    Wanted::Values => DUE_MAX,
                    // More than that say the same.
                    Wanted::Activity => (trigger.activation as u64).saturating_add(1).min(DUE_MAX),
                };
                let until = admin.clock.wall().plus(trigger.lookahead);
                figures.backlog += due::count(admin, &name, until, most).await?;
            }
        }
    }
    Ok(figures)
}

/// Nothing of it is handed out. Who has leased something still works.
fn is_paused(topic: &v1::Topic) -> bool {
    topic.pauses.iter().any(|pause| pause.side() == Side::Dequeue)
}

impl Figures {
    fn add(&mut self, topic: &v1::Topic, trigger: &Trigger, now: Timestamp) -> Result<(), Refusal> {
        let Counted { ready, leased, scheduled } = trigger.counted;
        let is_paused = is_paused(topic);
        let count = |counts: bool, count: u64| if counts { count } else { 0 };
        self.backlog += count(ready && !is_paused, topic.ready_count)
            + count(leased, topic.leased_count)
            + count(scheduled && !is_paused, topic.scheduled_count);
        if is_paused || !trigger.metrics.contains(&Metric::OldestAge) {
            return Ok(());
        }
        match &topic.oldest_ready_at {
            Some(since) => {
                let micros = now.as_micros() - fields::timestamp("oldest_ready_at", since)?.as_micros();
                self.oldest_age = self.oldest_age.max(micros as f64 / 1e6);
            }
            None if topic.ready_count > 0 => {
                let message = format!("the first ready item of {} has not been read yet", topic.topic);
                return Err(unknown(message));
            }
            None => {}
        }
        Ok(())
    }

    /// The value of a metric.
    pub fn value(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Backlog => self.backlog as f64,
            Metric::OldestAge => self.oldest_age,
        }
    }

    /// Whether there is something to do: whether a metric of the trigger is larger than its activation.
    pub fn is_active(&self, trigger: &Trigger) -> bool {
        trigger.metrics.iter().any(|metric| self.value(*metric) > trigger.activation)
    }
}

#[cfg(test)]
mod tests {
    use forebay_types::Reason;

    use forebay_proto::time::to_timestamp;

    use super::*;
    use forebay_edge::rpc::rules::RequestRules;

    fn trigger(pairs: &[(&str, &str)]) -> Trigger {
        let pairs = [("namespace", "n"), ("topic", "t")].iter().chain(pairs);
        let pairs = pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Trigger::read(&RequestRules::default(), &pairs.collect()).unwrap()
    }

    fn topic(since: Option<i64>) -> v1::Topic {
        let oldest_ready_at = since.map(|since| to_timestamp(Timestamp::from_micros(since)));
        let (ready_count, leased_count, scheduled_count) = (1, 20, 300);
        v1::Topic {
            ready_count,
            leased_count,
            scheduled_count,
            dead_count: 4_000,
            oldest_ready_at,
            ..Default::default()
        }
    }

    fn figures(topic: &v1::Topic, trigger: &Trigger) -> Result<(f64, f64, bool), Refusal> {
        let mut figures = Figures::default();
        figures.add(topic, trigger, Timestamp::from_micros(10_000_000))?;
        let values = (figures.value(Metric::Backlog), figures.value(Metric::OldestAge));
        Ok((values.0, values.1, figures.is_active(trigger)))
    }

    #[test]
    fn what_is_counted_follows_from_the_trigger() {
        let topic = topic(Some(7_500_000));
        for (pairs, expected) in [
            (&[][..], (21.0, 0.0, true)),
            (&[("activation", "21")], (21.0, 0.0, false)),
            (&[("activation", "20.5")], (21.0, 0.0, true)),
            (&[("count", "ready")], (1.0, 0.0, true)),
            (&[("count", "leased,scheduled")], (320.0, 0.0, true)),
            (&[("metric", "oldestAge")], (21.0, 2.5, true)),
            (&[("metric", "oldestAge"), ("activation", "2.5")], (21.0, 2.5, false)),
            (&[("metric", "both"), ("activation", "2.5")], (21.0, 2.5, true)),
        ] {
            assert_eq!(figures(&topic, &trigger(pairs)), Ok(expected), "{pairs:?}");
        }
    }

    #[test]
    fn of_a_paused_topic_what_is_leased_counts() {
        for (side, expected) in [(Side::Dequeue, (20.0, 0.0, true)), (Side::Enqueue, (321.0, 2.5, true))] {
            let pauses = vec![v1::Pause { side: side.into(), of_namespace: true, ..Default::default() }];
            let mut topic = v1::Topic { pauses, ..topic(Some(7_500_000)) };
            let trigger = trigger(&[("metric", "both"), ("count", "ready,leased,scheduled")]);
            assert_eq!(figures(&topic, &trigger), Ok(expected));
            topic.leased_count = 0;
            assert_eq!(figures(&topic, &trigger).unwrap().2, side == Side::Enqueue);
        }
    }

    #[test]
    fn an_age_that_is_not_known_is_not_told() {
        let both = trigger(&[("metric", "both")]);
        assert_eq!(figures(&topic(None), &both).unwrap_err().reason, Reason::ShardUnavailable);
        assert_eq!(figures(&topic(None), &trigger(&[])), Ok((21.0, 0.0, true)));
        let nothing_ready = v1::Topic { ready_count: 0, ..topic(None) };
        assert_eq!(figures(&nothing_ready, &both), Ok((20.0, 0.0, true)));
        // Another node's clock is ahead.
        assert_eq!(figures(&topic(Some(11_000_000)), &both), Ok((21.0, 0.0, true)));
    }
}
