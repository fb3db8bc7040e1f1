//! The standard streams: one line a message.
//!
//! Promises: nothing but protocol messages reaches the peer's stream; lines are bounded; one
//! writer at a time; a peer that does not read stops our reading, nothing is dropped; at the end
//! of input what is in flight is answered for a bounded time (2026-07-28 transports/stdio).

use std::future::Future;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::Notify;

use super::driver::{Answer, Driver, Sink};
use super::{Engine, ServeError};
use crate::protocol::framing::{Line, Lines};
use crate::protocol::{Arrival, Decoded, Fault, Malformed, Principal};

/// Bytes asked for in one read.
const READ_BYTES: usize = 64 * 1024;

/// Bytes that may wait for a peer that does not read: beyond them we stop reading, and progress is not told.
const WAITING_BYTES: usize = 1024 * 1024;

/// Messages of what changed that are kept for a peer that does not read: every list, and as many resources as may be subscribed to.
const KEPT_AT_MOST: usize = 512;

/// The two ends of a byte stream with one peer.
pub struct Streams {
    input: std::fs::File,
    output: std::fs::File,
}

impl Streams {
    /// Takes the process's standard input and output for the protocol alone.
    ///
    /// Afterwards descriptor 0 is empty and descriptor 1 is standard error, so that no library and
    /// no child process can read from or write into the protocol.
    pub fn take_standard() -> Result<Self, ServeError> {
        let take = || -> std::io::Result<Self> {
            let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
            let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
            let nothing = std::fs::File::open("/dev/null")?;
            rustix::stdio::dup2_stdin(&nothing)?;
            rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
            Ok(Self { input: input.into(), output: output.into() })
        };
        take().map_err(|source| ServeError::Streams { source })
    }

    /// Any two descriptors.
    pub fn new(input: OwnedFd, output: OwnedFd) -> Self {
        Self { input: input.into(), output: output.into() }
    }
}

/// Serves one peer until the end of input, until `stop` ends, or until the peer no longer reads.
///
/// Calls in flight are then answered for the engine's drain time and cancelled after it.
pub async fn serve(engine: Engine, streams: Streams, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
    let (drain, stop_time) = (engine.limits.drain, engine.limits.stop);
    let message = engine.limits.message;
    let json = engine.limits.json;
    let Streams { input, output } = streams;
    let outgoing = Arc::new(Outgoing::default());
    let connection = engine.open(Principal::LOCAL).sharing_its_stream();
    let driver = Driver::new(Arc::new(engine), connection, Lane { outgoing: Arc::clone(&outgoing) });

    let writer = Arc::clone(&outgoing);
    let writer_output = output.try_clone().map_err(|source| ServeError::Streams { source })?;
    spawn_thread("stdio-writer", move || writer.write_when_ready(writer_output))?;

    let ended = Arc::new(Notify::new());
    let reader = Reader { driver: driver.clone(), outgoing: Arc::clone(&outgoing), json, ended: Arc::clone(&ended) };
    let runtime = tokio::runtime::Handle::current();
    spawn_thread("stdio-reader", move || {
        let _entered = runtime.enter();
        reader.read(input, output, message);
    })?;

    let (mut ended, mut stop) = (std::pin::pin!(ended.notified()), std::pin::pin!(stop));
    let drained = async { drop(tokio::time::timeout(drain, driver.idle()).await) };
    // Whoever ends our input and asks us to stop as well will not wait for the drain (2025-11-25 basic/lifecycle, Shutdown).
    tokio::select! {
        () = &mut ended => tokio::select! {
            () = drained => {}
            () = &mut stop => {}
            () = outgoing.broken.notified() => {}
        },
        () = &mut stop => tokio::select! {
            () = drained => {}
            () = &mut ended => {}
            () = outgoing.broken.notified() => {}
        },
        () = outgoing.broken.notified() => {}
    }
    driver.drain();
    driver.close();
    let _ = tokio::time::timeout(stop_time, driver.idle()).await;
    let _ = tokio::task::spawn_blocking(move || outgoing.close(drain)).await;
    Ok(())
}

fn spawn_thread(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), ServeError> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(body);
    thread.map(drop).map_err(|source| ServeError::Streams { source })
}

struct Reader {
    driver: Driver<Lane>,
    outgoing: Arc<Outgoing>,
    json: crate::protocol::json::JsonLimits,
    ended: Arc<Notify>,
}

