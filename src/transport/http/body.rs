//! Bodies: reading one within its limits, and the kinds that are sent.

use std::future::Future as _;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

use super::guard::{Refusal, too_large};
use super::outbox::{Next, Outbox};
use super::socket::{Peer, Serving};
use crate::protocol::Limits;
use crate::protocol::framing::{self, KEEP_ALIVE};

/// After this long a body must arrive at [`LEAST_RATE`].
const RATE_GRACE: Duration = Duration::from_secs(5);

/// Bytes a second.
const LEAST_RATE: f64 = 1024.0;

/// Most bytes for which memory is set aside because they are announced.
const ANNOUNCED_AT_MOST: usize = 1024 * 1024;

/// The unit of the shared budget for bodies, bytes.
const BUDGET_UNIT: usize = 1024;

/// Room for the bodies of all requests together.
#[derive(Clone)]
pub(super) struct Budget(Arc<Semaphore>);

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / BUDGET_UNIT)))
    }

    fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let units = u32::try_from(bytes.div_ceil(BUDGET_UNIT)).unwrap_or(u32::MAX);
        Arc::clone(&self.0).try_acquire_many_owned(units).map_err(|_| Refusal {
            status: StatusCode::SERVICE_UNAVAILABLE,
            problem: "too many large requests at once: try again in a moment",
            allow: None,
        })
    }
}

/// A body and the room it takes.
struct Whole {
    bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Whole {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a whole body: within the message limit, the shared budget, the time and the least rate.
///
/// Room is taken as bytes arrive, so that one announced and not sent keeps nobody out. It is given
/// back when the last slice of the body is dropped: a call keeps its arguments. A body below one unit takes none.
pub(super) async fn read(mut body: Incoming, limits: &Limits, budget: &Budget) -> Result<Bytes, Refusal> {
    let mut started = None;
    let mut room: Option<OwnedSemaphorePermit> = None;
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let mut length = 0usize;
    while let Some(frame) = next_frame(&mut body, &mut started, length, limits.body_time).await? {
        let Ok(data) = frame.into_data() else { continue };
        length += data.remaining();
        if length > limits.message {
            return Err(too_large());
        }
        let held = room.as_ref().map_or(BUDGET_UNIT - 1, |room| room.num_permits() * BUDGET_UNIT);
        if length > held {
            let more = budget.take(length - room.as_ref().map_or(0, |_| held))?;
            match &mut room {
                Some(room) => room.merge(more),
                None => room = Some(more),
            }
        }
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            // What is announced is a hint: memory that is never written to costs nothing, and there is a limit to it.
            let announced = usize::try_from(body.size_hint().lower()).unwrap_or(0).min(ANNOUNCED_AT_MOST);
            all.reserve(length.saturating_add(announced).min(limits.message));
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    let bytes = if all.is_empty() { first } else { all.freeze() };
    Ok(match room {
        Some(room) => Bytes::from_owner(Whole { bytes, _room: room }),
        None => bytes,
    })
}

async fn next_frame(
    body: &mut Incoming,
    started: &mut Option<Instant>,
    length: usize,
    at_most: Duration,
) -> Result<Option<Frame<Bytes>>, Refusal> {
    let slow = Refusal { status: StatusCode::REQUEST_TIMEOUT, problem: "the body arrives too slowly", allow: None };
    let broken =
        Refusal { status: StatusCode::BAD_REQUEST, problem: "the body ended early or is malformed", allow: None };
    // Most bodies come with their head: no clock runs for them.
    let mut frame = body.frame();
    if let Poll::Ready(frame) = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut frame).poll(cx))).await {
        return frame.transpose().map_err(|_| broken);
    }
    let started = *started.get_or_insert_with(Instant::now);
    // When the bytes so far would have had to be more.
    #[allow(clippy::cast_precision_loss, reason = "a rate need not be exact")]
    let paced = RATE_GRACE.max(Duration::from_secs_f64((length as f64 / LEAST_RATE) + 1.0));
    let until = started + paced.min(at_most);
    tokio::select! {
        biased;
        frame = &mut frame => frame.transpose().map_err(|_| broken),
        () = tokio::time::sleep_until(until) => Err(slow),
    }
}

/// What keeps a stream's slot or cancels its request when the response is dropped, and where its messages wait.
pub(super) trait Held: Send + Sync + 'static {
    fn outbox(&self) -> &Outbox;
}

/// The body of a response.
pub(super) enum Payload {
    /// In one frame, if there is anything at all.
    Whole(Parts),
    Events(Box<Events>),
}

