//! Reads the bodies of items.

use forebay_types::{Body, Seq};

use super::unreadable::Unreadable;
use crate::{
    error::StoreError,
    sql::{
        attributes::PackedAttributes,
        row_counts,
        statement::{ReadConnection, Statement},
    },
};

pub(super) async fn bodies(
    connection: &dyn ReadConnection,
    unreadable: &Unreadable,
    seqs: &[Seq],
) -> Result<Vec<(Seq, Body)>, StoreError> {
    let mut found = Vec::with_capacity(seqs.len());
    for keys in row_counts::key_lists(seqs.to_vec()) {
        let placeholders = row_counts::placeholders(keys.len());
        let sql =
            format!("SELECT seq, payload, metadata, attributes FROM item WHERE seq IN ({placeholders})");
        let values = keys.into_iter().map(Into::into).collect();
        let rows = connection.fetch(Statement::new(sql, values)).await?;
        found.extend(unreadable.rest(&rows, 0, |row| {
            let headers = PackedAttributes::unpack(&row.bytes(3)?)?.headers;
            Ok((row.seq(0)?, Body { payload: row.bytes(1)?, metadata: row.bytes(2)?, headers }))
        }));
    }
    Ok(found)
}
