//! Which topic a page is about, and what of it is shown.

use super::super::super::{asked::PageRequest, links::link, trouble::Trouble};

/// The parts: the field of the address, and for people.
pub(crate) const TABS: [(&str, &str); 8] = [
    ("waiting", "Waiting"),
    ("leased", "Leased"),
    ("scheduled", "Scheduled"),
    ("dead", "Dead"),
    ("priorities", "Priorities"),
    ("consumers", "Consumers"),
    ("settings", "Settings"),
    (HISTORY, "History"),
];
/// The part that needs `admin`.
pub(crate) const HISTORY: &str = "history";

/// The part that a field names; the first one if it names none.
fn named(field: &str) -> &'static str {
    TABS.into_iter().find(|(name, _)| *name == field).unwrap_or(TABS[0]).0
}

/// Which topic the page is about, and what of it is shown.
pub struct Place<'a> {
    /// The tenant.
    pub namespace: &'a str,
    /// The topic.
    pub name: &'a str,
    /// How far the plots go back: one of those that the page has.
    pub range: &'a str,
    /// The tab that is shown below.
    pub tab: &'static str,
    /// The stream asks what changes on a page that is open. Lists do not: they are of when they were read,
    /// and to look at payloads every second would fill the audit log.
    pub is_followed: bool,
}

impl<'a> Place<'a> {
    /// The place that the address names.
    pub fn of(asked: &'a PageRequest) -> Result<Self, Trouble> {
        let name = asked.fields.get("name");
        if name.is_empty() {
            return Err(Trouble::field("name", "must name a topic"));
        }
        Ok(Self {
            namespace: asked.namespace(),
            name,
            range: asked.fields.get("range"),
            tab: named(asked.fields.get("tab")),
            is_followed: asked.is_followed(),
        })
    }

    /// The address of the page with other fields than it has.
    pub fn with(&self, fields: &[(&str, &str)]) -> String {
        let mut all = vec![("ns", self.namespace), ("name", self.name)];
        for own in [("range", self.range), ("tab", self.tab)] {
            if fields.iter().all(|(name, _)| *name != own.0) {
                all.push(own);
            }
        }
        all.extend(fields);
        link("topic", &all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_not_there_is_the_first_one() {
        assert_eq!([named("dead"), named(""), named("<b>")], ["dead", "waiting", "waiting"]);
    }
}
