//! The event streams of one legacy session, and which of them each message goes on.
//!
//! Promises: a message goes on one stream only; an answer on that of its request alone; an event's
//! number is never used twice in a session, so a client that lost its connection gets what followed
//! on that stream and nothing else; what waits and what is kept is bounded (2025-11-25 basic/transports).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::Bytes;

use super::super::driver::{Answer, Sink};
use super::outbox::Queue;
use super::reader::Reader;
use super::replay::{EventId, Kept, Room};
use crate::protocol::{Arrival, framing};

/// The number of the stand-alone stream.
const ALONE: u64 = 0;

/// A POST that waits for its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    /// Whether it takes an event stream.
    pub(super) takes_events: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Streams {
    inner: Mutex<Inner>,
    /// Tells this session's events from another's.
    tag: u64,
}

#[derive(Debug)]
pub(super) struct Inner {
    alone: Stream,
    posts: HashMap<Arrival, Stream>,
    /// POSTs whose questions went on the stand-alone stream, for want of their own.
    asked_alone: HashSet<Arrival>,
    /// How many numbers were given to streams.
    numbered: u64,
    /// How many readers there were that are not a POST's own.
    readers: u64,
    kept: Kept,
    /// Whether streams begin with an empty event and may be closed early.
    polling: bool,
}

/// Which stream of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// That of no request.
    Alone,
    /// That of a POST.
    Post(Arrival),
}

/// Who reads a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadBy {
    /// The POST itself.
    Itself,
    /// A GET.
    Get(u64),
}

/// One stream. A POST's is not one yet while its first message is awaited.
#[derive(Debug)]
pub(super) struct Stream {
    /// Its number, once it has events.
    pub(super) number: Option<u64>,
    pub(super) takes_events: bool,
    pub(super) queue: Queue,
    pub(super) last: Option<Last>,
    /// The number of its next event.
    pub(super) next: u64,
    /// Events below this number cannot be replayed.
    pub(super) kept_from: u64,
    pub(super) reader: Option<ReadBy>,
    pub(super) waker: Option<Waker>,
    /// An empty event goes before all others.
    pub(super) unprimed: bool,
    /// The client was asked, or is to be asked, to fetch the rest later.
    pub(super) detached: bool,
    /// Nothing follows.
    pub(super) over: bool,
}

/// How a stream ends.
#[derive(Debug)]
pub(super) enum Last {
    Answer(Answer),
    /// The request was cancelled, or the session is over.
    Silence,
}

impl Stream {
    fn new(number: Option<u64>, takes_events: bool, reader: Option<ReadBy>) -> Self {
        Self {
            number,
            takes_events,
            queue: Queue::default(),
            last: None,
            next: 0,
            kept_from: 0,
            reader,
            waker: None,
            unprimed: false,
            detached: false,
            over: false,
        }
    }

    fn end(&mut self, last: Last) -> Option<Waker> {
        if !self.over {
            self.last = Some(last);
        }
        self.waker.take()
    }
}

