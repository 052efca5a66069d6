//! Fields of a query or of a form.

/// Fields of a query or of a form, in their order. Names may be there several times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// From a query, or from the body of a form.
    pub fn read(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// The first field of a name; without one it is empty.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }

    /// All fields of a name that are not empty, in their order.
    pub fn all<'a>(&'a self, name: &str) -> Vec<&'a str> {
        let of_name = self.0.iter().filter(|(found, value)| found == name && !value.is_empty());
        of_name.map(|(_, value)| value.as_str()).collect()
    }

    /// The names of all fields, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The fields as a query has them, without the empty ones and those of what was just done.
    pub fn encoded(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let kept =
            self.0.iter().filter(|(name, value)| !value.is_empty() && name != "done" && name != "page");
        query.extend_pairs(kept);
        query.finish()
    }

    /// Whether a field is there more than once. What decides about rights must not be.
    pub fn repeats(&self, name: &str) -> bool {
        self.0.iter().filter(|(found, _)| found == name).count() > 1
    }
}
