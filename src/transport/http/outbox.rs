//! What one HTTP response has still to say: a small queue with one reader.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::super::driver::Answer;
use crate::protocol::Arrival;
use crate::protocol::limits::{WAITING_BYTES, WAITING_EVENTS};

/// Messages that wait for a reader, in order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    message: Bytes,
    gives_way: bool,
    /// The request that a question is asked for.
    about: Option<Arrival>,
}

impl Queue {
    /// Adds a message that must not be lost.
    pub(super) fn push(&mut self, message: Bytes) {
        self.add(Waiting { message, gives_way: false, about: None });
    }

    /// Adds a message that gives way to later ones when there are too many.
    pub(super) fn push_notice(&mut self, message: Bytes) {
        self.add(Waiting { message, gives_way: true, about: None });
        self.give_way();
    }

    /// Adds something that changed, unless the same waits already: whoever reads it looks at what is there then. What is
    /// lasting does not give way, and there are few of it.
    pub(super) fn push_change(&mut self, lasting: bool, message: Bytes) {
        if !self.waiting.iter().any(|waiting| waiting.message == message) {
            self.add(Waiting { message, gives_way: !lasting, about: None });
            self.give_way();
        }
    }

    /// Adds a question that gives way like a notice, and is of no use once its request is over.
    pub(super) fn push_question(&mut self, about: Arrival, message: Bytes) {
        self.add(Waiting { message, gives_way: true, about: Some(about) });
        self.give_way();
    }

    /// Whether a question of a request waits.
    pub(super) fn has_question(&self, about: Arrival) -> bool {
        self.waiting.iter().any(|waiting| waiting.about == Some(about))
    }

    /// Takes back the questions of a request.
    pub(super) fn take_back(&mut self, about: Arrival) {
        self.waiting.retain(|waiting| waiting.about != Some(about));
        self.bytes = self.waiting.iter().map(|waiting| waiting.message.len()).sum();
    }

    fn give_way(&mut self) {
        while self.is_over(0) {
            let Some(oldest) = self.waiting.iter().position(|waiting| waiting.gives_way) else { return };
            if let Some(lost) = self.waiting.remove(oldest) {
                self.bytes -= lost.message.len();
            }
        }
    }

    pub(super) fn pop(&mut self) -> Option<Bytes> {
        let message = self.waiting.pop_front()?.message;
        self.bytes -= message.len();
        Some(message)
    }

    /// Empties it; gives what must not be lost.
    pub(super) fn take_lasting(&mut self) -> impl Iterator<Item = Bytes> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
            .into_iter()
            .filter(|waiting| !waiting.gives_way)
            .map(|waiting| waiting.message)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn add(&mut self, waiting: Waiting) {
        self.bytes += waiting.message.len();
        self.waiting.push_back(waiting);
    }

    /// Whether it holds too much once `more` have come.
    fn is_over(&self, more: usize) -> bool {
        self.waiting.len() + more > WAITING_EVENTS || self.bytes > WAITING_BYTES
    }
}

/// What comes out next.
#[derive(Debug)]
pub(super) enum Next {
    /// A message before the answer.
    Message(Bytes),
    /// The answer; nothing follows.
    Answer(Answer),
    /// Nothing will come: the request was cancelled.
    Silence,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Outbox(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    queue: Queue,
    last: Option<Next>,
    waker: Option<Waker>,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message that gives way to later ones when there are too many.
    pub(super) fn notify(&self, message: Bytes) {
        let mut inner = self.lock();
        inner.queue.push_notice(message);
        wake(inner);
    }

    /// Adds something that changed, see [`Queue::push_change`].
    pub(super) fn announce(&self, lasting: bool, message: Bytes) {
        let mut inner = self.lock();
        inner.queue.push_change(lasting, message);
        wake(inner);
    }

    /// Adds a message that must not be lost.
    pub(super) fn say(&self, message: Bytes) {
        let mut inner = self.lock();
        inner.queue.push(message);
        wake(inner);
    }

    /// Whether its reader is so slow that nothing more should be asked for.
    pub(super) fn is_full(&self) -> bool {
        self.lock().queue.is_over(1)
    }

    /// Ends the outbox with an answer or with silence.
    pub(super) fn end(&self, last: Next) {
        let mut inner = self.lock();
        inner.last = Some(last);
        wake(inner);
    }

    pub(super) fn poll_next(&self, cx: &Context<'_>) -> Poll<Next> {
        let mut inner = self.lock();
        if let Some(message) = inner.queue.pop() {
            return Poll::Ready(Next::Message(message));
        }
        if let Some(last) = inner.last.take() {
            return Poll::Ready(last);
        }
        inner.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(super) async fn next(&self) -> Next {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }
}

fn wake(mut inner: MutexGuard<'_, Inner>) {
    let waker = inner.waker.take();
    drop(inner);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_notice_gives_way_and_what_must_not_be_lost_does_not() {
        let mut queue = Queue::default();
        queue.push("first".into());
        for n in 0..WAITING_EVENTS {
            queue.push_notice(n.to_string().into());
        }
        assert_eq!(queue.pop(), Some("first".into()));
        assert_eq!(queue.pop(), Some("1".into()), "one of 257 gave way");
        let mut left = 0;
        while queue.pop().is_some() {
            left += 1;
        }
        assert_eq!((left, queue.bytes), (WAITING_EVENTS - 2, 0));
    }

    #[test]
    fn a_change_waits_once_and_a_lasting_one_outlasts_any_number_of_others() {
        let mut queue = Queue::default();
        queue.push_change(true, "list".into());
        for n in 0..2 * WAITING_EVENTS {
            queue.push_change(false, n.to_string().into());
            queue.push_change(true, "list".into());
            queue.push_change(false, n.to_string().into());
        }
        let waiting: Vec<Bytes> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(waiting.len(), WAITING_EVENTS);
        assert_eq!(waiting.iter().filter(|message| *message == "list").count(), 1);
    }

    #[test]
    fn notices_are_bounded_by_their_bytes_too() {
        let half = Bytes::from(vec![b'x'; WAITING_BYTES / 2]);
        let mut queue = Queue::default();
        queue.push_notice("first".into());
        queue.push_notice(half.clone());
        queue.push_notice(half.slice(5..));
        assert_eq!(queue.bytes, WAITING_BYTES, "exactly full");
        queue.push_notice("x".into());
        assert_eq!(queue.pop(), Some(half));
    }
}
