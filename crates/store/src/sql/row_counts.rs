//! Statements over many rows, with few different row counts, so that prepared statements are reused.
//!
//! A statement's row count has at most four significant binary digits: every number up to 16, every second up
//! to 32, and so on, eight to each doubling. For example, 300 rows are split into 288 and 12. A list of 300
//! keys is padded to 320 by repeating the last one. Powers of two alone would need twice as many statements.

use super::{dialect::Dialect, statement::Statement, value::Value};

/// The most rows of one INSERT.
const ROWS_MAX: usize = 512;
/// The most keys of one DELETE, SELECT or plain UPDATE. For much longer lists MariaDB scans the table.
const KEYS_MAX: usize = 480;
/// The most rows of one UPDATE that gives each row values of its own.
const CASES_MAX: usize = 32;

/// `verb INTO table (columns) VALUES …`, in as many statements as needed to keep each below `bytes_max`.
pub(crate) fn insert(
    verb: &str,
    table: &str,
    columns: &[&str],
    rows: Vec<Vec<Value>>,
    bytes_max: usize,
) -> Vec<Statement> {
    let head = format!("{verb} INTO {table} ({}) VALUES ", columns.join(","));
    let tuple = format!("({})", placeholders(columns.len()));
    let values = rows.into_iter().flatten().collect();
    insert_tuples(&head, &tuple, columns.len(), values, bytes_max)
}

/// `head tuple,tuple,…`. A tuple may contain constants that all rows share. It has a `?` for each of the
/// other `values_per_row` values, which `values` lists row by row.
pub(crate) fn insert_tuples(
    head: &str,
    tuple: &str,
    values_per_row: usize,
    values: Vec<Value>,
    bytes_max: usize,
) -> Vec<Statement> {
    let mut statements = Vec::new();
    let mut values = values.into_iter();
    while values.len() > 0 {
        let mut bytes = 0;
        let fits = |row: &&[Value]| {
            bytes += row.iter().map(Value::encoded_len).sum::<usize>();
            bytes <= bytes_max
        };
        let rows = values.as_slice().chunks(values_per_row).take(ROWS_MAX).take_while(fits).count().max(1);
        let mut left = rows;
        while left > 0 {
            let count = round_down(left);
            let sql = format!("{head}{}", vec![tuple; count].join(","));
            statements.push(Statement::new(sql, values.by_ref().take(count * values_per_row).collect()));
            left -= count;
        }
    }
    statements
}

/// Splits the keys of a SELECT into sorted lists of ten different lengths, powers of two: a reader has many
/// statements, one for each table of dedupe keys among them, and a key that is asked for twice costs little.
pub(crate) fn key_lists<K: Ord + Copy>(mut keys: Vec<K>) -> Vec<Vec<K>> {
    keys.sort_unstable();
    keys.dedup();
    pad(&keys, KEYS_MAX, |count| count.next_power_of_two().min(KEYS_MAX))
}

/// `head WHERE key IN (?,?,…)`, bounded by the number of keys.
pub(crate) fn by_keys<K: Ord + Copy + Into<Value>>(
    dialect: Dialect,
    head: &str,
    key: &str,
    keys: Vec<K>,
) -> Vec<Statement> {
    let statement = |keys: Vec<K>| {
        let bound = dialect.bound(key, keys.len());
        let sql = format!("{head} WHERE {key} IN ({}){bound}", placeholders(keys.len()));
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
        // MariaDB and SQLite do not use the index for `(a, b) IN (…)`: they would read the whole table.
        let pair = format!("({first} = ? AND {second} = ?)");
        let bound = dialect.bound(&format!("{first}, {second}"), keys.len());
        let sql =
            format!("DELETE FROM {table} WHERE {}{bound}", vec![pair.as_str(); keys.len()].join(" OR "));
        Statement::new(sql, keys.into_iter().flat_map(|(a, b)| [a.into(), b.into()]).collect())
    };
    key_lists(keys).into_iter().map(statement).collect()
}

