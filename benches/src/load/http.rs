//! Load over HTTP/1.1: clients with one request in flight each.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use tokio::task::{JoinSet, LocalSet};

use crate::check::Form;
use crate::client::Client;
use crate::cores::Cores;
use crate::measure::{ANSWERS_AT_LEAST, Clocks, Measure, Spans};
use crate::neighbours::{self, Neighbours};
use crate::server::{Program, Server};
use crate::wire::{self, Address, FIRST_ID, Question};

/// What is asked by how many clients.
#[derive(Debug, Clone)]
pub struct Load {
    /// Of each client; its text is the client's own.
    pub question: Question,
    pub text_bytes: usize,
    pub connections: usize,
    /// In what form answers have to come.
    pub form: Option<Form>,
    /// What else goes on meanwhile.
    pub neighbours: Option<Neighbours>,
}

/// Starts a server, loads it and measures it.
pub fn measure(program: &Program, cores: Option<Cores>, load: &Load, spans: Spans) -> Result<Measure> {
    let mut server = Server::start(program, cores, spans.at_most())?;
    let at = Address::read(&server.url()?).context("not a URL")?;
    block_on(run(&server, &at, load, spans))
}

/// Runs a future that may spawn local tasks.
pub fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, future)
}

#[derive(Default)]
struct Shared {
    measuring: Cell<bool>,
    ending: Cell<bool>,
    used_ids: Cell<u64>,
    answers: Cell<u64>,
    took: RefCell<Vec<f32>>,
}

async fn run(server: &Server, at: &Address, load: &Load, spans: Spans) -> Result<Measure> {
    let mut clients = JoinSet::new();
    if let Some(neighbours) = load.neighbours {
        neighbours::settle(at, neighbours, load.question.tools, &mut clients).await?;
    }
    let shared = Rc::new(Shared::default());
    for seed in 0..load.connections {
        let question = Question { text: wire::text(seed, load.text_bytes), ..load.question.clone() };
        let (at, shared, form) = (at.clone(), Rc::clone(&shared), load.form);
        clients.spawn_local(async move { ask_on(Client::open(&at, question, form).await?, &shared).await });
    }
    // A server that is still starting is not being warmed.
    rest(&mut clients, Duration::from_millis(10), &shared, 1).await?;
    rest(&mut clients, spans.warm, &shared, 1).await?;
    let begin = Clocks::read(server)?;
    shared.measuring.set(true);
    rest(&mut clients, spans.measured, &shared, ANSWERS_AT_LEAST).await?;
    let end = Clocks::read(server)?;
    shared.measuring.set(false);
    shared.ending.set(true);
    let ended = async {
        for _ in 0..load.connections {
            clients.join_next().await.context("a client is missing")???;
        }
        anyhow::Ok(())
    };
    // Neighbours that never end are dropped with the set.
    tokio::time::timeout(Duration::from_secs(30), ended).await??;
    Clocks::measure(server, begin, end, shared.took.take())
}

/// Waits for a span, and longer if there were not so many answers; a client that ends meanwhile met a wrong answer.
async fn rest(clients: &mut JoinSet<Result<()>>, span: Duration, shared: &Shared, at_least: u64) -> Result<()> {
    let enough = shared.answers.get() + at_least;
    loop {
        match tokio::time::timeout(span, clients.join_next()).await {
            Err(_) if shared.answers.get() < enough => {}
            Err(_) => return Ok(()),
            Ok(Some(ended)) => return ended?.and_then(|()| Err(anyhow!("a client ended early"))),
            Ok(None) => return Err(anyhow!("no clients")),
        }
    }
}

async fn ask_on(mut client: Client, shared: &Shared) -> Result<()> {
    while !shared.ending.get() {
        let id = FIRST_ID + shared.used_ids.replace(shared.used_ids.get() + 1);
        let asked = Instant::now();
        client.ask(id).await?;
        shared.answers.set(shared.answers.get() + 1);
        if shared.measuring.get() {
            shared.took.borrow_mut().push(asked.elapsed().as_secs_f32() * 1e6);
        }
    }
    Ok(())
}
