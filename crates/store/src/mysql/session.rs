//! One connection. It is dropped after the first failure that leaves its state in doubt.

use std::{borrow::Cow, time::Duration};

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use sqlx::{
    AssertSqlSafe, Column as _, Connection as _, Either, Executor as _, Row as _, ValueRef as _,
    mysql::{MySql, MySqlArguments, MySqlConnection, MySqlRow},
};

use super::error::{classify, is_there_already};
use crate::{
    error::{CommitError, ErrorClass, StoreError},
    sql::{Row, Session, Statement, Value, corrupt},
};

/// A statement whose values are no larger is sent as text, in one round trip with its neighbours. Larger
/// ones, the INSERTs of many items, are prepared: MySQL 9.7 needs a fifth more time to parse those as text.
const TEXT_BYTES: usize = 8 << 10;
/// The most text of one round trip.
const PIPELINE_BYTES: usize = 64 << 10;

/// So long a connection may take to end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Statements for one round trip.
#[derive(Default)]
struct Pipeline {
    /// The statements, with their values, separated by semicolons.
    text: String,
    /// The number of statements.
    count: usize,
}

impl Pipeline {
    fn push(&mut self, statement: &Statement) {
        if self.count > 0 {
            self.text.push(';');
        }
        statement.write_whole(&mut self.text);
        self.count += 1;
    }
}

/// One connection to a schema.
pub(crate) struct MySqlSession {
    /// Absent after a failure that left its state in doubt.
    connection: Option<MySqlConnection>,
    /// The schema's address, for messages.
    address: String,
    /// A statement without an answer for so long has lost its connection.
    timeout: Duration,
    /// Statements are never prepared: that would fix the schema that they speak of.
    text_only: bool,
}

impl MySqlSession {
    /// A session on an open connection to the schema at `address`.
    pub(super) fn new(connection: MySqlConnection, address: String, timeout: Duration) -> Self {
        Self { connection: Some(connection), address, timeout, text_only: false }
    }

    /// The same, for a connection whose default schema changes.
    pub(super) fn text_only(self) -> Self {
        Self { text_only: true, ..self }
    }

