//! One measurement of one server.

use std::fs;

use anyhow::{Context, Result};

use crate::cores::Cores;
use crate::held::{self, Held};
use crate::http::{self, Load};
use crate::measure::{Measure, Spans};
use crate::server::{Door, Program};
use crate::start;
use crate::stdio;
use crate::wire::Question;

/// What is done with a server.
#[derive(Debug, Clone)]
pub enum Work {
    Http(Load),
    Stdio {
        question: Question,
        window: usize,
    },
    /// So many of these are held at once.
    Held(Held, usize),
    Start(Door),
    /// Its file is looked at.
    Size,
}

/// What was found.
pub enum Measured {
    /// And the bytes of text that each answer echoed.
    Load(Measure, usize),
    Figures(Vec<f64>),
}

pub fn perform(program: &Program, work: &Work, cores: Option<Cores>, spans: Spans) -> Result<Measured> {
    let spans = spans.warmed(program.warm);
    Ok(match work {
        Work::Http(load) => Measured::Load(http::measure(program, cores, load, spans)?, load.text_bytes),
        Work::Stdio { question, window } => {
            Measured::Load(stdio::measure(program, cores, question, *window, spans)?, question.text.len())
        }
        Work::Held(held, count) => Measured::Figures(vec![held::each(program, cores, *held, *count)?]),
        Work::Start(door) => Measured::Figures(start::first_answer(program, cores, *door)?.into()),
        Work::Size => {
            let bytes = fs::metadata(&program.path).with_context(|| format!("no {}", program.path.display()))?.len();
            Measured::Figures(vec![bytes as f64 / (1024.0 * 1024.0)])
        }
    })
}
