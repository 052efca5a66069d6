//! Content of an item: its payload, its metadata and its headers.

use std::borrow::Cow;

use forebay_access::Scope;
use forebay_proto::v1::Item;
use maud::{Markup, html};

use super::{
    super::super::{
        asked::PageRequest,
        links::link,
        table::{self, Head},
        texts::{as_text, bytes, hex},
    },
    json,
};

/// Bytes of a line of a dump.
const DUMP_BYTES: usize = 16;

/// How bytes are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As they are.
    Text,
    /// With an element a line.
    Json,
    /// As hexadecimal digits.
    Hex,
}

/// The forms: as in the address, and as a link says it.
const FORMS: [(&str, Form, &str); 3] =
    [("text", Form::Text, "text"), ("json", Form::Json, "JSON"), ("hex", Form::Hex, "hex")];

/// Whether whoever asks may see what items carry.
pub(crate) fn is_shown(asked: &PageRequest) -> bool {
    asked.may(Scope::Inspect, asked.namespace())
}

/// The content of an item, or which right is missing to see it.
pub fn section(asked: &PageRequest, item: &Item) -> Markup {
    if !is_shown(asked) {
        return html! {
            h2 { "Payload" }
            p.none {
                (bytes(item.payload_size)) ". To see what items carry, the scope "
                code { "inspect" } " in the namespace " bdi { (asked.namespace()) } " is needed."
            }
        };
    }
    html! {
        h2 { "Payload" }
        (payload(asked, item))
        h2 { "Metadata" }
        @if item.metadata.is_empty() { p.none { "None." } }
        @else { pre { bdi { (in_form(&item.metadata, Form::Text).1) } } }
        h2 { "Headers" }
        (headers(item))
    }
}

fn payload(asked: &PageRequest, item: &Item) -> Markup {
    let wanted = asked.fields.get("view");
    let wanted = FORMS.iter().find(|(name, ..)| *name == wanted).map(|(_, form, _)| *form);
    let whole = if item.payload_cut { without_cut_character(&item.payload) } else { &item.payload };
    let (form, text) = in_form(whole, wanted.unwrap_or(Form::Json));
    let address = |view| link("item", &[("ns", asked.namespace()), ("id", &item.item_id), ("view", view)]);
    html! {
        div.tabs {
            @for (name, of, text) in FORMS {
                a href=(address(name)) aria-current=[(of == form).then_some("true")] { (text) }
            }
        }
        p.facts {
            (bytes(item.payload_size))
            @if item.payload_cut { ", cut at " (bytes(item.payload.len() as u64)) }
        }
        @if wanted.is_some_and(|wanted| wanted != form) { p.warn { (instead(wanted)) } }
        @if item.payload.is_empty() { p.none { "It is empty." } } @else { pre { bdi { (text) } } }
    }
}

/// Why bytes are not shown in the form that was asked for.
fn instead(wanted: Option<Form>) -> &'static str {
    match wanted {
        Some(Form::Json) => "It is not JSON, as far as it is shown.",
        _ => "It is not text: it has control characters, or is not UTF-8.",
    }
}

/// Bytes in a form. If they can't be shown in it, they are as text, or else as hexadecimal digits.
fn in_form(payload: &[u8], wanted: Form) -> (Form, Cow<'_, str>) {
    let text = as_text(payload);
    match (wanted, text) {
        (Form::Json, Some(text)) => match json::pretty(text) {
            Some(pretty) => (Form::Json, pretty.into()),
            None => (Form::Text, text.into()),
        },
        (Form::Text, Some(text)) => (Form::Text, text.into()),
        (Form::Hex, _) | (_, None) => (Form::Hex, dump(payload).into()),
    }
}

/// A payload that was cut may end inside a character.
fn without_cut_character(payload: &[u8]) -> &[u8] {
    match std::str::from_utf8(payload) {
        Err(error) if error.error_len().is_none() => payload.get(..error.valid_up_to()).unwrap_or_default(),
        _ => payload,
    }
}

/// Lines with the place, the bytes, and the characters that they are.
fn dump(payload: &[u8]) -> String {
    let line = |(number, bytes): (usize, &[u8])| {
        let pairs: Vec<String> = bytes.iter().map(|byte| hex(&[*byte])).collect();
        let plain = |byte: &u8| if (b' '..=b'~').contains(byte) { char::from(*byte) } else { '.' };
        let text: String = bytes.iter().map(plain).collect();
        format!("{:08x}  {:47}  {text}\n", number * DUMP_BYTES, pairs.join(" "))
    };
    payload.chunks(DUMP_BYTES).enumerate().map(line).collect()
}

fn headers(item: &Item) -> Markup {
    let mut headers: Vec<_> = item.headers.iter().collect();
    headers.sort_unstable();
    html! {
        @if headers.is_empty() {
            p.none { "None." }
        } @else {
            (table::plain(
                html! { (Head::words("header")) (Head::words("value")) },
                html! {
                    @for (name, value) in headers {
                        tr { td.l { bdi { (name) } } td.l.wrap { bdi { (value) } } }
                    }
                },
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_the_form_that_they_can_be_shown_in() {
        assert_eq!(in_form(b"{\"a\":1}", Form::Json), (Form::Json, "{\n  \"a\": 1\n}".into()));
        assert_eq!(in_form(b"{\"a\":1}", Form::Text), (Form::Text, "{\"a\":1}".into()));
        assert_eq!(in_form(b"{\"a\":", Form::Json), (Form::Text, "{\"a\":".into()));
        for wanted in [Form::Text, Form::Json, Form::Hex] {
            let (form, text) = in_form(b"\x1b[31m", wanted);
            assert_eq!(form, Form::Hex, "no escape sequences");
            assert!(!text.contains('\x1b') && text.contains("1b 5b 33 31 6d"), "{text}");
        }
        assert_eq!(in_form(b"a", Form::Hex).0, Form::Hex);
    }

    #[test]
    fn a_dump_has_sixteen_bytes_a_line() {
        let shown = dump(b"0123456789abcdef\x00z");
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines,
            [
                "00000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef",
                "00000010  00 7a                                            .z",
            ]
        );
    }

    #[test]
    fn a_character_that_was_cut_is_left_out() {
        assert_eq!(without_cut_character(&"grün".as_bytes()[..3]), b"gr");
        assert_eq!(without_cut_character(b"gr\xff\xff"), b"gr\xff\xff", "that is no text");
    }
}