/// `UPDATE table SET column = CASE key WHEN … END, …`: each row has values of its own. In an assignment of
/// `sets`, `{}` stands for the value.
pub(crate) fn update_each(
    dialect: Dialect,
    table: &str,
    key: &str,
    sets: &[&str],
    mut rows: Vec<(i64, Vec<Value>)>,
) -> Vec<Statement> {
    rows.sort_unstable_by_key(|(key, _)| *key);
    let statement = |rows: Vec<(i64, Vec<Value>)>| {
        let whens = vec!["WHEN ? THEN ?"; rows.len()].join(" ");
        let value = format!("CASE {key} {whens} END");
        let assigned: Vec<_> = sets.iter().map(|set| set.replace("{}", &value)).collect();
        let bound = dialect.bound(key, rows.len());
        let sql = format!(
            "UPDATE {table} SET {} WHERE {key} IN ({}){bound}",
            assigned.join(", "),
            placeholders(rows.len())
        );
        let mut values = Vec::with_capacity(rows.len() * (2 * sets.len() + 1));
        for column in 0..sets.len() {
            for (key, row) in &rows {
                values.extend([Value::Int(*key), row[column].clone()]);
            }
        }
        values.extend(rows.iter().map(|(key, _)| Value::Int(*key)));
        Statement::new(sql, values)
    };
    pad(&rows, CASES_MAX, round_up).into_iter().map(statement).collect()
}

/// `?,?,…`
pub(crate) fn placeholders(count: usize) -> String {
    vec!["?"; count].join(",")
}

/// The difference between two allowed row counts near `count`.
fn step(count: usize) -> usize {
    1 << count.max(1).ilog2().saturating_sub(3)
}

fn round_down(count: usize) -> usize {
    count - count % step(count)
}

fn round_up(count: usize) -> usize {
    count.next_multiple_of(step(count))
}

fn pad<T: Clone>(list: &[T], most: usize, round_up: impl Fn(usize) -> usize) -> Vec<Vec<T>> {
    let padded = |chunk: &[T]| {
        let mut padded = chunk.to_vec();
        // `chunks` never yields an empty chunk, so there is a last key to repeat.
        padded.resize(round_up(chunk.len()), chunk[chunk.len() - 1].clone());
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
    fn rows_are_split_into_few_counts() {
        let statements = insert("INSERT", "t", &["a", "b"], rows(1_101), usize::MAX);
        let counts: Vec<_> = statements.iter().map(|s| s.values.len() / 2).collect();
        assert_eq!(counts, [512, 512, 72, 5]);
        assert!(statements[3].sql.starts_with("INSERT INTO t (a,b) VALUES (?,?),(?,?),"));
        assert_eq!(statements[0].values[2], Value::Int(1));
    }

    #[test]
    fn a_count_is_split_seldom_and_padded_by_little() {
        let mut counts = std::collections::BTreeSet::new();
        for count in 1..=ROWS_MAX {
            let (down, up) = (round_down(count), round_up(count));
            assert!(down <= count && count <= up && up * 8 <= count * 9);
            let rest = count - down;
            assert!(rest - round_down(rest.max(1)).min(rest) <= 1, "{count} is split into three at most");
            counts.insert(down);
        }
        assert_eq!(counts.len(), 56);
    }

    #[test]
    fn a_statement_stays_below_its_bytes() {
        let statements = insert("INSERT", "t", &["a", "b"], rows(10), 400);
        assert!(statements.iter().all(|s| s.values.iter().map(Value::encoded_len).sum::<usize>() <= 400));
        assert_eq!(statements.iter().map(|s| s.values.len()).sum::<usize>(), 20);
        // A single row that is too large is still sent: the server may refuse it.
        assert_eq!(insert("INSERT", "t", &["a", "b"], rows(2), 1).len(), 2);
    }

    #[test]
    fn keys_are_sorted_and_padded() {
        assert_eq!(key_lists(vec![3, 1, 2]), [[1, 2, 3, 3]]);
        assert_eq!(key_lists((1..=7).collect::<Vec<_>>())[0][5..], [6, 7, 7]);
        assert_eq!(key_lists::<u32>(vec![]), Vec::<Vec<u32>>::new());
        assert_eq!(key_lists((0..497).collect()).iter().map(Vec::len).collect::<Vec<_>>(), [480, 32]);
        let lengths = (1..=KEYS_MAX).map(|count| key_lists((0..count).collect())[0].len());
        assert_eq!(lengths.collect::<std::collections::BTreeSet<_>>().len(), 10);
    }
}
