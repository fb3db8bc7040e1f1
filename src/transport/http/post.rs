//! One POST: from its body and headers to a connection, and from there to JSON or an event stream.
//!
//! The rows H1 to H27 of the decision: the body decides the era, the version header may only
//! agree with it (2026-07-28 basic/versioning, Era Detection; 2025-11-25 basic/transports).

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Response, StatusCode};

use super::super::driver::{Answer, Driver};
use super::auth::Asker;
use super::body::{Events, Held, Payload, Rest};
use super::media::Accepted;
use super::outbox::Next;
use super::reader::{First, Reader};
use super::session::{LegacySession, SessionId};
use super::single::{CancelAtTheEnd, CancelOnDrop, Single};
use super::socket::Peer;
use super::streams::{Streams, Waits};
use super::{LegacyMode, SESSION_HEADER, Site, response, status};
use crate::protocol;
use crate::protocol::admit::{self, Claim};
use crate::protocol::framing;
use crate::protocol::headers::{self, Said};
use crate::protocol::json::shortened;
use crate::protocol::limits::ECHOED_CHARACTERS;
use crate::protocol::{
    Arrival, Connection, Decoded, Era, Fault, Malformed, Message, Method, Mirror, Notification, Offer, Reply, Request,
    RequestId, Revision, Session,
};

/// What the version header says.
enum Header {
    Absent,
    Legacy(Revision),
    Modern,
    /// No revision of ours, or unreadable.
    Unknown(String),
}

impl Header {
    fn read(mirror: &Mirror<'_>) -> Self {
        match mirror.version() {
            Said::Absent => Self::Absent,
            Said::Unclear(_) => Self::Unknown(String::new()),
            Said::Text(text) => match Revision::parse(&text) {
                Ok(revision) if revision.era() == Era::Legacy => Self::Legacy(revision),
                Ok(_) => Self::Modern,
                Err(_) => Self::Unknown(shortened(&text, ECHOED_CHARACTERS)),
            },
        }
    }
}

/// What the session header says.
pub(super) enum Sid {
    Absent,
    Given(SessionId),
    /// Two of them, or no visible ASCII.
    Malformed,
}

impl Sid {
    pub(super) fn read(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(SESSION_HEADER).iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => SessionId::read(value.as_bytes()).map_or(Self::Malformed, Self::Given),
            (Some(_), Some(_)) => Self::Malformed,
        }
    }
}

/// Whether the version header of a request without a body names the modern era, or nothing we know.
pub(super) enum Bodiless {
    Legacy,
    Modern,
    Refused(Box<Response<Payload>>),
}

pub(super) fn era_without_body(headers: &HeaderMap, offer: Offer) -> Bodiless {
    match Header::read(&mirror_of(headers)) {
        Header::Modern => Bodiless::Modern,
        Header::Unknown(text) => {
            Bodiless::Refused(Box::new(told(None, admit::unsupported(&text, offer.supported()), Era::Legacy)))
        }
        Header::Absent | Header::Legacy(_) => Bodiless::Legacy,
    }
}

fn mirror_of(headers: &HeaderMap) -> Mirror<'_> {
    Mirror::new(headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())))
}

/// A response that tells a fault before any connection was asked.
pub(super) fn told(id: Option<RequestId>, fault: Fault, era: Era) -> Response<Payload> {
    let code = status::of(&fault, era);
    response::json(code, Reply { id, result: Err(fault) }.encode())
}

fn invalid(code: StatusCode, id: Option<RequestId>, problem: &str) -> Response<Payload> {
    let fault = Fault::InvalidRequest(problem.to_owned());
    response::json(code, Reply { id, result: Err(fault) }.encode())
}

struct Post<'s> {
    site: &'s Site,
    accepted: Accepted,
    mirror: Mirror<'s>,
    header: Header,
    sid: Sid,
    asker: Asker,
    offer: Offer,
    peer: Peer,
}

/// Serves one POST.
pub(super) async fn serve(
    site: &Site,
    parts: &Parts,
    accepted: Accepted,
    body: Bytes,
    asker: Asker,
    peer: Peer,
) -> Response<Payload> {
    let mirror = mirror_of(&parts.headers);
    let header = Header::read(&mirror);
    let catalog = site.engine.dispatcher.catalog();
    let decoded = Decoded::read(&body, &site.engine.limits.json);
    // Only what the message keeps of it stays in memory.
    drop(body);
    if let Some(refused) = asker.refusal(&catalog, &decoded) {
        return refused;
    }
    let (sid, offer) = (Sid::read(&parts.headers), catalog.offer());
    // What is served is looked up again: a call that waits must not keep an old catalog.
    drop(catalog);
    let post = Post { site, accepted, header, mirror, sid, asker, offer, peer };
    match decoded {
        Decoded::One(Err(malformed)) => post.malformed(malformed),
        Decoded::One(Ok(Message::Request(request))) => post.request(request).await,
        Decoded::One(Ok(Message::Notification(notification))) => post.notification(notification),
        Decoded::One(Ok(Message::Response(answer))) => post.answer_to_us(answer),
        Decoded::Batch(elements) => post.batch(elements).await,
    }
}

