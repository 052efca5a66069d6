//! The table of tokens.

use forebay_access::{Namespaces, Scope};
use forebay_proto::{
    time::from_timestamp,
    v1::{Grant, Token},
};
use forebay_store::descendants;
use forebay_types::Timestamp;
use maud::{Markup, html};

use super::{
    super::super::{
        act,
        asked::PageRequest,
        table::{self, Head},
        texts::time,
    },
    who::rights,
};

/// Makes it.
pub fn table(asked: &PageRequest, tokens: &[Token]) -> Markup {
    table::list(
        html! {
            (Head::words("id"))
            (Head::words("name"))
            (Head::words("state"))
            (Head::words("rights"))
            (Head::words("last used").title("The hour in which it was last used"))
            (Head::words("ends"))
            (Head::words("made"))
            (Head::words("by"))
            (Head::words("change"))
        },
        html! { @for token in tokens { (row(asked, token, tokens)) } },
    )
}

fn row(asked: &PageRequest, token: &Token, all: &[Token]) -> Markup {
    let now = asked.now();
    let (class, words) = state(token, now);
    html! {
        tr {
            td.l.id { (token.id) }
            td.l.wrap data-head="name" { bdi { (token.name) } }
            td.l data-head="state" {
                span.(class) { (words) }
                @if is_rotated(token, now) {
                    p.dim { "the secret before ends " (time(token.overlap_ends_at, now)) }
                }
            }
            td.l.wrap data-head="rights" { (rights(&token.grants)) }
            td.l data-head="last used" {
                @if token.last_used_at.is_some() { (time(token.last_used_at, now)) } @else { "not yet" }
            }
            td.l data-head="ends" {
                @if token.ends_at.is_some() { (time(token.ends_at, now)) } @else { "never" }
            }
            td.l data-head="made" { (time(token.made_at, now)) }
            td.l data-head="by" {
                bdi { (token.made_by) }
                @if !token.made_by_id.is_empty() { p.dim.id { (token.made_by_id) } }
            }
            td.l {
                @if words == VALID {
                    (rotate(asked, token))
                    (revoke(asked, token, below(token, all, now)))
                }
            }
        }
    }
}

/// The state of a token that is of use.
const VALID: &str = "valid";

/// The class and the word of a token's state.
fn state(token: &Token, now: Timestamp) -> (&'static str, &'static str) {
    match (token.revoked_at, token.ends_at) {
        (Some(_), _) => ("warn", "revoked"),
        (None, Some(ends)) if from_timestamp(ends) <= now => ("warn", "ended"),
        _ => ("good", VALID),
    }
}

/// Whether both of its secrets hold.
fn is_rotated(token: &Token, now: Timestamp) -> bool {
    token.overlap_ends_at.is_some_and(|ends| from_timestamp(ends) > now)
}

/// Whoever gets a secret gets its rights, so it must have them itself.
fn may_rotate(asked: &PageRequest, grants: &[Grant]) -> bool {
    let Some(who) = &asked.visitor.who else { return false };
    grants.iter().all(|grant| {
        let Ok(namespaces) = Namespaces::read(&grant.namespaces) else { return false };
        let has = |scope| who.identity.may_give(scope, &namespaces);
        grant.scopes.iter().all(|name| Scope::from_name(name).is_some_and(has))
    })
}

fn rotate(asked: &PageRequest, token: &Token) -> Markup {
    if !may_rotate(asked, &token.grants) {
        return html! {};
    }
    // Three secrets can't hold at once.
    let overlap = if is_rotated(token, asked.now()) { "0s" } else { "24h" };
    let inside = html! {
        label {
            "The secret before holds for "
            input name="overlap" maxlength="40" value=(overlap);
        }
        label { "Why " input name="reason" maxlength="1000"; }
        button { "Rotate" }
        p.dim { "It gets another secret, which is shown once. With 0s all older secrets end at once." }
    };
    html! {
        details.form {
            summary { "rotate" }
            (act::form(asked, "rotate-token", &[("ns", asked.namespace()), ("id", &token.id)], inside))
        }
    }
}

/// The text to type to revoke a token: its name, or if it has none its id.
fn typed(token: &Token) -> &str {
    if token.name.trim().is_empty() { &token.id } else { token.name.trim() }
}

/// How many tokens of a list descend from one of them and are valid.
fn below(token: &Token, all: &[Token], now: Timestamp) -> usize {
    let known = all.iter().map(|it| (it.id.clone(), it.made_by_id.clone(), String::new()));
    let known: Vec<_> = known.collect();
    let below = descendants(&known, &token.id);
    all.iter().filter(|it| below.contains(it.id.as_str()) && state(it, now).1 == VALID).count()
}

fn revoke(asked: &PageRequest, token: &Token, below: usize) -> Markup {
    let name = typed(token);
    let inside = html! {
        label { "Type " bdi { (name) } " to revoke it " input name="typed" required autocomplete="off"; }
        label {
            input type="checkbox" name="descendants" value="yes";
            " and those that it made, those that these made, and so on: " (below) " of this list"
        }
        label { "Why " input name="reason" maxlength="1000"; }
        button.danger { "Revoke" }
        p.dim { "It is of no use any more within two seconds, and its sessions end. This can't be undone." }
    };
    let hidden = [("ns", asked.namespace()), ("id", &token.id), ("name", name)];
    html! {
        details.form {
            summary { "revoke" }
            (act::form(asked, "revoke-token", &hidden, inside))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(100_000_000);

    fn at(seconds: i64) -> Option<prost_types::Timestamp> {
        Some(prost_types::Timestamp { seconds, nanos: 0 })
    }

    #[test]
    fn a_token_is_valid_until_it_ends_or_is_revoked() {
        let token = Token { ends_at: at(101), ..Token::default() };
        assert_eq!(state(&token, NOW), ("good", "valid"));
        assert_eq!(state(&Token::default(), NOW).1, "valid", "it never ends");
        assert_eq!(state(&Token { ends_at: at(100), ..Token::default() }, NOW).1, "ended");
        assert_eq!(state(&Token { revoked_at: at(1), ..token }, NOW).1, "revoked");
    }

    #[test]
    fn both_secrets_hold_until_the_overlap_ends() {
        let rotated = |ends| is_rotated(&Token { overlap_ends_at: ends, ..Token::default() }, NOW);
        assert_eq!([rotated(None), rotated(at(100)), rotated(at(101))], [false, false, true]);
    }

    #[test]
    fn whoever_revokes_a_token_sees_how_many_descend_from_it() {
        let made = |id: &str, by: &str, ends| Token {
            id: id.to_owned(),
            made_by_id: by.to_owned(),
            ends_at: ends,
            ..Token::default()
        };
        let all = [made("a", "", None), made("b", "a", at(1)), made("c", "b", None), made("d", "x", None)];
        let counts: Vec<usize> = all.iter().map(|token| below(token, &all, NOW)).collect();
        assert_eq!(counts, [1, 1, 0, 0], "one has ended");
    }

    #[test]
    fn a_token_without_a_name_is_revoked_by_its_id() {
        let token = Token { id: "0Ab1Cd2Ef3Gh".to_owned(), name: " ".to_owned(), ..Token::default() };
        assert_eq!(typed(&token), "0Ab1Cd2Ef3Gh");
        assert_eq!(typed(&Token { name: "mailer ".to_owned(), ..token }), "mailer");
    }
}
