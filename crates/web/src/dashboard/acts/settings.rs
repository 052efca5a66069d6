//! The fields of the forms that change settings.

use forebay_proto::v1::NamespaceSettings;

use super::{super::trouble::Trouble, create_token::span, operate::number};
use crate::fields::Fields;

/// The settings of a form. What is empty is inherited; a form of a topic has no dedupe window.
pub fn settings(fields: &Fields) -> Result<NamespaceSettings, Trouble> {
    let span = |name| span(name, fields.get(name));
    let count = |name: &'static str| match number(fields, name)? {
        Some(0) => Err(Trouble::field(name, "must be 1 or more, or be empty")),
        given => Ok(given.unwrap_or_default()),
    };
    Ok(NamespaceSettings {
        default_lease: span("lease")?,
        default_max_attempts: count("attempts")?,
        retry_delay: span("retry")?,
        dead_letter_retention: span("kept")?,
        weight: count("weight")?,
        dedupe_window: span("window")?,
    })
}

/// The version that they replace.
pub fn version(fields: &Fields) -> Result<u64, Trouble> {
    number(fields, "version")?.ok_or_else(|| Trouble::field("version", "must be given"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_all_settings_and_what_is_empty_is_inherited() {
        let read = |form: &str| {
            let fields = Fields::read(form.as_bytes());
            Ok::<_, Trouble>((settings(&fields)?, version(&fields)?))
        };
        let (put, version) =
            read("version=7&lease=+30s+&attempts=5&retry=0s&kept=&weight=3&window=2m").unwrap();
        let seconds = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
        let expected = NamespaceSettings {
            default_lease: seconds(30),
            default_max_attempts: 5,
            retry_delay: seconds(0),
            dead_letter_retention: None,
            weight: 3,
            dedupe_window: seconds(120),
        };
        assert_eq!((put, version), (expected, 7));
        for wrong in ["", "version=1&attempts=0", "version=1&weight=0", "version=1&lease=soon", "version=x"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
