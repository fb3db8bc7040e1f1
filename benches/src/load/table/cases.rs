//! What is measured, of which servers.

use std::path::Path;

use anyhow::Result;
use twodoor_benches::TOOLS;

use super::kind::Kind;
use super::peers::Peer;
use super::perform::Work;
use crate::check::Form;
use crate::held::Held;
use crate::http::Load;
use crate::neighbours::Neighbours;
use crate::server::{Door, Program};
use crate::wire::{self, Ask, Era, Question};

/// One measurement of a case.
pub struct Run {
    pub who: String,
    pub program: Program,
    pub work: Work,
}

/// What is measured of several servers in every round; the others are compared with the first.
pub struct Case {
    pub name: String,
    pub kind: Kind,
    pub runs: Vec<Run>,
}

const MIB: usize = 1024 * 1024;

/// Connections of a case of many.
const MANY: usize = 16;

/// All cases; peers stand in those that they can serve.
pub fn all(peers: &[Peer]) -> Result<Vec<Case>> {
    let own = std::env::current_exe()?;
    let servers = Servers { own: &own };
    let mut cases = requests(&servers, peers);
    cases.extend([1, 16].into_iter().flat_map(|mib| large(&servers, mib)));
    cases.push(neighbours(&servers));
    cases.extend(memory(&servers));
    cases.extend(starts(&servers, peers));
    cases.push(sizes(&servers));
    Ok(cases)
}

/// The programs that were built beside this one.
struct Servers<'a> {
    own: &'a Path,
}

impl Servers<'_> {
    fn bare(&self, door: Door) -> Program {
        let name = if door == Door::Http { "bare_http" } else { "bare_stdio" };
        Program::beside(self.own, name, &[])
    }

    fn ours(&self, door: Door) -> Program {
        Program::beside(self.own, "engine", &[if door == Door::Http { "http" } else { "stdio" }])
    }

    /// The two, and peers, under the same load.
    fn compared(&self, name: &str, tools: usize, work: &Work, peers: &[Peer]) -> Case {
        let door = if matches!(work, Work::Http(_)) { Door::Http } else { Door::Stdio };
        let run = |who: &str, program: Program| Run {
            who: who.to_owned(),
            program: program.with("TOOLS", tools),
            work: work.clone(),
        };
        let mut runs = vec![run("bare", self.bare(door)), run("ours", self.ours(door))];
        runs.extend(peers.iter().map(|peer| {
            let (program, work) = peer.under(work);
            Run { who: peer.name.to_owned(), program: program.with("TOOLS", tools), work }
        }));
        Case { name: name.to_owned(), kind: Kind::Load, runs }
    }
}

fn load(era: Era, ask: Ask, connections: usize, tools: usize) -> Load {
    let question = Question { era, ask, text: String::new(), tools };
    let form = if ask == Ask::Progress { Form::Events } else { Form::Json };
    Load { question, text_bytes: 0, connections, form: Some(form), neighbours: None }
}

fn piped(ask: Ask, window: usize) -> Work {
    let question = Question { era: Era::Modern, ask, text: wire::text(window, 0), tools: TOOLS };
    Work::Stdio { question, window }
}

fn requests(servers: &Servers<'_>, peers: &[Peer]) -> Vec<Case> {
    let http = |name: &str, era, ask, tools, peers| {
        servers.compared(name, tools, &Work::Http(load(era, ask, MANY, tools)), peers)
    };
    let stdio = |name: &str, ask, window| servers.compared(name, TOOLS, &piped(ask, window), peers);
    vec![
        http("HTTP echo, 16 connections", Era::Modern, Ask::Echo, TOOLS, peers),
        http("HTTP echo, 16 legacy sessions", Era::Legacy, Ask::Echo, TOOLS, peers),
        http("HTTP tools/list of 10, 16 connections", Era::Modern, Ask::List, 10, &[]),
        http("HTTP tools/list of 100, 16 connections", Era::Modern, Ask::List, TOOLS, peers),
        http("HTTP tools/list of 1000, 16 connections", Era::Modern, Ask::List, 1000, &[]),
        http("HTTP server/discover, 16 connections", Era::Modern, Ask::Discover, TOOLS, peers),
        http("HTTP initialize and DELETE, 16 connections", Era::Legacy, Ask::Initialize, TOOLS, peers),
        http("HTTP echo with 10 progress notices, 16 connections", Era::Modern, Ask::Progress, TOOLS, &[]),
        stdio("stdio echo, window 64", Ask::Echo, 64),
        stdio("stdio echo, window 1", Ask::Echo, 1),
        stdio("stdio tools/list of 100, window 16", Ask::List, 16),
        stdio("stdio server/discover, window 64", Ask::Discover, 64),
        commands(servers),
        growth(servers),
        workers(servers),
    ]
}

/// What the engine adds to starting a process: the process's own time is not counted.
fn commands(servers: &Servers<'_>) -> Case {
    let run =
        |who: &str, program| Run { who: who.to_owned(), program, work: Work::Http(load(Era::Modern, Ask::Echo, 4, 1)) };
    let bare = Program::beside(servers.own, "bare_command", &[]);
    let ours = Program::beside(servers.own, "engine", &["command"]);
    let name = "HTTP command tool, 4 connections".to_owned();
    Case { name, kind: Kind::Load, runs: vec![run("bare", bare), run("ours", ours)] }
}

