//! A program that talks while it runs: lines on a descriptor of its own, as `docs/talking-back.md` has them.
//!
//! Promises: whatever the program writes, or leaves unread, the engine goes on and its memory stays bounded; a
//! question whose answer is known is answered at once, any other ends the run and becomes a question to the client.
//! Knows no era and no transport.

mod conversation;
mod line;

use std::collections::VecDeque;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{ReadHalf, WriteHalf};

use crate::protocol::framing::Lines;
use crate::protocol::{Caller, Outcome};
use conversation::{LINE_BYTES, Reaction};

pub(super) use conversation::Conversation;

const READ_BYTES: usize = 16 * 1024;

/// Bytes that the program has not read, beyond which it is not listened to until it reads.
const UNREAD_BYTES: usize = 256 * 1024;

/// Listens and answers until the program's end of the line is closed everywhere, or until it has to be stopped; then
/// gives the outcome.
pub(super) async fn converse(
    mut line: UnixStream,
    conversation: &mut Conversation,
    caller: &dyn Caller,
) -> Option<Outcome> {
    let (mut reading, writing) = line.split();
    let mut replies = Replies { writing, unread: VecDeque::new(), state: Writing::Open };
    let mut lines = Lines::new(LINE_BYTES);
    let mut buffer = vec![0; READ_BYTES];
    let mut heard_all = false;
    while !heard_all {
        let read = tokio::select! {
            read = read(&mut reading, &mut buffer), if replies.unread.len() < UNREAD_BYTES => read,
            () = replies.write(), if !replies.unread.is_empty() => continue,
        };
        heard_all = read == 0;
        if conversation.is_over() {
            continue;
        }
        lines.push(buffer.get(..read).unwrap_or_default());
        while let Some(line) = lines.poll_line().or_else(|| heard_all.then(|| lines.finish_input()).flatten()) {
            match conversation.hear(&line) {
                Reaction::Nothing => {}
                Reaction::Tell(notice) => caller.notify(notice),
                Reaction::Reply(reply) => {
                    replies.push(&reply);
                    // Checking a question takes its time: others have their turn between two.
                    tokio::task::yield_now().await;
                }
                Reaction::Close(reply) => {
                    replies.push(&reply);
                    replies.close().await;
                }
                Reaction::Stop(outcome) => return Some(*outcome),
            }
        }
    }
    // It may have closed its end for writing alone.
    while !replies.unread.is_empty() {
        replies.write().await;
    }
    None
}

/// Reads what is there; a read that fails is the end.
async fn read(reading: &mut ReadHalf<'_>, buffer: &mut [u8]) -> usize {
    reading.read(buffer).await.unwrap_or(0)
}

/// Whether the program still reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writing {
    Open,
    /// What is unread is written, then the end.
    Closing,
    Closed,
}

/// Lines for the program that it has not read.
struct Replies<'l> {
    writing: WriteHalf<'l>,
    unread: VecDeque<u8>,
    state: Writing,
}

impl Replies<'_> {
    fn push(&mut self, reply: &str) {
        if self.state == Writing::Open {
            self.unread.extend(reply.bytes().chain([b'\n']));
        }
    }

    async fn close(&mut self) {
        self.state = Writing::Closing;
        self.closed_if_written().await;
    }

    async fn closed_if_written(&mut self) {
        if self.state == Writing::Closing && self.unread.is_empty() {
            self.state = Writing::Closed;
            // Gone already: then it needs no end.
            let _ = self.writing.shutdown().await;
        }
    }

    /// Writes some of it, as soon as there is room.
    async fn write(&mut self) {
        let (first, _) = self.unread.as_slices();
        match self.writing.write(first).await {
            Ok(written) if written > 0 => drop(self.unread.drain(..written)),
            Ok(_) | Err(_) => {
                // Its end is closed: nobody will read the rest.
                self.unread = VecDeque::new();
                self.state = Writing::Closed;
            }
        }
        self.closed_if_written().await;
    }
}
