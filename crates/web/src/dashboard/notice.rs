//! The notice on a page about an act that has just been done. The page's address names the act, so that
//! nothing is kept for it.

use forebay_access::Scope;
use maud::{Markup, html};

use super::{act, asked::PageRequest, links::link};

/// The field with what was done.
pub(crate) const DONE: &str = "done";

/// Acts, and the text about each. Texts come from this list alone: an address that somebody else has made
/// can't say anything of its own.
const DONE_TEXTS: &[(&str, &str)] = &[
    ("paused-dequeue", "Deliveries are paused."),
    ("paused-enqueue", "Enqueue is paused."),
    ("paused-both", "Enqueue and deliveries are paused."),
    ("resumed", "The pause is over."),
    ("enqueued", "An item was enqueued."),
    ("cancelled", "The item was cancelled."),
    ("cancelled-items", "The items were cancelled."),
    ("updated", "The item was changed."),
    ("stopping", "The operation is being stopped. What it has done stays."),
    ("rate", "The operation has another rate."),
    ("moved", "The shard moves."),
    ("drained", "It is being drained."),
    ("revoked", "The token was revoked."),
    (
        "revoked-alone",
        "The token was revoked. Tokens that it made still hold: see who made each, and revoke these too.",
    ),
    ("settings", "The settings were changed."),
    ("begun", "The operation has begun."),
    ("unpinned", "The shard is no longer pinned. It goes where evenness wants it."),
    ("shard-active", "The shard takes new items again."),
    ("node-active", "The node may own shards again."),
];

/// The notice of the page. A pause can be undone at once.
pub fn notice(asked: &PageRequest) -> Markup {
    let done = asked.fields.get(DONE);
    let Some((_, text)) = DONE_TEXTS.iter().find(|(name, _)| *name == done) else { return html! {} };
    let undo = done.strip_prefix("paused-").map(|side| {
        let fields = [("ns", asked.fields.get("ns")), ("name", asked.fields.get("name")), ("side", side)];
        act::button(asked, Scope::Operate, "resume", &fields, "Undo")
    });
    html! { div.notice role="status" { p { (text) } @if let Some(undo) = undo { (undo) } } }
}

/// An address of a page that says what was done.
pub fn told(page: &str, fields: &[(&str, &str)], done: &str) -> String {
    debug_assert!(DONE_TEXTS.iter().any(|(name, _)| *name == done), "{done}");
    let mut all = fields.to_vec();
    all.push((DONE, done));
    link(page, &all)
}