    /// Tells the server that the connection ends, so that it does not count it as lost.
    pub(super) async fn close(mut self) {
        if let Some(connection) = self.connection.take() {
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, connection.close()).await;
        }
    }

    /// The schema's address, as in `db1:3306/forebay_0001`.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Whether the connection was not dropped.
    pub(super) fn is_usable(&self) -> bool {
        self.connection.is_some()
    }

    /// Runs text that may contain several statements.
    pub(super) async fn run(&mut self, sql: impl Into<Cow<'static, str>>) -> Result<(), StoreError> {
        let sql = AssertSqlSafe(sql.into());
        self.with_timeout(async |connection| connection.execute(sqlx::raw_sql(sql)).await).await.map(drop)
    }

    /// Runs one statement of a migration. It may have run before: a column or an index that is there was
    /// added by a migration that stopped half way. MySQL has no `IF NOT EXISTS` for them.
    pub(super) async fn run_once(&mut self, sql: &'static str) -> Result<(), StoreError> {
        let run = async |connection: &mut MySqlConnection| match connection.execute(sqlx::raw_sql(sql)).await
        {
            Err(error) if is_there_already(&error) => Ok(()),
            done => done.map(drop),
        };
        self.with_timeout(run).await
    }

    /// Runs statements in one round trip, up to the first that fails. For each one before it, adds to
    /// `matched` how many rows it matched. Returns all rows that the statements produced.
    async fn run_pipeline(
        &mut self,
        sql: String,
        matched: &mut Vec<u64>,
    ) -> Result<Vec<MySqlRow>, StoreError> {
        let sql = AssertSqlSafe(sql);
        self.with_timeout(async |connection| {
            let mut results = connection.fetch_many(sqlx::raw_sql(sql));
            let mut rows = Vec::new();
            while let Some(result) = results.try_next().await? {
                match result {
                    Either::Left(done) => matched.push(done.rows_affected()),
                    Either::Right(row) => rows.push(row),
                }
            }
            Ok(rows)
        })
        .await
    }

    /// Runs the collected statements, if there are any.
    async fn send(&mut self, pipeline: &mut Pipeline) -> Result<(), StoreError> {
        let pipeline = std::mem::take(pipeline);
        if pipeline.count > 0 {
            self.run_pipeline(pipeline.text, &mut Vec::new()).await?;
        }
        Ok(())
    }

    /// Runs a statement and a query in one round trip. Returns how many rows the statement matched, and the
    /// query's rows.
    pub(super) async fn execute_and_fetch(
        &mut self,
        statement: Statement,
        query: impl Into<Cow<'static, str>>,
    ) -> Result<(u64, Vec<Row>), StoreError> {
        let mut pipeline = Pipeline::default();
        pipeline.push(&statement);
        pipeline.push(&Statement::new(query, vec![]));
        let mut matched = Vec::new();
        let rows = self.run_pipeline(pipeline.text, &mut matched).await?;
        let rows = rows.iter().map(decode).collect::<Result<_, _>>()?;
        Ok((matched.first().copied().unwrap_or_default(), rows))
    }

    /// Runs statements in one round trip, up to the first that fails. Returns the rows of each.
    pub(super) async fn fetch_each(
        &mut self,
        statements: impl IntoIterator<Item = Statement>,
    ) -> Result<Vec<Vec<Row>>, StoreError> {
        Ok(self.run_each(statements).await?.into_iter().map(|(_, rows)| rows).collect())
    }

    /// The same. Returns how many rows each statement matched, and those that it returned.
    pub(super) async fn run_each(
        &mut self,
        statements: impl IntoIterator<Item = Statement>,
    ) -> Result<Vec<(u64, Vec<Row>)>, StoreError> {
        let mut pipeline = Pipeline::default();
        statements.into_iter().for_each(|statement| pipeline.push(&statement));
        let sql = AssertSqlSafe(pipeline.text);
        let each = self.with_timeout(async |connection| {
            let mut results = connection.fetch_many(sqlx::raw_sql(sql));
            let (mut each, mut rows) = (Vec::new(), Vec::new());
            while let Some(result) = results.try_next().await? {
                match result {
                    Either::Left(done) => each.push((done.rows_affected(), std::mem::take(&mut rows))),
                    Either::Right(row) => rows.push(row),
                }
            }
            Ok(each)
        });
        let decoded = |(matched, rows): &(u64, Vec<MySqlRow>)| -> Result<_, StoreError> {
            Ok((*matched, rows.iter().map(decode).collect::<Result<_, _>>()?))
        };
        each.await?.iter().map(decoded).collect()
    }

    /// Checks that the server still answers.
    pub(super) async fn ping(&mut self) -> Result<(), StoreError> {
        self.with_timeout(async |connection| connection.ping().await).await
    }

    /// Passes the connection to `work`, and drops it if an error leaves its state in doubt.
    pub(super) async fn with_timeout<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut MySqlConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        let Some(mut connection) = self.connection.take() else {
            let message = format!("the connection to {} is lost", self.address);
            return Err(StoreError::new(ErrorClass::Disconnected, message));
        };
        let done = match tokio::time::timeout(self.timeout, work(&mut connection)).await {
            Ok(done) => done.map_err(classify),
            Err(_) => {
                let message = format!("{} did not answer within {:?}", self.address, self.timeout);
                Err(StoreError::new(ErrorClass::Disconnected, message))
            }
        };
        if !done.as_ref().is_err_and(|error| error.class.breaks_connection()) {
            self.connection = Some(connection);
        }
        done
    }
}

#[async_trait]
impl Session for MySqlSession {
    async fn begin(&mut self) -> Result<(), StoreError> {
        // With autocommit off, the first statement opens a transaction.
        Ok(())
    }

    async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError> {
        if self.text_only {
            return Ok(self.run_each([statement]).await?.first().map_or(0, |(matched, _)| *matched));
        }
        let (sql, arguments) = bind(statement)?;
        let done = self
            .with_timeout(async |connection| sqlx::query_with(sql, arguments).execute(connection).await)
            .await?;
        Ok(done.rows_affected())
    }

