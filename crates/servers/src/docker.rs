//! Servers in containers, for machines that have no other way to one.

use std::env;

use testcontainers::{
    ContainerAsync, GenericImage, ImageExt as _,
    core::{IntoContainerPort as _, WaitFor},
    runners::AsyncRunner as _,
};
use tokio::runtime::Runtime;

use crate::Kind;

const PORT: u16 = 3306;

/// A server in a container, removed when this value is dropped.
pub struct Container {
    image: String,
    port: u16,
    // Removed first, while the runtime that removes it still runs.
    container: Option<ContainerAsync<GenericImage>>,
    runtime: Runtime,
}

/// Starts a server of `kind`. The image is what `FOREBAY_TEST_MARIADB_IMAGE` or `FOREBAY_TEST_MYSQL_IMAGE`
/// names, as `name:tag`.
pub fn start(kind: Kind) -> anyhow::Result<Container> {
    let (variable, default) = match kind {
        Kind::MariaDb => ("FOREBAY_TEST_MARIADB_IMAGE", "mariadb:10.11"),
        Kind::MySql => ("FOREBAY_TEST_MYSQL_IMAGE", "mysql:9"),
    };
    let image = env::var(variable).unwrap_or_else(|_| default.to_owned());
    let (name, tag) = image.rsplit_once(':').unwrap_or((&image, "latest"));
    // The first start initialises and says so too, but on port 0.
    let ready = WaitFor::message_on_stderr(format!("port: {PORT}"));
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
            // A container that can't be removed is left to the daemon; there is nobody to tell.
            let _ = self.runtime.block_on(container.rm());
        }
    }
}
