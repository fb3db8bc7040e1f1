//! The tables of a report: what is measured in each, and which figures are compared.

use super::perform::Measured;
use crate::measure::Measure;

/// A column of figures.
pub struct Metric {
    pub name: &'static str,
    pub digits: usize,
    /// Whether a ratio to the first server of the case stands beside it.
    pub compared: bool,
}

const fn compared(name: &'static str, digits: usize) -> Metric {
    Metric { name, digits, compared: true }
}

const fn plain(name: &'static str, digits: usize) -> Metric {
    Metric { name, digits, compared: false }
}

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Load,
    Large,
    Neighbours,
    Memory,
    Start,
    Size,
}

impl Kind {
    pub const ALL: [Self; 6] = [Self::Load, Self::Large, Self::Neighbours, Self::Memory, Self::Start, Self::Size];

    pub fn title(self) -> &'static str {
        match self {
            Self::Load => "Requests",
            Self::Large => "Large arguments",
            Self::Neighbours => "Neighbours",
            Self::Memory => "Memory",
            Self::Start => "Cold start",
            Self::Size => "Size",
        }
    }

    pub fn metrics(self) -> &'static [Metric] {
        const LOAD: &[Metric] =
            &[compared("CPU µs", 1), compared("answers/s", 0), plain("p50 µs", 0), plain("p99 µs", 0)];
        const LARGE: &[Metric] = &[compared("CPU ms", 2), compared("MiB/s", 0), compared("peak RSS MiB", 1)];
        const NEIGHBOURS: &[Metric] = &[compared("p50 µs", 0), compared("p99 µs", 0), compared("answers/s", 0)];
        const MEMORY: &[Metric] = &[compared("KiB each", 2)];
        const START: &[Metric] = &[compared("ms to the first answer", 2), compared("RSS MiB then", 1)];
        const SIZE: &[Metric] = &[compared("MiB", 2)];
        match self {
            Self::Load => LOAD,
            Self::Large => LARGE,
            Self::Neighbours => NEIGHBOURS,
            Self::Memory => MEMORY,
            Self::Start => START,
            Self::Size => SIZE,
        }
    }

    /// The figures of a measurement, a metric each.
    pub fn values(self, measured: &Measured) -> Vec<f64> {
        const MIB: f64 = 1024.0 * 1024.0;
        match measured {
            Measured::Figures(figures) => figures.clone(),
            Measured::Load(Measure { cpu, per_second, p50, p99, peak, .. }, text_bytes) => match self {
                Self::Large => vec![cpu / 1e3, per_second * *text_bytes as f64 / MIB, peak / 1024.0],
                Self::Neighbours => vec![*p50, *p99, *per_second],
                _ => vec![*cpu, *per_second, *p50, *p99],
            },
        }
    }
}
