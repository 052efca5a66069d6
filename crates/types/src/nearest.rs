//! The known name that a wrong one probably stands for.

/// Longer names are like none.
const BYTES_MAX: usize = 64;
/// A shorter name may be part of another one by chance.
const PART_BYTES_MIN: usize = 4;

/// The known name that is most like another one, if one is. Capitals and underscores do not count.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > BYTES_MAX {
        return None;
    }
    let given = plain(given);
    let far = given.chars().count().div_ceil(3);
    let distance = |name: &str| {
        let name = plain(name);
        let is_part = |part: &str, whole: &str| part.len() >= PART_BYTES_MIN && whole.contains(part);
        match is_part(&given, &name) || is_part(&name, &given) {
            true => 1,
            false => strsim::osa_distance(&given, &name),
        }
    };
    let known = known.into_iter().map(|name| (distance(name), name));
    let near = known.filter(|(distance, name)| *distance <= far && *distance < name.len());
    near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// The advice for a name that is not known: the nearest known name, or else all of them.
pub fn instead<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match (nearest(given, known.iter().copied()), known.as_slice()) {
        (Some(name), _) => format!("did you mean {name}?"),
        (None, []) => "there are none".to_owned(),
        (None, [one]) => format!("there is {one} alone"),
        (None, all) => format!("there are {}", all.join(", ")),
    }
}

/// A parser's message, with the nearest known name if it is about a name that is not known.
pub fn with_nearest(message: &str) -> String {
    // The words of serde: unknown field `a`, expected one of `b`, `c`
    let is_unknown =
        ["unknown field `", "unknown variant `"].iter().any(|begins| message.starts_with(begins));
    let mut names = message.split('`').skip(1).step_by(2);
    match names.next().filter(|_| is_unknown).and_then(|given| nearest(given, names)) {
        Some(name) => format!("{message}; did you mean {name}?"),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [&str; 6] = ["topic", "priority", "dedupeKey", "maxAttempts", "deliverAfter", "ttl"];

    #[test]
    fn a_slip_finds_its_name_and_another_word_none() {
        for (given, name) in [
            ("priorty", "priority"),
            ("Priority", "priority"),
            ("dedupe_key", "dedupeKey"),
            ("dedupkey", "dedupeKey"),
            ("attempts", "maxAttempts"),
            ("deliver", "deliverAfter"),
            ("topics", "topic"),
            ("tll", "ttl"),
        ] {
            assert_eq!(nearest(given, FIELDS), Some(name), "{given}");
        }
        let long = "topic".repeat(20);
        for given in ["groupId", "", "x", "delay", "ab", &long] {
            assert_eq!(nearest(given, FIELDS), None, "{given}");
        }
        assert_eq!(nearest("x", ["q", "ns"]), None);
    }

    #[test]
    fn without_a_name_that_is_near_all_are_named() {
        assert_eq!(instead("priorty", FIELDS), "did you mean priority?");
        assert_eq!(instead("x", ["a", "bc"]), "there are a, bc");
        assert_eq!(
            (instead("x", ["abc"]), instead("x", [])),
            ("there is abc alone".into(), "there are none".into())
        );
    }

    #[test]
    fn what_a_parser_says_gets_the_nearest_name() {
        let message = "unknown field `urll`, expected one of `id`, `url`";
        assert_eq!(with_nearest(message), format!("{message}; did you mean url?"));
        for message in
            ["unknown field `x`, expected `url`", "missing field `url`", "expected `url` or `urll`", ""]
        {
            assert_eq!(with_nearest(message), message);
        }
    }
}