impl Streams {
    pub(super) fn new(tag: u64, room: Room) -> Arc<Self> {
        let inner = Inner {
            alone: Stream::new(Some(ALONE), true, None),
            posts: HashMap::new(),
            asked_alone: HashSet::new(),
            numbered: ALONE,
            readers: 0,
            kept: Kept::new(room),
            polling: false,
        };
        Arc::new(Self { inner: Mutex::new(inner), tag })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the session's revision's way with streams.
    pub(super) fn agree(&self, polling: bool) {
        self.lock().polling = polling;
    }

    /// Opens the stand-alone stream; `None` while another reads it (2025-11-25 basic/transports, Listening).
    pub(super) fn listen(self: &Arc<Self>) -> Option<Reader> {
        let mut inner = self.lock();
        if inner.alone.reader.is_some() {
            return None;
        }
        let by = inner.another_reader();
        inner.alone.reader = Some(by);
        inner.alone.unprimed = inner.polling;
        let from = inner.alone.next;
        drop(inner);
        Some(Reader::new(Arc::clone(self), Which::Alone, by, from))
    }

    /// Resumes a stream after an event; `None` if that was never sent here, or something after it is no longer known.
    ///
    /// Whoever read that stream until now is sent away: it is the same client, whose old connection is lost.
    pub(super) fn resume(self: &Arc<Self>, id: &str) -> Option<Reader> {
        let after = self.read_id(id)?;
        let mut inner = self.lock();
        let by = inner.another_reader();
        let (which, stream) = inner.numbered_mut(after.stream)?;
        let from = after.event.checked_add(1)?;
        if from > stream.next || from < stream.kept_from {
            return None;
        }
        stream.reader = Some(by);
        stream.detached = false;
        let waker = stream.waker.take();
        drop(inner);
        wake(waker);
        Some(Reader::new(Arc::clone(self), which, by, from))
    }

    /// Whether anyone reads any of them.
    pub(super) fn is_read(&self) -> bool {
        let inner = self.lock();
        inner.alone.reader.is_some() || inner.posts.values().any(|stream| stream.reader.is_some())
    }

    /// Ends the stand-alone stream for good.
    pub(super) fn end_alone(&self) {
        let waker = self.lock().alone.end(Last::Silence);
        wake(waker);
    }

    /// Ends all of them for good.
    pub(super) fn end_all(&self) {
        let mut inner = self.lock();
        let Inner { alone, posts, .. } = &mut *inner;
        let wakers: Vec<_> = posts.values_mut().chain([alone]).filter_map(|stream| stream.end(Last::Silence)).collect();
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The text of an event's number: the session, the stream, and the event on it.
    pub(super) fn id(&self, event: EventId) -> String {
        format!("{:016x}-{}-{}", self.tag, event.stream, event.event)
    }

    fn read_id(&self, id: &str) -> Option<EventId> {
        let mut parts = id.splitn(3, '-').skip(1).map(str::parse);
        let event = EventId { stream: parts.next()?.ok()?, event: parts.next()?.ok()? };
        // The one spelling that we give out, of our own session.
        (self.id(event) == id).then_some(event)
    }

    fn end_post(&self, arrival: Arrival, last: Last) {
        let mut inner = self.lock();
        if inner.asked_alone.remove(&arrival) {
            inner.alone.queue.take_back(arrival);
        }
        let Some(stream) = inner.posts.get_mut(&arrival) else { return };
        let waker = stream.end(last);
        if stream.reader.is_none() {
            inner.settle(self, arrival);
        }
        drop(inner);
        wake(waker);
    }
}

impl Inner {
    fn another_reader(&mut self) -> ReadBy {
        self.readers += 1;
        ReadBy::Get(self.readers)
    }

    pub(super) fn get_mut(&mut self, which: Which) -> Option<&mut Stream> {
        match which {
            Which::Alone => Some(&mut self.alone),
            Which::Post(arrival) => self.posts.get_mut(&arrival),
        }
    }

    fn numbered_mut(&mut self, number: u64) -> Option<(Which, &mut Stream)> {
        if number == ALONE {
            return Some((Which::Alone, &mut self.alone));
        }
        let mut posts = self.posts.iter_mut();
        posts.find(|(_, s)| s.number == Some(number)).map(|(arrival, stream)| (Which::Post(*arrival), stream))
    }

    pub(super) fn kept(&self) -> &Kept {
        &self.kept
    }

    /// Makes an event stream of a POST.
    pub(super) fn open(&mut self, arrival: Arrival) {
        let (number, polling) = (self.numbered + 1, self.polling);
        if let Some(stream) = self.posts.get_mut(&arrival) {
            stream.number = Some(number);
            stream.unprimed = polling;
            self.numbered = number;
        }
    }

    /// Gives a message the next number of a stream and keeps it; this is its event.
    pub(super) fn record(&mut self, streams: &Streams, which: Which, message: &[u8]) -> Option<Bytes> {
        let stream = self.get_mut(which)?;
        let id = EventId { stream: stream.number?, event: stream.next };
        stream.next += 1;
        let event = framing::numbered_event(&streams.id(id), message);
        let mut lost = Vec::new();
        self.kept.keep(id, event.clone(), |id| lost.push(id));
        for id in lost {
            let kept = self.kept.has(id.stream);
            let Some((which, stream)) = self.numbered_mut(id.stream) else { continue };
            stream.kept_from = stream.kept_from.max(id.event + 1);
            if let (Which::Post(arrival), true, None, false) = (which, stream.over, stream.reader, kept) {
                self.posts.remove(&arrival);
            }
        }
        Some(event)
    }

    /// Keeps what a POST has to say that nobody reads; forgets the POST if there is nothing to resume.
    pub(super) fn settle(&mut self, streams: &Streams, arrival: Arrival) {
        let which = Which::Post(arrival);
        let mut last = None;
        loop {
            let Some(stream) = self.posts.get_mut(&arrival) else { return };
            let Some(number) = stream.number.filter(|_| stream.next > 0) else {
                // The client knows of no event to resume after. What needs an answer can still reach it elsewhere.
                let Some(mut stream) = self.posts.remove(&arrival) else { return };
                for message in stream.queue.take_lasting() {
                    self.asked_alone.insert(arrival);
                    self.alone.queue.push_question(arrival, message);
                }
                return;
            };
            if let Some(message) = stream.queue.pop() {
                self.record(streams, which, &message);
                continue;
            }
            match stream.last.take() {
                Some(Last::Answer(answer)) => last = answer.encode(),
                Some(Last::Silence) => {}
                None if stream.over && !self.kept.has(number) => break,
                None => return,
            }
            stream.over = true;
            if let Some(message) = last.take() {
                self.record(streams, which, &message);
            }
        }
        self.posts.remove(&arrival);
    }
}

impl Sink for Arc<Streams> {
    type Route = Option<Waits>;

    fn open(&self, arrival: Arrival, waits: Option<Waits>) {
        if let Some(Waits { takes_events }) = waits {
            self.lock().posts.insert(arrival, Stream::new(None, takes_events, Some(ReadBy::Itself)));
        }
    }

    fn answer(&self, arrival: Arrival, answer: Answer) {
        self.end_post(arrival, Last::Answer(answer));
    }

    /// What cannot go on its request's own stream is worth nothing elsewhere, unless a question was asked there:
    /// it may say that this is not to be answered any more.
    fn notify(&self, arrival: Arrival, message: Bytes) {
        let mut inner = self.lock();
        let Inner { alone, posts, asked_alone, .. } = &mut *inner;
        let waker = if asked_alone.contains(&arrival) {
            // A question that nobody has heard yet needs no such word.
            if alone.queue.has_question(arrival) {
                return;
            }
            alone.queue.push_notice(message);
            alone.waker.take()
        } else {
            let Some(stream) = posts.get_mut(&arrival).filter(|stream| stream.takes_events) else { return };
            stream.queue.push_notice(message);
            let waker = stream.waker.take();
            if stream.reader.is_none() {
                inner.settle(self, arrival);
            }
            waker
        };
        drop(inner);
        wake(waker);
    }

    /// A question whose own stream nobody reads goes where somebody does, if the client did not say that it comes back.
    fn ask(&self, arrival: Arrival, message: Bytes) {
        let mut inner = self.lock();
        let Inner { alone, posts, asked_alone, .. } = &mut *inner;
        let own = posts.get_mut(&arrival).filter(|stream| stream.takes_events);
        let waker = match own {
            Some(stream) if stream.reader.is_some() || stream.detached || alone.reader.is_none() => {
                stream.queue.push(message);
                let waker = stream.waker.take();
                if stream.reader.is_none() {
                    inner.settle(self, arrival);
                }
                waker
            }
            _ => {
                asked_alone.insert(arrival);
                alone.queue.push_question(arrival, message);
                alone.waker.take()
            }
        };
        drop(inner);
        wake(waker);
    }

    fn announce(&self, lasting: bool, message: Bytes) {
        let mut inner = self.lock();
        inner.alone.queue.push_change(lasting, message);
        let waker = inner.alone.waker.take();
        drop(inner);
        wake(waker);
    }

    fn detach(&self, arrival: Arrival) {
        let mut inner = self.lock();
        if !inner.polling {
            return;
        }
        let Some(stream) = inner.posts.get_mut(&arrival).filter(|stream| stream.takes_events) else { return };
        // Whoever reads it by a GET came back for it already, and may be sent away again.
        stream.detached = true;
        let waker = stream.waker.take();
        drop(inner);
        wake(waker);
    }

    fn silence(&self, arrival: Arrival) {
        self.end_post(arrival, Last::Silence);
    }

    fn overrun(&self) {}
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests;
