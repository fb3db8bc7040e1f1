//! What a request costs in instructions and allocations, held to ceilings.
//!
//! Unlike time these repeat, so they can be judged: valgrind emulates a processor and counts.

mod ceilings;
mod count;
mod profile;
mod verdict;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, bail, ensure};
use twodoor_benches::TOOLS;

use self::ceilings::Ceilings;
use self::count::{Cost, cost};
use self::verdict::Verdict;
use crate::server::{Door, Program};
use crate::wire::{self, Ask, Era, Question};

const HELP: &str = "\
usage: benches/gates.sh [--record] [TEXT]

  --record   write what was counted, with a margin, as the ceilings
  TEXT       only gates whose name contains TEXT";

/// A kind of request that has a ceiling.
#[derive(Debug, Clone, Copy)]
struct Gate {
    door: Door,
    era: Era,
    ask: Ask,
}

impl Gate {
    /// A stdio process is initialized once, so that has no cost by request there.
    fn all() -> Vec<Self> {
        let gates = |door, era, asks: &[Ask]| asks.iter().map(move |ask| Self { door, era, ask: *ask }).collect();
        let all: [Vec<_>; 4] = [
            gates(Door::Http, Era::Modern, &[Ask::Echo, Ask::List, Ask::Discover]),
            gates(Door::Http, Era::Legacy, &[Ask::Echo, Ask::List, Ask::Initialize]),
            gates(Door::Stdio, Era::Modern, &[Ask::Echo, Ask::List, Ask::Discover]),
            gates(Door::Stdio, Era::Legacy, &[Ask::Echo, Ask::List]),
        ];
        all.concat()
    }

    fn name(&self) -> String {
        let door = if self.door == Door::Http { "http" } else { "stdio" };
        let era = if self.era == Era::Modern { "modern" } else { "legacy" };
        let ask = match self.ask {
            Ask::List => "list",
            Ask::Discover => "discover",
            Ask::Initialize => "initialize",
            _ => "echo",
        };
        format!("{door}-{era}-{ask}")
    }

    fn question(&self) -> Question {
        Question { era: self.era, ask: self.ask, text: wire::text(0, 0), tools: TOOLS }
    }
}

/// What the engine's request costs, and the bare server's.
struct Counted {
    gate: String,
    ours: Cost,
    bare: Cost,
}

struct Options {
    record: bool,
    text: String,
}

impl Options {
    fn parse(words: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let mut options = Self { record: false, text: String::new() };
        for word in words {
            match word.as_str() {
                "--record" => options.record = true,
                "--help" => return Ok(None),
                _ if word.starts_with('-') => bail!("unknown option {word}\n{HELP}"),
                _ => options.text = word,
            }
        }
        Ok(Some(options))
    }
}

/// Counts, prints, and judges or records.
pub fn run(words: impl Iterator<Item = String>) -> Result<()> {
    let Some(options) = Options::parse(words)? else {
        println!("{HELP}");
        return Ok(());
    };
    let mut gates = Gate::all();
    gates.retain(|gate| gate.name().contains(&options.text));
    ensure!(!gates.is_empty(), "no gate is named like {:?}", options.text);
    let mut ceilings = Ceilings::read()?;
    let own = std::env::current_exe()?;
    let profiles = own.with_file_name("profiles");
    std::fs::create_dir_all(&profiles)?;
    let counted = count_all(gates, &own, &profiles)?;
    if options.record {
        for one in &counted {
            ceilings.record(&one.gate, one.ours);
        }
        ceilings.write()?;
    }
    let verdict = Verdict::of(&counted, &ceilings);
    print!("{}", verdict.table);
    for hint in &verdict.hints {
        println!("{hint}");
    }
    ensure!(verdict.failures.is_empty(), "{}", verdict.advice(&ceilings, &profiles));
    Ok(())
}

/// Counts on all cores: what else runs does not change a count.
fn count_all(gates: Vec<Gate>, own: &Path, profiles: &Path) -> Result<Vec<Counted>> {
    let workers = std::thread::available_parallelism()?.get();
    let waiting: Mutex<VecDeque<_>> = Mutex::new(gates.into_iter().enumerate().collect());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || {
        let mut done = Vec::new();
        while let Some((at, gate)) = next() {
            eprintln!("counting {}", gate.name());
            done.push((at, count(gate, own, profiles)?));
        }
        anyhow::Ok(done)
    };
    let mut all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| anyhow::anyhow!("a thread that counts panicked"))??);
        }
        anyhow::Ok(all)
    })?;
    all.sort_by_key(|(at, _)| *at);
    Ok(all.into_iter().map(|(_, counted)| counted).collect())
}

fn count(gate: Gate, own: &Path, profiles: &Path) -> Result<Counted> {
    let (ours, bare) = match gate.door {
        Door::Http => (Program::beside(own, "engine", &["http"]), Program::beside(own, "bare_http", &[])),
        Door::Stdio => (Program::beside(own, "engine", &["stdio"]), Program::beside(own, "bare_stdio", &[])),
    };
    let (name, question) = (gate.name(), gate.question());
    let of = |program: &Program, name: &str| {
        cost(&program.clone().with("TOOLS", TOOLS), gate.door, &question, profiles, name)
    };
    let (ours, bare) = (of(&ours, &name)?, of(&bare, &format!("{name}-bare"))?);
    Ok(Counted { gate: name, ours, bare })
}
