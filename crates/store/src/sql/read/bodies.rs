//! What items carry.

use forebay_types::{Body, Seq};

use super::{BODY, Source, Statement, pack};
use crate::{StoreError, sql::shape};

pub(super) async fn bodies(source: &dyn Source, seqs: &[Seq]) -> Result<Vec<(Seq, Body)>, StoreError> {
    let mut found = Vec::with_capacity(seqs.len());
    for keys in shape::key_lists(seqs.to_vec()) {
        let marks = shape::marks(keys.len());
        let sql = format!("SELECT i.seq, {BODY} FROM item i WHERE i.seq IN ({marks})");
        let values = keys.into_iter().map(Into::into).collect();
        for row in source.fetch(Statement::new(sql, values)).await? {
            found.push((row.seq(0)?, pack::body(&row, 1)?));
        }
    }
    Ok(found)
}
