//! The file of tokens that operators keep: TOML with a `[[token]]` for each. It holds no secret.

use std::collections::HashSet;

use forebay_types::Timestamp;
use serde::Deserialize;

use crate::{grant::Grant, secret_hash::SecretHash, table::Record, token::TokenId, toml_error::toml_error};

/// More hashes are a mistake: a token has one secret, or two while one replaces the other.
const HASHES_MAX: usize = 2;

/// Everything that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct TokensFileError(pub Vec<String>);

/// The file, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Each `[[token]]`.
    #[serde(default)]
    token: Vec<Entry>,
}

/// One `[[token]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Names it.
    id: String,
    /// For people.
    #[serde(default)]
    name: String,
    /// Of its secret, or of both while one replaces the other.
    sha256: OneOrMore,
    /// As in `team-*:produce`.
    grants: Vec<String>,
    /// When it ends.
    ends: Option<Time>,
    /// Until when the older one of two secrets holds.
    overlap_ends: Option<Time>,
    /// It is of no use any more.
    #[serde(default)]
    revoked: bool,
}

/// A text, or a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    /// A text.
    One(String),
    /// A list.
    More(Vec<String>),
}

/// A time, with quotes or without.
#[derive(Deserialize)]
#[serde(untagged)]
enum Time {
    /// Without.
    Toml(toml::value::Datetime),
    /// With.
    Text(String),
}

/// Reads the text of a file. Every error names the token.
pub fn parse(text: &str) -> Result<Vec<Record>, TokensFileError> {
    let file: File = toml::from_str(text).map_err(|error| TokensFileError(vec![toml_error(text, &error)]))?;
    let (mut records, mut errors, mut ids) = (Vec::new(), Vec::new(), HashSet::new());
    for (index, entry) in file.token.into_iter().enumerate() {
        let id = entry.id.clone();
        match record(entry) {
            Ok(record) if !ids.insert(id.clone()) => {
                errors.push(format!("token {}: the id is there twice", record.id));
            }
            Ok(record) => records.push(record),
            Err(error) => errors.push(format!("token {} ({id:?}): {error}", index + 1)),
        }
    }
    if errors.is_empty() { Ok(records) } else { Err(TokensFileError(errors)) }
}

fn record(entry: Entry) -> Result<Record, String> {
    let id = TokenId::new(&entry.id).ok_or("id must be 12 letters and digits")?;
    let hashes = match entry.sha256 {
        OneOrMore::One(hash) => vec![hash],
        OneOrMore::More(hashes) => hashes,
    };
    if hashes.is_empty() || hashes.len() > HASHES_MAX {
        return Err("sha256 must have one hash, or two while one secret replaces the other".to_owned());
    }
    let hash = |text: &String| SecretHash::from_hex(text).ok_or("sha256 must be 64 hexadecimal digits");
    let hashes = hashes.iter().map(hash).collect::<Result<_, _>>()?;
    let grant = |text: &String| text.parse::<Grant>().map_err(|error| format!("grants: {error}"));
    let grants = entry.grants.iter().map(grant).collect::<Result<_, _>>()?;
    let ends = entry.ends.map(|at| time("ends", at)).transpose()?;
    let overlap_ends = entry.overlap_ends.map(|at| time("overlap_ends", at)).transpose()?;
    let (name, revoked, root) = (entry.name, entry.revoked, String::new());
    Ok(Record { id, name, hashes, grants, ends, overlap_ends, revoked, root })
}

fn time(key: &str, time: Time) -> Result<Timestamp, String> {
    let text = match time {
        Time::Toml(time) => time.to_string(),
        Time::Text(text) => text,
    };
    text.parse().map_err(|error| format!("{key} must be a time, and {text:?} is none: {error}"))
}

