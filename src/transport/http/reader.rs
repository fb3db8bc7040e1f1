//! One response that reads a stream of a legacy session: the POST itself, or a GET.
//!
//! Promises: sends what was kept since where it begins, then what comes; sees when another has
//! taken its place; when it is dropped, nothing that it did not send is lost but by the limits.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::super::driver::Answer;
use super::body::Source;
use super::replay::EventId;
use super::streams::{Last, ReadBy, Streams, Which};
use crate::protocol::Arrival;
use crate::protocol::framing;
use crate::protocol::limits::RETRY_PAUSE;

/// See the module.
pub(super) struct Reader {
    streams: Arc<Streams>,
    which: Which,
    by: ReadBy,
    /// The number of the next event to send.
    from: u64,
}

/// What a POST hears first.
pub(super) enum First {
    /// The answer, before anything else.
    Answer(Answer),
    /// Nothing will come.
    Silence,
    /// Something before the answer: a stream is needed.
    Stream,
}

impl Reader {
    pub(super) fn new(streams: Arc<Streams>, which: Which, by: ReadBy, from: u64) -> Self {
        Self { streams, which, by, from }
    }

    /// The POST's own; at most one is made of each.
    pub(super) fn of_post(streams: Arc<Streams>, arrival: Arrival) -> Self {
        Self::new(streams, Which::Post(arrival), ReadBy::Itself, 0)
    }

    /// What comes first on a POST.
    pub(super) async fn first(&self) -> First {
        std::future::poll_fn(|cx| self.poll_first(cx)).await
    }

    fn poll_first(&self, cx: &Context<'_>) -> Poll<First> {
        let mut inner = self.streams.lock();
        let Some(stream) = inner.get_mut(self.which) else { return Poll::Ready(First::Silence) };
        if !stream.queue.is_empty() {
            return Poll::Ready(First::Stream);
        }
        match stream.last.take() {
            Some(Last::Answer(answer)) => Poll::Ready(First::Answer(answer)),
            Some(Last::Silence) => Poll::Ready(First::Silence),
            None if stream.detached => Poll::Ready(First::Stream),
            None => {
                stream.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Makes an event stream of the POST. `answer` is one that was taken already.
    pub(super) fn into_stream(self, answer: Option<Answer>) -> Self {
        if let Which::Post(arrival) = self.which {
            let mut inner = self.streams.lock();
            inner.open(arrival);
            if let Some(stream) = inner.get_mut(self.which) {
                stream.last = answer.map(Last::Answer).or_else(|| stream.last.take());
            }
        }
        self
    }
}

impl Source for Reader {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut inner = self.streams.lock();
        let Some(stream) = inner.get_mut(self.which) else { return Poll::Ready(None) };
        let (Some(number), true) = (stream.number, stream.reader == Some(self.by)) else { return Poll::Ready(None) };
        let here = |event| EventId { stream: number, event };
        if self.from < stream.next {
            // It is slower than what is kept: the client would miss something without knowing.
            if self.from < stream.kept_from {
                return Poll::Ready(None);
            }
            if let Some((event, bytes)) = inner.kept().first_from(here(self.from)) {
                self.from = event + 1;
                return Poll::Ready(Some(bytes.clone()));
            }
        }
        let Some(stream) = inner.get_mut(self.which) else { return Poll::Ready(None) };
        if std::mem::take(&mut stream.unprimed) {
            let event = framing::priming_event(&self.streams.id(here(stream.next)));
            stream.next += 1;
            self.from = stream.next;
            return Poll::Ready(Some(event));
        }
        let message = match stream.queue.pop() {
            Some(message) => message,
            None => match stream.last.take() {
                Some(Last::Answer(answer)) => {
                    stream.over = true;
                    let Some(message) = answer.encode() else { return Poll::Ready(None) };
                    message
                }
                Some(Last::Silence) => {
                    stream.over = true;
                    return Poll::Ready(None);
                }
                None if stream.over => return Poll::Ready(None),
                None if stream.detached => {
                    let event = framing::retry_event(&self.streams.id(here(stream.next)), RETRY_PAUSE);
                    stream.next += 1;
                    stream.reader = None;
                    return Poll::Ready(Some(event));
                }
                None => {
                    stream.waker = Some(cx.waker().clone());
                    return Poll::Pending;
                }
            },
        };
        let event = inner.record(&self.streams, self.which, &message);
        self.from = inner.get_mut(self.which).map_or(self.from, |stream| stream.next);
        Poll::Ready(event)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut inner = self.streams.lock();
        let Some(stream) = inner.get_mut(self.which).filter(|stream| stream.reader == Some(self.by)) else { return };
        stream.reader = None;
        stream.waker = None;
        if let Which::Post(arrival) = self.which {
            inner.settle(&self.streams, arrival);
        }
    }
}
