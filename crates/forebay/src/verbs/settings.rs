//! Parts that `topic put` and `namespace put` share: the flags of settings, and how settings are shown.

use std::time::Duration;

use clap::Args;
use forebay_client::v1::NamespaceSettings;
use forebay_proto::time::{from_duration, to_duration};

use crate::{failure::Failure, output::Table};

/// Value of a setting in a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagValue<T> {
    /// It is not set any more.
    Unset,
    /// It is this.
    To(T),
}

/// The flags of settings.
#[derive(Debug, Args)]
#[group(id = "settings", multiple = true)]
pub struct SettingFlags {
    /// The lease of items that name none, as in 2m; `inherit`: not set here
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub default_lease: Option<FlagValue<Duration>>,
    /// How many deliveries may fail of items that name no number; `inherit`: not set here
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub default_max_attempts: Option<FlagValue<u32>>,
    /// How long items wait after a failed delivery, as in 10s, or 0s; `inherit`: not set here
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub retry_delay: Option<FlagValue<Duration>>,
    /// How long dead letters are kept, as in 30d, or `forever`; `inherit`: not set here
    #[arg(long, value_name = "TIME", value_parser = retention)]
    pub dead_letter_retention: Option<FlagValue<Duration>>,
    /// Of a topic, the items of one of its turns among the topics of a prefix; of a namespace, its part of
    /// what nodes do beside other namespaces: 1 to 100; `inherit`: not set, which is 1
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    pub weight: Option<FlagValue<u32>>,
}

impl SettingFlags {
    /// The settings that are there, with those that the flags name.
    pub fn merge(&self, there: &NamespaceSettings) -> NamespaceSettings {
        let merged_number =
            |given, there: u32| merged(given, Some(there).filter(|number| *number > 0)).unwrap_or(0);
        NamespaceSettings {
            default_lease: merged_span(self.default_lease, there.default_lease),
            default_max_attempts: merged_number(self.default_max_attempts, there.default_max_attempts),
            retry_delay: merged_span(self.retry_delay, there.retry_delay),
            dead_letter_retention: merged_span(self.dead_letter_retention, there.dead_letter_retention),
            weight: merged_number(self.weight, there.weight),
            dedupe_window: there.dedupe_window,
        }
    }
}

/// The settings that are there must have the version that was named, or what no flag names would be taken
/// from others.
pub fn check_version(named: Option<u64>, there: u64) -> Result<(), Failure> {
    match named {
        Some(named) if named != there => {
            let message = format!("the settings have version {there} by now, and {named} was named");
            Err(Failure::new(format!("{message}; look at them, and decide anew")))
        }
        _ => Ok(()),
    }
}

/// A span that is set, unless a flag names it.
pub fn merged_span(
    given: Option<FlagValue<Duration>>,
    there: Option<prost_types::Duration>,
) -> Option<prost_types::Duration> {
    merged(given, there.map(from_duration)).map(to_duration)
}

/// A setting that is there, unless a flag names it.
fn merged<T>(given: Option<FlagValue<T>>, there: Option<T>) -> Option<T> {
    match given {
        None => there,
        Some(FlagValue::Unset) => None,
        Some(FlagValue::To(value)) => Some(value),
    }
}

/// Reads a span.
pub fn span(text: &str) -> Result<FlagValue<Duration>, String> {
    match text {
        "inherit" => Ok(FlagValue::Unset),
        // A zero needs no unit.
        "0" => Ok(FlagValue::To(Duration::ZERO)),
        text => humantime::parse_duration(text).map(FlagValue::To).map_err(|error| error.to_string()),
    }
}

fn number(text: &str) -> Result<FlagValue<u32>, String> {
    match text {
        "inherit" => Ok(FlagValue::Unset),
        text => match text.parse() {
            Ok(number) if number > 0 => Ok(FlagValue::To(number)),
            _ => Err("it must be a number from 1 on, or `inherit`".to_owned()),
        },
    }
}

