//! The parts of a page that change while it is open. A page notes them as it is made, so that what is sent
//! later is what the page itself would show.

use std::{
    collections::BTreeMap,
    hash::{Hash as _, Hasher as _},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use forebay_types::visible_lines;
use maud::{Markup, html};
use serde::Serialize;
use siphasher::sip::SipHasher13;

/// The changing parts of a page, as they are at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Live {
    /// Texts, by the id of their element.
    #[serde(rename = "v")]
    texts: BTreeMap<String, String>,
    /// Points of lines, by the id of their element.
    #[serde(rename = "p")]
    points: BTreeMap<String, String>,
    /// Classes, by the id of their element.
    #[serde(rename = "c")]
    classes: BTreeMap<String, &'static str>,
    /// Rows of lists, in no order. Where they are others than on the page, it says so.
    #[serde(rename = "r")]
    rows: Vec<String>,
}

impl Live {
    /// A text that changes. `id`: unique on the page.
    pub fn text(&mut self, id: impl Into<String>, text: impl ToString) -> Markup {
        let (id, text) = (id.into(), shown(text));
        let markup = html! { span id=(id) { (text) } };
        self.texts.insert(id, text);
        markup
    }

    /// A text that changes, and its class with it.
    pub fn word(&mut self, id: impl Into<String>, class: &'static str, text: impl ToString) -> Markup {
        let (id, text) = (id.into(), shown(text));
        let markup = html! { span id=(id) class=(class) { (text) } };
        self.classes.insert(id.clone(), class);
        self.texts.insert(id, text);
        markup
    }

    /// A cell of a table whose text changes. A list has many, so they have no element of their own inside.
    /// `head`: what is before it in a card, of a cell that cards have.
    pub fn cell(&mut self, id: impl Into<String>, head: Option<&str>, text: impl ToString) -> Markup {
        let (id, text) = (id.into(), shown(text));
        let markup = html! { td id=(id) data-head=[head] { (text) } };
        self.texts.insert(id, text);
        markup
    }

    /// The title of a drawing, whose words change.
    pub fn title(&mut self, id: impl Into<String>, text: impl ToString) -> Markup {
        let (id, text) = (id.into(), shown(text));
        let markup = html! { title id=(id) { (text) } };
        self.texts.insert(id, text);
        markup
    }

    /// A cell whose class changes with its text.
    pub(crate) fn word_cell(
        &mut self,
        id: impl Into<String>,
        class: &'static str,
        text: impl ToString,
    ) -> Markup {
        let (id, text) = (id.into(), shown(text));
        let markup = html! { td id=(id) class=(class) { (text) } };
        self.classes.insert(id.clone(), class);
        self.texts.insert(id, text);
        markup
    }

    /// The points of a line that changes.
    pub fn line(&mut self, id: impl Into<String>, class: &'static str, points: String) -> Markup {
        let id = id.into();
        let markup = html! { polyline id=(id) class=(class) points=(points) {} };
        self.points.insert(id, points);
        markup
    }

    /// A row of a list. Returns the prefix of the ids of what is in it.
    pub fn row(&mut self, key: &[&str]) -> String {
        let id = row_id(key);
        self.rows.push(id.clone());
        id
    }

    /// The parts that differ from those of an earlier moment. Everything that is no longer there is left as
    /// it was.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            texts: changed(&self.texts, &before.texts),
            points: changed(&self.points, &before.points),
            classes: changed(&self.classes, &before.classes),
            rows: self.rows.clone(),
        }
    }
}

/// A text as the page shows it, which the script then does too.
fn shown(text: impl ToString) -> String {
    visible_lines(&text.to_string()).into_owned()
}

fn changed<T: Clone + PartialEq>(
    now: &BTreeMap<String, T>,
    before: &BTreeMap<String, T>,
) -> BTreeMap<String, T> {
    let differs = |(id, value): &(&String, &T)| before.get(*id) != Some(*value);
    now.iter().filter(differs).map(|(id, value)| (id.clone(), value.clone())).collect()
}

/// The id of a row: a hash of what names it, since names have characters that ids should not. It is short, as
/// each of its cells has it.
fn row_id(key: &[&str]) -> String {
    let mut hasher = SipHasher13::new_with_keys(0, 0);
    key.hash(&mut hasher);
    URL_SAFE_NO_PAD.encode(hasher.finish().to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_sent() {
        let make = |ready: u32, state| {
            let mut live = Live::default();
            live.text("ready", ready);
            live.text("same", "x");
            live.word("state", state, state);
            live.line("plot", "in", format!("0,{ready}"));
            live.row(&["ns", "mail"]);
            live
        };
        let (before, now) = (make(1, "good"), make(2, "good"));
        let sent = serde_json::to_value(now.since(&before)).unwrap();
        let row = row_id(&["ns", "mail"]);
        assert_eq!(sent, serde_json::json!({"v": {"ready": "2"}, "p": {"plot": "0,2"}, "c": {}, "r": [row]}));
        assert_ne!(row, row_id(&["nsm", "ail"]), "the parts are kept apart");
        assert_eq!(make(2, "bad").since(&now).classes["state"], "bad");
    }

    #[test]
    fn texts_are_escaped() {
        let mut live = Live::default();
        let markup = live.text("a", "<script>").into_string();
        assert_eq!(markup, "<span id=\"a\">&lt;script&gt;</span>");
        assert_eq!(live.texts["a"], "<script>", "a script sets it as text");
        live.text("c", "\u{202e}a");
        assert_eq!(live.texts["c"], "\\u{202e}a", "and what is not seen is escaped");
        let markup = live.word_cell("b", "bad", "<b>").into_string();
        assert_eq!(markup, "<td id=\"b\" class=\"bad\">&lt;b&gt;</td>");
        assert_eq!((live.texts["b"].as_str(), live.classes["b"]), ("<b>", "bad"));
    }
}
