//! Report of a load.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    failure::Failure,
    output::{Cell, One, Style, Table, Tone},
};

/// Measurements of a load.
pub struct LoadMeasurements {
    /// The topic.
    pub topic: String,
    /// Items whose storing is confirmed.
    pub stored: u64,
    /// Items whose ack is confirmed.
    pub acked: u64,
    /// Stored items that were not done in the end.
    pub lost: u64,
    /// Deliveries of items that had been delivered before.
    pub redelivered: u64,
    /// Deliveries of items whose ack was confirmed before.
    pub after_ack: u64,
    /// Calls and members of calls that failed.
    pub errors: u64,
    /// The first of these errors.
    pub error: Option<String>,
    /// From the beginning until the last ack.
    pub span: Duration,
    /// How long enqueues took.
    pub enqueue: Latency,
    /// From the beginning of an enqueue to the delivery.
    pub end_to_end: Latency,
}

/// Percentiles, in microseconds.
#[derive(Debug, PartialEq, Eq)]
pub struct Latency([u32; 4]);

/// Their names.
const PERCENTILES: [(&str, usize); 4] = [("p50", 500), ("p90", 900), ("p99", 990), ("max", 1_000)];

impl Latency {
    /// Of so many measurements. Without any, all are 0.
    pub fn of(mut micros: Vec<u32>) -> Self {
        micros.sort_unstable();
        Self(PERCENTILES.map(|(_, permille)| {
            let rank = (micros.len() * permille).div_ceil(1_000).max(1);
            micros.get(rank - 1).copied().unwrap_or(0)
        }))
    }

    fn json(&self) -> Value {
        PERCENTILES
            .iter()
            .zip(self.0)
            .map(|((name, _), micros)| ((*name).to_owned(), Value::from(millis(micros))))
            .collect()
    }

    fn show(&self) -> String {
        let parts =
            PERCENTILES.iter().zip(self.0).map(|((name, _), micros)| format!("{name} {} ms", millis(micros)));
        parts.collect::<Vec<_>>().join(", ")
    }
}

fn millis(micros: u32) -> f64 {
    f64::from(micros) / 1_000.0
}

impl LoadMeasurements {
    /// Nothing is left in the topic.
    pub fn is_clean(&self) -> bool {
        self.lost == 0 && self.errors == 0
    }

    /// Fails if the queue broke its word.
    pub fn judge(&self) -> Result<(), Failure> {
        match (self.lost, self.after_ack) {
            (0, 0) => Ok(()),
            (lost, after_ack) => Err(Failure::new(format!(
                "{lost} items were stored but not done in the end, {after_ack} were delivered after their ack"
            ))),
        }
    }

    /// Items a second.
    fn rate(&self) -> f64 {
        match self.span.as_secs_f64() {
            0.0 => 0.0,
            // Counts are far below 2^53.
            seconds => (self.acked as f64 / seconds).round(),
        }
    }
}

impl One for LoadMeasurements {
    fn name(&self) -> String {
        self.topic.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        Ok(json!({
            "topic": self.topic,
            "stored": self.stored,
            "acked": self.acked,
            "seconds": self.span.as_secs_f64(),
            "itemsPerSecond": self.rate(),
            "enqueueMillis": self.enqueue.json(),
            "endToEndMillis": self.end_to_end.json(),
            "lost": self.lost,
            "deliveredAfterAck": self.after_ack,
            "redelivered": self.redelivered,
            "errors": self.errors,
            "firstError": self.error,
        }))
    }

    fn table(&self, _style: &Style) -> Table {
        let mut table = Table::new(["BENCH", ""]);
        let mut row = |name: &str, value: Cell| table.row([name.into(), value]);
        let judged =
            |count: u64| Cell::toned(count.to_string(), if count == 0 { Tone::Good } else { Tone::Bad });
        row("topic", Cell::from(&self.topic));
        row("stored", self.stored.into());
        row("acked", self.acked.into());
        row("seconds", format!("{:.2}", self.span.as_secs_f64()).into());
        row("items a second", self.rate().into());
        row("enqueue", self.enqueue.show().into());
        row("end to end", self.end_to_end.show().into());
        row("lost", judged(self.lost));
        row("delivered after ack", judged(self.after_ack));
        row("redelivered", self.redelivered.into());
        row("errors", self.errors.into());
        if let Some(error) = &self.error {
            row("first error", Cell::toned(error, Tone::Warn));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        assert_eq!(Latency::of((1..=1_000).rev().collect()), Latency([500, 900, 990, 1_000]));
        assert_eq!(Latency::of(vec![7]), Latency([7; 4]));
        assert_eq!(Latency::of(Vec::new()), Latency([0; 4]));
    }

    #[test]
    fn a_broken_word_fails() {
        let measured = |lost, after_ack| LoadMeasurements {
            topic: String::new(),
            stored: 1,
            acked: 1,
            lost,
            redelivered: 1,
            after_ack,
            errors: 1,
            error: None,
            span: Duration::ZERO,
            enqueue: Latency([0; 4]),
            end_to_end: Latency([0; 4]),
        };
        assert!(measured(0, 0).judge().is_ok());
        assert!(measured(1, 0).judge().is_err() && measured(0, 1).judge().is_err());
    }
}