fn retention(text: &str) -> Result<FlagValue<Duration>, String> {
    if text == "forever" {
        return Ok(FlagValue::To(Duration::ZERO));
    }
    match span(text)? {
        FlagValue::To(Duration::ZERO) => Err("for ever is written as `forever`".to_owned()),
        given => Ok(given),
    }
}

/// The settings by name, as they are shown. `None`: not set, or not known to the server's version.
pub fn values(settings: &NamespaceSettings) -> [(&'static str, Option<String>); 6] {
    let shown = |span| humantime::format_duration(from_duration(span)).to_string();
    let shown_or = |zero: &str, span| match from_duration(span).is_zero() {
        true => zero.to_owned(),
        false => shown(span),
    };
    let number = |set: u32| Some(set).filter(|number| *number > 0).map(|number| number.to_string());
    [
        ("default lease", settings.default_lease.map(shown)),
        ("default max attempts", number(settings.default_max_attempts)),
        ("retry delay", settings.retry_delay.map(|span| shown_or("none", span))),
        ("dead letters kept", settings.dead_letter_retention.map(|span| shown_or("for ever", span))),
        ("weight", number(settings.weight)),
        ("dedupe window", settings.dedupe_window.map(shown)),
    ]
}

/// Adds settings to a table: what counts, and whether that is set here.
pub fn add_rows(table: &mut Table, own: &NamespaceSettings, effective: &NamespaceSettings) {
    for ((name, value), (_, own)) in values(effective).into_iter().zip(values(own)) {
        if let Some(value) = value {
            let whose = if own.is_some() { "set here" } else { "inherited" };
            table.row([name.into(), value.into(), whose.into()]);
        }
    }
}

/// The settings after a change, for people.
pub fn table(
    title: &'static str,
    name: &str,
    own: &NamespaceSettings,
    effective: &NamespaceSettings,
    version: u64,
) -> Table {
    let mut table = Table::new([title, "", ""]);
    table.row(["name".into(), name.into(), "".into()]);
    add_rows(&mut table, own, effective);
    table.row(["settings version".into(), version.into(), "".into()]);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_flags_are_read() {
        let second = Duration::from_secs(1);
        assert_eq!((span("1s"), span("inherit")), (Ok(FlagValue::To(second)), Ok(FlagValue::Unset)));
        assert_eq!(
            (span("0"), span("0s")),
            (Ok(FlagValue::To(Duration::ZERO)), Ok(FlagValue::To(Duration::ZERO)))
        );
        assert_eq!((number("3"), number("inherit")), (Ok(FlagValue::To(3)), Ok(FlagValue::Unset)));
        assert_eq!(retention("forever"), Ok(FlagValue::To(Duration::ZERO)));
        assert_eq!(
            (retention("1s"), retention("inherit")),
            (Ok(FlagValue::To(second)), Ok(FlagValue::Unset))
        );
        for wrong in ["", "1", "forever", "-1s"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "0", "-1", "x"] {
            assert!(number(wrong).is_err(), "{wrong}");
        }
        assert!(retention("0s").is_err(), "nobody should keep them for ever who means not at all");
    }

    #[test]
    fn what_no_flag_names_stays() {
        let seconds = |seconds| Some(to_duration(Duration::from_secs(seconds)));
        let there = NamespaceSettings {
            default_lease: seconds(1),
            retry_delay: seconds(2),
            dedupe_window: seconds(3),
            weight: 5,
            ..Default::default()
        };
        let flags = SettingFlags {
            default_lease: None,
            default_max_attempts: Some(FlagValue::To(4)),
            retry_delay: Some(FlagValue::Unset),
            dead_letter_retention: None,
            weight: None,
        };
        let merged = flags.merge(&there);
        let expected = NamespaceSettings { retry_delay: None, default_max_attempts: 4, ..there };
        assert_eq!(merged, expected);
    }
}
