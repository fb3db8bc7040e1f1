//! Which cores servers and load run on.

use anyhow::Result;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// Where servers and the load run: on a core of their own each, if there are two.
#[derive(Debug, Clone, Copy)]
pub struct Cores {
    pub server: usize,
    pub load: usize,
    all: CpuSet,
}

impl Cores {
    /// The first and the last core that this process may use; `None` if they are the same.
    pub fn choose() -> Option<Self> {
        let all = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let mut cores = (0..CpuSet::count()).filter(|core| all.is_set(*core).unwrap_or(false));
        let server = cores.next()?;
        Some(Self { server, load: cores.next_back()?, all })
    }

    /// What this thread starts from now on runs on the server's core, or on all.
    pub fn begin_server(&self, on_all: bool) -> Result<()> {
        if on_all { move_to(&self.all) } else { move_to(&one(self.server)?) }
    }

    /// This thread runs on the load's core from now on.
    pub fn begin_load(&self) -> Result<()> {
        move_to(&one(self.load)?)
    }
}

fn one(core: usize) -> Result<CpuSet> {
    let mut set = CpuSet::new();
    set.set(core)?;
    Ok(set)
}

fn move_to(set: &CpuSet) -> Result<()> {
    Ok(sched_setaffinity(Pid::from_raw(0), set)?)
}
