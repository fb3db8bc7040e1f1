//! Streamable HTTP for both eras on one endpoint.
//!
//! Promises: the guard judges every request before its body is read; nothing is keyed on a TCP
//! connection; a stop ends streams, lets answers in flight go out for the drain time, and returns.

pub mod auth;
mod body;
pub mod guard;
mod head;
mod media;
mod outbox;
mod post;
mod reader;
mod replay;
mod response;
mod session;
mod single;
mod socket;
mod sse;
mod status;
mod streams;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use self::auth::{Asker, Auth, Authority};
use self::body::{Answering, Budget, Events, Payload};
use self::guard::{Allowed, Entrance, Passed, Refusal};
use self::post::{Bodiless, Sid};
use self::replay::Room;
use self::session::{Places, Sessions};
use self::socket::{Serving, Socket, Turn};
use self::sse::Lanes;
use super::{Engine, ServeError};
use crate::protocol::{CacheScope, Offer};

const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");

/// Most headers of one request.
const HEADERS_AT_MOST: usize = 64;
/// Most bytes of one request's head.
const HEAD_BYTES: usize = 16 * 1024;
/// Interval at which unused sessions are looked for; shorter where they may be idle for less than four of these.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// Pause after a failed accept, so that a full descriptor table is not a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How legacy clients are served over HTTP, where the catalog offers their revisions at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LegacyMode {
    /// `initialize` opens a session, named by `Mcp-Session-Id`.
    #[default]
    Sessions,
    /// Every request stands alone; the version header names the revision.
    Stateless,
}

/// What an operator decides about a listener.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How legacy clients are served, if the catalog's offer has them served.
    pub legacy: LegacyMode,
    /// Whether HTTP+SSE is served beside the endpoint, to the same legacy clients.
    pub sse: bool,
    /// Values of `Host` beyond the listener's own, exact.
    pub allow_hosts: Vec<String>,
    /// Values of `Origin` beyond the listener's own, exact; only these get cross-origin headers.
    pub allow_origins: Vec<String>,
    /// How callers are authorized; where nothing says so, whoever reaches the listener may ask.
    pub auth: Option<Auth>,
}

/// Listens on an address.
pub async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })
}

/// How far a stop has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Serving,
    /// What is in flight may end.
    Draining,
    /// What is left is dropped.
    Ending,
}

struct Server {
    engine: Engine,
    options: Options,
    allowed: Allowed,
    /// Who authorizes callers, if anybody does.
    authority: Option<Arc<Authority>>,
    sessions: Sessions,
    /// The streams of HTTP+SSE.
    lanes: Arc<Lanes>,
    /// Sessions of every transport on this listener.
    places: Places,
    /// Room for what can be replayed to clients that lost their connection.
    replay: Room,
    budget: Budget,
    /// Whether calls are cancelled whatever their era: those of clients that are gone, and of those that go.
    ending: watch::Sender<bool>,
}

impl Server {
    fn verbs(offer: Offer, legacy: LegacyMode) -> &'static str {
        match (offer, legacy) {
            (Offer::Both, LegacyMode::Sessions) => "GET, POST, DELETE",
            (Offer::Both, LegacyMode::Stateless) | (Offer::ModernOnly, _) => "POST",
        }
    }

    /// Cancels what legacy clients asked for, with a session and without.
    fn end_calls(&self) {
        self.ending.send_replace(true);
        self.sessions.end_all();
        self.lanes.end_all();
    }

    /// Finds out who asks.
    async fn asker(&self, parts: &Parts) -> Result<Asker, Box<Response<Payload>>> {
        match &self.authority {
            Some(authority) => authority.asker(parts).await,
            None => Ok(Asker::anyone()),
        }
    }

    fn offer(&self) -> Offer {
        self.engine.dispatcher.catalog().offer()
    }
}

