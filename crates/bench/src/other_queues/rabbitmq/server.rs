//! A private RabbitMQ server.

use std::{fs, path::Path, process::Command};

use anyhow::Context as _;
use forebay_servers::free_port;

use crate::other_queues::server_process::ServerProcess;

/// Starts the server with this script.
pub async fn start(program: &Path) -> anyhow::Result<ServerProcess> {
    ServerProcess::start("rabbitmq-server", |folder, port| {
        fs::write(
            folder.join("rabbitmq.conf"),
            format!("listeners.tcp.1 = 127.0.0.1:{port}\nlog.console = true\nlog.console.level = warning\n"),
        )?;
        fs::write(folder.join("plugins"), "[].\n")?;
        let node = format!("forebay-bench-{port}@localhost");
        let distribution = free_port()?;
        let mut command = Command::new(program);
        // Makes the script replace itself by the server.
        command.env("RUNNING_UNDER_SYSTEMD", "true").env_remove("NOTIFY_SOCKET");
        // The server stores its cookie in HOME.
        command.env("HOME", folder).env("LANG", "C.UTF-8").current_dir(folder);
        for (name, file) in [
            ("RABBITMQ_CONF_ENV_FILE", "no-environment"),
            ("RABBITMQ_CONFIG_FILE", "rabbitmq.conf"),
            ("RABBITMQ_ADVANCED_CONFIG_FILE", "advanced.config"),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", "plugins"),
            ("RABBITMQ_MNESIA_BASE", "data"),
            ("RABBITMQ_LOG_BASE", "log"),
            ("RABBITMQ_GENERATED_CONFIG_DIR", "config"),
            ("RABBITMQ_SCHEMA_DIR", "schema"),
            ("RABBITMQ_PID_FILE", "pid"),
        ] {
            command.env(name, folder.join(file));
        }
        command.env("RABBITMQ_LOGS", "-").env("RABBITMQ_NODENAME", &node);
        command.env("RABBITMQ_DIST_PORT", distribution.to_string());
        // With a fixed name and a fixed distribution port the node does not start the port mapper, a daemon
        // that would outlive it.
        command.env(
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            format!(
                "-start_epmd false -erl_epmd_port {distribution} -sname {node} \
                 -kernel inet_dist_use_interface {{127,0,0,1}}"
            ),
        );
        Ok(command)
    })
    .await
}

/// The version, from the server's banner: `RabbitMQ 3.10.8`.
pub fn version(broker: &ServerProcess) -> anyhow::Result<String> {
    let log = fs::read(broker.folder().join("output.log"))?;
    let log = String::from_utf8_lossy(&log).into_owned();
    let version = log.lines().find_map(|line| line.split("RabbitMQ ").nth(1)?.split_whitespace().next());
    Ok(version.context("the server printed no version")?.to_owned())
}
