//! A server at the far end of two byte streams: one line a message, answers matched by id.
//!
//! Promises: a line is bounded; what answers no open request is passed over, counted, and named
//! when an answer fails to come; requests of the server are answered; an abandoned request is
//! cancelled at the server. Never spawns a process: the streams are handed in.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::Options;
use super::hear::{Flood, Hear};
use super::problem::{Problem, excerpt};
use super::wire::{self, Ask};
use crate::protocol::framing::{Line, Lines};
use crate::protocol::invoke::BoxFuture;
use crate::protocol::json::JsonLimits;
use crate::protocol::limits::STRAYS_AT_MOST;
use crate::protocol::{Fault, Malformed, Message, Method, RawJson, RequestId, Response};

/// Messages that wait for a server that does not read.
const UNWRITTEN: usize = 64;

/// Bytes read or written at once.
const CHUNK: usize = 64 * 1024;

/// How long the writer may take to hand over what is left when the door closes.
const FAREWELL: Duration = Duration::from_secs(2);

/// Ends a server whose input is closed; says how it ended, if that is known.
pub type End = Box<dyn FnOnce() -> BoxFuture<'static, Option<String>> + Send + Sync>;

/// The streams of one server, and how to end it.
pub struct Pipes {
    /// What the server writes.
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    /// What the server reads.
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// Called when the door closes or fails to open; a door that is dropped drops this uncalled.
    pub end: End,
}

impl std::fmt::Debug for Pipes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pipes")
    }
}

impl Pipes {
    /// Streams with nothing behind them that has to be ended.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self { reader: Box::new(reader), writer: Box::new(writer), end: Box::new(|| Box::pin(async { None })) }
    }
}

type Answer = oneshot::Sender<Result<RawJson, Problem>>;

#[derive(Debug, Default)]
struct State {
    /// The open requests: method and where the answer goes.
    waiting: HashMap<i64, (String, Answer)>,
    /// How much came that answers nothing, and the first of it.
    strays: u32,
    first_stray: Option<String>,
    /// Why nothing will come any more.
    closed: Option<String>,
    flood: Flood,
}

impl State {
    /// The one open request, if there is exactly one: then an answer without an id is meant for it.
    fn only(&self) -> Option<i64> {
        let mut ids = self.waiting.keys();
        ids.next().copied().filter(|_| ids.next().is_none())
    }

    fn answer(&mut self, id: i64, outcome: impl FnOnce(&str) -> Result<RawJson, Problem>) {
        if let Some((method, answer)) = self.waiting.remove(&id) {
            // The asker may have gone meanwhile; then nobody misses the answer.
            let _ = answer.send(outcome(&method));
        }
    }

    fn stray(&mut self, what: String) -> Result<(), String> {
        self.strays += 1;
        self.first_stray.get_or_insert(what);
        if self.strays > STRAYS_AT_MOST { Err("it writes too much that answers nothing".to_owned()) } else { Ok(()) }
    }