/// Serves until `stop` ends, then lets what is in flight end for the engine's drain time.
pub async fn serve(
    engine: Engine,
    listener: TcpListener,
    options: Options,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let unset = SocketAddr::from(([0, 0, 0, 0], 0));
    let address = listener.local_addr().map_err(|source| ServeError::Listen { address: unset, source })?;
    let limits = engine.limits().clone();
    let catalog = engine.dispatcher.catalog();
    let offer = catalog.offer();
    let verbs = Server::verbs(offer, options.legacy);
    let authority = options.auth.as_ref().map(|auth| Authority::new(auth, address)).transpose()?.map(Arc::new);
    if authority.is_some() && catalog.cache_scope() == CacheScope::Public {
        return Err(ServeError::SharedCache);
    }
    drop(catalog);
    let server = Arc::new(Server {
        allowed: Allowed::on_loopback(address, &options.allow_hosts, &options.allow_origins, verbs)
            .with_sse(options.sse && offer == Offer::Both)
            .with_metadata(authority.as_ref().map(|authority| authority.paths()).unwrap_or_default()),
        authority,
        sessions: Sessions::new(limits.session_idle),
        lanes: Arc::default(),
        places: Places::new(limits.sessions),
        replay: Room::new(limits.replay),
        budget: Budget::new(limits.bodies),
        ending: watch::Sender::new(false),
        engine,
        options,
    });
    let sockets = Arc::new(Semaphore::new(limits.sockets));
    let (stage, stages) = watch::channel(Stage::Serving);
    let mut sweep = tokio::time::interval(SWEEP_EVERY.min(limits.session_idle / 4).max(Duration::from_millis(10)));
    let mut stop = std::pin::pin!(stop);
    let mut failing = false;
    loop {
        let next = async {
            let place = Arc::clone(&sockets).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            biased;
            () = &mut stop => break,
            _ = sweep.tick() => server.sessions.sweep(),
            (place, accepted) = next => match accepted {
                Ok((stream, _)) => {
                    failing = false;
                    let served = carry(Arc::clone(&server), stream, stages.clone());
                    tokio::spawn(async move {
                        served.await;
                        drop(place);
                    });
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%error, "connections cannot be accepted");
                    }
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    drop(stages);
    server.engine.hub.draining();
    server.sessions.end_streams();
    server.lanes.end_idle();
    let _ = stage.send(Stage::Draining);
    if tokio::time::timeout(limits.drain, stage.closed()).await.is_err() {
        server.end_calls();
        let _ = stage.send(Stage::Ending);
    }
    server.end_calls();
    let _ = tokio::time::timeout(limits.stop, async { tokio::join!(stage.closed(), server.engine.idle()) }).await;
    Ok(())
}

/// Carries one TCP connection until it ends, or until the stop has let its last answer out.
async fn carry(server: Arc<Server>, stream: TcpStream, mut stages: watch::Receiver<Stage>) {
    let _ = stream.set_nodelay(true);
    let limits = server.engine.limits().clone();
    let turn = Arc::new(Turn::new(stream));
    let socket = Socket::new(Arc::clone(&turn), &limits);
    let service = service_fn(move |request| {
        let server = Arc::clone(&server);
        let serving = turn.begin();
        async move {
            let answer = answer(&server, request, &serving).await;
            Ok::<_, Infallible>(answer.map(|payload| Answering::new(payload, serving)))
        }
    });
    let mut builder = http1::Builder::new();
    // The socket keeps the times: one for a head, another for the pause between two requests.
    builder.header_read_timeout(None).max_headers(HEADERS_AT_MOST).max_header_size(HEAD_BYTES);
    let connection = builder.serve_connection(TokioIo::new(socket), service);
    let mut connection = std::pin::pin!(connection);
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break ended,
            _ = stages.changed() => match *stages.borrow_and_update() {
                Stage::Serving => {}
                Stage::Draining => connection.as_mut().graceful_shutdown(),
                Stage::Ending => return,
            },
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended with an error");
    }
}

async fn answer(server: &Arc<Server>, request: Request<Incoming>, serving: &Serving) -> Response<Payload> {
    let (parts, body) = request.into_parts();
    if serving.is_ambiguous() {
        return close(response::refused(&guard::ambiguous()), serving);
    }
    let closing = !body.is_end_stream() || parts.method == Method::POST || parts.method == Method::CONNECT;
    let unread = |response| if closing { close(response, serving) } else { response };
    let mut response = match guard::judge(&parts, &server.allowed) {
        Err(refusal) => unread(response::refused(&refusal)),
        Ok(Passed::Health) => response::json(StatusCode::OK, "\"ok\"".into()),
        Ok(Passed::Preflight(verbs)) => preflight(verbs, &parts),
        Ok(Passed::MetadataPreflight) => auth::metadata_preflight(),
        Ok(Passed::Metadata) => match &server.authority {
            Some(authority) => authority.metadata(),
            None => response::empty(StatusCode::NOT_FOUND),
        },
        Ok(Passed::Entrance(entrance)) => match server.asker(&parts).await {
            Err(refused) => unread(*refused),
            Ok(asker) => enter(server, entrance, &parts, body, asker, serving).await.unwrap_or_else(unread),
        },
    };
    if serving.is_last() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(origin) = guard::cross_origin(&parts.headers, &server.allowed)
        && let Ok(origin) = HeaderValue::from_str(origin)
    {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate"),
        );
    }
    response
}

