//! The dashboard: pages for people, made on the server, that read without JavaScript.
//!
//! A page asks the calls of the API for whoever reads it (`calls.rs`), so that it shows nothing that a call
//! would refuse, and costs what a call costs. `asked.rs` is what a page is asked for. Each page in `pages`
//! reads what it needs, and makes its content from that. `frame.rs` puts it into what all pages have in
//! common. The figures in it that change are noted in `live.rs`, and `events.rs` sends those of an open page
//! every second, as the same page has them. `shared.rs` reads once for all readers what costs much. `acts`
//! are the forms: each makes one call, and leads to a page.

mod act;
mod acts;
mod asked;
mod bulk;
mod calls;
mod chosen;
mod events;
mod failing;
mod frame;
mod greatest;
mod kept;
mod links;
mod live;
mod notice;
mod pages;
mod plot;
mod shared;
mod show;
mod table;
mod texts;
mod trouble;

pub use acts::form_handler;
pub use events::events;
pub use pages::page_handler;
pub use shared::SharedLists;
