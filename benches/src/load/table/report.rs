//! What the measurements say.

use std::fmt::Write;

use serde_json::{Value, json};

use super::cases::Case;
use super::kind::Kind;
use super::machine::Machine;
use super::perform::Measured;
use super::spread::Spread;

/// From this share of its core on, the load program counts as the bottleneck.
const SATURATED: f64 = 0.95;

/// What was found of one server of a case, a line a round.
struct Found {
    who: String,
    rounds: Vec<Vec<f64>>,
    load_busy: Vec<f64>,
}

impl Found {
    fn median(&self, metric: usize) -> f64 {
        Spread::of(self.rounds.iter().map(|round| round[metric])).median
    }

    /// Compared within each round.
    fn ratio(&self, base: &Self, metric: usize) -> Spread {
        Spread::of(self.rounds.iter().zip(&base.rounds).map(|(round, base)| round[metric] / base[metric]))
    }

    fn is_bounded_by_load(&self) -> bool {
        !self.load_busy.is_empty() && Spread::of(self.load_busy.iter().copied()).median >= SATURATED
    }
}

struct Compared {
    name: String,
    kind: Kind,
    found: Vec<Found>,
}

/// All comparisons of one run, and under what conditions they were made.
pub struct Report {
    machine: Machine,
    seconds: f64,
    compared: Vec<Compared>,
}

impl Report {
    pub fn new(machine: Machine, seconds: f64, cases: &[Case]) -> Self {
        let found = |case: &Case| {
            let empty = |who: &String| Found { who: who.clone(), rounds: Vec::new(), load_busy: Vec::new() };
            case.runs.iter().map(|run| empty(&run.who)).collect()
        };
        let compared =
            cases.iter().map(|case| Compared { name: case.name.clone(), kind: case.kind, found: found(case) });
        Self { machine, seconds, compared: compared.collect() }
    }

    /// What a round found of a run of a case.
    pub fn add(&mut self, case: usize, run: usize, measured: &Measured) {
        let Compared { kind, found, .. } = &mut self.compared[case];
        let found = &mut found[run];
        found.rounds.push(kind.values(measured));
        if let Measured::Load(measure, _) = measured {
            found.load_busy.push(measure.load_busy);
        }
    }

    pub fn to_table(&self) -> String {
        let Machine { machine, pinning, date, commit, command } = &self.machine;
        let rounds = self.compared.first().and_then(|c| c.found.first()).map_or(0, |f| f.rounds.len());
        let mut out = format!(
            "    {machine}; {pinning}\n    {date}, commit {commit}, `{command}`\n    median of {rounds} rounds of {:.1} s; ratios (with quartiles) are to the first server of the case in the same round; every answer checked\n",
            self.seconds,
        );
        for kind in Kind::ALL {
            if self.compared.iter().any(|compared| compared.kind == kind) {
                self.write_kind(&mut out, kind);
            }
        }
        if self.compared.iter().flat_map(|c| &c.found).any(Found::is_bounded_by_load) {
            out.push_str("\n\\* The load program used its whole core: the server could do more.\n");
        }
        out
    }

    fn write_kind(&self, out: &mut String, kind: Kind) {
        let _ = write!(out, "\n### {}\n\n| case | server |", kind.title());
        let mut rule = "| --- | --- |".to_owned();
        for metric in kind.metrics() {
            if metric.compared {
                let _ = write!(out, " × |");
                rule.push_str(" ---: |");
            }
            let _ = write!(out, " {} |", metric.name);
            rule.push_str(" ---: |");
        }
        let _ = writeln!(out, "\n{rule}");
        for compared in self.compared.iter().filter(|compared| compared.kind == kind) {
            for (at, found) in compared.found.iter().enumerate() {
                let name = if at == 0 { &*compared.name } else { "" };
                let mark = if found.is_bounded_by_load() { " \\*" } else { "" };
                let _ = write!(out, "| {name} | {}{mark} |", found.who);
                for (column, metric) in kind.metrics().iter().enumerate() {
                    if metric.compared && at == 0 {
                        out.push_str(" |");
                    } else if metric.compared {
                        let _ = write!(out, " {} |", found.ratio(&compared.found[0], column));
                    }
                    let _ = write!(out, " {:.*} |", metric.digits, found.median(column));
                }
                out.push('\n');
            }
        }
    }

    pub fn to_json(&self) -> Value {
        let Machine { machine, pinning, date, commit, command } = &self.machine;
        let case = |compared: &Compared| {
            let server = |found: &Found| {
                let names = compared.kind.metrics().iter().enumerate();
                let metrics = names.map(|(column, metric)| {
                    let ratio = metric.compared.then(|| found.ratio(&compared.found[0], column).to_json());
                    let rounds: Vec<_> = found.rounds.iter().map(|round| rounded(round[column])).collect();
                    (
                        metric.name.to_owned(),
                        json!({ "median": rounded(found.median(column)), "ratio": ratio, "rounds": rounds }),
                    )
                });
                let metrics: serde_json::Map<_, _> = metrics.collect();
                json!({ "server": found.who, "metrics": metrics, "bounded_by_load": found.is_bounded_by_load() })
            };
            let servers: Vec<_> = compared.found.iter().map(server).collect();
            json!({ "case": compared.name, "table": compared.kind.title(), "servers": servers })
        };
        json!({
            "machine": machine,
            "pinning": pinning,
            "date": date,
            "commit": commit,
            "command": command,
            "seconds": self.seconds,
            "cases": self.compared.iter().map(case).collect::<Vec<_>>(),
        })
    }
}

/// Three decimals are more than the noise leaves.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
