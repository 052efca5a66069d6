//! Reads the bodies of items.

use forebay_types::{Body, Seq};

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
    seqs: &[Seq],
) -> Result<Vec<(Seq, Body)>, StoreError> {
    let mut found = Vec::with_capacity(seqs.len());
    for keys in row_counts::key_lists(seqs.to_vec()) {
        let placeholders = row_counts::placeholders(keys.len());
        let sql =
            format!("SELECT seq, payload, metadata, attributes FROM item WHERE seq IN ({placeholders})");
        let values = keys.into_iter().map(Into::into).collect();
        for row in connection.fetch(Statement::new(sql, values)).await? {
            let headers = PackedAttributes::unpack(&row.bytes(3)?)?.headers;
            found.push((row.seq(0)?, Body { payload: row.bytes(1)?, metadata: row.bytes(2)?, headers }));
        }
    }
    Ok(found)
}