impl Post<'_> {
    /// The asker's session of that name: another's is none.
    fn session(&self, sid: &SessionId) -> Option<Arc<LegacySession>> {
        self.site.sessions.get(&self.asker.principal, sid)
    }

    async fn request(self, request: Request) -> Response<Payload> {
        match Claim::read(&request.params, self.offer) {
            Ok(None) => {}
            // An incomplete claim is refused by admission, with everything else that may be wrong in order.
            Ok(Some(_)) | Err(_) => return self.modern(Decoded::One(Ok(Message::Request(request)))).await,
        }
        let id = Some(request.id.clone());
        let method = Method::parse(&request.method);
        match &self.header {
            Header::Modern => return told(id, admit::unclaimed(self.offer), Era::Modern),
            Header::Unknown(text) => return told(id, admit::unsupported(text, self.offer.supported()), Era::Legacy),
            Header::Absent | Header::Legacy(_) => {}
        }
        if self.offer == Offer::ModernOnly {
            return self.modern(Decoded::One(Ok(Message::Request(request)))).await;
        }
        let session = match &self.sid {
            Sid::Malformed => return invalid(StatusCode::BAD_REQUEST, id, MALFORMED_SID),
            Sid::Absent => None,
            Sid::Given(sid) => match self.session(sid) {
                None => return invalid(StatusCode::NOT_FOUND, id, UNKNOWN_SESSION),
                found => found,
            },
        };
        let decoded = Decoded::One(Ok(Message::Request(request)));
        match (session, method) {
            // No session changes the fault of this one, which admission has.
            (_, Some(Method::Discover)) => self.modern(decoded).await,
            (None, Some(Method::Initialize)) => self.initialize(id, decoded).await,
            (Some(_), Some(Method::Initialize)) => {
                let problem =
                    "this session is initialized already: to open another, send initialize without Mcp-Session-Id";
                invalid(StatusCode::BAD_REQUEST, id, problem)
            }
            (Some(session), _) => self.in_session(&session, decoded).await,
            (None, _) => match self.site.legacy {
                LegacyMode::Sessions => invalid(StatusCode::BAD_REQUEST, id, NO_SESSION),
                LegacyMode::Stateless => self.assumed(decoded).await,
            },
        }
    }

    /// A connection that lives as long as the response; a client that goes away cancels its request.
    async fn modern(self, decoded: Decoded) -> Response<Payload> {
        if let (false, Decoded::One(Ok(Message::Request(Request { id, method, .. })))) =
            (self.accepted.events, &decoded)
            && Method::parse(method) == Some(Method::Listen)
        {
            // Whatever a subscription hears is told on its stream, so one without a stream would wait for ever.
            let problem = "subscriptions/listen is answered by a stream: Accept must allow text/event-stream";
            return invalid(StatusCode::NOT_ACCEPTABLE, Some(id.clone()), problem);
        }
        let engine = Arc::clone(&self.site.engine);
        let connection = engine.open(self.asker.principal.clone());
        let driver = Driver::new(engine, connection, Single::default());
        driver.deliver(decoded, Some(&self.mirror), ());
        self.respond(CancelOnDrop(driver), Era::Modern).await
    }

    /// Sessionless legacy: the header names the revision, or the one that has no header is assumed.
    async fn assumed(self, decoded: Decoded) -> Response<Payload> {
        let revision = match self.header {
            Header::Legacy(revision) => revision,
            _ => Revision::ASSUMED_OVER_HTTP,
        };
        let engine = self.site.engine.clone();
        let connection = engine.open(self.asker.principal.clone()).with_session(Session::assumed(revision)).one_way();
        self.once(connection, decoded).await
    }

    /// A legacy connection of one POST. What it asked for goes on when the client goes away.
    async fn once(self, connection: Connection, decoded: Decoded) -> Response<Payload> {
        let driver = Driver::new(Arc::clone(&self.site.engine), connection, Single::default());
        driver.deliver(decoded, None, ());
        let ending = self.site.ending.subscribe();
        self.respond(CancelAtTheEnd { driver, ending }, Era::Legacy).await
    }

    async fn initialize(self, id: Option<RequestId>, decoded: Decoded) -> Response<Payload> {
        let engine = self.site.engine.clone();
        let connection = engine.open(self.asker.principal.clone());
        if self.site.legacy != LegacyMode::Sessions {
            return self.once(connection.one_way(), decoded).await;
        }
        let Some(place) = self.site.places.take() else {
            return response::busy(id, "there is no room for another session: try again later");
        };
        let (Ok(sid), Ok(tag)) = (SessionId::random(), getrandom::u64()) else {
            tracing::error!("the system gives no randomness for a session id");
            return response::busy(id, "no session can be opened now: try again later");
        };
        let streams = Streams::new(tag, self.site.replay.clone());
        let session = Arc::new(LegacySession::new(Driver::new(engine, connection, streams)));
        let arrival = session.driver.deliver(decoded, None, Some(self.waits()));
        let Some(revision) = session.driver.session_revision() else { return self.respond_in(&session, arrival).await };
        session.streams().agree(revision.rules().polling);
        let name = HeaderValue::from_str(sid.as_str());
        self.site.sessions.insert(self.asker.principal.clone(), sid, Arc::clone(&session), place);
        let mut answer = self.respond_in(&session, arrival).await;
        if let Ok(name) = name {
            answer.headers_mut().insert(SESSION_HEADER, name);
        }
        answer
    }

    async fn in_session(self, session: &Arc<LegacySession>, decoded: Decoded) -> Response<Payload> {
        if let (Header::Legacy(named), Some(agreed)) = (&self.header, session.driver.session_revision())
            && *named != agreed
        {
            tracing::debug!(%named, %agreed, "the version header differs from the session's revision, which is kept");
        }
        let arrival = session.driver.deliver(decoded, None, Some(self.waits()));
        self.respond_in(session, arrival).await
    }

    fn waits(&self) -> Waits {
        Waits { takes_events: self.accepted.events }
    }

    /// Waits for what comes first in a session: an answer is sent as one body, anything before it opens a stream.
    async fn respond_in(self, session: &LegacySession, arrival: Arrival) -> Response<Payload> {
        let reader = Reader::of_post(Arc::clone(session.streams()), arrival);
        let answer = match reader.first().await {
            First::Silence => return response::empty(StatusCode::ACCEPTED),
            First::Answer(answer) if self.accepted.json || code_of(&answer, Era::Legacy) != StatusCode::OK => {
                return answered(&answer, self.accepted, Era::Legacy);
            }
            First::Answer(answer) => Some(answer),
            First::Stream => None,
        };
        let every = self.site.engine.limits.keep_alive;
        response::events(Events::payload(None, Box::new(reader.into_stream(answer)), self.peer, every))
    }

    fn notification(self, notification: Notification) -> Response<Payload> {
        let claim = match Claim::read(&notification.params, self.offer) {
            Ok(claim) => claim,
            Err(fault) => return told(None, fault, Era::Modern),
        };
        if claim.is_some() || matches!(self.header, Header::Modern) {
            // Header rules for notifications are undefined: what is there must agree (2026-07-28 transports/streamable-http).
            let agrees = claim.map_or(Ok(()), |claim| self.mirror.check_version(claim.version())).and_then(|()| {
                if self.mirror.has_method() { self.mirror.check_method(&notification.method) } else { Ok(()) }
            });
            return agrees
                .map_or_else(|fault| told(None, fault, Era::Modern), |()| response::empty(StatusCode::ACCEPTED));
        }
        if let Header::Unknown(text) = &self.header {
            return told(None, admit::unsupported(text, self.offer.supported()), Era::Legacy);
        }
        if self.offer == Offer::ModernOnly {
            return told(None, admit::unclaimed(self.offer), Era::Legacy);
        }
        match (&self.sid, self.site.legacy) {
            (Sid::Malformed, _) => invalid(StatusCode::BAD_REQUEST, None, MALFORMED_SID),
            (Sid::Given(sid), _) => match self.session(sid) {
                None => invalid(StatusCode::NOT_FOUND, None, UNKNOWN_SESSION),
                Some(session) => {
                    session.driver.deliver(Decoded::One(Ok(Message::Notification(notification))), None, None);
                    response::empty(StatusCode::ACCEPTED)
                }
            },
            (Sid::Absent, LegacyMode::Sessions) => invalid(StatusCode::BAD_REQUEST, None, NO_SESSION),
            (Sid::Absent, LegacyMode::Stateless) => response::empty(StatusCode::ACCEPTED),
        }
    }

    /// No message; whoever waits for a response that it was to be waits no longer.
    fn malformed(self, malformed: Malformed) -> Response<Payload> {
        let (id, fault) = (malformed.answered_as(), malformed.fault.clone());
        if let Some(answer) = malformed.as_response() {
            let _ = self.answer_to_us(answer);
        }
        told(id, fault, Era::Legacy)
    }

    /// A response belongs to the session that asked, and to nothing else.
    fn answer_to_us(self, answer: protocol::Response) -> Response<Payload> {
        if let Header::Unknown(text) = &self.header {
            return told(None, admit::unsupported(text, self.offer.supported()), Era::Legacy);
        }
        let session = match (&self.header, &self.sid) {
            (Header::Absent | Header::Legacy(_), Sid::Given(sid)) => match self.session(sid) {
                None => return invalid(StatusCode::NOT_FOUND, None, UNKNOWN_SESSION),
                found => found,
            },
            _ => None,
        };
        if session.is_some_and(|session| session.driver.deliver_response(answer)) {
            return response::empty(StatusCode::ACCEPTED);
        }
        invalid(StatusCode::BAD_REQUEST, None, "this answers no request of this server")
    }

    async fn batch(self, elements: Vec<Result<Message, Malformed>>) -> Response<Payload> {
        let refuse = |problem: &str| invalid(StatusCode::BAD_REQUEST, None, problem);
        if elements.iter().flatten().any(admit::stands_alone) {
            return refuse("an array holds neither initialize nor a message with modern _meta: send that one alone");
        }
        let batches = match &self.header {
            Header::Unknown(text) => return told(None, admit::unsupported(text, self.offer.supported()), Era::Legacy),
            Header::Legacy(revision) => revision.rules().batches,
            Header::Absent => true,
            Header::Modern => false,
        };
        let dates = Revision::with_batches();
        let problem = format!("an array of messages is taken only in revision {dates}: send one message");
        let decoded = Decoded::Batch(elements);
        match (&self.sid, self.site.legacy) {
            _ if self.offer == Offer::ModernOnly => refuse("send one message, not an array"),
            _ if matches!(self.header, Header::Modern) => refuse(&problem),
            (Sid::Malformed, _) => refuse(MALFORMED_SID),
            (Sid::Given(sid), _) => match self.session(sid) {
                None => invalid(StatusCode::NOT_FOUND, None, UNKNOWN_SESSION),
                Some(_) if !batches => refuse(&problem),
                Some(session) => self.in_session(&session, decoded).await,
            },
            (Sid::Absent, _) if !batches => refuse(&problem),
            (Sid::Absent, LegacyMode::Sessions) => refuse(NO_SESSION),
            (Sid::Absent, LegacyMode::Stateless) => self.assumed(decoded).await,
        }
    }

    /// Waits for the first output: an answer is sent as one body, a notification opens a stream.
    async fn respond(self, held: impl Held, era: Era) -> Response<Payload> {
        loop {
            let next = tokio::select! {
                biased;
                next = held.outbox().next() => next,
                // Nobody reads this; what matters is that `held` is dropped.
                () = self.peer.gone(), if era == Era::Modern => return response::last(StatusCode::ACCEPTED),
            };
            match next {
                Next::Answer(answer) => return answered(&answer, self.accepted, era),
                Next::Silence => return response::empty(StatusCode::ACCEPTED),
                Next::Message(message) if self.accepted.events => {
                    let every = self.site.engine.limits.keep_alive;
                    let rest = Box::new(Rest::new(held));
                    return response::events(Events::payload(Some(framing::event(&message)), rest, self.peer, every));
                }
                // A client that takes only JSON does without notices.
                Next::Message(_) => {}
            }
        }
    }
}

