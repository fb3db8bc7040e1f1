//! HTTP+SSE, the transport before Streamable HTTP, deprecated since: one stream for all that the
//! server says, another path for all that the client says (2024-11-05 basic/transports, HTTP with SSE).
//!
//! Promises: the same guard, driver and count of sessions as everywhere; legacy peers alone; a
//! stream is found by principal and an unguessable token, and its end ends the connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};

use super::super::driver::{Answer, Driver, Sink};
use super::auth::Asker;
use super::body::{Events, Held, Payload, Rest};
use super::guard::{Refusal, SSE, SSE_MESSAGES};
use super::outbox::{Next, Outbox};
use super::post::{self, Bodiless};
use super::session::{Place, SessionId};
use super::socket::Serving;
use super::{Site, media, response};
use crate::protocol::admit::Claim;
use crate::protocol::{Arrival, Decoded, Era, Fault, Message, Offer, Principal, Reply, RequestId, framing};

/// Everything goes out by the one stream.
#[derive(Default)]
pub(super) struct Lane(Outbox);

impl Sink for Lane {
    type Route = ();
    fn open(&self, _: Arrival, (): ()) {}
    fn answer(&self, _: Arrival, answer: Answer) {
        if let Some(message) = answer.encode() {
            self.0.say(message);
        }
    }
    fn notify(&self, _: Arrival, message: Bytes) {
        self.0.notify(message);
    }
    fn ask(&self, _: Arrival, message: Bytes) {
        self.0.say(message);
    }
    fn announce(&self, lasting: bool, message: Bytes) {
        self.0.announce(lasting, message);
    }
    fn detach(&self, _: Arrival) {}
    fn silence(&self, _: Arrival) {}
    fn overrun(&self) {
        tracing::warn!("a peer sends nothing but unreadable messages; its stream ends");
        self.0.end(Next::Silence);
    }
}

/// The open streams of a surface.
#[derive(Default)]
pub(super) struct Lanes(Mutex<Table>);

#[derive(Default)]
struct Table {
    drivers: HashMap<(Principal, SessionId), Driver<Lane>>,
    /// The server stops: no stream lasts longer than the calls on it.
    stopping: bool,
}

impl Lanes {
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends each stream as soon as no call of it runs.
    pub(super) fn end_idle(&self) {
        let mut table = self.lock();
        table.stopping = true;
        for driver in table.drivers.values() {
            let driver = driver.clone();
            tokio::spawn(async move {
                driver.idle().await;
                driver.sink().0.end(Next::Silence);
            });
        }
    }

    /// Cancels what runs and ends every stream.
    pub(super) fn end_all(&self) {
        let all: Vec<_> = self.lock().drivers.values().cloned().collect();
        for driver in all {
            driver.close();
            driver.sink().0.end(Next::Silence);
        }
    }
}

/// A stream while it lasts; its end is the end of the connection.
struct Lasting {
    lanes: Arc<Lanes>,
    key: (Principal, SessionId),
    driver: Driver<Lane>,
    _place: Place,
}

impl Held for Lasting {
    fn outbox(&self) -> &Outbox {
        &self.driver.sink().0
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        self.lanes.lock().drivers.remove(&self.key);
        self.driver.close();
    }
}

fn refusal(status: StatusCode, problem: &'static str) -> Refusal {
    Refusal { status, problem, allow: None }
}

/// The headers of a later era do not belong here.
fn check_era(parts: &Parts, offer: Offer) -> Result<(), Box<Response<Payload>>> {
    match post::era_without_body(&parts.headers, offer) {
        Bodiless::Legacy => Ok(()),
        Bodiless::Modern => Err(Box::new(response::refused(&refusal(StatusCode::BAD_REQUEST, LEGACY_ALONE)))),
        Bodiless::Refused(response) => Err(response),
    }
}

const LEGACY_ALONE: &str = "this path serves clients that open with initialize: send modern requests to /mcp, or beneath it, in the place of /sse";

