//! Result of a check, in each format.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{
    figures::{Bad, Limits, Spec, Unit},
    flags::Form,
};
use crate::{
    output::{Json, visible},
    verbs::severity::Severity,
};

/// Object of a check with its figures.
pub struct CheckedObject {
    /// Its name.
    pub target: String,
    /// Names and values that tell it from others, in Prometheus' format.
    pub labels: Vec<(&'static str, String)>,
    /// The values of the check's figures, in their order.
    pub values: Vec<f64>,
    /// Why the figures may be too low, if they may. What is critical nevertheless is critical.
    pub in_doubt: Option<String>,
}

/// The result.
pub struct Report {
    /// Which check.
    check: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// Why, in one line.
    text: String,
    /// Names and values that tell it from others.
    labels: Vec<(&'static str, String)>,
    /// The figures.
    figures: Vec<ComparedFigure>,
}

/// A figure, compared.
struct ComparedFigure {
    /// Its name, threshold and unit in each form.
    spec: &'static Spec,
    /// Its value.
    value: f64,
    /// The thresholds of a warning and the critical one.
    limits: [Option<f64>; 2],
    /// How bad it is.
    severity: Severity,
}

impl Report {
    /// That it could not be found out.
    pub fn unknown(check: &'static str, why: String) -> Self {
        Self { check, severity: Severity::Unknown, text: why, labels: Vec::new(), figures: Vec::new() }
    }