    fn strays(&self) -> Option<String> {
        let first = self.first_stray.as_ref()?;
        Some(match self.strays {
            1 => format!("it wrote {first}"),
            more => format!("it wrote {more} things that answer nothing, first {first}"),
        })
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    outgoing: mpsc::Sender<Bytes>,
    hear: Option<Hear>,
    limit: usize,
    json: JsonLimits,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Awaits an answer, unless nothing will come any more.
    fn open(&self, id: i64, method: &str, answer: Answer) -> bool {
        let mut state = self.state();
        if state.closed.is_none() {
            state.waiting.insert(id, (method.to_owned(), answer));
        }
        state.closed.is_none()
    }

    fn close(&self, why: String) {
        let mut state = self.state();
        state.closed.get_or_insert(why);
        state.waiting.clear();
    }

    fn closed(&self, method: &str) -> Problem {
        let state = self.state();
        let mut why = state.closed.clone().unwrap_or_else(|| "it was closed here".to_owned());
        if let Some(strays) = state.strays() {
            why.push_str("; before that ");
            why.push_str(&strays);
        }
        Problem::Closed { method: method.to_owned(), why }
    }

    /// Takes one line; an error is why the connection must end.
    async fn take(&self, line: Line) -> Result<(), String> {
        match line {
            Line::TooLong => {
                let mut state = self.state();
                let Some(id) = state.only() else {
                    return state.stray(format!("a line of more than {} bytes", self.limit));
                };
                state.answer(id, |method| Err(Problem::TooLong { method: method.to_owned(), limit: self.limit }));
                Ok(())
            }
            Line::Whole(text) => {
                let messages = wire::read(&text, &self.json).await;
                messages.into_iter().try_for_each(|message| self.take_message(message, &text))
            }
        }
    }

    fn take_message(&self, message: Result<Message, Malformed>, text: &Bytes) -> Result<(), String> {
        match message {
            Ok(Message::Response(response)) => self.take_response(response),
            Ok(Message::Request(request)) => {
                match self.outgoing.try_send(wire::answer_server(&request.id, &request.method)) {
                    Err(mpsc::error::TrySendError::Full(_)) => {
                        Err("it sends requests faster than it reads their answers".to_owned())
                    }
                    _ => Ok(()),
                }
            }
            Ok(Message::Notification(notification)) => {
                if self.state().flood.is_over() {
                    return Err(Flood::WHY.to_owned());
                }
                if let Some(hear) = &self.hear {
                    hear.tell(notification);
                }
                Ok(())
            }
            Err(malformed) => self.take_malformed(&malformed, text),
        }
    }

    fn take_response(&self, response: Response) -> Result<(), String> {
        let mut state = self.state();
        let id = match &response.id {
            Some(RequestId::Integer(id)) => Some(*id).filter(|id| state.waiting.contains_key(id)),
            Some(RequestId::String(_)) => None,
            None => state.only(),
        };
        match (id, response.id) {
            (Some(id), _) => {
                state.answer(id, |method| wire::outcome(method, response.result));
                Ok(())
            }
            (None, Some(id)) => state.stray(format!("an answer to id {id}, which is not open")),
            (None, None) => state.stray("an error that answers no request".to_owned()),
        }
    }

    /// A line that is no message: an answer if its id says so, or if it is a broken object and only one is awaited.
    fn take_malformed(&self, malformed: &Malformed, text: &Bytes) -> Result<(), String> {
        let mut state = self.state();
        let broken_object = matches!(malformed.fault, Fault::Parse(_)) && text.trim_ascii_start().starts_with(b"{");
        let id = match &malformed.id {
            Some(RequestId::Integer(id)) => Some(*id),
            None if broken_object => state.only(),
            _ => None,
        };
        match id.filter(|id| state.waiting.contains_key(id)) {
            Some(id) => {
                state.answer(id, |method| Err(wire::not_strict(method, malformed)));
                Ok(())
            }
            None => {
                let shown = excerpt(text.get(..text.len().min(200)).unwrap_or_default()).unwrap_or_default();
                state.stray(format!("a line that is no message: {shown}"))
            }
        }
    }
}

/// A task that ends with its handle.
#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// An open request; dropped before its answer, it cancels the request.
struct Waiting<'s> {
    shared: &'s Shared,
    id: i64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let abandoned = self.shared.state().waiting.remove(&self.id);
        // 2025-11-25 basic/utilities/cancellation: the handshake must not be cancelled.
        if abandoned.is_some_and(|(method, _)| method != Method::Initialize.name()) {
            let params = vec![("requestId", RawJson::encode(&self.id))];
            let cancelled = Ask { method: "notifications/cancelled", params, headers: Vec::new() };
            let _ = self.shared.outgoing.try_send(cancelled.without_id());
        }
    }
}

/// One server behind two streams.
pub(super) struct StdioPeer {
    shared: Arc<Shared>,
    next_id: AtomicI64,
    reading: Task,
    writing: Task,
    end: End,
}

