//! Statements over many rows, cut into few shapes so that the cache of prepared statements hits.
//!
//! Rows are cut into powers of two; lists of keys are padded to one by repeating the last key.

use super::{Dialect, Statement, Value};

/// The most rows of one INSERT.
const ROWS_MAX: usize = 256;
/// The most keys of one DELETE, SELECT or plain UPDATE.
const KEYS_MAX: usize = 256;
/// The most rows of one UPDATE that gives each row values of its own.
const CASES_MAX: usize = 32;

/// `verb INTO table (columns) VALUES …`, as often as it takes to stay below `bytes_max` a statement.
pub(crate) fn insert(
    verb: &str,
    table: &str,
    columns: &[&str],
    rows: Vec<Vec<Value>>,
    bytes_max: usize,
) -> Vec<Statement> {
    let head = format!("{verb} INTO {table} ({}) VALUES ", columns.join(","));
    let tuple = format!("({})", marks(columns.len()));
    let mut rows = rows.into_iter().peekable();
    let mut statements = Vec::new();
    let mut run = Vec::new();
    while rows.peek().is_some() {
        let mut bytes = 0;
        while let Some(row) = rows.peek() {
            let weight: usize = row.iter().map(Value::weight).sum();
            if run.len() == ROWS_MAX || (!run.is_empty() && bytes + weight > bytes_max) {
                break;
            }
            bytes += weight;
            run.extend(rows.next());
        }
        // The largest power of two first: 100 rows go as 64, 32 and 4.
        let mut left = run.drain(..);
        while left.len() > 0 {
            let count = 1 << left.len().ilog2();
            let sql = format!("{head}{}", vec![tuple.as_str(); count].join(","));
            statements.push(Statement::new(sql, left.by_ref().take(count).flatten().collect()));
        }
    }
    statements
}

/// Cuts keys into sorted lists whose length is a power of two.
pub(crate) fn key_lists<K: Ord + Copy>(mut keys: Vec<K>) -> Vec<Vec<K>> {
    keys.sort_unstable();
    keys.dedup();
    pad(&keys, KEYS_MAX)
}

/// `sql (?,?,…)` with an end that bounds it.
pub(crate) fn by_keys<K: Ord + Copy + Into<Value>>(
    dialect: Dialect,
    head: &str,
    key: &str,
    keys: Vec<K>,
) -> Vec<Statement> {
    let statement = |keys: Vec<K>| {
        let bound = dialect.bound(key, keys.len());
        let sql = format!("{head} WHERE {key} IN ({}){bound}", marks(keys.len()));
        Statement::new(sql, keys.into_iter().map(Into::into).collect())
    };
    key_lists(keys).into_iter().map(statement).collect()
}

/// `DELETE FROM table` by a primary key of two columns.
pub(crate) fn delete_pairs<A, B>(
    dialect: Dialect,
    table: &str,
    [first, second]: [&str; 2],
    keys: Vec<(A, B)>,
) -> Vec<Statement>
where
    A: Ord + Copy + Into<Value>,
    B: Ord + Copy + Into<Value>,
{
    let statement = |keys: Vec<(A, B)>| {
        // Neither MariaDB nor SQLite makes ranges of `(a, b) IN (…)`: both would read the whole table.
        let pair = format!("({first} = ? AND {second} = ?)");
        let bound = dialect.bound(&format!("{first}, {second}"), keys.len());
        let sql =
            format!("DELETE FROM {table} WHERE {}{bound}", vec![pair.as_str(); keys.len()].join(" OR "));
        Statement::new(sql, keys.into_iter().flat_map(|(a, b)| [a.into(), b.into()]).collect())
    };
    key_lists(keys).into_iter().map(statement).collect()
}

/// `UPDATE table SET column = CASE key WHEN … END, …`: each row gets values of its own.
pub(crate) fn update_each(
    dialect: Dialect,
    table: &str,
    key: &str,
    columns: &[&str],
    mut rows: Vec<(i64, Vec<Value>)>,
) -> Vec<Statement> {
    rows.sort_unstable_by_key(|(key, _)| *key);
    let statement = |rows: Vec<(i64, Vec<Value>)>| {
        let whens = vec!["WHEN ? THEN ?"; rows.len()].join(" ");
        let sets: Vec<_> =
            columns.iter().map(|column| format!("{column} = CASE {key} {whens} END")).collect();
        let bound = dialect.bound(key, rows.len());
        let sql =
            format!("UPDATE {table} SET {} WHERE {key} IN ({}){bound}", sets.join(", "), marks(rows.len()));
        let mut values = Vec::with_capacity(rows.len() * (2 * columns.len() + 1));
        for column in 0..columns.len() {
            for (key, row) in &rows {
                values.extend([Value::Int(*key), row[column].clone()]);
            }
        }
        values.extend(rows.iter().map(|(key, _)| Value::Int(*key)));
        Statement::new(sql, values)
    };
    pad(&rows, CASES_MAX).into_iter().map(statement).collect()
}

/// `?,?,…`
pub(crate) fn marks(count: usize) -> String {
    vec!["?"; count].join(",")
}

fn pad<T: Clone>(list: &[T], most: usize) -> Vec<Vec<T>> {
    let padded = |chunk: &[T]| {
        let mut padded = chunk.to_vec();
        // `chunks` never yields an empty chunk, so there is a last one to repeat.
        padded.resize(chunk.len().next_power_of_two(), chunk[chunk.len() - 1].clone());
        padded
    };
    list.chunks(most).map(padded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: i64) -> Vec<Vec<Value>> {
        (0..count).map(|n| vec![Value::Int(n), Value::from(vec![0; 100])]).collect()
    }

    #[test]
    fn rows_are_cut_into_powers_of_two() {
        let statements = insert("INSERT", "t", &["a", "b"], rows(612), usize::MAX);
        let counts: Vec<_> = statements.iter().map(|s| s.values.len() / 2).collect();
        assert_eq!(counts, [256, 256, 64, 32, 4]);
        assert_eq!(statements[4].sql, "INSERT INTO t (a,b) VALUES (?,?),(?,?),(?,?),(?,?)");
        assert_eq!(statements[0].values[2], Value::Int(1));
    }

    #[test]
    fn a_statement_stays_below_its_bytes() {
        let statements = insert("INSERT", "t", &["a", "b"], rows(10), 400);
        assert!(statements.iter().all(|s| s.values.iter().map(Value::weight).sum::<usize>() <= 400));
        assert_eq!(statements.iter().map(|s| s.values.len()).sum::<usize>(), 20);
        // A row that is too large alone still goes, and the server may say no.
        assert_eq!(insert("INSERT", "t", &["a", "b"], rows(2), 1).len(), 2);
    }

    #[test]
    fn keys_are_sorted_and_padded() {
        assert_eq!(key_lists(vec![3, 1, 2]), [[1, 2, 3, 3]]);
        assert_eq!(key_lists::<u32>(vec![]), Vec::<Vec<u32>>::new());
        assert_eq!(key_lists((0..257).collect()).iter().map(Vec::len).collect::<Vec<_>>(), [256, 1]);
    }
}
