//! A socket that gives up a peer who does not send, does not read, or does not go.
//!
//! Promises: a head arrives within its time once it has begun, the next request within the idle
//! time, and a write is not blocked for ever; a head that could be read in two ways is known
//! before its request is served; a client that was refused while it still sends can read why.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::BufMut as _;
use rustix::event::{PollFd, PollFlags, Timespec};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use super::head::{Framing, Heads};
use crate::protocol::Limits;

/// How long, and how many bytes, of a refused request are read and dropped so that its client reads the refusal:
/// a socket closed with unread bytes is reset.
const LINGER_TIME: Duration = Duration::from_secs(2);
/// See [`LINGER_TIME`].
const LINGER_BYTES: usize = 64 * 1024 * 1024;

/// Most bytes read at once.
const READ_AT_ONCE: usize = 64 * 1024;
/// Interval at which a request that waits asks whether its client is still there.
const ASK_EVERY: Duration = Duration::from_millis(250);

/// What the system tells of a peer that has closed its side.
#[cfg(target_os = "linux")]
const CLOSED: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const CLOSED: PollFlags = PollFlags::HUP;

/// The other end of a connection.
#[derive(Debug, Clone)]
pub(super) struct Peer(Arc<TcpStream>);

impl Peer {
    /// Whether it has closed its side: seen even while bytes it sent before are unread, which is
    /// when the HTTP library does not look.
    pub(super) fn is_gone(&self) -> bool {
        let mut asked = [PollFd::new(&*self.0, CLOSED)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut asked, Some(&at_once)).is_ok_and(|found| found > 0)
    }

    /// Ends when it has closed its side.
    pub(super) async fn gone(&self) {
        while !self.is_gone() {
            tokio::time::sleep(ASK_EVERY).await;
        }
    }
}

/// What a socket and the service of its requests tell each other.
#[derive(Debug)]
pub(super) struct Turn {
    stream: Arc<TcpStream>,
    heads: Mutex<Heads>,
    /// A request is being served; otherwise the next head is awaited.
    serving: AtomicBool,
    /// The last request was refused with its body unread.
    unread: AtomicBool,
}

impl Turn {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream: Arc::new(stream),
            heads: Mutex::default(),
            serving: AtomicBool::default(),
            unread: AtomicBool::default(),
        }
    }

    /// A request's head was read: it is served until what this gives is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Serving {
        self.unread.store(false, Ordering::Release);
        self.serving.store(true, Ordering::Release);
        Serving { turn: Arc::clone(self), framing: self.heads().take() }
    }

    fn heads(&self) -> MutexGuard<'_, Heads> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is being served.
pub(super) struct Serving {
    turn: Arc<Turn>,
    framing: Framing,
}

impl Serving {
    /// Whether the request's head could be read in two ways.
    pub(super) fn is_ambiguous(&self) -> bool {
        matches!(self.framing, Framing::Ambiguous(_))
    }

    /// Whether nothing after the request can be served.
    pub(super) fn is_last(&self) -> bool {
        !matches!(self.framing, Framing::Length(_))
    }

    pub(super) fn peer(&self) -> Peer {
        Peer(Arc::clone(&self.turn.stream))
    }

    /// The request was refused and its body will not be read.
    pub(super) fn leave_unread(&self) {
        self.turn.unread.store(true, Ordering::Release);
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.turn.serving.store(false, Ordering::Release);
    }
}

/// What the timer of a socket is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Nothing,
    /// The first byte of another request.
    Request,
    /// The rest of a head.
    Head,
}

/// See the module.
pub(super) struct Socket {
    stream: Arc<TcpStream>,
    turn: Arc<Turn>,
    awaited: Awaited,
    /// When what is awaited must be there.
    until: Instant,
    /// Never later than `until` while anything is awaited, and as often earlier: setting it costs more than looking.
    timer: Pin<Box<Sleep>>,
    header_time: Duration,
    idle: Duration,
    patience: Duration,
    blocked: Option<Pin<Box<Sleep>>>,
    lingering: Option<(Pin<Box<Sleep>>, usize)>,
}

impl Socket {
    /// The first head must arrive within the header time from now.
    pub(super) fn new(turn: Arc<Turn>, limits: &Limits) -> Self {
        let until = Instant::now() + limits.header_time;
        Self {
            stream: Arc::clone(&turn.stream),
            turn,
            awaited: Awaited::Head,
            until,
            timer: Box::pin(tokio::time::sleep_until(until)),
            header_time: limits.header_time,
            idle: limits.socket_idle,
            patience: limits.stalled_write,
            blocked: None,
            lingering: None,
        }
    }

    fn receive(&self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read_buf(&mut (&mut *buffer).limit(READ_AT_ONCE)) {
                Ok(_) => return Poll::Ready(Ok(())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn send(&self, cx: &mut Context<'_>, attempt: impl Fn(&TcpStream) -> io::Result<usize>) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(cx))?;
            match attempt(&self.stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    /// Watches heads arrive; `bytes` came now, if any did.
    fn watch(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> io::Result<()> {
        let (begun, whole) = {
            let mut heads = self.turn.heads();
            heads.push(bytes);
            (heads.has_begun(), heads.has_whole())
        };
        let awaited = match begun {
            _ if whole || self.turn.serving.load(Ordering::Acquire) => Awaited::Nothing,
            true => Awaited::Head,
            // The first request's head is awaited from the start.
            false if self.awaited == Awaited::Head => Awaited::Head,
            false => Awaited::Request,
        };
        let is_new = awaited != self.awaited;
        self.awaited = awaited;
        if awaited == Awaited::Nothing {
            return Ok(());
        }
        if is_new {
            let time = if awaited == Awaited::Request { self.idle } else { self.header_time };
            self.until = Instant::now() + time;
            if self.timer.deadline() > self.until {
                self.timer.as_mut().reset(self.until);
            }
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.timer.deadline() >= self.until {
                return Err(io::ErrorKind::TimedOut.into());
            }
            self.timer.as_mut().reset(self.until);
        }
        Ok(())
    }

    fn judge<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.blocked = None;
            return outcome;
        }
        let patience = self.patience;
        let blocked = self.blocked.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        match blocked.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Reads and drops what a refused client still sends.
    fn linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let begin = || (Box::pin(tokio::time::sleep(LINGER_TIME)), 0);
        let (mut timer, mut dropped) = self.lingering.take().unwrap_or_else(begin);
        let mut block = [0; 16 * 1024];
        while dropped < LINGER_BYTES && timer.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut block);
            match self.receive(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => dropped += buffer.filled().len(),
                Poll::Ready(_) => break,
                Poll::Pending => {
                    self.lingering = Some((timer, dropped));
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(())
    }
}

impl AsyncRead for Socket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = self.receive(cx, buffer);
        if let Poll::Ready(Err(_)) = &outcome {
            return outcome;
        }
        self.watch(cx, buffer.filled().get(before..).unwrap_or_default())?;
        outcome
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = self.send(cx, |stream| stream.try_write(bytes));
        self.judge(cx, outcome)
    }
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = self.send(cx, |stream| stream.try_write_vectored(slices));
        self.judge(cx, outcome)
    }
    fn is_write_vectored(&self) -> bool {
        true
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            rustix::net::shutdown(&*self.stream, rustix::net::Shutdown::Write)?;
        }
        let more = {
            let heads = self.turn.heads();
            heads.has_begun() || heads.has_whole()
        };
        if more || self.turn.unread.load(Ordering::Acquire) {
            ready!(self.linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}
