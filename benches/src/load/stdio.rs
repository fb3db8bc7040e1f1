//! Load over stdio: a window of requests in flight, answered in any order.

use std::io::{Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::check::{Checker, Form};
use crate::cores::Cores;
use crate::measure::{ANSWERS_AT_LEAST, Clocks, Measure, Spans};
use crate::server::{Program, Server};
use crate::wire::{Ask, Era, FIRST_ID, LEGACY, Question, Request};

/// An answer may be overtaken by so many later ones.
const SLOTS: usize = 1024;

/// Starts a server, loads it and measures it.
pub fn measure(
    program: &Program,
    cores: Option<Cores>,
    question: &Question,
    window: usize,
    spans: Spans,
) -> Result<Measure> {
    let mut server = Server::start(program, cores, spans.at_most())?;
    let mut pipe = Pipe::open(&mut server, question)?;
    let (mut took, mut begin): (Vec<f32>, Option<Clocks>) = (Vec::new(), None);
    // A server that is still starting is not being warmed.
    let mut warming: Option<Instant> = None;
    pipe.send(window)?;
    let end = loop {
        let mut answered = 0;
        pipe.receive(&mut server, |micros| {
            if begin.is_some() {
                took.push(micros);
            }
            answered += 1;
        })?;
        let enough = took.len() >= ANSWERS_AT_LEAST as usize;
        match &begin {
            None if warming.get_or_insert_with(Instant::now).elapsed() >= spans.warm => {
                begin = Some(Clocks::read(&server)?)
            }
            Some(begin) if enough && begin.elapsed() >= spans.measured => break Clocks::read(&server)?,
            _ => {}
        }
        pipe.send(answered)?;
    };
    Clocks::measure(&server, begin.context("no beginning")?, end, took)
}

/// The standard streams of a server, and what is asked on them.
pub struct Pipe {
    input: ChildStdin,
    sender: Sender,
    checker: Checker,
    lines: Lines,
}

impl Pipe {
    /// Takes the server's input and, in the legacy era, opens the one session.
    pub fn open(server: &mut Server, question: &Question) -> Result<Self> {
        let input = server.input.take().context("no stdin")?;
        let sender = Sender::new(question.line());
        let mut pipe = Self { input, sender, checker: Checker::new(question.clone()), lines: Lines::new() };
        if question.era == Era::Legacy {
            pipe.initialize(server)?;
        }
        Ok(pipe)
    }

    fn initialize(&mut self, server: &mut Server) -> Result<()> {
        let question = Question { era: Era::Legacy, ask: Ask::Initialize, text: String::new(), tools: 0 };
        self.input.write_all(question.line().with_id(FIRST_ID))?;
        let mut checker = Checker::new(question);
        self.lines.read(&mut server.output, |line, _| checker.check(Form::Json, line).map(drop))?;
        writeln!(self.input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#)
            .with_context(|| format!("after initialize of {LEGACY}"))
    }

    /// Asks so often, in one write.
    pub fn send(&mut self, count: usize) -> Result<()> {
        self.sender.send(&mut self.input, count)
    }

    /// Reads what there is, at least one answer, and checks it; `each` gets the microseconds an answer took.
    pub fn receive(&mut self, server: &mut Server, mut each: impl FnMut(f32)) -> Result<()> {
        let Self { sender, checker, lines, .. } = self;
        lines.read(&mut server.output, |line, now| {
            let sent = sender.take(checker.check(Form::Json, line)?)?;
            each((now - sent).as_secs_f32() * 1e6);
            Ok(())
        })
    }
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

    /// What is in flight is less than a pipe holds, or a single message, so it never blocks for good.
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
