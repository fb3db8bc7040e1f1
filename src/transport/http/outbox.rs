//! What one HTTP response has still to say: a small queue with one reader.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::super::driver::Answer;

/// Most notices that wait for a slow reader; the oldest gives way.
const WAITING_AT_MOST: usize = 256;

/// What comes out next.
#[derive(Debug)]
pub(super) enum Next {
    /// A notification about the request.
    Notice(Bytes),
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
    notices: VecDeque<Bytes>,
    last: Option<Next>,
    waker: Option<Waker>,
}

impl Outbox {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn notify(&self, message: Bytes) {
        let mut inner = self.lock();
        if inner.notices.len() >= WAITING_AT_MOST {
            inner.notices.pop_front();
        }
        inner.notices.push_back(message);
        wake(inner);
    }

    /// Ends the outbox with an answer or with silence.
    pub(super) fn end(&self, last: Next) {
        let mut inner = self.lock();
        inner.last = Some(last);
        wake(inner);
    }

    pub(super) fn poll_next(&self, cx: &Context<'_>) -> Poll<Next> {
        let mut inner = self.lock();
        if let Some(notice) = inner.notices.pop_front() {
            return Poll::Ready(Next::Notice(notice));
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
