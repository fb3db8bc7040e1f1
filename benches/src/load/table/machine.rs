//! Under what conditions was measured.

use std::fs;

use crate::cores::Cores;
use crate::said::said;

/// The conditions of a run.
pub struct Machine {
    pub machine: String,
    pub pinning: String,
    pub date: String,
    pub commit: String,
    pub command: String,
}

impl Machine {
    pub fn look(cores: Option<Cores>) -> Self {
        let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = processors.lines().find_map(|l| Some(l.strip_prefix("model name")?.split_once(": ")?.1));
        let model = model.unwrap_or("unknown processor");
        let count = processors.lines().filter(|l| l.starts_with("processor")).count();
        // Other jobs on the machine are the largest source of noise, so the figures say how busy it was.
        let busy = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let busy = busy.split(' ').next().unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let commit = said("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "none".to_owned());
        let clean = said("git", &["status", "--porcelain"]).is_none_or(|changes| changes.is_empty());
        let words: Vec<_> = std::env::args().skip(1).collect();
        Self {
            machine: format!(
                "{count} cores, {model}, Linux {}, load average {busy} before; {}",
                kernel.trim(),
                said("rustc", &["--version"]).unwrap_or_default()
            ),
            pinning: cores.map_or_else(
                || "server and load unpinned".to_owned(),
                |c| format!("server on core {}, load on core {}", c.server, c.load),
            ),
            date: said("date", &["-u", "+%Y-%m-%d %H:%M UTC"]).unwrap_or_default(),
            commit: if clean { commit } else { format!("{commit} with changes") },
            command: ["benches/run.sh".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" "),
        }
    }
}
