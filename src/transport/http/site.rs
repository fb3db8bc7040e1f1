//! One surface on a listener: what it is served from, and who is connected to it.
//!
//! Promises: a session, a stream and an event of one surface are unknown to every other; only the room for
//! them is shared.

use std::sync::Arc;

use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use tokio::sync::watch;

use super::auth::Asker;
use super::body::{Events, Payload};
use super::guard::{self, Refusal};
use super::post::{self, Bodiless, Sid};
use super::replay::Room;
use super::session::{LegacySession, Places, SessionId, Sessions};
use super::socket::Serving;
use super::sse::Lanes;
use super::{LegacyMode, media, response};
use crate::protocol::Offer;
use crate::transport::Engine;

const UNKNOWN_EVENT: &str =
    "no stream of this session can be resumed after this event: open another by GET without Last-Event-ID";

pub(super) struct Site {
    pub(super) engine: Arc<Engine>,
    pub(super) legacy: LegacyMode,
    /// The verbs of its endpoint.
    pub(super) verbs: &'static str,
    pub(super) sessions: Sessions,
    /// The streams of HTTP+SSE.
    pub(super) lanes: Arc<Lanes>,
    /// Sessions of every surface and transport on the listener.
    pub(super) places: Places,
    /// Room for what can be replayed to clients that lost their connection, of every surface.
    pub(super) replay: Room,
    /// Whether calls are cancelled whatever their era: those of clients that are gone, and of those that go.
    pub(super) ending: watch::Sender<bool>,
}

impl Site {
    pub(super) fn new(engine: Engine, legacy: LegacyMode, places: Places, replay: Room) -> Self {
        let verbs = match (engine.dispatcher.catalog().offer(), legacy) {
            (Offer::Both, LegacyMode::Sessions) => "GET, POST, DELETE",
            (Offer::Both, LegacyMode::Stateless) | (Offer::ModernOnly, _) => "POST",
        };
        let sessions = Sessions::new(engine.limits.session_idle);
        let (lanes, ending) = (Arc::default(), watch::Sender::new(false));
        Self { engine: Arc::new(engine), legacy, verbs, sessions, lanes, places, replay, ending }
    }

    pub(super) fn offer(&self) -> Offer {
        self.engine.dispatcher.catalog().offer()
    }

    /// Ends what would hold up a stop; calls go on.
    pub(super) fn drain(&self) {
        self.engine.hub.draining();
        self.sessions.end_streams();
        self.lanes.end_idle();
    }

    /// Cancels what legacy clients asked for, with a session and without.
    pub(super) fn end_calls(&self) {
        self.ending.send_replace(true);
        self.sessions.end_all();
        self.lanes.end_all();
    }

    /// What GET and DELETE have in common: a live legacy session, or the answer that says why not.
    fn live(
        &self,
        parts: &Parts,
        asker: &Asker,
        without: StatusCode,
    ) -> Result<(SessionId, Arc<LegacySession>), Box<Response<Payload>>> {
        match post::era_without_body(&parts.headers, self.offer()) {
            Bodiless::Modern => return Err(Box::new(response::refused(&guard::wrong_verb("POST")))),
            Bodiless::Refused(response) => return Err(response),
            Bodiless::Legacy => {}
        }
        let refuse = |status, problem| {
            let allow = (status == StatusCode::METHOD_NOT_ALLOWED).then_some(self.verbs);
            Err(Box::new(response::refused(&Refusal { status, problem, allow })))
        };
        match Sid::read(&parts.headers) {
            Sid::Absent => refuse(without, "this needs the Mcp-Session-Id of a live session"),
            Sid::Malformed => refuse(StatusCode::BAD_REQUEST, post::MALFORMED_SID),
            Sid::Given(id) => match self.sessions.get(&asker.principal, &id) {
                Some(session) => Ok((id, session)),
                None => refuse(StatusCode::NOT_FOUND, post::UNKNOWN_SESSION),
            },
        }
    }

    pub(super) fn get(&self, parts: &Parts, asker: &Asker, serving: &Serving) -> Response<Payload> {
        let (_, session) = match self.live(parts, asker, StatusCode::METHOD_NOT_ALLOWED) {
            Ok(live) => live,
            Err(refused) => return *refused,
        };
        let accepted = media::accepted(parts.headers.get_all(header::ACCEPT).iter().map(HeaderValue::as_bytes));
        let refuse = |status, problem| response::refused(&Refusal { status, problem, allow: None });
        if !accepted.events {
            return refuse(StatusCode::NOT_ACCEPTABLE, "Accept must allow text/event-stream");
        }
        let mut resumed = parts.headers.get_all("last-event-id").iter();
        let reader = match (resumed.next(), resumed.next()) {
            (None, _) => match session.streams().listen() {
                Some(reader) => reader,
                None => return refuse(StatusCode::CONFLICT, "this session's stream is open already"),
            },
            (Some(id), None) => match id.to_str().ok().and_then(|id| session.streams().resume(id)) {
                Some(reader) => reader,
                None => return refuse(StatusCode::BAD_REQUEST, UNKNOWN_EVENT),
            },
            (Some(_), Some(_)) => return refuse(StatusCode::BAD_REQUEST, "Last-Event-ID must stand once"),
        };
        response::events(Events::payload(None, Box::new(reader), serving.peer(), self.engine.limits.keep_alive))
    }

    pub(super) fn delete(&self, parts: &Parts, asker: &Asker) -> Response<Payload> {
        match self.live(parts, asker, StatusCode::BAD_REQUEST) {
            Err(refused) => *refused,
            Ok((id, _)) => {
                self.sessions.remove(&asker.principal, &id);
                response::empty(StatusCode::NO_CONTENT)
            }
        }
    }
}
