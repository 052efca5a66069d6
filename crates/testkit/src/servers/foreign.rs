//! Another program at a server: it holds locks, and looks at what others do there.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection, Row as _};
use tokio::time::{Instant, sleep};

/// An expected state of connections comes within this time, on a server under load.
const SEEN_TIMEOUT: Duration = Duration::from_secs(20);
/// How the status of a server shows a transaction that waits for a lock on rows.
const LOCK_WAIT: &str = "\nLOCK WAIT ";
/// How often that is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A connection of another program. Its locks end with it.
pub struct Foreign {
    /// To the server, with the database as the default one.
    connection: MySqlConnection,
    /// The database.
    database: String,
}

/// A connection that a server has, and what it does.
pub(super) struct ForeignConnection {
    /// Its number.
    pub id: i64,
    /// As in `Query` or `Sleep`.
    pub command: String,
    /// State of its statement, or what it waits for.
    pub state: String,
}

/// The connections with one of these default databases.
pub(super) async fn connections(
    connection: &mut MySqlConnection,
    databases: &[String],
) -> sqlx::Result<Vec<ForeignConnection>> {
    let mut found = Vec::new();
    // Not from `information_schema`: on MySQL that fails while a statement holds bytes that are no text.
    for row in connection.fetch_all(sqlx::raw_sql("SHOW PROCESSLIST")).await? {
        let database: Option<String> = row.try_get_unchecked("db")?;
        if database.is_some_and(|database| databases.contains(&database)) {
            found.push(ForeignConnection {
                id: row.try_get_unchecked("Id")?,
                command: row.try_get_unchecked("Command")?,
                state: row.try_get_unchecked::<Option<String>, _>("State")?.unwrap_or_default(),
            });
        }
    }
    Ok(found)
}

impl Foreign {
    /// Connects to a database of a server, whose URL has none. Panics with the reason if that fails.
    pub async fn connect(server: &str, database: &str) -> Self {
        let url = format!("{server}/{database}");
        let connection = MySqlConnection::connect(&url).await;
        let connection = connection.unwrap_or_else(|error| panic!("{url}: {error}"));
        Self { connection, database: database.to_owned() }
    }

    /// Runs statements. Panics with the reason if one fails.
    pub async fn run(&mut self, sql: &str) {
        let done = self.connection.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await;
        done.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// The one number that a query returns. Panics with the reason if there is none.
    pub async fn number(&mut self, sql: &str) -> i64 {
        let found = self.connection.fetch_one(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await;
        found.and_then(|row| row.try_get_unchecked(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Waits until another connection to the database waits for a lock on rows.
    pub async fn wait_for_row_lock(&mut self) {
        self.wait_for_transaction("that waits for a lock", |it| it.contains(LOCK_WAIT)).await;
    }

    /// Waits until another connection to the database has changed rows in a transaction that is open, and
    /// waits for no lock.
    pub async fn wait_for_changes(&mut self) {
        let has_changed = |it: &str| it.contains("undo log entries ") && !it.contains(LOCK_WAIT);
        self.wait_for_transaction("that has changed rows", has_changed).await;
    }

    async fn wait_for_transaction(&mut self, what: &str, is_meant: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        loop {
            let others = self.others().await;
            // Not from `information_schema`: on MySQL that fails while a statement at the server holds bytes
            // that are no text.
            let status = self.connection.fetch_one(sqlx::raw_sql("SHOW ENGINE INNODB STATUS")).await;
            let status: Vec<u8> = status.and_then(|row| row.try_get_unchecked(2)).expect("a status");
            let status = String::from_utf8_lossy(&status);
            let is_other =
                |it: &str| others.iter().any(|other| it.contains(&format!("thread id {},", other.id)));
            if status.split("---TRANSACTION ").any(|it| is_other(it) && is_meant(it)) {
                return;
            }
            assert!(begun.elapsed() < SEEN_TIMEOUT, "no transaction {what}: {status}");
            sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until another connection to the database waits for a lock that has a name.
    pub async fn wait_for_named_lock(&mut self) {
        let begun = Instant::now();
        while !self.others().await.iter().any(|it| it.state == "User lock") {
            assert!(begun.elapsed() < SEEN_TIMEOUT, "nobody waits for a lock with a name");
            sleep(LOOK_EVERY).await;
        }
    }

    /// The other connections to the database.
    async fn others(&mut self) -> Vec<ForeignConnection> {
        let own = self.number("SELECT CAST(CONNECTION_ID() AS SIGNED)").await;
        let databases = [self.database.clone()];
        let mut others = connections(&mut self.connection, &databases).await.expect("SHOW PROCESSLIST");
        others.retain(|it| it.id != own);
        others
    }
}
