//! The file in which a command may say more than its exit status does.

use std::{fmt, fs, io, path::Path, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{self, Visitor},
};

/// A larger file is refused.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// The longest delay that a server takes.
const DELAY_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

/// Outcome that a command wants for its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandOutcome {
    /// It is done.
    Ack,
    /// It failed and is delivered again.
    Nack,
    /// It failed for good.
    DeadLetter,
    /// It was not worked on.
    Release,
}

/// The content.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Content {
    /// Outcome for the item.
    outcome: CommandOutcome,
    /// How long a nacked item is not delivered.
    #[serde(default, with = "optional_span")]
    delay: Option<Duration>,
    /// Why, of a nack or a dead letter.
    #[serde(default)]
    reason: Option<FreeText>,
    /// Replaces the metadata of a nacked item.
    #[serde(default)]
    metadata_base64: Option<String>,
}

/// Result that a command has written.
#[derive(Debug, PartialEq, Eq)]
pub struct CommandResult {
    /// Outcome for the item.
    pub outcome: CommandOutcome,
    /// How long a nacked item is not delivered.
    pub delay: Option<Duration>,
    /// Why.
    pub reason: Option<String>,
    /// The item's new metadata.
    pub metadata: Option<Bytes>,
}

/// Reads the file, if the command wrote one, and removes it.
pub fn take(path: &Path) -> Result<Option<CommandResult>, String> {
    let text = read(path);
    // A file that is left is removed with the folder.
    let _ = fs::remove_file(path);
    match text {
        Ok(text) if text.trim_ascii().is_empty() => Ok(None),
        Ok(text) => parse(&text).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    // A pipe there would never end.
    let found = fs::symlink_metadata(path)?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if found.len() > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    fs::read(path)
}

fn parse(text: &[u8]) -> Result<CommandResult, String> {
    let content: Content = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let metadata = content.metadata_base64.map(|text| STANDARD.decode(text)).transpose();
    let metadata = metadata.map_err(|error| format!("metadataBase64: {error}"))?.map(Bytes::from);
    if content.outcome != CommandOutcome::Nack && (content.delay.is_some() || metadata.is_some()) {
        return Err("delay and metadataBase64 are for a nack".to_owned());
    }
    if content.delay.is_some_and(|delay| delay > DELAY_MAX) {
        return Err("delay: it is more than 366 days".to_owned());
    }
    let reason = content.reason.map(|FreeText(text)| text);
    Ok(CommandResult { outcome: content.outcome, delay: content.delay, reason, metadata })
}

/// Spans such as `30s`.
mod optional_span {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, de::Error as _};

    /// Reads one.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        let Some(text) = Option::<String>::deserialize(from)? else { return Ok(None) };
        humantime::parse_duration(&text)
            .map(Some)
            .map_err(|error| D::Error::custom(format!("delay {text:?}: {error}")))
    }
}

/// A text for people. What is not Unicode in it is replaced: that is no reason to take another outcome than
/// the command's.
#[derive(Debug)]
struct FreeText(String);

impl<'de> Deserialize<'de> for FreeText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        // JSON gives a string as bytes to those who ask for them, also one with halves of surrogate pairs.
        from.deserialize_bytes(FreeTextVisitor)
    }
}

/// Reads one.
struct FreeTextVisitor;

impl Visitor<'_> for FreeTextVisitor {
    type Value = FreeText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E: de::Error>(self, text: &[u8]) -> Result<FreeText, E> {
        Ok(FreeText(String::from_utf8_lossy(text).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_read_whatever_is_in_it() {
        let reason = |text: &[u8]| {
            let json = [br#"{"outcome":"dead-letter","reason":"#, text, b"}"].concat();
            parse(&json).unwrap().reason
        };
        assert_eq!(reason(br#""no \"x\u00e9\"""#).unwrap(), "no \"xé\"");
        assert!(reason(br#""file a\udc80b""#).unwrap().starts_with("file a\u{fffd}"));
        assert_eq!(reason(b"\"file a\xffb\"").unwrap(), "file a\u{fffd}b");
        assert_eq!(reason(b"null"), None);
    }

    #[test]
    fn what_a_command_says_is_read() {
        let said =
            parse(br#"{"outcome":"nack","delay":"30s","reason":"busy","metadataBase64":"cDc="}"#).unwrap();
        let expected = CommandResult {
            outcome: CommandOutcome::Nack,
            delay: Some(Duration::from_secs(30)),
            reason: Some("busy".to_owned()),
            metadata: Some("p7".into()),
        };
        assert_eq!(said, expected);
        assert_eq!(parse(br#"{"outcome":"dead-letter"}"#).unwrap().outcome, CommandOutcome::DeadLetter);
        for (wrong, says) in [
            (r#"{"outcome":"done"}"#, "unknown variant `done`"),
            (r#"{"outcome":"ack","delay":"1s"}"#, "are for a nack"),
            (r#"{"outcome":"nack","delay":"5"}"#, "delay \"5\""),
            (r#"{"outcome":"nack","delay":"400days"}"#, "366 days"),
            (r#"{"outcome":"nack","metadataBase64":"?"}"#, "metadataBase64"),
            (r#"{"outcome":"ack","why":"x"}"#, "unknown field `why`"),
            (r#"{"outcome":"nack","reason":["x"]}"#, "expected a string"),
            ("[", "EOF"),
        ] {
            let error = parse(wrong.as_bytes()).unwrap_err();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }
}
