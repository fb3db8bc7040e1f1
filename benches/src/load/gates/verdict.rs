//! What the counts say: a table, what is over its ceiling, and what is far below.

use std::fmt::Write;
use std::path::Path;

use super::Counted;
use super::ceilings::{Ceiling, Ceilings, counted_with};

/// From this share of its ceiling down, instructions deserve a lower one.
const FAR_BELOW: f64 = 0.9;

/// A judgement of all that was counted.
pub struct Verdict {
    pub table: String,
    pub failures: Vec<String>,
    pub hints: Vec<String>,
}

impl Verdict {
    pub fn of(counted: &[Counted], ceilings: &Ceilings) -> Self {
        let mut verdict = Self { table: HEAD.to_owned(), failures: Vec::new(), hints: Vec::new() };
        for one in counted {
            verdict.add(one, ceilings.here(&one.gate));
        }
        verdict
    }

    fn add(&mut self, Counted { gate, ours, bare }: &Counted, ceiling: Option<Ceiling>) {
        let Some(Ceiling { instructions, allocations }) = ceiling else {
            self.failures.push(format!("{gate}: benches/ceilings.toml has none"));
            return;
        };
        let _ = writeln!(
            self.table,
            "| {gate} | {:.0} | {instructions} | {:.2} | {:.2} | {allocations} | {:.2} |",
            ours.instructions,
            ours.instructions / bare.instructions,
            ours.allocations,
            bare.allocations,
        );
        let share = ours.instructions / instructions as f64;
        if share > 1.0 {
            let over = (share - 1.0) * 100.0;
            self.failures.push(format!(
                "{gate}: {:.0} instructions a request, {over:.1} % over the ceiling of {instructions}",
                ours.instructions
            ));
        }
        let whole = ours.allocations.round() as u64;
        if whole > allocations {
            let over = whole - allocations;
            self.failures
                .push(format!("{gate}: {whole} allocations a request, {over} over the ceiling of {allocations}"));
        }
        if share < FAR_BELOW || whole < allocations {
            self.hints
                .push(format!("{gate} is cheaper than its ceiling allows: benches/gates.sh --record keeps it so"));
        }
    }

    /// What failed, and how to mend it.
    pub fn advice(&self, ceilings: &Ceilings, profiles: &Path) -> String {
        let mut text = format!("what a request costs is over its ceiling\n  {}\n", self.failures.join("\n  "));
        let _ = write!(
            text,
            "Where it goes: callgrind_annotate {}/GATE.500\n\
             Make the request cheaper. If what it gained is worth its price, run benches/gates.sh --record and say\n\
             in the commit what was gained.",
            profiles.display()
        );
        if let Some(recorded) = ceilings.counted_elsewhere() {
            let _ = write!(
                text,
                "\nThe ceilings were counted with {recorded},\nthis with {}: figures may differ for that alone.",
                counted_with()
            );
        }
        text
    }
}

const HEAD: &str = "\
| gate | instructions | ceiling | × bare | allocations | ceiling | bare |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
";

#[cfg(test)]
mod tests {
    use super::super::Cost;
    use super::*;

    fn judged(instructions: f64, allocations: f64, ceiling: Option<Ceiling>) -> Verdict {
        let mut verdict = Verdict { table: String::new(), failures: Vec::new(), hints: Vec::new() };
        let bare = Cost { instructions: 5_000.0, allocations: 10.0 };
        let counted = Counted { gate: "echo".to_owned(), ours: Cost { instructions, allocations }, bare };
        verdict.add(&counted, ceiling);
        verdict
    }

    const CEILING: Option<Ceiling> = Some(Ceiling { instructions: 10_000, allocations: 15 });

    #[test]
    fn what_is_within_its_ceiling_passes() {
        let verdict = judged(9_990.0, 15.4, CEILING);
        assert!(verdict.failures.is_empty() && verdict.hints.is_empty());
        assert_eq!(verdict.table, "| echo | 9990 | 10000 | 2.00 | 15.40 | 15 | 10.00 |\n");
    }

    #[test]
    fn what_is_over_its_ceiling_says_by_how_much() {
        let failures = judged(10_500.0, 16.0, CEILING).failures;
        assert_eq!(
            failures,
            [
                "echo: 10500 instructions a request, 5.0 % over the ceiling of 10000",
                "echo: 16 allocations a request, 1 over the ceiling of 15"
            ]
        );
    }

    #[test]
    fn a_gate_without_a_ceiling_fails() {
        assert_eq!(judged(1.0, 1.0, None).failures, ["echo: benches/ceilings.toml has none"]);
    }

    #[test]
    fn what_is_far_below_its_ceiling_is_hinted_at() {
        assert_eq!(judged(8_000.0, 15.0, CEILING).hints.len(), 1);
        assert_eq!(judged(9_900.0, 14.0, CEILING).hints.len(), 1);
    }
}
