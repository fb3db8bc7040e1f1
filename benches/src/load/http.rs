//! Load over HTTP/1.1: connections that stay open, one request in flight on each.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{JoinSet, LocalSet};

use crate::measure::{Clocks, Measure, Spans};
use crate::server::{Cores, Program, Server};
use crate::wire::{self, Ask, Checker, Era, FIRST_ID, Request};

pub fn measure(
    program: &Program,
    cores: Option<Cores>,
    era: Era,
    ask: Ask,
    connections: usize,
    spans: Spans,
) -> Result<Measure> {
    let mut server = Server::start(program, cores, spans.at_most())?;
    let url = server.url()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, load(&server, &url, era, ask, connections, spans))
}

#[derive(Default)]
struct Shared {
    measuring: Cell<bool>,
    ending: Cell<bool>,
    used_ids: Cell<u64>,
    took: RefCell<Vec<f32>>,
}

async fn load(server: &Server, url: &str, era: Era, ask: Ask, connections: usize, spans: Spans) -> Result<Measure> {
    let shared = Rc::new(Shared::default());
    let mut clients = JoinSet::new();
    for seed in 0..connections {
        clients.spawn_local(client(url.to_owned(), era, ask, seed, Rc::clone(&shared)));
    }
    rest(&mut clients, spans.warm).await?;
    let begin = Clocks::read(server)?;
    shared.measuring.set(true);
    rest(&mut clients, spans.measured).await?;
    let end = Clocks::read(server)?;
    shared.measuring.set(false);
    shared.ending.set(true);
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    Clocks::measure(begin, end, shared.took.take())
}

/// Waits; a client that ends meanwhile met a wrong answer.
async fn rest(clients: &mut JoinSet<Result<()>>, span: Duration) -> Result<()> {
    match tokio::time::timeout(span, clients.join_next()).await {
        Err(_) => Ok(()),
        Ok(Some(ended)) => ended?.and_then(|()| Err(anyhow!("a client ended early"))),
        Ok(None) => Err(anyhow!("no clients")),
    }
}

async fn client(url: String, era: Era, ask: Ask, seed: usize, shared: Rc<Shared>) -> Result<()> {
    let (host, path) = url.strip_prefix("http://").and_then(|u| u.split_once('/')).context("not a URL")?;
    let path = format!("/{path}");
    let mut connection = Connection::open(host).await?;
    let session = match era {
        Era::Modern => None,
        Era::Legacy => Some(open_session(&mut connection, host, &path).await?),
    };
    let text = wire::text(seed);
    let mut request = Request::post(host, &path, era, ask, &text, session.as_deref());
    let mut checker = Checker::new(era, ask, &text);
    while !shared.ending.get() {
        let id = FIRST_ID + shared.used_ids.replace(shared.used_ids.get() + 1);
        let sent = Instant::now();
        let head = connection.exchange(request.with_id(id)).await?;
        let took = sent.elapsed();
        connection.check(&head, &mut checker, id)?;
        if shared.measuring.get() {
            shared.took.borrow_mut().push(took.as_secs_f32() * 1e6);
        }
    }
    Ok(())
}

async fn open_session(connection: &mut Connection, host: &str, path: &str) -> Result<String> {
    let mut request = Request::post(host, path, Era::Legacy, Ask::Initialize, "", None);
    let head = connection.exchange(request.with_id(FIRST_ID)).await?;
    connection.check(&head, &mut Checker::new(Era::Legacy, Ask::Initialize, ""), FIRST_ID)?;
    let session = head.session.context("no Mcp-Session-Id")?;
    let status = connection.exchange(&wire::initialized(host, path, &session)).await?.status;
    ensure!(status == 202, "HTTP {status} to notifications/initialized");
    Ok(session)
}

struct Connection {
    socket: TcpStream,
    buffer: Vec<u8>,
}

/// The head of an answer, and where its message stands in the buffer.
struct Head {
    status: u16,
    json: bool,
    session: Option<String>,
    start: usize,
    end: usize,
}

impl Connection {
    async fn open(host: &str) -> Result<Self> {
        let socket = TcpStream::connect(host).await?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, buffer: Vec::with_capacity(64 * 1024) })
    }

    async fn exchange(&mut self, request: &[u8]) -> Result<Head> {
        self.buffer.clear();
        self.socket.write_all(request).await?;
        let head = loop {
            self.fill().await?;
            if let Some(head) = Head::read(&self.buffer)? {
                break head;
            }
        };
        while self.buffer.len() < head.end {
            self.fill().await?;
        }
        ensure!(self.buffer.len() == head.end, "bytes after the end of an answer");
        Ok(head)
    }

    async fn fill(&mut self) -> Result<()> {
        ensure!(self.socket.read_buf(&mut self.buffer).await? != 0, "the server closed the connection");
        Ok(())
    }

    fn check(&self, head: &Head, checker: &mut Checker, id: u64) -> Result<()> {
        let message = &self.buffer[head.start..];
        ensure!(head.status == 200, "HTTP {}: {}", head.status, String::from_utf8_lossy(message));
        ensure!(head.json, "an answer that is not application/json");
        let answered = checker.check(message)?;
        ensure!(answered == id, "an answer to {answered} instead of {id}");
        Ok(())
    }
}

impl Head {
    /// `None` while it is not whole. An answer that is known at once has a length: anything else is wrong here.
    fn read(buffer: &[u8]) -> Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(start) = response.parse(buffer)? else { return Ok(None) };
        let (mut json, mut session, mut length) = (false, None, None);
        for header in response.headers {
            if header.name.eq_ignore_ascii_case("content-type") {
                json = header.value.starts_with(b"application/json");
            } else if header.name.eq_ignore_ascii_case("content-length") {
                length = Some(std::str::from_utf8(header.value)?.trim().parse::<usize>()?);
            } else if header.name.eq_ignore_ascii_case("mcp-session-id") {
                session = Some(std::str::from_utf8(header.value)?.to_owned());
            }
        }
        let status = response.code.unwrap_or_default();
        let length = length.or((status == 202).then_some(0)).context("an answer without Content-Length")?;
        Ok(Some(Self { status, json, session, start, end: start + length }))
    }
}
