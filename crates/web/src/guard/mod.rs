//! Decides who may read the pages of the HTTP port, and send their forms.
//!
//! `keeper.rs` decides for each request, before any handler. `visitor.rs` is what handlers know of who asks.
//! `login.rs` has the pages of login and logout. `sessions.rs` keeps sessions, `cookies.rs` and `forms.rs`
//! are what browsers show. `attempts.rs` limits logins, `proxies.rs` finds where they come from, and
//! `target.rs` where they lead. `protection.rs` has the headers of every page, and `lasting.rs`
//! ends answers that last. `answers.rs` is what those get who are not let in.

mod answers;
mod attempts;
mod cookies;
mod forms;
mod keeper;
mod lasting;
mod login;
mod protection;
mod proxies;
mod sessions;
mod target;
mod visitor;

pub use answers::leads_to;
pub use cookies::Cookies;
pub use forms::FormKey;
pub use keeper::{Keeper, pass};
pub use login::{log_in, log_out, login_form};
pub use protection::protect;
pub use proxies::Proxies;
pub use sessions::Sessions;
pub use visitor::Visitor;
