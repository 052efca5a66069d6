//! The server that holds a shard since it was taken over. A shard's address may lead to another server later:
//! after a planned switch, or while old connections are still open. No two connections of an owner lead to
//! two servers.

use std::sync::Arc;

use sqlx::{Executor as _, Row as _, mysql::MySqlConnection, raw_sql};

use super::{
    connect::{self, Role},
    error::OtherServer,
    session::MySqlSession,
};
use crate::{error::StoreError, mysql_address::Target};

/// MySQL names itself with a random id that it keeps. MariaDB has none in all versions, so it is known by
/// where it runs; replicas of one server have different `server_id`s.
const IDENTITY: &str = "SELECT CONCAT_WS(' ' /*!80000 , @@server_uuid */ \
                        /*M! , @@hostname, @@port, @@server_id, @@datadir */)";

/// How to connect to the server that holds a shard.
#[derive(Clone)]
pub(super) struct Server {
    /// The address and the account.
    pub(super) target: Target,
    /// Answer of the server to [`IDENTITY`].
    pub(super) identity: Arc<str>,
}

impl Server {
    /// The server at the other end of a connection.
    pub(super) async fn of(target: &Target, session: &mut MySqlSession) -> Result<Self, StoreError> {
        Ok(Self { target: target.clone(), identity: identity_of(session).await?.into() })
    }

    /// Opens another connection to it. Fails with `NotPrimary` if another server answers.
    pub(super) async fn connect(&self, role: Role) -> Result<MySqlSession, StoreError> {
        let mut session = connect::connect(&self.target, role).await?;
        session.with_timeout(async |connection| self.check(connection).await).await?;
        Ok(session)
    }

    /// Fails if a connection leads to another server.
    pub(super) async fn check(&self, connection: &mut MySqlConnection) -> Result<(), sqlx::Error> {
        let found = identity(connection).await?;
        if *found == *self.identity {
            return Ok(());
        }
        let expected = self.identity.to_string();
        Err(sqlx::Error::Configuration(Box::new(OtherServer { expected, found })))
    }
}

/// Which server answers at the other end of a connection.
pub(super) async fn identity_of(session: &mut MySqlSession) -> Result<String, StoreError> {
    session.with_timeout(async |connection| identity(connection).await).await
}

async fn identity(connection: &mut MySqlConnection) -> Result<String, sqlx::Error> {
    // As text: a server that takes no more prepared statements would otherwise take no connection.
    connection.fetch_one(raw_sql(IDENTITY)).await?.try_get(0)
}