impl Reader {
    fn read(self, mut input: std::fs::File, mut output: std::fs::File, limit: usize) {
        // Told even if this thread should fail, or `serve` would wait for it for ever.
        let _ended = TellOnDrop(Arc::clone(&self.ended));
        let mut lines = Lines::new(limit);
        let mut block = vec![0; READ_BYTES];
        loop {
            let read = match input.read(&mut block) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    wait_for(&input, PollFlags::IN);
                    continue;
                }
                Err(error) => {
                    tracing::warn!(%error, "standard input failed");
                    break;
                }
            };
            self.outgoing.cork();
            lines.push(block.get(..read).unwrap_or_default());
            while let Some(line) = lines.poll_line() {
                self.deliver(line, limit);
                if self.outgoing.is_full() {
                    self.outgoing.uncork(&mut output);
                    self.outgoing.cork();
                }
            }
            self.outgoing.uncork(&mut output);
            if self.outgoing.is_over() {
                break;
            }
        }
        if let Some(line) = lines.finish_input() {
            self.deliver(line, limit);
        }
    }

    fn deliver(&self, line: Line, limit: usize) {
        let decoded = match line {
            Line::Whole(text) => Decoded::read(&text, &self.json),
            Line::TooLong => {
                let fault = Fault::InvalidRequest(format!("the line is longer than {limit} bytes"));
                Decoded::One(Err(Malformed { id: None, fault, is_response: false }))
            }
        };
        self.driver.deliver(decoded, None, ());
    }
}

struct TellOnDrop(Arc<Notify>);

impl Drop for TellOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// Waits until a descriptor is ready. Whoever shares it with us may have made it non-blocking: the flag is not ours alone.
fn wait_for(file: &std::fs::File, ready: PollFlags) {
    // An error here shows again in the read or write that follows.
    let _ = poll(&mut [PollFd::new(file, ready)], None);
}

