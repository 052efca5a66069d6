//! One connection.

use async_trait::async_trait;
use sqlx::{
    AssertSqlSafe, Column as _, Row as _, SqliteConnection, TypeInfo as _, ValueRef as _,
    sqlite::{SqliteArguments, SqliteRow},
};

use super::error::classify;
use crate::{
    error::{CommitError, StoreError},
    sql::{Row, Session, Statement, Value},
};

/// One connection to the file.
pub(crate) struct SqliteSession(pub(super) SqliteConnection);

#[async_trait]
impl Session for SqliteSession {
    async fn begin(&mut self) -> Result<(), StoreError> {
        // Takes the write lock now. A transaction that begins as a reader cannot wait for it later.
        self.run("BEGIN IMMEDIATE").await
    }

    async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError> {
        let (sql, arguments) = bind(statement)?;
        let done = sqlx::query_with(sql, arguments).execute(&mut self.0).await.map_err(classify)?;
        Ok(done.rows_affected())
    }

    async fn transact(
        &mut self,
        statements: Vec<Statement>,
        fence: Statement,
        _bytes_max: usize,
    ) -> Result<(), CommitError> {
        self.begin().await.map_err(CommitError::RolledBack)?;
        for statement in statements {
            self.execute(statement).await.map_err(CommitError::RolledBack)?;
        }
        self.execute(fence).await.map_err(CommitError::at_the_fence)?;
        self.commit().await.map_err(CommitError::Unknown)
    }

    async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        let (sql, arguments) = bind(statement)?;
        let rows = sqlx::query_with(sql, arguments).fetch_all(&mut self.0).await.map_err(classify)?;
        rows.iter().map(decode).collect()
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        self.run("COMMIT").await
    }

    async fn rollback(&mut self) -> Result<(), StoreError> {
        self.run("ROLLBACK").await
    }
}

impl SqliteSession {
    async fn run(&mut self, sql: &'static str) -> Result<(), StoreError> {
        sqlx::query(sql).execute(&mut self.0).await.map_err(classify)?;
        Ok(())
    }
}

/// A statement in the driver's form.
pub(super) fn bind(
    statement: Statement,
) -> Result<(AssertSqlSafe<std::borrow::Cow<'static, str>>, SqliteArguments), StoreError> {
    use sqlx::Arguments as _;
    let mut arguments = SqliteArguments::default();
    arguments.reserve(statement.values.len(), 0);
    for value in statement.values {
        let added = match value {
            Value::Null => arguments.add(None::<i64>),
            Value::Int(number) => arguments.add(number),
            Value::Bytes(bytes) => arguments.add(Vec::from(bytes)),
        };
        added.map_err(|error| classify(sqlx::Error::Encode(error)))?;
    }
    Ok((AssertSqlSafe(statement.sql), arguments))
}

/// A row in this crate's form.
pub(super) fn decode(row: &SqliteRow) -> Result<Row, StoreError> {
    let mut values = Vec::with_capacity(row.len());
    for column in row.columns() {
        let position = column.ordinal();
        let raw = row.try_get_raw(position).map_err(classify)?;
        let number = raw.type_info().name() == "INTEGER";
        values.push(match () {
            () if raw.is_null() => Value::Null,
            () if number => Value::Int(row.try_get_unchecked(position).map_err(classify)?),
            () => Value::from(row.try_get_unchecked::<Vec<u8>, _>(position).map_err(classify)?),
        });
    }
    Ok(Row(values))
}
