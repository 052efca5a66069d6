//! Tables, each in a box of its own in which it is moved sideways where the screen is narrow.

use maud::{Markup, Render, html};

/// The head of a column.
pub struct Head {
    /// Its name.
    name: &'static str,
    /// Numbers are aligned by their ends, words are not.
    class: Option<&'static str>,
    /// Its meaning, where the name does not say it.
    title: Option<&'static str>,
}

impl Head {
    /// Of a column of words.
    pub const fn words(name: &'static str) -> Self {
        Self { name, class: Some("l"), title: None }
    }

    /// Of a column of numbers.
    pub const fn number(name: &'static str) -> Self {
        Self { name, class: None, title: None }
    }

    /// With an explanation.
    pub const fn title(self, title: &'static str) -> Self {
        Self { title: Some(title), ..self }
    }
}

impl Render for Head {
    fn render(&self) -> Markup {
        html! { th class=[self.class] scope="col" title=[self.title] { (self.name) } }
    }
}

/// A list whose rows become blocks on a narrow screen.
pub fn list(heads: Markup, rows: Markup) -> Markup {
    table(Some("list"), heads, rows)
}

/// A small table, which stays one on any screen.
pub fn plain(heads: Markup, rows: Markup) -> Markup {
    table(None, heads, rows)
}

fn table(class: Option<&str>, heads: Markup, rows: Markup) -> Markup {
    html! {
        div.scroll {
            table class=[class] {
                thead { tr { (heads) } }
                tbody { (rows) }
            }
        }
    }
}
