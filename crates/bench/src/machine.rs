//! The machine of a run. Results of different machines cannot be compared.

use std::{env, fs, path::Path, process::Command, thread, time::SystemTime};

use serde::Serialize;

/// Machine and software on which results depend besides the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Model of the processor.
    pub cpu: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Release of the kernel.
    pub kernel: String,
    /// Type of the file system of the temporary folders.
    pub file_system: String,
    /// Start of the run, in UTC.
    pub date: String,
    /// The workspace's commit, with a mark if files differ from it.
    pub commit: String,
    /// The command line.
    pub command: String,
}

impl Machine {
    /// This machine. Values that cannot be determined are "unknown".
    pub fn here() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let or_unknown = |found: Option<String>| found.unwrap_or_else(|| "unknown".to_owned());
        let kernel = read("/proc/sys/kernel/osrelease").trim().to_owned();
        Self {
            cpu: or_unknown(value(&read("/proc/cpuinfo"), "model name")),
            cores: thread::available_parallelism().map_or(0, usize::from),
            memory_mib: value(&read("/proc/meminfo"), "MemTotal").map_or(0, |text| kilobytes(&text) / 1_024),
            kernel: or_unknown(Some(kernel).filter(|text| !text.is_empty())),
            file_system: or_unknown(
                env::temp_dir()
                    .canonicalize()
                    .ok()
                    .and_then(|folder| file_system(&read("/proc/self/mountinfo"), &folder)),
            ),
            date: date(),
            commit: or_unknown(commit()),
            command: command(),
        }
    }

    /// Names and values, for display.
    pub fn properties(&self) -> [(&'static str, String); 8] {
        [
            ("CPU", self.cpu.clone()),
            ("cores", self.cores.to_string()),
            ("memory", format!("{:.1} GiB", self.memory_mib as f64 / 1_024.0)),
            ("kernel", self.kernel.clone()),
            ("file system", self.file_system.clone()),
            ("date", self.date.clone()),
            ("commit", self.commit.clone()),
            ("command", self.command.clone()),
        ]
    }
}

/// The value of the first line `name: value`.
fn value(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn kilobytes(text: &str) -> u64 {
    text.strip_suffix(" kB").and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The type of the file system that is mounted nearest above `folder` (`man 5 proc_pid_mountinfo`).
fn file_system(mounts: &str, folder: &Path) -> Option<String> {
    let mounted = mounts.lines().filter_map(|line| {
        let (mount, source) = line.split_once(" - ")?;
        Some((mount.split(' ').nth(4)?, source.split(' ').next()?))
    });
    // Of two mounts at the same point the later one is visible.
    let nearest =
        mounted.filter(|(point, _)| folder.starts_with(point)).max_by_key(|(point, _)| point.len())?;
    Some(nearest.1.to_owned())
}

#[expect(clippy::disallowed_methods, reason = "the date of the run is only displayed")]
fn date() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

fn commit() -> Option<String> {
    let folder = env!("CARGO_MANIFEST_DIR");
    let git = Command::new("git")
        .args(["-C", folder, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
        .output()
        .ok()?;
    let text = String::from_utf8(git.stdout).ok()?.trim().to_owned();
    (git.status.success() && !text.is_empty()).then_some(text)
}

fn command() -> String {
    let mut words = env::args();
    let program = words.next().unwrap_or_default();
    let name =
        Path::new(&program).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    [name].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known() {
        let here = Machine::here();
        assert!(here.cores > 0 && here.memory_mib > 0, "{here:?}");
        assert_ne!(here.kernel, "unknown");
        assert!(here.date.ends_with('Z'), "{here:?}");
    }

    #[test]
    fn the_nearest_mount_counts() {
        let mounts = "22 1 254:1 / / rw,relatime - ext4 /dev/vda rw\n\
                      30 22 0:5 / /tmp rw shared:2 - tmpfs tmpfs rw\n\
                      31 22 0:6 / /tmpfiles rw - xfs /dev/vdb rw\n";
        let of = |folder| file_system(mounts, Path::new(folder)).unwrap();
        assert_eq!(of("/tmp/x"), "tmpfs");
        assert_eq!(of("/tmpfiles"), "xfs");
        assert_eq!(of("/home/x"), "ext4");
        assert_eq!(file_system("", Path::new("/")), None);
    }

    #[test]
    fn values_are_found_by_name() {
        assert_eq!(value("a\t: 1\nmodel name\t: Some CPU: fast\n", "model name").unwrap(), "Some CPU: fast");
        assert_eq!(kilobytes("2048 kB"), 2_048);
        assert_eq!(kilobytes("much"), 0);
    }
}
