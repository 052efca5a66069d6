//! `forebay dead-letter groups`

use forebay_client::v1::{DeadLetterGroup, GroupDeadLettersRequest};
use serde_json::Value;

use super::flags::Groups;
use crate::{
    failure::Failure,
    output::{self, Cell, Column, List, Output, Row},
};

/// Groups dead letters.
pub async fn run(flags: &Groups) -> Result<(), Failure> {
    let client = flags.connection.client().await?;
    let request = GroupDeadLettersRequest {
        namespace: client.namespace().to_owned(),
        topic: flags.topic.clone().unwrap_or_default(),
        window: flags.window,
    };
    let found = client.ask(request).await?;
    let look = &flags.format.look;
    output::note_incomplete(look, &found.incomplete_shards);
    let some = found.looked_at < found.total || found.topics_cut;
    if matches!(flags.format.output, Output::Table | Output::Wide) && (some || found.ungrouped > 0) {
        let at_least = if found.topics_cut { "at least " } else { "" };
        let text = format!(
            "looked at the latest {} of {at_least}{} dead letters; {} of them are in none of these groups",
            found.looked_at, found.total, found.ungrouped
        );
        look.note(&text);
    }
    let rest = vec![
        ("lookedAt", found.looked_at.to_string().into()),
        ("total", found.total.to_string().into()),
        ("ungrouped", found.ungrouped.to_string().into()),
        ("topicsCut", found.topics_cut.into()),
        ("incompleteShards", found.incomplete_shards.into()),
    ];
    List { field: "groups", rows: &found.groups, rest }.print(flags.format.output, look)
}

impl Row for DeadLetterGroup {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("GROUP", |it, _| Cell::from(&it.fingerprint)),
        Column::new("COUNT", |it, _| it.count.into()),
        Column::wide("FIRST", |it, style| style.optional_time(it.first_died_at).into()),
        Column::new("LAST", |it, style| style.optional_time(it.last_died_at).into()),
        Column::new("TOPICS", |it, _| topics(it).into()),
        Column::wide("SAMPLES", |it, _| it.sample_item_ids.join(" ").into()),
        Column::new("REASON", |it, _| Cell::from(&it.reason)),
    ];

    fn name(&self) -> String {
        self.fingerprint.clone()
    }

    fn json(&self) -> anyhow::Result<Value> {
        output::to_json("DeadLetterGroup", self)
    }
}

/// The first topics, and that there are more.
fn topics(group: &DeadLetterGroup) -> String {
    let some = group.topics.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(" ");
    let more = if group.topics.len() > 3 || group.topics_cut { " …" } else { "" };
    format!("{some}{more}")
}
