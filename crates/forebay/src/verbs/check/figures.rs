//! Figures, and the thresholds that they are compared with.

use crate::{failure::Failure, output, verbs::severity::Severity};

/// Unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Seconds; thresholds are written as 60s or 5m.
    Seconds,
    /// Days.
    Days,
}

/// On which side of a threshold it is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bad {
    /// More than that.
    Above,
    /// Less than that.
    Below,
}

/// A figure of a check.
#[derive(Debug)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The side on which it is bad.
    pub bad: Bad,
    /// The thresholds that hold if it is not named: a warning, critical.
    pub usual: [Option<f64>; 2],
}

/// The thresholds of a check: of each figure that of a warning, and the critical one.
#[derive(Debug, PartialEq)]
pub struct Limits(pub Vec<[Option<f64>; 2]>);

impl Limits {
    /// Reads what was given. Fails if there is no such figure, or if there is no threshold at all.
    pub fn read(
        specs: &[Spec],
        warn: &[(String, String)],
        critical: &[(String, String)],
    ) -> Result<Self, Failure> {
        let mut limits = vec![[None; 2]; specs.len()];
        for (level, flag, given) in [(0, "--warn", warn), (1, "--critical", critical)] {
            for (name, text) in given {
                let wrong = |why: String| Failure::usage(format!("{flag} {name}: {why}"));
                let place = specs.iter().position(|spec| spec.name == name).ok_or_else(|| {
                    let names: Vec<_> = specs.iter().map(|spec| spec.name).collect();
                    wrong(format!("there is no such figure; there are {}", names.join(", ")))
                })?;
                limits[place][level] = Some(specs[place].read(text).map_err(wrong)?);
            }
        }
        for (limit, spec) in limits.iter_mut().zip(specs).filter(|(limit, _)| **limit == [None; 2]) {
            *limit = spec.usual;
        }
        if limits.iter().flatten().all(Option::is_none) {
            return Err(Failure::usage("without --warn or --critical nothing is checked"));
        }
        Ok(Self(limits))
    }
}

impl Spec {
    /// A threshold.
    fn read(&self, text: &str) -> Result<f64, String> {
        if self.unit == Unit::Seconds {
            return humantime::parse_duration(text)
                .map(|span| span.as_secs_f64())
                .map_err(|error| format!("{text:?} is no span, as 60s or 5m: {error}"));
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
            _ => Err(format!("{text:?} is no number")),
        }
    }

    /// How bad a value is.
    pub fn judge(&self, value: f64, [warn, critical]: [Option<f64>; 2]) -> Severity {
        let beyond = |limit: f64| match self.bad {
            Bad::Above => value > limit,
            Bad::Below => value < limit,
        };
        match () {
            () if critical.is_some_and(beyond) => Severity::Critical,
            () if warn.is_some_and(beyond) => Severity::Warning,
            () => Severity::Fine,
        }
    }

    /// A value or a threshold, for people.
    pub fn show(&self, value: f64) -> String {
        match self.unit {
            Unit::Count => format!("{value}"),
            Unit::Seconds => output::span(std::time::Duration::from_secs_f64(value.clamp(0.0, 1e9))),
            Unit::Days => format!("{value:.1}"),
        }
    }

    /// A value or a threshold, for programs, in the base unit.
    pub fn write(&self, value: f64) -> String {
        match self.unit {
            Unit::Count => format!("{value}"),
            Unit::Seconds | Unit::Days => format!("{value:.3}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: &[Spec] = &[
        Spec { name: "age", unit: Unit::Seconds, bad: Bad::Above, usual: [None; 2] },
        Spec { name: "days", unit: Unit::Days, bad: Bad::Below, usual: [Some(14.0), Some(3.0)] },
    ];

    fn pairs(text: &str) -> Vec<(String, String)> {
        text.split(',').filter_map(|it| it.split_once('=')).map(|(a, b)| (a.into(), b.into())).collect()
    }

    #[test]
    fn thresholds_are_read_and_the_others_have_their_defaults() {
        let read = |warn, critical| Limits::read(SPECS, &pairs(warn), &pairs(critical));
        assert_eq!(
            read("age=1m", "age=5m").unwrap(),
            Limits(vec![[Some(60.0), Some(300.0)], [Some(14.0), Some(3.0)]])
        );
        assert_eq!(read("days=30", "").unwrap().0[1], [Some(30.0), None]);
        for (warn, why) in [
            ("size=1", "--warn size: there is no such figure; there are age, days"),
            ("age=60", "is no span"),
            ("days=-1", "is no number"),
            ("days=NaN", "is no number"),
        ] {
            assert!(read(warn, "").unwrap_err().text().contains(why), "{warn}");
        }
        assert!(Limits::read(&SPECS[..1], &[], &[]).unwrap_err().text().contains("nothing is checked"));
    }

    #[test]
    fn a_value_is_bad_beyond_its_threshold_on_the_bad_side() {
        let limits = [Some(60.0), Some(300.0)];
        let age = |value| SPECS[0].judge(value, limits);
        assert_eq!([60.0, 60.1, 300.1].map(age), [Severity::Fine, Severity::Warning, Severity::Critical]);
        let days = |value| SPECS[1].judge(value, SPECS[1].usual);
        assert_eq!([14.0, 13.9, 2.0].map(days), [Severity::Fine, Severity::Warning, Severity::Critical]);
    }
}
