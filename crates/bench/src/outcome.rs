//! What a run has measured.

use std::time::Duration;

use serde::Serialize;

use crate::{times::Times, usage::Usage};

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// What it is.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Its value.
    pub value: f64,
    /// Whether more is better.
    pub more_is_better: bool,
}

/// The figures of one run; the first one is what the scenario is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// In the order in which they are shown.
    pub figures: Vec<Figure>,
    /// CPU time in the measured span, and memory at its end.
    pub usage: Usage,
}

impl Outcome {
    /// Items that went through in a span, with what they cost.
    pub fn of_items(items: u64, span: Duration, usage: Usage) -> Self {
        let mut outcome = Self { figures: Vec::new(), usage };
        outcome.more("throughput", "items/s", items as f64 / span.as_secs_f64());
        outcome.costs(items);
        outcome
    }

    /// Adds the CPU time that each item cost, by role.
    pub fn costs(&mut self, items: u64) {
        let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / items.max(1) as f64;
        let in_all = self.usage.cpu_in_all();
        if !in_all.is_zero() {
            self.more("efficiency", "items/CPU s", items as f64 / in_all.as_secs_f64());
        }
        for (role, cpu) in self.usage.cpu.clone() {
            self.less(role, "CPU µs/item", each(cpu));
        }
    }

    /// Adds quantiles of times.
    pub fn quantiles(&mut self, times: &Times) {
        let ms = |us: u64| us as f64 / 1_000.0;
        times.with(|times| {
            self.less("p99", "ms", ms(times.value_at_quantile(0.99)));
            self.less("p50", "ms", ms(times.value_at_quantile(0.5)));
            self.less("p99.9", "ms", ms(times.value_at_quantile(0.999)));
            self.less("longest", "ms", ms(times.max()));
        });
    }

    /// Adds a figure of which more is better.
    pub fn more(&mut self, name: &'static str, unit: &'static str, value: f64) {
        self.figures.push(Figure { name, unit, value, more_is_better: true });
    }

    /// Adds a figure of which less is better.
    pub fn less(&mut self, name: &'static str, unit: &'static str, value: f64) {
        self.figures.push(Figure { name, unit, value, more_is_better: false });
    }

    /// What is better of the figure of that name, in words.
    pub fn better(&self, name: &str) -> Option<&'static str> {
        self.figure(name)
            .map(|figure| if figure.more_is_better { "more is better" } else { "less is better" })
    }

    /// The figure of that name.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}
