//! When tokens end: none later than the token that makes it, or gets its secret.

use std::time::Duration;

use forebay_access::{Identity, Kind};
use forebay_edge::rpc::fields;
use forebay_proto::{time::to_timestamp, v1};
use forebay_types::{Reason, Refusal, Timestamp};

/// How long a token lives if nothing else is said.
const LIFETIME_DEFAULT: Duration = Duration::from_hours(365 * 24);
/// How long it may live.
const LIFETIME_MAX: Duration = Duration::from_hours(10 * 366 * 24);

/// For how long a new token is of use. `None`: nothing is said.
pub fn lifetime(request: &v1::CreateTokenRequest) -> Result<Option<Duration>, Refusal> {
    let lifetime = request.lifetime.as_ref().map(|span| fields::duration("lifetime", span)).transpose()?;
    if lifetime.is_some_and(|span| span.is_zero() || span > LIFETIME_MAX) {
        return Err(Refusal::field("lifetime", "must be more than 0, and at most ten years"));
    }
    Ok(lifetime)
}

/// When a new token ends: no later than its maker, which else would live on in it.
pub(crate) fn of_new(
    caller: &Identity,
    lifetime: Option<Duration>,
    now: Timestamp,
) -> Result<Timestamp, Refusal> {
    let (asked, own) = (now.plus(lifetime.unwrap_or(LIFETIME_DEFAULT)), maker_ends(caller));
    match own.filter(|own| asked > *own) {
        None => Ok(asked),
        Some(own) if lifetime.is_none() => Ok(own),
        Some(own) => {
            let own = to_timestamp(own);
            let message = format!(
                "must end no later than the token that makes it, which ends at {own}: name a shorter one, or \
                 none to have that end"
            );
            Err(Refusal::field("lifetime", message))
        }
    }
}

/// When the rights of a token end that gives them to others. A row of the configuration has no end, whatever
/// certificate shows its name.
fn maker_ends(caller: &Identity) -> Option<Timestamp> {
    caller.ends.filter(|_| caller.kind == Kind::Token)
}

/// Whether a caller may give another secret to a token that ends then: whoever gets the secret has the rights
/// for as long.
pub fn may_rotate(caller: &Identity, ends: Option<Timestamp>) -> Result<(), Refusal> {
    let Some(own) = maker_ends(caller).filter(|own| ends.is_none_or(|ends| ends > *own)) else {
        return Ok(());
    };
    let own = to_timestamp(own);
    let message = format!(
        "the token ends later than the credentials of the call, which end at {own}: whoever gets its \
         secret would have it for longer; rotate it with a token that ends no earlier"
    );
    Err(Refusal::new(Reason::NotAllowed, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_ends_later_than_its_maker() {
        let (now, minute) = (Timestamp::from_micros(1_000_000), Duration::from_mins(1));
        let maker = |kind, ends| Identity { kind, ends, ..Identity::anyone() };
        let brief = maker(Kind::Token, Some(now.plus(minute)));
        assert_eq!(of_new(&brief, Some(minute), now).unwrap(), now.plus(minute));
        assert_eq!(of_new(&brief, None, now).unwrap(), now.plus(minute), "as long as it can be");
        let refused = of_new(&brief, Some(minute + Duration::from_micros(1)), now).unwrap_err();
        assert_eq!(refused.field.as_deref(), Some("lifetime"));
        assert!(refused.message.contains("1970-01-01T00:01:01"), "{}", refused.message);
        let default = now.plus(LIFETIME_DEFAULT);
        assert_eq!(of_new(&maker(Kind::Token, None), None, now).unwrap(), default);
        // Its row has no end: the next certificate has the same name.
        assert_eq!(of_new(&maker(Kind::Certificate, brief.ends), None, now).unwrap(), default);
    }

    #[test]
    fn no_token_gets_the_secret_of_one_that_ends_later() {
        let at = |seconds: i64| Some(Timestamp::from_micros(seconds * 1_000_000));
        let rotates =
            |kind, own, ends| may_rotate(&Identity { kind, ends: own, ..Identity::anyone() }, ends).is_ok();
        assert!(rotates(Kind::Token, at(5), at(5)) && rotates(Kind::Token, None, None));
        assert!(!rotates(Kind::Token, at(5), at(6)) && !rotates(Kind::Token, at(5), None));
        assert!(rotates(Kind::Certificate, at(5), None));
    }
}
