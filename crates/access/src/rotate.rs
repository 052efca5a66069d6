//! Gives a token another secret. For a while the one before holds too, so that its holders can change over.

use std::time::Duration;

use forebay_types::Timestamp;

use crate::{
    secret_hash::SecretHash,
    table::Record,
    token::TokenId,
    tokens_file::{TokensFileError, key_of, parse, sections},
};

/// The text of a file in which a token has another secret. The one before holds for `overlap` from `now` on;
/// without an overlap it ends at once. What else is there stays as it is. `None`: there is no such token.
/// Fails if the token is revoked, if an earlier overlap is not over, if the text is no such file, or if its
/// tokens are written in another form.
pub fn rotate(
    text: &str,
    id: &TokenId,
    secret: SecretHash,
    now: Timestamp,
    overlap: Duration,
) -> Result<Option<String>, TokensFileError> {
    let refused = |why: String| Err(TokensFileError(vec![format!("token {id} {why}")]));
    let records = parse(text)?;
    let Some(record) = records.iter().find(|record| record.id == *id) else { return Ok(None) };
    // The file has whole seconds.
    let seconds = now.plus(overlap).as_micros().saturating_add(999_999) / 1_000_000;
    let until = Timestamp::from_micros(seconds.saturating_mul(1_000_000));
    let rotated = match (record.hashes.last(), overlap.is_zero()) {
        _ if record.revoked => return refused("is revoked".to_owned()),
        (Some(newest), false) => {
            if let Some(earlier) = record.overlap_ends.filter(|ends| *ends > now && record.hashes.len() > 1) {
                return refused(format!(
                    "was rotated before: both of its secrets hold until {earlier}; wait, or use --overlap 0s"
                ));
            }
            Record { hashes: vec![*newest, secret], overlap_ends: Some(until), ..record.clone() }
        }
        _ => Record { hashes: vec![secret], overlap_ends: None, ..record.clone() },
    };
    let changed = edited(text, id, &rotated);
    let expected = records.iter().map(|record| if record.id == *id { &rotated } else { record });
    match parse(&changed) {
        Ok(parsed) if parsed.iter().eq(expected) => Ok(Some(changed)),
        _ => refused("is written in a form that cannot be edited; write its sha256 on one line".to_owned()),
    }
}

/// The text with the secrets of one token replaced.
fn edited(text: &str, id: &TokenId, rotated: &Record) -> String {
    let hashes: Vec<String> = rotated.hashes.iter().map(|hash| format!("\"{hash}\"")).collect();
    let mut lines = Vec::new();
    for section in sections(text) {
        let is_it = section.iter().any(|line| key_of(line, "id").is_some_and(|value| value == id.as_str()));
        for line in section {
            match (is_it, key_of(line, "sha256"), key_of(line, "overlap_ends")) {
                (true, Some(_), _) => {
                    lines.push(format!("sha256 = [{}]", hashes.join(", ")));
                    lines.extend(rotated.overlap_ends.map(|ends| format!("overlap_ends = {ends}")));
                }
                (true, None, Some(_)) => {}
                _ => lines.push(line.to_owned()),
            }
        }
    }
    format!("{}\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        table::AuthFailure,
        token::{RANDOM_BYTES, SECRET_BYTES, Token},
        tokens_file::append,
        {Credential, Table},
    };

    const DAY: Duration = Duration::from_secs(86_400);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_micros(seconds * 1_000_000)
    }

    fn record(token: &Token) -> Record {
        Record {
            id: token.id().clone(),
            name: "n".to_owned(),
            hashes: vec![token.hash()],
            grants: vec!["a:produce".parse().unwrap()],
            ends: None,
            overlap_ends: None,
            revoked: false,
            root: String::new(),
        }
    }

    #[test]
    fn both_secrets_hold_until_the_overlap_ends() {
        let old = Token::of_random(&[1; RANDOM_BYTES]);
        let new = Token::with_secret(old.id().clone(), &[9; SECRET_BYTES]);
        let other = record(&Token::of_random(&[2; RANDOM_BYTES]));
        let text = append(&append("# ours\n", &record(&old)).unwrap(), &other).unwrap();
        let rotated = rotate(&text, old.id(), new.hash(), at(1_000), DAY).unwrap().unwrap();
        assert!(rotated.starts_with("# ours\n") && rotated.contains("\noverlap_ends = "), "{rotated}");
        let table = Table::new(parse(&rotated).unwrap(), []);
        let ask = |token: &Token, now| {
            let shown = Credential::of_token(&token.reveal()).unwrap();
            table.authenticate(&shown, now).map(|identity| identity.ends)
        };
        let over = at(1_000 + 86_400);
        assert_eq!(ask(&old, at(1_001)), Ok(Some(over)), "its holder is told when it ends");
        assert_eq!(ask(&new, at(1_001)), Ok(None));
        assert_eq!(ask(&old, over), Err(AuthFailure::Ended));
        assert_eq!(ask(&new, over), Ok(None));
        assert_eq!(table.hash(old.id(), at(1_001)), Some(new.hash()));

        // Another one has to wait, or ends the one before at once.
        let third = Token::with_secret(old.id().clone(), &[7; SECRET_BYTES]);
        let soon = rotate(&rotated, old.id(), third.hash(), at(2_000), DAY).unwrap_err().to_string();
        assert!(soon.contains("both of its secrets hold until 1970-01-02T00:16:40Z"), "{soon}");
        let at_once = rotate(&rotated, old.id(), third.hash(), at(2_000), Duration::ZERO).unwrap().unwrap();
        let expected = Record { hashes: vec![third.hash()], ..record(&old) };
        assert_eq!(parse(&at_once).unwrap(), [expected, other]);
        let later = rotate(&rotated, old.id(), third.hash(), over, DAY).unwrap().unwrap();
        assert_eq!(parse(&later).unwrap()[0].hashes, [new.hash(), third.hash()]);
    }

    #[test]
    fn what_can_not_be_rotated_is_refused() {
        let token = Token::of_random(&[1; RANDOM_BYTES]);
        let hash = SecretHash::of("x");
        let rotate = |text: &str| rotate(text, token.id(), hash, at(1), DAY);
        assert_eq!(rotate(""), Ok(None));
        let revoked = append("", &Record { revoked: true, ..record(&token) }).unwrap();
        assert!(rotate(&revoked).unwrap_err().to_string().contains("is revoked"));
        let (id, old) = (token.id(), token.hash());
        let inline = format!("token = [{{ id = \"{id}\", sha256 = \"{old}\", grants = [] }}]");
        assert!(rotate(&inline).unwrap_err().to_string().contains("cannot be edited"));
    }
}