/// A call costs the same however many tools there are.
fn growth(servers: &Servers<'_>) -> Case {
    let run = |tools: usize| Run {
        who: format!("ours, {tools} tools"),
        program: servers.ours(Door::Http).with("TOOLS", tools),
        work: Work::Http(load(Era::Modern, Ask::Echo, MANY, tools)),
    };
    let name = "HTTP echo by number of tools".to_owned();
    Case { name, kind: Kind::Load, runs: [10, 100, 1000].map(run).into() }
}

/// A second worker costs a request nothing.
fn workers(servers: &Servers<'_>) -> Case {
    let run = |workers: usize| {
        let program = servers.ours(Door::Http).with("TOKIO_WORKER_THREADS", workers);
        Run {
            who: if workers == 1 { "ours, 1 worker".to_owned() } else { format!("ours, {workers} workers") },
            program: Program { on_all_cores: true, ..program },
            work: Work::Http(load(Era::Modern, Ask::Echo, MANY, TOOLS)),
        }
    };
    let name = "HTTP echo by worker threads, on all cores".to_owned();
    Case { name, kind: Kind::Load, runs: [1, 2].map(run).into() }
}

fn large(servers: &Servers<'_>, mib: usize) -> [Case; 2] {
    let http = Load { text_bytes: mib * MIB, ..load(Era::Modern, Ask::Echo, 1, TOOLS) };
    let question = Question { era: Era::Modern, ask: Ask::Echo, text: wire::text(0, mib * MIB), tools: TOOLS };
    [
        (format!("HTTP echo of {mib} MiB, 1 connection"), Work::Http(http)),
        (format!("stdio echo of {mib} MiB, window 1"), Work::Stdio { question, window: 1 }),
    ]
    .map(|(name, work)| Case { kind: Kind::Large, ..servers.compared(&name, TOOLS, &work, &[]) })
}

/// How long an echo takes while others keep the server busy.
fn neighbours(servers: &Servers<'_>) -> Case {
    const TOOLS: usize = 1000;
    let run = |who: &str, program: Program, neighbours| {
        let work = Work::Http(Load { neighbours, ..load(Era::Modern, Ask::Echo, 4, TOOLS) });
        Run { who: who.to_owned(), program, work }
    };
    let ours = || servers.ours(Door::Http).with("TOOLS", TOOLS);
    let listeners = Some(Neighbours::Listeners(1000));
    let runs = vec![
        run("ours, alone", ours(), None),
        run("ours, beside 64 callers of a slow tool", ours(), Some(Neighbours::Callers(64))),
        run("ours, beside 16 who read no list of 1000", ours(), Some(Neighbours::SlowReaders(16))),
        run("ours, beside 1000 listeners who wait", ours(), listeners),
        run("ours, beside 1000 listeners who are told", ours().with("ANNOUNCE", 100), listeners),
    ];
    Case { name: "HTTP echo, 4 connections".to_owned(), kind: Kind::Neighbours, runs }
}

fn memory(servers: &Servers<'_>) -> Vec<Case> {
    let run = |who: &str, program, held, count| Run { who: who.to_owned(), program, work: Work::Held(held, count) };
    let ours = |held, count| run("ours", servers.ours(Door::Http), held, count);
    let connection = |count| run("bare, an idle connection", servers.bare(Door::Http), Held::Connections, count);
    let case = |name: &str, count, runs| Case { name: format!("{name}, of {count}"), kind: Kind::Memory, runs };
    let cases = [1000, 10_000].map(|count| {
        [
            case("idle connection", count, vec![connection(count), ours(Held::Connections, count)]),
            case("idle legacy session", count, vec![ours(Held::Sessions, count)]),
            case("GET stream of a legacy session", count, vec![connection(count), ours(Held::Gets, count)]),
            case("subscriptions/listen stream", count, vec![connection(count), ours(Held::Listens, count)]),
        ]
    });
    cases.into_iter().flatten().collect()
}

fn starts(servers: &Servers<'_>, peers: &[Peer]) -> [Case; 2] {
    [(Door::Stdio, "stdio"), (Door::Http, "HTTP")].map(|(door, name)| {
        let run = |who: &str, program| Run { who: who.to_owned(), program, work: Work::Start(door) };
        let mut runs = vec![run("bare", servers.bare(door)), run("ours", servers.ours(door))];
        runs.extend(
            peers.iter().map(|peer| run(peer.name, peer.program(if door == Door::Http { "http" } else { "stdio" }))),
        );
        Case { name: format!("{name} start to server/discover"), kind: Kind::Start, runs }
    })
}

fn sizes(servers: &Servers<'_>) -> Case {
    let run =
        |file: &str| Run { who: file.to_owned(), program: Program::beside(servers.own, file, &[]), work: Work::Size };
    let files = ["bare_http", "bare_stdio", "engine", "twodoor"];
    Case { name: "binary, stripped".to_owned(), kind: Kind::Size, runs: files.map(run).into() }
}