/// The text of a file with one more token. What is there stays as it is. Fails if the text is no such file
/// or has the id.
pub fn append(text: &str, record: &Record) -> Result<String, TokensFileError> {
    parse(text)?;
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let list = |entries: &mut dyn Iterator<Item = String>| entries.collect::<Vec<_>>().join(", ");
    let hashes = list(&mut record.hashes.iter().map(|hash| format!("\"{hash}\"")));
    let hashes = if record.hashes.len() == 1 { hashes } else { format!("[{hashes}]") };
    let grants = list(&mut record.grants.iter().map(|grant| format!("\"{grant}\"")));
    let mut lines = vec![
        "[[token]]".to_owned(),
        format!("id = \"{}\"", record.id),
        format!("name = {}", quoted(&record.name)),
        format!("sha256 = {hashes}"),
        format!("grants = [{grants}]"),
    ];
    if let Some(ends) = record.ends {
        lines.push(format!("ends = {ends}"));
    }
    if let Some(ends) = record.overlap_ends {
        lines.push(format!("overlap_ends = {ends}"));
    }
    if record.revoked {
        lines.push("revoked = true".to_owned());
    }
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let text = format!("{text}{gap}{}\n", lines.join("\n"));
    parse(&text)?;
    Ok(text)
}

/// The text of a file in which a token is revoked. What else is there stays as it is. `None`: there is no
/// such token. Fails if the text is no such file, or its tokens are written in another form.
pub fn revoke(text: &str, id: &TokenId) -> Result<Option<String>, TokensFileError> {
    let records = parse(text)?;
    match records.iter().find(|record| record.id == *id) {
        None => return Ok(None),
        Some(record) if record.revoked => return Ok(Some(text.to_owned())),
        Some(_) => {}
    }
    let names_it = |line: &str| key_of(line, "id") == Some(id.as_str());
    let not_revoked = |line: &&str| !is_not_revoked(line);
    let mut lines = Vec::new();
    // The section of the token begins at its head.
    for section in sections(text) {
        if section.iter().any(|line| names_it(line)) {
            for line in section.iter().copied().filter(not_revoked) {
                lines.push(line);
                if names_it(line) {
                    lines.push("revoked = true");
                }
            }
        } else {
            lines.extend(section);
        }
    }
    let changed = format!("{}\n", lines.join("\n"));
    let expected = records.into_iter().map(|record| match record.id == *id {
        true => Record { revoked: true, ..record },
        false => record,
    });
    if parse(&changed).is_ok_and(|changed| changed.into_iter().eq(expected)) {
        return Ok(Some(changed));
    }
    let message = format!("cannot edit the file in its form; write `revoked = true` to token {id} by hand");
    Err(TokensFileError(vec![message]))
}

/// The lines of a text, cut before each head of a section.
pub(crate) fn sections(text: &str) -> Vec<Vec<&str>> {
    let mut sections = vec![Vec::new()];
    for line in text.lines() {
        if line.trim_start().starts_with("[[") {
            sections.push(Vec::new());
        }
        if let Some(section) = sections.last_mut() {
            section.push(line);
        }
    }
    sections
}

/// The value of a key in a line, without quotes and without what is noted behind it. `None`: it is another
/// line.
pub(crate) fn key_of<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let value = line.trim().strip_prefix(key)?.trim_start().strip_prefix('=')?;
    Some(value.split('#').next().unwrap_or_default().trim().trim_matches(['"', '\'']))
}

