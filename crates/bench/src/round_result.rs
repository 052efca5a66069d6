//! Measurements in one turn of one candidate.

use std::time::Duration;

use serde::Serialize;

use crate::{times::SharedHistogram, usage::Usage};

/// One measured value.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Its value.
    pub value: f64,
    /// Whether more is better.
    pub more_is_better: bool,
}

/// The metrics of one turn. The first one is the main metric of the scenario.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RoundResult {
    /// In display order.
    pub metrics: Vec<Metric>,
    /// CPU time in the measured phase, and memory at its end.
    pub usage: Usage,
}

impl RoundResult {
    /// Throughput of `items` in `took`, and their CPU time.
    pub fn of_items(items: u64, took: Duration, usage: Usage) -> Self {
        let mut result = Self { metrics: Vec::new(), usage };
        result.add_more_is_better("throughput", "items/s", items as f64 / took.as_secs_f64());
        result.add_cpu_time(items);
        result
    }

    /// Adds the CPU time per item, by role.
    pub fn add_cpu_time(&mut self, items: u64) {
        let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / items.max(1) as f64;
        let total = self.usage.total_cpu();
        if !total.is_zero() {
            self.add_more_is_better("efficiency", "items/CPU s", items as f64 / total.as_secs_f64());
        }
        for (role, cpu) in self.usage.cpu.clone() {
            self.add_less_is_better(role, "CPU µs/item", each(cpu));
        }
    }

    /// Adds quantiles of times.
    pub fn add_quantiles(&mut self, times: &SharedHistogram) {
        let ms = |us: u64| us as f64 / 1_000.0;
        times.with(|times| {
            self.add_less_is_better("p99", "ms", ms(times.value_at_quantile(0.99)));
            self.add_less_is_better("p50", "ms", ms(times.value_at_quantile(0.5)));
            self.add_less_is_better("p99.9", "ms", ms(times.value_at_quantile(0.999)));
            self.add_less_is_better("longest", "ms", ms(times.max()));
        });
    }

    /// Adds a metric of which more is better.
    pub fn add_more_is_better(&mut self, name: &'static str, unit: &'static str, value: f64) {
        self.metrics.push(Metric { name, unit, value, more_is_better: true });
    }

    /// Adds a metric of which less is better.
    pub fn add_less_is_better(&mut self, name: &'static str, unit: &'static str, value: f64) {
        self.metrics.push(Metric { name, unit, value, more_is_better: false });
    }

    /// Whether more or less is better for the metric of that name, as text.
    pub fn better(&self, name: &str) -> Option<&'static str> {
        self.metric(name)
            .map(|metric| if metric.more_is_better { "more is better" } else { "less is better" })
    }

    /// The metric of that name.
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }
}
