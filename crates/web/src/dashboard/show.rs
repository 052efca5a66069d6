//! A page that was made.

use maud::Markup;

use super::live::Live;

/// A page that was made.
pub(crate) struct RenderedPage {
    /// Its title, without the product's name.
    pub title: String,
    /// Its content.
    pub body: Markup,
    /// Its changing parts.
    pub live: Live,
}

impl RenderedPage {
    /// A page.
    pub fn new(title: impl Into<String>, body: Markup, live: Live) -> Self {
        Self { title: title.into(), body, live }
    }
}