/// Whether a line says that a token is not revoked.
fn is_not_revoked(line: &str) -> bool {
    key_of(line, "revoked").is_some_and(|value| value.starts_with("false"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::{RANDOM_BYTES, Token};

    fn record(seed: u8, name: &str) -> Record {
        let token = Token::of_random(&[seed; RANDOM_BYTES]);
        Record {
            id: token.id().clone(),
            name: name.to_owned(),
            hashes: vec![token.hash()],
            grants: vec!["team-*:produce,consume".parse().unwrap()],
            ends: Some(Timestamp::from_micros(1_800_000_000_000_000)),
            overlap_ends: None,
            revoked: false,
            root: String::new(),
        }
    }

    #[test]
    fn what_is_appended_is_read_again() {
        let (first, mut second) = (record(1, "a \"worker\"\nof one\u{202e}"), record(2, ""));
        second.hashes.push(first.hashes[0]);
        second.ends = None;
        second.overlap_ends = Some(Timestamp::from_micros(1_700_000_000_000_000));
        second.revoked = true;
        let text = append("# ours", &first).unwrap();
        let text = append(&text, &second).unwrap();
        assert!(text.starts_with("# ours\n\n[[token]]\nid = "), "{text}");
        assert!(text.contains("\nends = 2027-01-15T08:00:00Z\n"), "{text}");
        assert_eq!(parse(&text).unwrap(), [first.clone(), second]);
        assert!(append(&text, &first).unwrap_err().to_string().contains("is there twice"));
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn a_token_is_revoked_and_the_rest_of_the_file_stays() {
        let (first, second) = (record(1, "a"), record(2, "b"));
        let text = append(&append("# head\n", &first).unwrap(), &second).unwrap();
        let text = text.replace("name = \"b\"", "name = \"b\" # ours\nrevoked = false");
        let changed = revoke(&text, &second.id).unwrap().unwrap();
        let revoked = Record { revoked: true, ..second.clone() };
        assert_eq!(parse(&changed).unwrap(), [first.clone(), revoked]);
        assert!(changed.starts_with("# head\n") && changed.contains("# ours"), "{changed}");
        assert_eq!(revoke(&changed, &second.id).unwrap(), Some(changed.clone()));
        assert_eq!(revoke(&text, &record(3, "").id).unwrap(), None);

        let (id, hash) = (&first.id, first.hashes[0]);
        let inline = format!("token = [{{ id = \"{id}\", sha256 = \"{hash}\", grants = [] }}]");
        assert!(revoke(&inline, id).unwrap_err().to_string().contains("by hand"));
    }

    #[test]
    fn every_error_names_the_token() {
        let hash = "0".repeat(64);
        let entry = |id: &str, rest: &str| format!("[[token]]\nid = \"{id}\"\n{rest}\n");
        let valid = format!("sha256 = \"{hash}\"\ngrants = [\"a:produce\"]");
        for (text, error) in [
            (entry("short", &valid), "token 1 (\"short\"): id must be 12 letters and digits"),
            (entry("abcdefghijkl", "sha256 = \"00\"\ngrants = []"), "sha256 must be 64 hexadecimal digits"),
            (entry("abcdefghijkl", "sha256 = []\ngrants = []"), "sha256 must have one hash, or two"),
            (
                entry("abcdefghijkl", &format!("sha256 = \"{hash}\"\ngrants = [\"a:write\"]")),
                "there is no scope \"write\"",
            ),
            (entry("abcdefghijkl", &format!("{valid}\nends = 2027-01-31")), "ends must be a time, and"),
            (entry("abcdefghijkl", &format!("{valid}\nscope = 1")), "unknown field `scope`"),
            ("[[tokens]]".to_owned(), "unknown field `tokens`"),
            ("nonsense".to_owned(), "line 1: "),
        ] {
            let found = parse(&text).unwrap_err().to_string();
            assert!(found.contains(error), "{found}");
        }
        let two = format!("{}{}", entry("short", &valid), entry("long", &valid));
        assert_eq!(parse(&two).unwrap_err().0.len(), 2);
    }

    #[test]
    fn a_time_may_have_quotes() {
        let hash = "0".repeat(64);
        let with = |ends: &str| {
            let text =
                format!("[[token]]\nid = \"abcdefghijkl\"\nsha256 = \"{hash}\"\ngrants = []\nends = {ends}");
            parse(&text).unwrap()[0].ends.unwrap()
        };
        assert_eq!(with("2027-01-15T08:00:00Z"), with("\"2027-01-15T08:00:00Z\""));
    }
}