/// Opens a stream of the surface whose paths end in `suffix`; its first event says where to send messages.
pub(super) fn open(site: &Site, suffix: &str, parts: &Parts, asker: &Asker, serving: &Serving) -> Response<Payload> {
    if let Err(refused) = check_era(parts, site.offer()) {
        return *refused;
    }
    let accepted = media::accepted(parts.headers.get_all(header::ACCEPT).iter().map(HeaderValue::as_bytes));
    if !accepted.events {
        return response::refused(&refusal(StatusCode::NOT_ACCEPTABLE, "Accept must allow text/event-stream"));
    }
    let Some(place) = site.places.take() else {
        return response::busy(None, "there is no room for another session: try again later");
    };
    let Ok(id) = SessionId::random() else {
        tracing::error!("the system gives no randomness for a session id");
        return response::busy(None, "no session can be opened now: try again later");
    };
    // A path and nothing more: what a client sent as Host does not come back to it.
    let endpoint = framing::endpoint_event(&format!("{SSE}{suffix}{SSE_MESSAGES}?session={}", id.as_str()));
    let engine = site.engine.clone();
    let every = engine.limits.keep_alive;
    let connection = engine.open(asker.principal.clone());
    let driver = Driver::new(engine, connection, Lane::default());
    let key = (asker.principal.clone(), id);
    let mut table = site.lanes.lock();
    table.drivers.insert(key.clone(), driver.clone());
    if table.stopping {
        driver.sink().0.end(Next::Silence);
    }
    drop(table);
    let lasting = Lasting { lanes: Arc::clone(&site.lanes), key, driver, _place: place };
    let rest = Box::new(Rest::new(lasting));
    response::events(Events::payload(Some(endpoint), rest, serving.peer(), every))
}

/// The connection that a message is for, known before its body is read.
pub(super) fn find(site: &Site, parts: &Parts, asker: &Asker) -> Result<Driver<Lane>, Box<Response<Payload>>> {
    check_era(parts, site.offer())?;
    let id = parts.uri.query().and_then(|query| query.strip_prefix("session=")).map(str::as_bytes);
    let key = id.and_then(SessionId::read).map(|id| (asker.principal.clone(), id));
    let found = key.and_then(|key| site.lanes.lock().drivers.get(&key).cloned());
    let unknown = || {
        refusal(
            StatusCode::NOT_FOUND,
            "no stream is open under this address: open one by GET of this path without /message",
        )
    };
    let driver = found.ok_or_else(|| Box::new(response::refused(&unknown())))?;
    if driver.sink().0.is_full() {
        return Err(Box::new(response::busy(None, "the stream is not read: read it, then send again")));
    }
    Ok(driver)
}

/// Takes one message. What there is to say to it goes out by the stream.
pub(super) fn deliver(site: &Site, driver: &Driver<Lane>, asker: &Asker, body: &Bytes) -> Response<Payload> {
    let decoded = Decoded::read(body, &site.engine.limits.json);
    if let Some(refused) = asker.refusal(&site.engine.dispatcher.catalog(), &decoded) {
        return refused;
    }
    let is_modern = |params| !matches!(Claim::read(params, site.offer()), Ok(None));
    match &decoded {
        Decoded::One(Err(malformed)) => {
            let refused = post::told(malformed.answered_as(), malformed.fault.clone(), Era::Legacy);
            match malformed.as_response() {
                Some(response) => drop(driver.deliver_response(response)),
                None if malformed.id.is_some() => drop(driver.deliver(decoded, None, ())),
                None => {}
            }
            return refused;
        }
        Decoded::One(Ok(Message::Request(request))) if is_modern(&request.params) => {
            return refuse_modern(driver, Some(request.id.clone()));
        }
        Decoded::One(Ok(Message::Notification(notification))) if is_modern(&notification.params) => {
            return refuse_modern(driver, None);
        }
        Decoded::One(Ok(_)) | Decoded::Batch(_) => {}
    }
    driver.deliver(decoded, None, ());
    response::empty(StatusCode::ACCEPTED)
}

fn refuse_modern(driver: &Driver<Lane>, id: Option<RequestId>) -> Response<Payload> {
    let fault = Fault::InvalidRequest(LEGACY_ALONE.to_owned());
    if id.is_some() {
        driver.sink().0.say(Reply { id: id.clone(), result: Err(fault.clone()) }.encode());
    }
    post::told(id, fault, Era::Legacy)
}
