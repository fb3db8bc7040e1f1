//! The file of ceilings.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml_edit::{DocumentMut, Item, table, value};

use super::count::Cost;
use crate::said::said;

const FILE: &str = "ceilings.toml";
const COUNTED_WITH: &str = "counted-with";

/// What recorded ceilings leave room for: counts differ that much from run to run, and a little from machine to machine.
const MARGIN: f64 = 1.03;

/// More room for instructions where compiler, C library, valgrind or processor are others than those of the record.
const MARGIN_ELSEWHERE: f64 = 1.1;

/// What a request may cost at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceiling {
    pub instructions: u64,
    pub allocations: u64,
}

/// The ceilings, and what they were counted with.
pub struct Ceilings {
    path: PathBuf,
    document: DocumentMut,
}

impl Ceilings {
    pub fn read() -> Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let document = text.parse().with_context(|| format!("{} is not TOML", path.display()))?;
        Ok(Self { path, document })
    }

    /// `None`: there is none, or not one of two whole numbers.
    fn of(&self, gate: &str) -> Option<Ceiling> {
        let figure = |name| u64::try_from(self.document.get(gate)?.get(name)?.as_integer()?).ok();
        Some(Ceiling { instructions: figure("instructions")?, allocations: figure("allocations")? })
    }

    /// The ceiling as it is judged here.
    pub fn here(&self, gate: &str) -> Option<Ceiling> {
        let recorded = self.of(gate)?;
        let margin = if self.counted_elsewhere().is_some() { MARGIN_ELSEWHERE } else { 1.0 };
        Some(Ceiling { instructions: (recorded.instructions as f64 * margin) as u64, ..recorded })
    }

    /// With what they were counted, if this is something else.
    pub fn counted_elsewhere(&self) -> Option<String> {
        let recorded = self.document.get(COUNTED_WITH).and_then(Item::as_str).unwrap_or("something unknown");
        (recorded != counted_with()).then(|| recorded.to_owned())
    }

    /// Instructions have a margin. Allocations are whole and repeat, so one more is one too many.
    pub fn record(&mut self, gate: &str, cost: Cost) {
        let table = self.document.entry(gate).or_insert_with(table);
        table["instructions"] = value((cost.instructions * MARGIN / 10.0).ceil() as i64 * 10);
        table["allocations"] = value(cost.allocations.round() as i64);
    }

    pub fn write(&mut self) -> Result<()> {
        self.document[COUNTED_WITH] = value(counted_with());
        fs::write(&self.path, self.document.to_string())
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// All that a count depends on beside the code.
pub fn counted_with() -> String {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    // The C library and memchr choose their loops by it, under valgrind too.
    let avx2 = processors.split_whitespace().any(|word| word == "avx2");
    let processor = format!("{}{}", std::env::consts::ARCH, if avx2 { " with AVX2" } else { "" });
    let programs: [(&str, &[&str]); 3] =
        [("rustc", &["--version"]), ("getconf", &["GNU_LIBC_VERSION"]), ("valgrind", &["--version"])];
    let versions = programs.map(|(name, words)| said(name, words).unwrap_or_else(|| format!("no {name}")));
    format!("{}, {processor}", versions.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_recorded_is_read_back_with_room_for_noise() {
        let mut ceilings = Ceilings { path: PathBuf::new(), document: "# why\n[echo]\n".parse().unwrap() };
        assert_eq!(ceilings.of("echo"), None);
        ceilings.record("echo", Cost { instructions: 10_000.4, allocations: 15.02 });
        assert_eq!(ceilings.of("echo"), Some(Ceiling { instructions: 10_310, allocations: 15 }));
        assert!(ceilings.document.to_string().starts_with("# why\n[echo]\n"));
        assert_eq!(ceilings.here("echo"), Some(Ceiling { instructions: 11_341, allocations: 15 }), "counted elsewhere");
    }
}