impl std::fmt::Debug for StdioPeer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StdioPeer").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl StdioPeer {
    /// Starts reading and writing; must be called within a runtime.
    pub(super) fn new(pipes: Pipes, options: &Options) -> Self {
        let (outgoing, lines) = mpsc::channel(UNWRITTEN);
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            outgoing,
            hear: options.hear.clone(),
            limit: options.answer_bytes,
            json: JsonLimits::default(),
        });
        Self {
            reading: Task(tokio::spawn(read(pipes.reader, shared.clone()))),
            writing: Task(tokio::spawn(write(pipes.writer, lines, Arc::downgrade(&shared)))),
            shared,
            next_id: AtomicI64::new(1),
            end: pipes.end,
        }
    }

    pub(super) async fn request(&self, ask: &Ask<'_>, within: Duration) -> Result<RawJson, Problem> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        if !self.shared.open(id, ask.method, answer) {
            return Err(self.shared.closed(ask.method));
        }
        let _waiting = Waiting { shared: &self.shared, id };
        let outcome = async {
            self.shared.outgoing.send(ask.with_id(id)).await.ok()?;
            answered.await.ok()
        };
        match tokio::time::timeout(within, outcome).await {
            Ok(Some(outcome)) => outcome,
            Ok(None) => Err(self.shared.closed(ask.method)),
            Err(_) => {
                let strays = self.shared.state().strays();
                Err(Problem::Time { method: ask.method.to_owned(), within, strays })
            }
        }
    }

    pub(super) async fn notify(&self, ask: &Ask<'_>) -> Result<(), Problem> {
        self.shared.outgoing.send(ask.without_id()).await.map_err(|_| self.shared.closed(ask.method))
    }

    /// Whether one of the streams has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.shared.state().closed.is_some()
    }

    /// What came that answers nothing.
    pub(super) fn strays(&self) -> Option<String> {
        self.shared.state().strays()
    }

    /// Closes the server's input, then ends it; how it ended, if that is known.
    pub(super) async fn close(self) -> Option<String> {
        let Self { shared, mut reading, mut writing, end, .. } = self;
        reading.0.abort();
        let _ = (&mut reading.0).await;
        drop(shared);
        // The last sender is gone: the writer writes what is left and closes the stream.
        let _ = tokio::time::timeout(FAREWELL, &mut writing.0).await;
        drop(writing);
        end().await
    }
}

async fn read(mut reader: Box<dyn AsyncRead + Send + Unpin>, shared: Arc<Shared>) {
    let mut lines = Lines::new(shared.limit);
    let mut buffer = vec![0; CHUNK];
    let why = 'open: loop {
        let count = match reader.read(&mut buffer).await {
            Err(error) => break format!("its output cannot be read: {error}"),
            Ok(count) => count,
        };
        let is_over = count == 0;
        lines.push(buffer.get(..count).unwrap_or_default());
        while let Some(line) = lines.poll_line().or_else(|| is_over.then(|| lines.finish_input()).flatten()) {
            if let Err(why) = shared.take(line).await {
                break 'open why;
            }
        }
        if is_over {
            break "it closed its output".to_owned();
        }
    };
    shared.close(why);
}

async fn write(mut writer: Box<dyn AsyncWrite + Send + Unpin>, mut lines: mpsc::Receiver<Bytes>, shared: Weak<Shared>) {
    let mut buffer = Vec::new();
    while let Some(line) = lines.recv().await {
        buffer.clear();
        let mut next = Some(line);
        while let Some(line) = next {
            buffer.extend_from_slice(&line);
            buffer.push(b'\n');
            next = if buffer.len() < CHUNK { lines.try_recv().ok() } else { None };
        }
        let written = match writer.write_all(&buffer).await {
            Ok(()) => writer.flush().await,
            failed => failed,
        };
        if let Err(error) = written {
            if let Some(shared) = shared.upgrade() {
                shared.close(format!("it does not read its input: {error}"));
            }
            return;
        }
    }
    let _ = writer.shutdown().await;
}

#[cfg(test)]
mod tests;