const NO_SESSION: &str = "this request belongs to no session: open with initialize and send its Mcp-Session-Id, or send the modern _meta and headers";
pub(super) const UNKNOWN_SESSION: &str = "no such session: open another by initialize without Mcp-Session-Id";
pub(super) const MALFORMED_SID: &str = "Mcp-Session-Id must stand once and be visible ASCII";

fn code_of(answer: &Answer, era: Era) -> StatusCode {
    match answer {
        Answer::One(Reply { result: Err(fault), .. }) => status::of(fault, era),
        Answer::Many(replies) if replies.is_empty() => StatusCode::ACCEPTED,
        Answer::One(_) | Answer::Many(_) => StatusCode::OK,
    }
}

fn answered(answer: &Answer, accepted: Accepted, era: Era) -> Response<Payload> {
    let code = code_of(answer, era);
    if let (Answer::One(reply), true) = (answer, accepted.json) {
        return response::json_in_parts(code, reply.parts().into());
    }
    let Some(message) = answer.encode() else { return response::empty(StatusCode::ACCEPTED) };
    if accepted.json { response::json(code, message) } else { response::one_event(code, framing::event(&message)) }
}

/// The headers that a browser may send and read, where an origin is named at all.
pub(super) const CROSS_ORIGIN_HEADERS: &str =
    "Content-Type, Accept, Authorization, MCP-Protocol-Version, Mcp-Session-Id, Last-Event-ID, Mcp-Method, Mcp-Name";

/// Whether a header that a browser wants to send mirrors an argument.
pub(super) fn mirrors_argument(name: &str) -> bool {
    name.to_ascii_lowercase().starts_with(headers::PARAM_PREFIX)
}
