//! A span of time in which answers are counted.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::server::{Server, own_cpu};

/// A span with fewer answers says nothing, and is made longer.
pub const ANSWERS_AT_LEAST: u64 = 5;

/// How long a server is loaded before the measurement, and for how long it is measured.
#[derive(Debug, Clone, Copy)]
pub struct Spans {
    pub warm: Duration,
    pub measured: Duration,
}

impl Spans {
    /// The same for a server that needs longer.
    pub fn warmed(self, warm: Duration) -> Self {
        Self { warm: self.warm.max(warm), ..self }
    }

    /// When a server that is still loaded must be hanging.
    pub fn at_most(&self) -> Duration {
        self.warm + self.measured + Duration::from_secs(60)
    }
}

/// What a span found.
#[derive(Debug, Clone)]
pub struct Measure {
    pub per_second: f64,
    /// Server CPU time per answer, microseconds.
    pub cpu: f64,
    /// Microseconds from request to answer.
    pub p50: f64,
    pub p99: f64,
    /// Share of its core that the load program used: near 1, it was the bottleneck and `per_second` is a lower bound.
    pub load_busy: f64,
    /// KiB of memory that the server ever held.
    pub peak: f64,
}

/// The clocks at one moment.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    wall: Instant,
    server: Duration,
    own: Duration,
}

impl Clocks {
    pub fn read(server: &Server) -> Result<Self> {
        Ok(Self { wall: Instant::now(), server: server.cpu()?, own: own_cpu()? })
    }

    pub fn elapsed(&self) -> Duration {
        self.wall.elapsed()
    }

    /// What happened between two moments, given the microseconds each answer took.
    pub fn measure(server: &Server, begin: Self, end: Self, mut took: Vec<f32>) -> Result<Measure> {
        ensure!(!took.is_empty(), "no answer arrived in the measured span");
        took.sort_unstable_by(f32::total_cmp);
        let quantile = |q: f64| f64::from(took[((took.len() - 1) as f64 * q) as usize]);
        let seconds = (end.wall - begin.wall).as_secs_f64();
        let answers = took.len() as f64;
        Ok(Measure {
            per_second: answers / seconds,
            cpu: (end.server - begin.server).as_secs_f64() * 1e6 / answers,
            p50: quantile(0.5),
            p99: quantile(0.99),
            load_busy: (end.own - begin.own).as_secs_f64() / seconds,
            peak: server.peak()?,
        })
    }
}
