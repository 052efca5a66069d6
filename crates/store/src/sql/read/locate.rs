//! Finds items that have no lease.

use std::collections::HashMap;

use forebay_types::Seq;

use crate::{
    error::StoreError,
    shard::ItemLocation,
    sql::{
        row_counts,
        statement::{ReadConnection, Statement},
        value::Value,
    },
};

pub(super) async fn locate(
    connection: &dyn ReadConnection,
    seqs: &[Seq],
) -> Result<Vec<ItemLocation>, StoreError> {
    let mut found = HashMap::with_capacity(seqs.len());
    for keys in row_counts::key_lists(seqs.to_vec()) {
        let placeholders = row_counts::placeholders(keys.len());
        let sql = format!(
            "SELECT i.seq, 0, t.namespace FROM item i JOIN topic t ON t.id = i.topic \
             WHERE i.seq IN ({placeholders}) \
             UNION ALL SELECT d.seq, 1, t.namespace FROM dead_letter d JOIN topic t ON t.id = d.topic \
             WHERE d.seq IN ({placeholders})"
        );
        let keys: Vec<Value> = keys.into_iter().map(Into::into).collect();
        for row in connection.fetch(Statement::new(sql, [keys.clone(), keys].concat())).await? {
            let namespace = row.str(2)?.into();
            let location = match row.int(1)? {
                0 => ItemLocation::Waiting(namespace),
                _ => ItemLocation::DeadLetter(namespace),
            };
            found.insert(row.seq(0)?, location);
        }
    }
    Ok(seqs.iter().map(|seq| found.get(seq).cloned().unwrap_or(ItemLocation::Gone)).collect())
}
