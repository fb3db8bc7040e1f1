//! Measures the engine against the bare limit of each transport and prints ratios.
//!
//! Every measurement is a fresh server process on a core of its own. Both servers of a case are
//! measured one after the other in every round, in alternating order, and compared within the
//! round, because what else runs on the machine changes all the time. Many short rounds bear that
//! better than few long ones.

mod http;
mod measure;
mod report;
mod server;
mod stdio;
mod wire;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use measure::{Measure, Spans};
use report::Report;
use server::{Cores, Program};
use wire::{Ask, Era};

const HELP: &str = "\
usage: benches/run.sh [options]

  --rounds N    rounds (15)
  --quick       2 short rounds: a check that all runs, no figure to quote
  --case TEXT   only cases whose name contains TEXT
  --noise       the bare limit against itself: the noise floor of this machine
  --json        every measurement as JSON instead of the table";

/// How a case reaches the server.
#[derive(Debug, Clone, Copy)]
enum Door {
    Http { era: Era, connections: usize },
    Stdio { window: usize },
}

/// One kind of request under one kind of load.
#[derive(Debug, Clone, Copy)]
struct Case {
    name: &'static str,
    door: Door,
    ask: Ask,
}

const MODERN_HTTP: Door = Door::Http { era: Era::Modern, connections: 16 };
const LEGACY_HTTP: Door = Door::Http { era: Era::Legacy, connections: 16 };

const CASES: [Case; 8] = [
    Case { name: "HTTP echo, 16 connections", door: MODERN_HTTP, ask: Ask::Echo },
    Case { name: "HTTP echo, 16 legacy sessions", door: LEGACY_HTTP, ask: Ask::Echo },
    Case { name: "HTTP tools/list of 100, 16 connections", door: MODERN_HTTP, ask: Ask::List },
    Case { name: "HTTP server/discover, 16 connections", door: MODERN_HTTP, ask: Ask::Discover },
    Case { name: "stdio echo, window 64", door: Door::Stdio { window: 64 }, ask: Ask::Echo },
    Case { name: "stdio echo, window 1", door: Door::Stdio { window: 1 }, ask: Ask::Echo },
    Case { name: "stdio tools/list of 100, window 16", door: Door::Stdio { window: 16 }, ask: Ask::List },
    Case { name: "stdio server/discover, window 64", door: Door::Stdio { window: 64 }, ask: Ask::Discover },
];

/// The two servers of a transport.
struct Pair {
    bare: Program,
    ours: Program,
}

struct Options {
    rounds: usize,
    spans: Spans,
    case: String,
    noise: bool,
    json: bool,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let spans = Spans { warm: Duration::from_millis(150), measured: Duration::from_millis(500) };
        let mut options = Self { rounds: 15, spans, case: String::new(), noise: false, json: false };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--rounds" => options.rounds = words.next().context("--rounds needs a number")?.parse()?,
                "--quick" => {
                    options.rounds = 2;
                    options.spans = Spans { warm: Duration::from_millis(50), measured: Duration::from_millis(200) };
                }
                "--case" => options.case = words.next().context("--case needs a text")?,
                "--noise" => options.noise = true,
                "--json" => options.json = true,
                "--help" => return Ok(None),
                _ => bail!("unknown option {word}\n{HELP}"),
            }
        }
        ensure!(options.rounds > 0, "--rounds needs at least 1");
        Ok(Some(options))
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else {
        println!("{HELP}");
        return Ok(());
    };
    let own = std::env::current_exe()?;
    let pair = |bare: &str, door: &'static [&'static str]| {
        let bare = Program::beside(&own, bare, &[]);
        let ours = if options.noise { bare.clone() } else { Program::beside(&own, "engine", door) };
        Pair { bare, ours }
    };
    let (http, stdio) = (pair("bare_http", &["http"]), pair("bare_stdio", &["stdio"]));
    let cases: Vec<_> = CASES.iter().filter(|case| case.name.contains(&options.case)).collect();
    ensure!(!cases.is_empty(), "no case is named like {:?}", options.case);
    let cores = Cores::choose();
    let mut report = Report::new(cores, options.spans, options.noise);
    for round in 0..options.rounds {
        for case in &cases {
            eprintln!("round {} of {}: {}", round + 1, options.rounds, case.name);
            let pair = if matches!(case.door, Door::Http { .. }) { &http } else { &stdio };
            let run = |who: &str, program| {
                measure(case, program, cores, options.spans).with_context(|| format!("{}, {who}", case.name))
            };
            let (bare, ours) = if round % 2 == 0 {
                let bare = run("bare", &pair.bare)?;
                (bare, run("ours", &pair.ours)?)
            } else {
                let ours = run("ours", &pair.ours)?;
                (run("bare", &pair.bare)?, ours)
            };
            report.add(case.name, bare, ours);
        }
    }
    if options.json {
        println!("{:#}", report.to_json());
    } else {
        print!("{}", report.to_table());
    }
    Ok(())
}

fn measure(case: &Case, program: &Program, cores: Option<Cores>, spans: Spans) -> Result<Measure> {
    match case.door {
        Door::Http { era, connections } => http::measure(program, cores, era, case.ask, connections, spans),
        Door::Stdio { window } => stdio::measure(program, cores, case.ask, window, spans),
    }
}