    async fn transact(
        &mut self,
        statements: Vec<Statement>,
        fence: Statement,
        bytes_max: usize,
    ) -> Result<(), CommitError> {
        let bytes_max = bytes_max.min(PIPELINE_BYTES);
        let mut pipeline = Pipeline::default();
        for statement in statements {
            if statement.encoded_len() > TEXT_BYTES.min(bytes_max / 2) {
                self.send(&mut pipeline).await.map_err(CommitError::RolledBack)?;
                self.execute(statement).await.map_err(CommitError::RolledBack)?;
                continue;
            }
            if pipeline.text.len() + statement.text_len() > bytes_max {
                self.send(&mut pipeline).await.map_err(CommitError::RolledBack)?;
            }
            pipeline.push(&statement);
        }
        let before_fence = pipeline.count;
        pipeline.push(&fence);
        pipeline.push(&Statement::new("/* forebay batch */ COMMIT", vec![]));
        let mut matched = Vec::new();
        match self.run_pipeline(pipeline.text, &mut matched).await {
            Ok(_) if matched.get(before_fence) == Some(&1) => Ok(()),
            Ok(_) => Err(CommitError::Unknown(corrupt("no row: the fence"))),
            // A server stops at the first failure, so it did not reach the fence.
            Err(error) if self.is_usable() && matched.len() < before_fence => {
                Err(CommitError::RolledBack(error))
            }
            Err(error) if self.is_usable() && matched.len() == before_fence => {
                Err(CommitError::at_the_fence(error))
            }
            Err(error) => {
                // Whatever the server reported, only the fence row tells the outcome of COMMIT.
                self.connection = None;
                Err(CommitError::Unknown(error))
            }
        }
    }

    async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        if self.text_only {
            return Ok(self.fetch_each([statement]).await?.pop().unwrap_or_default());
        }
        let (sql, arguments) = bind(statement)?;
        let rows = self
            .with_timeout(async |connection| sqlx::query_with(sql, arguments).fetch_all(connection).await)
            .await?;
        rows.iter().map(decode).collect()
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        let done = self.run("COMMIT").await;
        if done.is_err() {
            // Whatever the server reported, only the fence row tells the outcome.
            self.connection = None;
        }
        done
    }

    async fn rollback(&mut self) -> Result<(), StoreError> {
        let done = self.run("ROLLBACK").await;
        if done.is_err() {
            self.connection = None;
        }
        done
    }
}

/// A statement in the driver's form.
pub(super) fn bind(
    statement: Statement,
) -> Result<(AssertSqlSafe<Cow<'static, str>>, MySqlArguments), StoreError> {
    use sqlx::Arguments as _;
    let mut arguments = MySqlArguments::default();
    let encoded_len = statement.values.iter().map(Value::encoded_len).sum();
    arguments.reserve(statement.values.len(), encoded_len);
    for value in &statement.values {
        let added = match value {
            Value::Null => arguments.add(None::<i64>),
            Value::Int(number) => arguments.add(number),
            Value::Bytes(bytes) => arguments.add(bytes.as_ref()),
        };
        added.map_err(|error| classify(sqlx::Error::Encode(error)))?;
    }
    Ok((AssertSqlSafe(statement.sql), arguments))
}

/// A row in this crate's form.
pub(super) fn decode(row: &MySqlRow) -> Result<Row, StoreError> {
    let mut values = Vec::with_capacity(row.len());
    for column in row.columns() {
        let position = column.ordinal();
        let raw = row.try_get_raw(position).map_err(classify)?;
        let kind = raw.type_info();
        let number =
            <i64 as sqlx::Type<MySql>>::compatible(&kind) || <u64 as sqlx::Type<MySql>>::compatible(&kind);
        values.push(match () {
            () if raw.is_null() => Value::Null,
            () if number => Value::Int(row.try_get_unchecked(position).map_err(classify)?),
            () => Value::from(row.try_get_unchecked::<&[u8], _>(position).map_err(classify)?),
        });
    }
    Ok(Row(values))
}
