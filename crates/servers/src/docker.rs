//! Servers in containers, for machines that cannot get a server in another way.

use std::env;

use testcontainers::{
    ContainerAsync, GenericImage, ImageExt as _,
    core::{IntoContainerPort as _, WaitFor},
    runners::AsyncRunner as _,
};
use tokio::runtime::Runtime;

use crate::kind::Kind;

const PORT: u16 = 3306;

/// A server in a container, removed when this value is dropped.
pub struct Container {
    /// The image, as `name:tag`.
    image: String,
    /// The port on 127.0.0.1 that leads to the server.
    port: u16,
    /// `None` once it is removed. It must be removed while the runtime still runs.
    container: Option<ContainerAsync<GenericImage>>,
    /// Runs the container's client.
    runtime: Runtime,
}

/// Starts a server of `kind`. `FOREBAY_TEST_MARIADB_IMAGE` and `FOREBAY_TEST_MYSQL_IMAGE` can name another
/// image, as `name:tag`.
pub fn start(kind: Kind) -> anyhow::Result<Container> {
    let (variable, default) = match kind {
        Kind::MariaDb => ("FOREBAY_TEST_MARIADB_IMAGE", "mariadb:10.11"),
        Kind::MySql => ("FOREBAY_TEST_MYSQL_IMAGE", "mysql:9"),
    };
    let image = env::var(variable).unwrap_or_else(|_| default.to_owned());
    let (name, tag) = image.rsplit_once(':').unwrap_or((&image, "latest"));
    // The first start only initialises; it prints the same message, but with port 0. The space tells the port
    // from 33060, which MySQL names earlier.
    let ready = WaitFor::message_on_stderr(format!("port: {PORT} "));
    let request = GenericImage::new(name, tag)
        .with_exposed_port(PORT.tcp())
        .with_wait_for(ready)
        .with_env_var("MYSQL_ALLOW_EMPTY_PASSWORD", "1")
        .with_env_var("MARIADB_ALLOW_EMPTY_ROOT_PASSWORD", "1")
        .with_cmd([
            "--log-bin=binlog",
            "--server-id=1",
            "--binlog-row-image=MINIMAL",
            "--sync-binlog=1",
            "--innodb-flush-log-at-trx-commit=1",
            "--innodb-buffer-pool-size=64M",
            "--max-connections=500",
        ]);
    let runtime = Runtime::new()?;
    let (container, port) = runtime.block_on(async {
        let container = request.start().await?;
        let port = container.get_host_port_ipv4(PORT.tcp()).await?;
        anyhow::Ok((container, port))
    })?;
    Ok(Container { image, port, container: Some(container), runtime })
}

impl Container {
    /// The image it runs.
    pub fn image(&self) -> &str {
        &self.image
    }

    /// `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its URL, without a database.
    pub fn url(&self) -> String {
        format!("mysql://root@{}", self.address())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if let Some(container) = self.container.take() {
            // A container that cannot be removed is left to the daemon. Drop has nobody to report to.
            let _ = self.runtime.block_on(container.rm());
        }
    }
}
