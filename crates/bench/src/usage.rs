//! CPU time and memory of processes, from `/proc`.

use std::{collections::BTreeMap, fs, time::Duration};

use serde::Serialize;

use crate::system::ProcessRole;

/// Ticks per second in `/proc/<pid>/stat`: `USER_HZ`, which is 100 on every Linux architecture that Rust
/// supports (`man 5 proc_pid_stat`).
const TICKS_PER_SECOND: u64 = 100;

/// Resources that a set of processes has used.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Usage {
    /// CPU time by role.
    pub cpu: BTreeMap<&'static str, Duration>,
    /// Resident memory by role, in bytes.
    pub memory: BTreeMap<&'static str, u64>,
}

impl Usage {
    /// Reads the usage of these processes with all their children, and of this process as `load`.
    pub fn now(measured: &[ProcessRole]) -> Self {
        let processes = running_processes();
        let mut usage = Self::default();
        let own = ProcessRole { role: "load", pid: std::process::id() };
        let others: Vec<u32> = measured.iter().map(|process| process.pid).collect();
        for root in measured {
            for process in tree(&processes, root.pid) {
                usage.add(root.role, process);
            }
        }
        if let Some(load) = processes.get(&own.pid).filter(|_| !others.contains(&own.pid)) {
            usage.add(own.role, load);
        }
        usage
    }

    fn add(&mut self, role: &'static str, process: &Process) {
        let cpu = Duration::from_millis(process.ticks * 1_000 / TICKS_PER_SECOND);
        *self.cpu.entry(role).or_default() += cpu;
        *self.memory.entry(role).or_default() += process.resident;
    }

    /// CPU time used since `before`, and the present memory.
    pub fn since(mut self, before: &Self) -> Self {
        for (role, cpu) in &mut self.cpu {
            *cpu = cpu.saturating_sub(before.cpu.get(role).copied().unwrap_or_default());
        }
        self
    }

    /// CPU time of all roles.
    pub fn total_cpu(&self) -> Duration {
        self.cpu.values().sum()
    }
}

#[derive(Debug)]
struct Process {
    parent: u32,
    ticks: u64,
    resident: u64,
}

fn running_processes() -> BTreeMap<u32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Some((pid, process(pid)?))).collect()
}

fn process(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may contain any character.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = resident.and_then(|text| text.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    Some(Process {
        parent: number(1)? as u32,
        // User and kernel time of the process and of its children that have ended.
        ticks: number(11)? + number(12)? + number(13)? + number(14)?,
        resident: kilobytes.unwrap_or(0) * 1_024,
    })
}

fn tree(processes: &BTreeMap<u32, Process>, root: u32) -> Vec<&Process> {
    let mut pids = vec![root];
    let mut at = 0;
    while at < pids.len() {
        let parent = pids[at];
        pids.extend(processes.iter().filter(|(_, process)| process.parent == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    pids.iter().filter_map(|pid| processes.get(pid)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_time() {
        let before = Usage::now(&[]);
        assert!(before.memory["load"] > 100_000, "{before:?}");
        let mut sum = 0_u64;
        while Usage::now(&[]).since(&before).total_cpu() < Duration::from_millis(30) {
            sum = sum.wrapping_add((0..1_000_000_u64).fold(0, u64::wrapping_add));
        }
        assert_ne!(sum, 1);
    }
}