/// Writes all of it, whether the descriptor blocks or not.
fn write_all(output: &mut std::fs::File, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        match output.write(bytes) {
            Ok(0) => return Err(std::io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => wait_for(output, PollFlags::OUT),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Everything goes out by the same stream.
struct Lane {
    outgoing: Arc<Outgoing>,
}

impl Sink for Lane {
    type Route = ();
    fn open(&self, _: Arrival, (): ()) {}
    fn answer(&self, _: Arrival, answer: Answer) {
        match answer {
            Answer::One(reply) => self.outgoing.add(|out| reply.write(out)),
            answer => {
                if let Some(message) = answer.encode() {
                    self.outgoing.push(&message);
                }
            }
        }
    }
    fn notify(&self, _: Arrival, message: Bytes) {
        if !self.outgoing.is_full() {
            self.outgoing.push(&message);
        }
    }
    fn ask(&self, _: Arrival, message: Bytes) {
        self.outgoing.push(&message);
    }
    fn announce(&self, lasting: bool, message: Bytes) {
        self.outgoing.push_or_keep(lasting, message);
    }
    fn detach(&self, _: Arrival) {}
    fn silence(&self, _: Arrival) {}
    fn overrun(&self) {
        tracing::warn!("the peer sends nothing but unreadable lines; its connection ends");
        self.outgoing.lock().overrun = true;
    }
}

/// What waits to be written. Whoever holds `writing` is the one writer.
#[derive(Default)]
struct Outgoing {
    state: Mutex<Queue>,
    /// There is work for the writer thread, or none ever again.
    work: Condvar,
    /// Something was written, for those who wait for room or for the end.
    written: Condvar,
    /// Told when the peer no longer reads.
    broken: Notify,
}

#[derive(Default)]
struct Queue {
    bytes: BytesMut,
    /// What is told once there is room again, each message once.
    kept: Vec<Bytes>,
    writing: bool,
    /// The reader is at work and will write what is queued meanwhile, in one go.
    corked: bool,
    broken: bool,
    overrun: bool,
    /// Nothing more will be written.
    closed: bool,
    /// How many wait for `written`: telling nobody costs a system call all the same.
    waiting: u32,
}

impl Queue {
    /// Adds one line.
    fn put(&mut self, write: impl FnOnce(&mut BytesMut)) {
        write(&mut self.bytes);
        self.bytes.put_u8(b'\n');
    }
}

impl Outgoing {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, message: &[u8]) {
        self.add(|out| {
            out.reserve(message.len() + 1);
            out.put_slice(message);
        });
    }

    /// Adds a message that is written in place.
    fn add(&self, write: impl FnOnce(&mut BytesMut)) {
        let mut queue = self.lock();
        if queue.broken || queue.closed {
            return;
        }
        queue.put(write);
        // Whoever is writing now looks again before it stops.
        if !queue.corked && !queue.writing {
            self.work.notify_one();
        }
    }

    /// As [`Outgoing::push`], but where too much waits already the message is kept until less does. What was said while
    /// it was kept is not said again.
    fn push_or_keep(&self, lasting: bool, message: Bytes) {
        let mut queue = self.lock();
        if queue.kept.is_empty() && queue.bytes.len() <= WAITING_BYTES {
            drop(queue);
            self.push(&message);
        } else if (lasting || queue.kept.len() < KEPT_AT_MOST) && !queue.kept.contains(&message) {
            queue.kept.push(message);
        }
    }

    fn cork(&self) {
        self.lock().corked = true;
    }

    fn is_full(&self) -> bool {
        self.lock().bytes.len() > WAITING_BYTES
    }

    /// Lets the queue flow again: writes what is queued, or waits until another has written enough of it.
    fn uncork(&self, output: &mut std::fs::File) {
        let mut queue = self.lock();
        queue.corked = false;
        if !queue.writing {
            drop(self.write(queue, output));
            return;
        }
        let full = |queue: &mut Queue| queue.bytes.len() > WAITING_BYTES && !queue.broken && !queue.closed;
        queue.waiting += 1;
        self.written.wait_while(queue, full).unwrap_or_else(PoisonError::into_inner).waiting -= 1;
    }

    fn tell_waiting(&self, queue: &Queue) {
        if queue.waiting > 0 {
            self.written.notify_all();
        }
    }

    /// Whether there is no use in reading on.
    fn is_over(&self) -> bool {
        let queue = self.lock();
        queue.overrun || queue.broken || queue.closed
    }

    /// Writes until the queue is empty.
    fn write<'q>(&'q self, mut queue: MutexGuard<'q, Queue>, output: &mut std::fs::File) -> MutexGuard<'q, Queue> {
        queue.writing = true;
        while !queue.bytes.is_empty() && !queue.broken {
            let bytes = queue.bytes.split();
            for message in std::mem::take(&mut queue.kept) {
                queue.put(|out| out.put_slice(&message));
            }
            self.tell_waiting(&queue);
            drop(queue);
            let written = write_all(output, &bytes);
            queue = self.lock();
            if let Err(error) = written {
                tracing::debug!(%error, "the peer no longer reads");
                queue.broken = true;
                queue.bytes.clear();
                self.broken.notify_one();
                self.work.notify_one();
            }
        }
        queue.writing = false;
        self.tell_waiting(&queue);
        queue
    }

    fn write_when_ready(&self, mut output: std::fs::File) {
        let mut queue = self.lock();
        while !queue.broken && !queue.closed {
            if !queue.bytes.is_empty() && !queue.writing && !queue.corked {
                queue = self.write(queue, &mut output);
            } else {
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Waits for what is queued to be written, then lets the writer end, which closes its stream.
    fn close(&self, at_most: Duration) {
        let unwritten = |queue: &mut Queue| (!queue.bytes.is_empty() || queue.writing) && !queue.broken;
        let mut queue = self.lock();
        queue.waiting += 1;
        let waited = self.written.wait_timeout_while(queue, at_most, unwritten);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        queue.waiting -= 1;
        queue.closed = true;
        self.tell_waiting(&queue);
        self.work.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};

    use super::*;

    #[test]
    fn a_change_is_told_once_to_a_peer_that_did_not_read_for_a_while() {
        let outgoing = Outgoing::default();
        let told = |message: &'static str| outgoing.push_or_keep(false, Bytes::from_static(message.as_bytes()));
        told("before");
        outgoing.push(&vec![b'x'; WAITING_BYTES + 1]);
        for message in ["tools", "a", "tools"] {
            told(message);
        }
        let mut file = tempfile::tempfile().unwrap();
        outgoing.uncork(&mut file);
        told("after");
        outgoing.uncork(&mut file);
        let mut written = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut written).unwrap();
        let lines: Vec<&str> = written.lines().filter(|line| !line.starts_with('x')).collect();
        assert_eq!(lines, ["before", "tools", "a", "after"]);
    }
}
