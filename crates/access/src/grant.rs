//! Grants: scopes in namespaces, as in `team-*:produce,consume`.

use std::{fmt, str::FromStr};

use forebay_types::{ALL_NAMESPACES, NameError, check_namespace};

use crate::scope::{Scope, Scopes};

/// A longer name is none.
const NAME_BYTES_MAX: usize = 255;

/// Where a grant holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespaces {
    /// In every namespace, and for what belongs to none of them: nodes, shards, pages.
    All,
    /// In those that begin so.
    Prefix(String),
    /// In this one.
    One(String),
}

/// Scopes in namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// Where.
    pub namespaces: Namespaces,
    /// The rights.
    pub scopes: Scopes,
}

/// A text that is no grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no grant: {why} (as in billing:produce,consume, team-*:observe or *:all)")]
pub struct GrantError {
    /// The text.
    text: String,
    /// The mistake in it.
    why: String,
}

impl Namespaces {
    /// Whether a namespace is one of them. One without a name stands for all, as does `-`, by which calls
    /// mean all namespaces: only [`Namespaces::All`] has these.
    pub fn has(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            _ if namespace.is_empty() || namespace == ALL_NAMESPACES => false,
            Self::Prefix(prefix) => namespace.starts_with(prefix),
            Self::One(name) => namespace == name,
        }
    }

    /// Whether all that another one stands for is among what this one does.
    pub fn cover(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (_, Self::All) => false,
            (Self::Prefix(prefix), Self::Prefix(name) | Self::One(name)) => name.starts_with(prefix),
            (Self::One(own), Self::One(name)) => own == name,
            (Self::One(_), Self::Prefix(_)) => false,
        }
    }

    /// From a text, as in `billing`, `team-*` or `*`. The error says what is wrong with it.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        let (name, prefix) = match text.strip_suffix('*') {
            Some(prefix) => (prefix, true),
            None => (text, false),
        };
        match (check_namespace(name), prefix) {
            (Err(NameError::Empty), true) => Ok(Self::All),
            (Err(NameError::Empty), false) => Err("the namespace is missing"),
            (Err(NameError::All), false) => Err("the namespace - stands for all; write *"),
            (Err(NameError::Character), _) => {
                Err("a namespace has letters, digits and ._:/- only, and a * only at its end")
            }
            (Ok(()), _) if name.len() > NAME_BYTES_MAX => Err("the namespace is longer than 255 bytes"),
            (Ok(()) | Err(NameError::All), true) => Ok(Self::Prefix(name.to_owned())),
            (Ok(()), false) => Ok(Self::One(name.to_owned())),
        }
    }
}

impl fmt::Display for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
            Self::One(name) => f.write_str(name),
        }
    }
}

impl FromStr for Grant {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Self, GrantError> {
        let wrong = |why: String| GrantError { text: text.to_owned(), why };
        // Namespaces may have colons, scopes not.
        let (namespaces, scopes) =
            text.rsplit_once(':').ok_or_else(|| wrong("a colon before the scopes is missing".to_owned()))?;
        let namespaces = Namespaces::read(namespaces).map_err(|why| wrong(why.to_owned()))?;
        if scopes == "all" {
            return Ok(Self { namespaces, scopes: Scopes::all() });
        }
        let unknown = |name: &str| wrong(format!("there is no scope {name:?}; there are {}", Scopes::all()));
        let scopes = scopes.split(',').map(|name| Scope::from_name(name.trim()).ok_or_else(|| unknown(name)));
        Ok(Self { namespaces, scopes: scopes.collect::<Result<_, _>>()? })
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.namespaces, self.scopes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_what_its_text_says() {
        for (text, inside, outside) in [
            ("billing:produce", &["billing"][..], &["billing2", "bill", "Billing", "", "-"][..]),
            ("team-*:consume,observe", &["team-", "team-a", "team-a:b"], &["team", "a-team-", "", "-"]),
            ("a:b:produce", &["a:b"], &["a", "b", ""]),
            ("-*:produce", &["-a"], &["-", "", "a"]),
            ("*:admin", &["x", "", "-"], &[]),
        ] {
            let grant: Grant = text.parse().unwrap();
            assert_eq!(grant.to_string(), text);
            assert!(inside.iter().all(|name| grant.namespaces.has(name)), "{text}");
            assert!(!outside.iter().any(|name| grant.namespaces.has(name)), "{text}");
        }
        assert_eq!("*:all".parse::<Grant>().unwrap().scopes, Scopes::all());
        let grant: Grant = "a:consume, produce,produce".parse().unwrap();
        assert_eq!(grant.to_string(), "a:produce,consume");
    }

    #[test]
    fn namespaces_cover_those_that_lie_in_them() {
        for (wide, narrow, expected) in [
            ("*", "*", true),
            ("*", "a*", true),
            ("*", "a", true),
            ("a*", "*", false),
            ("a", "*", false),
            ("team-*", "team-*", true),
            ("team-*", "team-a*", true),
            ("team-*", "team-a", true),
            ("team-*", "team-", true),
            ("team-*", "team", false),
            ("team-*", "team*", false),
            ("team-a", "team-a", true),
            ("team-a", "team-a*", false),
            ("team-a", "team-b", false),
        ] {
            let [one, other] = [wide, narrow].map(|text| Namespaces::read(text).unwrap());
            assert_eq!(one.cover(&other), expected, "{wide} {narrow}");
            // The rights of a call that names them follow from the same.
            let named = if narrow == "*" { "-" } else { narrow };
            assert_eq!(one.has(named), expected, "{wide} {named}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_grant_is_said() {
        for (text, why) in [
            ("produce", "a colon before the scopes is missing"),
            (":produce", "the namespace is missing"),
            ("a:", "there is no scope \"\""),
            ("a:write", "there is no scope \"write\"; there are produce,consume"),
            ("a*b:produce", "a * only at its end"),
            ("**:produce", "a * only at its end"),
            ("a b:produce", "has letters, digits"),
            ("-:produce", "stands for all"),
        ] {
            let error = text.parse::<Grant>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
