//! What a page has made.

use maud::Markup;

use super::live::Live;

/// What a page has made.
pub struct Shown {
    /// Its title, without the product's name.
    pub title: String,
    /// Its content.
    pub body: Markup,
    /// What changes in it.
    pub live: Live,
}

impl Shown {
    /// A page.
    pub fn new(title: impl Into<String>, body: Markup, live: Live) -> Self {
        Self { title: title.into(), body, live }
    }
}