/// Serves somebody who is authorized; or gives the refusal of what was not read.
async fn enter(
    server: &Arc<Server>,
    entrance: Entrance,
    parts: &Parts,
    body: Incoming,
    asker: Asker,
    serving: &Serving,
) -> Result<Response<Payload>, Response<Payload>> {
    let limits = &server.engine.limits;
    let refused = |refusal: Refusal| response::refused(&refusal);
    Ok(match entrance {
        Entrance::Get => get(server, parts, &asker, serving),
        Entrance::Delete => delete(server, parts, &asker),
        Entrance::SseStream => sse::open(server, parts, &asker, serving),
        Entrance::SseMessage => {
            guard::judge_sse_message(&parts.headers, limits.message).map_err(refused)?;
            let lane = sse::find(server, parts, &asker).map_err(|refused| *refused)?;
            let body = body::read(body, limits, &server.budget).await.map_err(refused)?;
            sse::deliver(server, &lane, &asker, &body)
        }
        Entrance::Post => {
            let accepted = guard::judge_post(&parts.headers, limits.message).map_err(refused)?;
            let body = body::read(body, limits, &server.budget).await.map_err(refused)?;
            post::serve(server, parts, accepted, body, asker, serving.peer()).await
        }
    })
}

/// A refused request's body is not read, so nothing after it on the connection can be trusted to be a request.
fn close(mut response: Response<Payload>, serving: &Serving) -> Response<Payload> {
    serving.leave_unread();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

fn preflight(verbs: &'static str, parts: &Parts) -> Response<Payload> {
    let mut response = response::empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(verbs));
    let asked =
        parts.headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let mirrored = asked.split(',').map(str::trim).filter(|name| post::mirrors_argument(name));
    let allowed: Vec<&str> = std::iter::once(post::CROSS_ORIGIN_HEADERS).chain(mirrored).collect();
    if let Ok(value) = HeaderValue::from_str(&allowed.join(", ")) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, value);
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// What GET and DELETE have in common: a live legacy session, or the answer that says why not.
fn live(
    server: &Server,
    parts: &Parts,
    asker: &Asker,
    without: StatusCode,
) -> Result<(session::SessionId, Arc<session::LegacySession>), Box<Response<Payload>>> {
    match post::era_without_body(&parts.headers, server.offer()) {
        Bodiless::Modern => return Err(Box::new(response::refused(&guard::wrong_verb("POST")))),
        Bodiless::Refused(response) => return Err(response),
        Bodiless::Legacy => {}
    }
    let refuse = |status, problem| {
        let allow = (status == StatusCode::METHOD_NOT_ALLOWED).then(|| server.allowed.verbs());
        Err(Box::new(response::refused(&Refusal { status, problem, allow })))
    };
    match Sid::read(&parts.headers) {
        Sid::Absent => refuse(without, "this needs the Mcp-Session-Id of a live session"),
        Sid::Malformed => refuse(StatusCode::BAD_REQUEST, post::MALFORMED_SID),
        Sid::Given(id) => match server.sessions.get(&asker.principal, &id) {
            Some(session) => Ok((id, session)),
            None => refuse(StatusCode::NOT_FOUND, post::UNKNOWN_SESSION),
        },
    }
}

fn get(server: &Server, parts: &Parts, asker: &Asker, serving: &Serving) -> Response<Payload> {
    let (_, session) = match live(server, parts, asker, StatusCode::METHOD_NOT_ALLOWED) {
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
    response::events(Events::payload(None, Box::new(reader), serving.peer(), server.engine.limits.keep_alive))
}

const UNKNOWN_EVENT: &str =
    "no stream of this session can be resumed after this event: open another by GET without Last-Event-ID";

fn delete(server: &Server, parts: &Parts, asker: &Asker) -> Response<Payload> {
    match live(server, parts, asker, StatusCode::BAD_REQUEST) {
        Err(refused) => *refused,
        Ok((id, _)) => {
            server.sessions.remove(&asker.principal, &id);
            response::empty(StatusCode::NO_CONTENT)
        }
    }
}