/// What is sent in parts, one after the other: of its own, shared, and the same for all.
#[derive(Debug, Default)]
pub(super) struct Parts {
    head: BytesMut,
    body: Bytes,
    tail: &'static [u8],
}

impl From<(BytesMut, Bytes, &'static [u8])> for Parts {
    fn from((head, body, tail): (BytesMut, Bytes, &'static [u8])) -> Self {
        Self { head, body, tail }
    }
}

impl From<Bytes> for Parts {
    fn from(body: Bytes) -> Self {
        Self { body, ..Self::default() }
    }
}

impl Parts {
    fn each(&self) -> impl Iterator<Item = &[u8]> {
        [&*self.head, &*self.body, self.tail].into_iter().filter(|part| !part.is_empty())
    }
}

impl Buf for Parts {
    fn remaining(&self) -> usize {
        self.head.len() + self.body.len() + self.tail.len()
    }

    fn chunk(&self) -> &[u8] {
        self.each().next().unwrap_or_default()
    }

    fn chunks_vectored<'p>(&'p self, slices: &mut [IoSlice<'p>]) -> usize {
        slices.iter_mut().zip(self.each()).map(|(slice, part)| *slice = IoSlice::new(part)).count()
    }

    fn advance(&mut self, mut count: usize) {
        let parts: [&mut dyn Buf; 3] = [&mut self.head, &mut self.body, &mut self.tail];
        for part in parts {
            let here = count.min(part.remaining());
            part.advance(here);
            count -= here;
        }
    }
}

impl Payload {
    pub(super) fn empty() -> Self {
        Self::Whole(Parts::default())
    }
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self::Whole(bytes.into())
    }
}

/// Where the events of a stream come from. `None` is its orderly end.
pub(super) trait Source: Send + Sync {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

/// What an outbox still says, as events without ids.
pub(super) struct Rest<H> {
    held: H,
    ended: bool,
}

impl<H: Held> Rest<H> {
    pub(super) fn new(held: H) -> Self {
        Self { held, ended: false }
    }
}

impl<H: Held> Source for Rest<H> {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let message = match self.held.outbox().poll_next(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Next::Message(message)) => Some(message),
            Poll::Ready(Next::Answer(answer)) => {
                self.ended = true;
                answer.encode()
            }
            Poll::Ready(Next::Silence) => {
                self.ended = true;
                None
            }
        };
        Poll::Ready(message.map(|message| framing::event(&message)))
    }
}

/// An event stream: what its source gives, and comments while that gives nothing.
pub(super) struct Events {
    /// An event that is ready before the source is asked.
    first: Option<Bytes>,
    source: Box<dyn Source>,
    peer: Peer,
    every: Duration,
    keep_alive: Pin<Box<Sleep>>,
    ended: bool,
}

impl Events {
    pub(super) fn payload(first: Option<Bytes>, source: Box<dyn Source>, peer: Peer, every: Duration) -> Payload {
        let keep_alive = Box::pin(tokio::time::sleep(every));
        Payload::Events(Box::new(Self { first, source, peer, every, keep_alive, ended: false }))
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        let ready = match self.source.poll_event(cx) {
            Poll::Ready(event) => event,
            Poll::Pending if self.keep_alive.as_mut().poll(cx).is_pending() => return Poll::Pending,
            Poll::Pending if self.peer.is_gone() => None,
            Poll::Pending => Some(KEEP_ALIVE),
        };
        let Some(event) = ready else {
            self.ended = true;
            return Poll::Ready(None);
        };
        self.keep_alive.as_mut().reset(Instant::now() + self.every);
        Poll::Ready(Some(event))
    }
}

impl Body for Payload {
    type Data = Parts;
    type Error = std::convert::Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Parts>, Self::Error>>> {
        match self.get_mut() {
            Self::Whole(parts) => {
                let parts = std::mem::take(parts);
                Poll::Ready(parts.has_remaining().then(|| Ok(Frame::data(parts))))
            }
            Self::Events(events) => events.poll(cx).map(|event| event.map(|event| Ok(Frame::data(event.into())))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(parts) if !parts.has_remaining())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(parts) => SizeHint::with_exact(parts.remaining() as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

/// The body of a response on its way: while it is, its request is being served.
pub(super) struct Answering {
    payload: Payload,
    _serving: Serving,
}

impl Answering {
    pub(super) fn new(payload: Payload, serving: Serving) -> Self {
        Self { payload, _serving: serving }
    }
}

impl Body for Answering {
    type Data = Parts;
    type Error = std::convert::Infallible;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Parts>, Self::Error>>> {
        Pin::new(&mut self.get_mut().payload).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.payload.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.payload.size_hint()
    }
}
