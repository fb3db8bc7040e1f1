//! What was measured, where, and what it says.

use std::fmt::Write;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::measure::{Measure, Spans};
use crate::server::Cores;

/// From this share of its core on, the load program counts as the bottleneck.
const SATURATED: f64 = 0.95;

struct Round {
    bare: Measure,
    ours: Measure,
}

struct Compared {
    name: &'static str,
    rounds: Vec<Round>,
}

/// The middle of some values, and between what the middle half of them lies.
struct Spread {
    median: f64,
    lower: f64,
    upper: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<_> = values.collect();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (values.len() - 1) as f64 * share;
            let (below, above) = (values[place.floor() as usize], values[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        Self { median: at(0.5), lower: at(0.25), upper: at(0.75) }
    }

    fn to_json(&self) -> Value {
        let rounded = |v: f64| (v * 1000.0).round() / 1000.0;
        let (lower, upper) = (rounded(self.lower), rounded(self.upper));
        json!({ "median": rounded(self.median), "lower_quartile": lower, "upper_quartile": upper })
    }
}

impl Compared {
    /// Ours by bare, compared within each round.
    fn ratio(&self, value: fn(&Measure) -> f64) -> Spread {
        Spread::of(self.rounds.iter().map(|r| value(&r.ours) / value(&r.bare)))
    }

    fn bare(&self, value: fn(&Measure) -> f64) -> f64 {
        Spread::of(self.rounds.iter().map(|r| value(&r.bare))).median
    }

    fn ours(&self, value: fn(&Measure) -> f64) -> f64 {
        Spread::of(self.rounds.iter().map(|r| value(&r.ours))).median
    }
}

/// All comparisons of one run, and under what conditions they were made.
pub struct Report {
    machine: String,
    pinning: String,
    date: String,
    commit: String,
    command: String,
    spans: Spans,
    noise: bool,
    compared: Vec<Compared>,
}

impl Report {
    pub fn new(cores: Option<Cores>, spans: Spans, noise: bool) -> Self {
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
            spans,
            noise,
            compared: Vec::new(),
        }
    }

    pub fn add(&mut self, name: &'static str, bare: Measure, ours: Measure) {
        let round = Round { bare, ours };
        match self.compared.iter_mut().find(|c| c.name == name) {
            Some(compared) => compared.rounds.push(round),
            None => self.compared.push(Compared { name, rounds: vec![round] }),
        }
    }

    pub fn to_table(&self) -> String {
        let rounds = self.compared.first().map_or(0, |c| c.rounds.len());
        let ours = if self.noise { "bare again" } else { "ours" };
        let mut out = format!(
            "{}; {}\n{}, commit {}, `{}`\nmedian (quartiles) of {rounds} rounds of {:.1} s; ratios are {ours} / bare of the same round; every answer checked\n\n",
            self.machine,
            self.pinning,
            self.date,
            self.commit,
            self.command,
            self.spans.measured.as_secs_f64(),
        );
        let _ = writeln!(
            out,
            "| case | CPU ratio | CPU µs bare | {ours} | throughput ratio | answers/s bare | {ours} | p50 / p99 µs bare | {ours} |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        );
        let spread = |s: Spread| format!("{:.2} ({:.2}–{:.2})", s.median, s.lower, s.upper);
        let mut saturated = false;
        for c in &self.compared {
            let bound = c.bare(|m| m.load_busy).max(c.ours(|m| m.load_busy)) >= SATURATED;
            saturated |= bound;
            let _ = writeln!(
                out,
                "| {} | {} | {:.1} | {:.1} | {}{} | {:.0} | {:.0} | {:.0} / {:.0} | {:.0} / {:.0} |",
                c.name,
                spread(c.ratio(|m| m.cpu)),
                c.bare(|m| m.cpu),
                c.ours(|m| m.cpu),
                spread(c.ratio(|m| m.per_second)),
                if bound { " \\*" } else { "" },
                c.bare(|m| m.per_second),
                c.ours(|m| m.per_second),
                c.bare(|m| m.p50),
                c.bare(|m| m.p99),
                c.ours(|m| m.p50),
                c.ours(|m| m.p99),
            );
        }
        if saturated {
            out.push_str("\n\\* The load program used its whole core: the faster server could do more.\n");
        }
        out
    }

    pub fn to_json(&self) -> Value {
        let case = |c: &Compared| {
            let rounds: Vec<_> =
                c.rounds.iter().map(|r| json!({ "bare": r.bare.to_json(), "ours": r.ours.to_json() })).collect();
            json!({
                "case": c.name,
                "cpu_ratio": c.ratio(|m| m.cpu).to_json(),
                "throughput_ratio": c.ratio(|m| m.per_second).to_json(),
                "rounds": rounds,
            })
        };
        json!({
            "machine": self.machine,
            "pinning": self.pinning,
            "date": self.date,
            "commit": self.commit,
            "command": self.command,
            "seconds": self.spans.measured.as_secs_f64(),
            "ours_is_bare": self.noise,
            "cases": self.compared.iter().map(case).collect::<Vec<_>>(),
        })
    }
}

/// What a command prints, if it succeeds.
fn said(command: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(command).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
