//! Errors of a TOML file, without text of the file: a line of it may be a secret.

use forebay_types::with_nearest;
use toml::de::Error;

/// Describes an error, with its line.
pub fn toml_error(text: &str, error: &Error) -> String {
    let said = toml_message(error);
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {said}", before.matches('\n').count() + 1),
        None => said,
    }
}

/// Describes an error in the value of a key. Of a key that is not known the nearest one is named.
pub fn toml_message(error: &Error) -> String {
    with_nearest(&without_text(error.message()))
}

/// A message of serde, without the text that it quotes.
fn without_text(message: &str) -> String {
    // Its words: invalid type: string "a", expected u64
    let quoted = message.find("string \"").filter(|_| message.starts_with("invalid "));
    match (quoted, message.rfind("\", expected")) {
        (Some(from), Some(to)) if from < to => format!("{}a string{}", &message[..from], &message[to + 1..]),
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "only read")]
    struct Keys {
        port: Option<u16>,
        password_file: Option<String>,
    }

    fn said(text: &str) -> String {
        toml_error(text, &toml::from_str::<Keys>(text).unwrap_err())
    }

    #[test]
    fn no_line_of_the_file_is_repeated() {
        for (text, line, why) in [
            ("port = 1\npassword_file = hunter2\n", "line 2: ", "quoted"),
            ("port = 1\nhunter2\n", "line 2: ", ""),
            ("\n\nport = \"hunter2\"\n", "line 3: ", "invalid type: a string, expected u16"),
            ("port = \"hunter2\\\", expected hunter2\"", "line 1: ", "a string, expected u16"),
            ("password_file = \"hunter2", "line 1: ", ""),
            ("password_file = \"\"\"\nhunter2", "", ""),
        ] {
            let said = said(text);
            assert!(said.starts_with(line) && said.contains(why), "{text}: {said}");
            assert!(!said.contains("hunter2"), "{text}: {said}");
        }
    }

    #[test]
    fn a_key_that_is_not_known_is_named_with_the_nearest_one() {
        let said = said("passwordfile = \"hunter2\"");
        assert!(said.contains("passwordfile") && said.ends_with("did you mean password_file?"), "{said}");
    }
}
