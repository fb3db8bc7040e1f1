//! Servers built with other people's libraries, under the same load.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::perform::Work;
use crate::server::Program;
use crate::wire::Era;

/// A peer. `run.sh` builds them and says where each stands; one whose tool chain is missing is left out there.
pub struct Peer {
    pub name: &'static str,
    path: PathBuf,
    script: Option<PathBuf>,
    warm: Duration,
}

impl Peer {
    /// Those that the environment names.
    pub fn all() -> Vec<Self> {
        let place = |variable| std::env::var_os(variable).map(PathBuf::from);
        let peer = |name, variable, script, warm| Some(Self { name, path: place(variable)?, script, warm });
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/python/server.py");
        // An interpreter that compiles what is hot becomes faster for some seconds.
        let node = Duration::from_secs(4);
        [
            peer("rmcp", "PEER_RUST", None, Duration::ZERO),
            peer("TypeScript", "PEER_NODE", place("PEER_NODE_SCRIPT"), node),
            peer("Python", "PEER_PYTHON", Some(python), Duration::from_secs(1)),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// It serves `http`, which is modern, `sessions` or `stdio`.
    pub fn program(&self, door: &str) -> Program {
        let mut program = Program::new(&self.path, &[]);
        program.arguments.extend(self.script.iter().map(|script| script.display().to_string()));
        program.arguments.push(door.to_owned());
        Program { warm: self.warm, ..program }
    }

    /// The program for some work, and the work as it can do it: a peer may answer in any form.
    pub fn under(&self, work: &Work) -> (Program, Work) {
        let (door, work) = match work {
            Work::Http(load) => {
                let door = if load.question.era == Era::Legacy { "sessions" } else { "http" };
                (door, Work::Http(crate::http::Load { form: None, ..load.clone() }))
            }
            other => ("stdio", other.clone()),
        };
        (self.program(door), work)
    }
}
