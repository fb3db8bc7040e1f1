//! The measurements that a machine disturbs: interleaved, in rounds, as ratios.
//!
//! Every measurement is a fresh server process on a core of its own. All servers of a case are
//! measured one after the other in every round, in alternating order, and compared within the
//! round, because what else runs on the machine changes all the time. Many short rounds bear that
//! better than few long ones.

mod cases;
mod kind;
mod machine;
mod peers;
mod perform;
mod report;
mod spread;

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use self::cases::Case;
use self::kind::Kind;
use self::machine::Machine;
use self::peers::Peer;
use self::perform::{Work, perform};
use self::report::Report;
use crate::cores::Cores;
use crate::measure::Spans;

pub const HELP: &str = "\
usage: benches/run.sh [options]

  --rounds N    rounds (9)
  --quick       1 short round: a check that all runs, no figure to quote
  --case TEXT   only cases whose name contains TEXT, or its table's
  --peers       servers of other people's libraries too
  --noise       the bare limit against itself: the noise floor of this machine
  --json        every measurement as JSON instead of the tables";

struct Options {
    rounds: usize,
    spans: Spans,
    case: String,
    peers: bool,
    noise: bool,
    json: bool,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Self>> {
        let spans = Spans { warm: Duration::from_millis(150), measured: Duration::from_millis(500) };
        let mut options = Self { rounds: 9, spans, case: String::new(), peers: false, noise: false, json: false };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--rounds" => options.rounds = words.next().context("--rounds needs a number")?.parse()?,
                "--quick" => {
                    options.rounds = 1;
                    options.spans = Spans { warm: Duration::from_millis(50), measured: Duration::from_millis(200) };
                }
                "--case" => options.case = words.next().context("--case needs a text")?,
                "--peers" => options.peers = true,
                "--noise" => options.noise = true,
                "--json" => options.json = true,
                "--help" => return Ok(None),
                _ => bail!("unknown option {word}\n{HELP}"),
            }
        }
        ensure!(options.rounds > 0, "--rounds needs at least 1");
        Ok(Some(options))
    }

    fn cases(&self) -> Result<Vec<Case>> {
        let peers = if self.peers { Peer::all() } else { Vec::new() };
        let mut cases = cases::all(&peers)?;
        cases.retain(|case| case.name.contains(&self.case) || case.kind.title().contains(&self.case));
        ensure!(!cases.is_empty(), "no case is named like {:?}", self.case);
        if self.noise {
            cases.retain(|case| matches!(case.kind, Kind::Load | Kind::Large) && case.runs[0].who == "bare");
            for case in &mut cases {
                case.runs.truncate(2);
                let (bare, again) = case.runs.split_at_mut(1);
                again[0].who = "bare again".to_owned();
                again[0].program = bare[0].program.clone();
            }
        }
        Ok(cases)
    }
}

/// Measures and prints.
pub fn run(words: impl Iterator<Item = String>) -> Result<()> {
    let Some(options) = Options::parse(words)? else {
        println!("{HELP}");
        return Ok(());
    };
    let (cases, cores) = (options.cases()?, Cores::choose());
    raise_open_files(&cases)?;
    let mut report = Report::new(Machine::look(cores), options.spans.measured.as_secs_f64(), &cases);
    for round in 0..options.rounds {
        for (at, case) in cases.iter().enumerate() {
            eprintln!("round {} of {}: {}", round + 1, options.rounds, case.name);
            let mut order: Vec<_> = case.runs.iter().enumerate().collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for (index, run) in order {
                let measured = perform(&run.program, &run.work, cores, options.spans)
                    .with_context(|| format!("{}, {}", case.name, run.who))?;
                report.add(at, index, &measured);
            }
        }
    }
    if options.json {
        println!("{:#}", report.to_json());
    } else {
        print!("{}", report.to_table());
    }
    Ok(())
}

/// Each stream that is held has a descriptor, here and in the server, which inherits the limit.
fn raise_open_files(cases: &[Case]) -> Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let held = |run: &cases::Run| if let Work::Held(_, count) = run.work { count as u64 } else { 1000 };
    let needed = cases.iter().flat_map(|case| &case.runs).map(held).max().unwrap_or(0) + 200;
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    ensure!(
        most >= needed,
        "{needed} open files are needed and {most} allowed: raise the limit, or choose with --case"
    );
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}
