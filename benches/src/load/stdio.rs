//! Load over stdio: a window of requests in flight, answered in any order.

use std::io::{Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::measure::{Clocks, Measure, Spans};
use crate::server::{Cores, Program, Server};
use crate::wire::{self, Ask, Checker, Era, FIRST_ID, Request};

/// An answer may be overtaken by so many later ones.
const SLOTS: usize = 1024;

pub fn measure(program: &Program, cores: Option<Cores>, ask: Ask, window: usize, spans: Spans) -> Result<Measure> {
    let mut server = Server::start(program, cores, spans.at_most())?;
    let text = wire::text(window);
    let mut input = server.input.take().context("no stdin")?;
    let mut sender = Sender::new(Request::line(Era::Modern, ask, &text));
    let mut checker = Checker::new(Era::Modern, ask, &text);
    let mut lines = Lines::new();
    let (mut took, mut begin): (Vec<f32>, Option<Clocks>) = (Vec::new(), None);
    let started = Instant::now();
    sender.send(&mut input, window)?;
    let end = loop {
        let mut answered = 0;
        lines.read(&mut server.output, |line, now| {
            let sent = sender.take(checker.check(line)?)?;
            if begin.is_some() {
                took.push((now - sent).as_secs_f32() * 1e6);
            }
            answered += 1;
            Ok(())
        })?;
        match &begin {
            None if started.elapsed() >= spans.warm => begin = Some(Clocks::read(&server)?),
            Some(begin) if begin.elapsed() >= spans.measured => break Clocks::read(&server)?,
            _ => {}
        }
        sender.send(&mut input, answered)?;
    };
    Clocks::measure(begin.context("no beginning")?, end, took)
}

/// Sends under ever new ids and knows which are unanswered.
struct Sender {
    request: Request,
    next: u64,
    waiting: Vec<Option<(u64, Instant)>>,
    block: Vec<u8>,
}

impl Sender {
    fn new(request: Request) -> Self {
        Self { request, next: FIRST_ID, waiting: vec![None; SLOTS], block: Vec::new() }
    }

    /// In one write. What is in flight is less than a pipe holds, so it never blocks.
    fn send(&mut self, input: &mut ChildStdin, count: usize) -> Result<()> {
        let now = Instant::now();
        self.block.clear();
        for _ in 0..count {
            let slot = &mut self.waiting[self.next as usize % SLOTS];
            ensure!(slot.is_none(), "no answer to {}", self.next - SLOTS as u64);
            *slot = Some((self.next, now));
            self.block.extend_from_slice(self.request.with_id(self.next));
            self.next += 1;
        }
        Ok(input.write_all(&self.block)?)
    }

    /// When the request of that id was sent; it can be answered once.
    fn take(&mut self, id: u64) -> Result<Instant> {
        let slot = self.waiting[id as usize % SLOTS].take_if(|(waiting, _)| *waiting == id);
        Ok(slot.with_context(|| format!("an answer to {id}, which waits for none"))?.1)
    }
}

struct Lines {
    chunk: Vec<u8>,
    held: Vec<u8>,
}

impl Lines {
    fn new() -> Self {
        Self { chunk: vec![0; 64 * 1024], held: Vec::new() }
    }

    /// Reads until at least one line is whole; `each` gets every whole line and the time of its arrival.
    fn read(&mut self, output: &mut ChildStdout, mut each: impl FnMut(&[u8], Instant) -> Result<()>) -> Result<()> {
        loop {
            let count = output.read(&mut self.chunk)?;
            ensure!(count != 0, "the server closed its output");
            let now = Instant::now();
            let old = self.held.len();
            self.held.extend_from_slice(&self.chunk[..count]);
            let Some(last) = memchr::memrchr(b'\n', &self.held[old..]) else { continue };
            let end = old + last + 1;
            let mut start = 0;
            for newline in memchr::memchr_iter(b'\n', &self.held[..end]) {
                each(&self.held[start..newline], now)?;
                start = newline + 1;
            }
            self.held.drain(..end);
            return Ok(());
        }
    }
}
