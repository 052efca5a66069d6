//! How a page is answered.

use axum::response::{Html, IntoResponse as _, Response};
use maud::DOCTYPE;

use super::{asked::Asked, frame, show::Shown, trouble::Trouble};

/// The answer of a page. `name`: that of the page.
pub async fn answer(name: &str, asked: &Asked, shown: Result<Shown, Trouble>) -> Response {
    match shown {
        Ok(shown) => {
            let frame = frame::frame(name, asked, shown).await;
            Html(maud::html! { (DOCTYPE) (frame) }.into_string()).into_response()
        }
        Err(trouble) => trouble.into_response(),
    }
}
