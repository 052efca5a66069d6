//! A server and its replica behind one address, for a planned switch from the one to the other.

use std::sync::{
    Arc,
    atomic::{AtomicU16, Ordering},
};

use forebay_servers::{Kind, random};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlConnection};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
};

use super::Private;

/// The account without administrators' rights: a read-only server refuses its writes.
const ACCOUNT: &str = "forebay";

/// Two servers, of which one replicates the other, and an address that leads to the primary.
pub struct ReplicatedPair {
    /// The primary at first, and the replica.
    servers: [Private; 2],
    /// The address.
    address: Address,
}

impl ReplicatedPair {
    /// Starts both. A commit on MariaDB waits for the replica.
    pub async fn start(kind: Kind) -> Self {
        let flags: &[&str] = match kind {
            Kind::MariaDb => &["--log-slave-updates=ON"],
            Kind::MySql => &["--gtid-mode=ON", "--enforce-gtid-consistency=ON"],
        };
        let servers = [Private::start(kind, flags).await, Private::start(kind, flags).await];
        let [primary, replica] = &servers;
        assert_eq!((primary.kind, replica.kind), (kind, kind), "a replica is of the same kind");
        let port = primary.port;
        let (on_primary, on_replica): (String, String) = match kind {
            Kind::MariaDb => (
                "SET GLOBAL rpl_semi_sync_master_timeout = 1000000000, rpl_semi_sync_master_enabled = ON"
                    .into(),
                format!(
                    "SET GLOBAL rpl_semi_sync_slave_enabled = ON, read_only = ON; \
                     CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'root', \
                     MASTER_USE_GTID = slave_pos; START SLAVE"
                ),
            ),
            Kind::MySql => (
                "SELECT 1".into(),
                format!(
                    "SET GLOBAL super_read_only = ON; \
                     CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, \
                     SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1; START REPLICA"
                ),
            ),
        };
        run(replica, &on_replica).await;
        run(primary, &on_primary).await;
        let account = format!(
            "CREATE USER {ACCOUNT}@'%'; \
             GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER ON *.* TO {ACCOUNT}@'%'"
        );
        run(primary, &account).await;
        let address = Address::to(primary.port).await;
        Self { servers, address }
    }

    /// Creates a database with a random name. Returns its URL, which leads to the primary.
    pub async fn fresh_url(&self) -> String {
        let name = format!("forebay_{:016x}", random());
        run(&self.servers[0], &format!("CREATE DATABASE {name}")).await;
        format!("mysql://{ACCOUNT}@127.0.0.1:{}/{name}", self.address.port)
    }

    /// Makes the replica the primary, as an operator does: the old primary becomes read-only, the replica
    /// reads all of its log, and the address leads to the replica. Connections to the old primary stay open.
    pub async fn switch(&self) {
        let [old, new] = &self.servers;
        match old.kind {
            Kind::MariaDb => {
                run(old, "SET GLOBAL read_only = ON").await;
                let position = text(old, "SELECT @@gtid_binlog_pos").await;
                let caught_up = text(new, &format!("SELECT MASTER_GTID_WAIT('{position}', 30)")).await;
                assert_eq!(caught_up, "0", "the replica has read {position}");
                run(new, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = OFF").await;
            }
            Kind::MySql => {
                run(old, "SET GLOBAL super_read_only = ON").await;
                let position = text(old, "SELECT @@gtid_executed").await;
                let wait = format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{position}', 30)");
                assert_eq!(text(new, &wait).await, "0", "the replica has read {position}");
                run(new, "STOP REPLICA; RESET REPLICA ALL; SET GLOBAL super_read_only = OFF").await;
                run(new, "SET GLOBAL read_only = OFF").await;
            }
        }
        self.address.target.store(new.port, Ordering::SeqCst);
    }
}

/// Runs statements as the administrator.
async fn run(server: &Private, sql: &str) {
    let mut connection = MySqlConnection::connect(&server.url()).await.expect("a connection");
    let done = connection.execute(sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The one value of a query, as text.
async fn text(server: &Private, sql: &str) -> String {
    let mut connection = MySqlConnection::connect(&server.url()).await.expect("a connection");
    let query = AssertSqlSafe(format!("SELECT CAST(({sql}) AS CHAR)"));
    let value = sqlx::query_scalar::<_, String>(query).fetch_one(&mut connection).await;
    value.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// An address that leads to one server, and later to another. Connections stay where they are.
struct Address {
    /// The port on 127.0.0.1.
    port: u16,
    /// The port to which new connections lead.
    target: Arc<AtomicU16>,
    /// Accepts connections.
    accepting: AbortHandle,
}

impl Address {
    async fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let target = Arc::new(AtomicU16::new(target));
        let current = target.clone();
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let port = current.load(Ordering::SeqCst);
                connections.spawn(async move {
                    let _ = client.set_nodelay(true);
                    let Ok(mut server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
                    let _ = server.set_nodelay(true);
                    let _ = copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { port, target, accepting: accepting.abort_handle() }
    }
}

impl Drop for Address {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
