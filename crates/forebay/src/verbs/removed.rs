//! What `topic delete` and `namespace delete` share: the settings and pauses that were removed.

use forebay_client::{TopicPause, TopicSettings};

use super::{pauses, settings};
use crate::output::{Style, Table};

/// What was there, for people.
pub fn table(
    title: &'static str,
    name: &str,
    own: &TopicSettings,
    pauses: &[TopicPause],
    style: &Style,
) -> Table {
    let mut table = Table::new([title, "", ""]);
    table.row(["name".into(), name.into(), "".into()]);
    settings::add_rows(&mut table, own, own);
    for pause in pauses {
        let since = format!("since {}", style.optional_time(pause.since));
        table.row(["paused".into(), pauses::side_name(pause).into(), since.into()]);
    }
    table
}
