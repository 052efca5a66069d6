//! Three releases and one schema.

use super::*;
use crate::{
    error::CommitError,
    sql::{Row, Value},
};

const fn step(version: u32, oldest_program: u32, sql: &'static str) -> Migration {
    Migration { version, oldest_program, sql }
}

const FIRST: Schema = Schema::shard(&[step(1, 1, "one")]);
/// Only adds.
const SECOND: Schema = Schema::shard(&[step(1, 1, "one"), step(2, 1, "two")]);
/// Removes what the first release uses.
const THIRD: Schema = Schema::shard(&[step(1, 1, "one"), step(2, 1, "two"), step(3, 2, "three")]);

/// A schema, as a connection sees it.
#[derive(Default)]
struct Database {
    /// Its version.
    version: Option<i64>,
    /// The oldest program that may use it.
    oldest: Option<i64>,
    /// Steps that were done to it.
    done: Vec<String>,
    /// The migration that fails.
    fails: Option<&'static str>,
}

#[async_trait]
impl Session for Database {
    async fn begin(&mut self) -> Result<(), StoreError> {
        unreachable!("a migration needs none")
    }

    async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError> {
        let Value::Int(number) = statement.values[0] else { panic!("{statement:?}") };
        if statement.sql.starts_with("REPLACE INTO schema_program") {
            self.oldest = Some(number);
            self.done.push(format!("oldest {number}"));
        } else {
            self.version = Some(number);
            self.done.push(format!("version {number}"));
        }
        Ok(1)
    }

    async fn transact(&mut self, _: Vec<Statement>, _: Statement, _: usize) -> Result<(), CommitError> {
        unreachable!("a migration needs none")
    }

    async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        let row = |number: Option<i64>| Row(vec![number.map_or(Value::Null, Value::Int)]);
        match &*statement.sql {
            "SELECT MAX(version) FROM schema_version" => Ok(vec![row(self.version)]),
            "SELECT oldest FROM schema_program WHERE id = 1" => match self.oldest {
                Some(_) => Ok(vec![row(self.oldest)]),
                None => Err(StoreError::new(ErrorClass::Schema, "no such table")),
            },
            "SELECT 1 FROM fence LIMIT 1" => Ok(vec![]),
            other => panic!("{other}"),
        }
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        unreachable!("a migration needs none")
    }

    async fn rollback(&mut self) -> Result<(), StoreError> {
        unreachable!("a migration needs none")
    }
}

#[async_trait]
impl MigrationSession for Database {
    async fn run_all(&mut self, sql: &'static str) -> Result<(), StoreError> {
        if self.fails == Some(sql) {
            return Err(StoreError::new(ErrorClass::Disconnected, "cut"));
        }
        self.done.push(sql.to_owned());
        Ok(())
    }
}

async fn migrated(releases: &[Schema]) -> Database {
    let mut database = Database::default();
    for release in releases {
        apply(&mut database, release, 7).await.unwrap();
    }
    database.done.clear();
    database
}

#[tokio::test]
async fn a_program_uses_the_schema_of_the_next_release_until_that_excludes_it() {
    let mut database = migrated(&[FIRST]).await;
    assert_eq!(apply(&mut database, &SECOND, 7).await.unwrap(), [2]);
    for release in [FIRST, SECOND] {
        check(&mut database, &release).await.unwrap();
    }
    assert_eq!(apply(&mut database, &THIRD, 7).await.unwrap(), [3]);
    for release in [SECOND, THIRD] {
        check(&mut database, &release).await.unwrap();
    }
    let refused = check(&mut database, &FIRST).await.unwrap_err();
    assert_eq!(refused.class, ErrorClass::Schema);
    let why = "the schema has version 3, for programs that know version 2; this program supports versions up \
               to 1: run a newer one";
    assert_eq!(refused.message, why);
    assert_eq!(apply(&mut database, &FIRST, 7).await.unwrap_err().to_string(), why);
}

#[tokio::test]
async fn a_program_that_may_use_a_newer_schema_has_nothing_to_migrate() {
    let mut database = migrated(&[SECOND]).await;
    assert_eq!(apply(&mut database, &FIRST, 7).await.unwrap(), [0; 0]);
    assert_eq!((database.version, database.done), (Some(2), vec![]));
}

#[tokio::test]
async fn a_program_needs_its_own_migrations() {
    let mut database = migrated(&[FIRST]).await;
    let refused = check(&mut database, &SECOND).await.unwrap_err();
    assert_eq!(refused.message, "the schema has version 1; this program needs 2: run `forebay migrate`");
}

#[tokio::test]
async fn a_newer_schema_that_names_no_oldest_program_is_refused() {
    let mut database = Database { version: Some(2), ..Database::default() };
    let refused = check(&mut database, &FIRST).await.unwrap_err();
    assert!(refused.message.contains("version 2, for programs that know version 2"), "{refused}");
    check(&mut database, &SECOND).await.unwrap();
}

#[tokio::test]
async fn a_program_is_excluded_before_the_migration_that_excludes_it() {
    let mut database = migrated(&[SECOND]).await;
    database.fails = Some("three");
    apply(&mut database, &THIRD, 7).await.unwrap_err();
    assert_eq!((database.version, &database.done), (Some(2), &vec!["oldest 2".to_owned()]));
    check(&mut database, &FIRST).await.unwrap_err();
    check(&mut database, &SECOND).await.unwrap();

    database.fails = None;
    assert_eq!(apply(&mut database, &THIRD, 7).await.unwrap(), [3]);
    assert_eq!(database.done, ["oldest 2", "oldest 2", "three", "version 3"]);
}