    /// Compares what was seen.
    pub fn of(check: &'static str, seen: CheckedObject, specs: &'static [Spec], limits: &Limits) -> Self {
        let judge = |((spec, value), limits): ((&'static Spec, f64), &[Option<f64>; 2])| ComparedFigure {
            spec,
            value,
            limits: *limits,
            severity: spec.judge(value, *limits),
        };
        let figures: Vec<_> = specs.iter().zip(seen.values).zip(&limits.0).map(judge).collect();
        let worst = figures.iter().map(|it| it.severity).max().unwrap_or(Severity::Fine);
        let doubt = seen.in_doubt.as_ref().map_or(Severity::Fine, |_| Severity::Unknown);
        let wrong: Vec<String> =
            figures.iter().filter(|it| it.severity > Severity::Fine).map(ComparedFigure::why).collect();
        let all = || figures.iter().map(|it| format!("{} {}", it.spec.name, it.spec.show(it.value)));
        let mut said = if wrong.is_empty() { all().collect::<Vec<_>>() } else { wrong };
        said.extend(seen.in_doubt);
        let text = format!("{}: {}", seen.target, said.join(", "));
        Self { check, severity: worst.max(doubt), text, labels: seen.labels, figures }
    }

    /// The result in one of the formats, with the end of its last line.
    pub fn print(&self, form: Form) -> String {
        match form {
            Form::Text => self.text(),
            Form::Json => format!("{:#}\n", Json(&self.json())),
            Form::Nagios => self.nagios(),
            Form::Prometheus => self.prometheus(),
        }
    }

    fn text(&self) -> String {
        format!("{} {}: {}\n", self.check, self.severity.name(), visible(&self.text))
    }

    fn json(&self) -> Value {
        let figure = |it: &ComparedFigure| {
            json!({
                "name": it.spec.name,
                "value": it.value,
                "warn": it.limits[0],
                "critical": it.limits[1],
                "severity": it.severity.name(),
            })
        };
        json!({
            "check": self.check,
            "severity": self.severity.name(),
            "status": self.severity.code(),
            "text": self.text,
            "figures": self.figures.iter().map(figure).collect::<Vec<_>>(),
        })
    }

    /// `FOREBAY TOPIC OK - text | performance data`. A `|` would end the text.
    fn nagios(&self) -> String {
        let (check, state) = (self.check.to_uppercase(), self.severity.name().to_uppercase());
        let mut line = format!("FOREBAY {check} {state} - {}", visible(&self.text).replace('|', "/"));
        for (index, it) in self.figures.iter().enumerate() {
            let limit = |limit: Option<f64>| {
                let shown = limit.map(|limit| it.spec.write(limit)).unwrap_or_default();
                // A range: below it is bad.
                if it.spec.bad == Bad::Below && limit.is_some() { format!("{shown}:") } else { shown }
            };
            let unit = if it.spec.unit == Unit::Seconds { "s" } else { "" };
            let ([warn, critical], value) = (it.limits.map(limit), it.spec.write(it.value));
            // Writing to a String cannot fail.
            let _ = write!(
                line,
                "{}{}={value}{unit};{warn};{critical}",
                if index == 0 { " | " } else { " " },
                it.spec.name
            );
        }
        line + "\n"
    }

    fn prometheus(&self) -> String {
        let mut labels = format!("check=\"{}\"", self.check);
        for (name, value) in &self.labels {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            // Writing to a String cannot fail.
            let _ = write!(labels, ",{name}=\"{value}\"");
        }
        let mut text = format!(
            "# HELP forebay_check_status 0 fine, 1 warning, 2 critical, 3 unknown.\n\
             # TYPE forebay_check_status gauge\nforebay_check_status{{{labels}}} {}\n",
            self.severity.code()
        );
        if !self.figures.is_empty() {
            text.push_str(
                "# HELP forebay_check_value What was compared: ages in seconds.\n\
                 # TYPE forebay_check_value gauge\n",
            );
        }
        for it in &self.figures {
            let value = it.spec.write(it.value);
            let _ = writeln!(text, "forebay_check_value{{{labels},figure=\"{}\"}} {value}", it.spec.name);
        }
        text
    }
}

impl ComparedFigure {
    /// Tells why it is bad.
    fn why(&self) -> String {
        let limit = self.limits[usize::from(self.severity == Severity::Critical)].unwrap_or_default();
        let side = if self.spec.bad == Bad::Above { "above" } else { "below" };
        format!("{} {} ({side} {})", self.spec.name, self.spec.show(self.value), self.spec.show(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::topic, *};

    fn report(values: [f64; 6], in_doubt: Option<&str>) -> Report {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let warn = [pair("age", "60s"), pair("waiting", "1")];
        let limits = Limits::read(topic::FIGURES, &warn, &[pair("age", "5m")]).unwrap();
        let labels = vec![("topic", "a\"b".to_owned())];
        let in_doubt = in_doubt.map(str::to_owned);
        Report::of(
            "topic",
            CheckedObject { target: "mail".into(), labels, values: values.into(), in_doubt },
            topic::FIGURES,
            &limits,
        )
    }

    #[test]
    fn each_format_says_the_same() {
        let bad = report([63.5, 12.0, 0.0, 0.0, 0.0, 0.0], None);
        assert_eq!(
            bad.print(Form::Nagios),
            "FOREBAY TOPIC WARNING - mail: age 1m 3s (above 1m), waiting 0 (below 1) | \
             age=63.500s;60.000;300.000 ready=12;; leased=0;; scheduled=0;; dead=0;; waiting=0;1:;\n"
        );
        assert_eq!(bad.print(Form::Text), "topic warning: mail: age 1m 3s (above 1m), waiting 0 (below 1)\n");
        let text = bad.print(Form::Prometheus);
        assert!(text.contains("\nforebay_check_status{check=\"topic\",topic=\"a\\\"b\"} 1\n"), "{text}");
        assert!(text.contains("{check=\"topic\",topic=\"a\\\"b\",figure=\"age\"} 63.500\n"), "{text}");
        let json: Value = serde_json::from_str(&bad.print(Form::Json)).unwrap();
        assert_eq!((&json["status"], &json["figures"][0]["value"]), (&json!(1), &json!(63.5)));
    }

    #[test]
    fn what_is_in_doubt_is_unknown_unless_it_is_critical() {
        let fine = [0.0, 0.0, 0.0, 0.0, 0.0, 3.0];
        assert_eq!(report(fine, None).severity, Severity::Fine);
        assert_eq!(report(fine, Some("shard 3 was not asked")).severity, Severity::Unknown);
        let critical = report([301.0, 1.0, 0.0, 0.0, 0.0, 3.0], Some("shard 3 was not asked"));
        assert_eq!(critical.severity, Severity::Critical);
        let text = critical.print(Form::Text);
        assert!(text.ends_with("age 5m 1s (above 5m), shard 3 was not asked\n"), "{text}");
    }

    #[test]
    fn an_error_ends_neither_the_line_nor_the_text() {
        let line = Report::unknown("cluster", "a | b\nc".to_owned()).print(Form::Nagios);
        assert_eq!(line, "FOREBAY CLUSTER UNKNOWN - a / b\\nc\n");
    }
}
