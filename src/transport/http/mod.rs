//! Streamable HTTP for both eras, each surface on an endpoint of its own.
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
mod site;
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
use self::body::{Answering, Budget, Payload};
use self::guard::{Allowed, Entrance, Passed, Place, Refusal};
use self::replay::Room;
use self::session::Places;
use self::site::Site;
use self::socket::{Serving, Socket, Turn};
use super::{Engine, ServeError};
use crate::protocol::{CacheScope, Limits, Offer};

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

/// A surface that is to be served.
#[derive(Clone)]
pub struct Mount {
    /// What follows `/mcp/` in its path: 1 to 129 of A-Z a-z 0-9 _ . - @, but neither `.` nor `..`. The first surface is at
    /// `/mcp` too and needs none.
    pub name: Option<String>,
    /// What it is served from. It has a hub of its own; its calls in flight count among those of another with
    /// [`Engine::beside`].
    pub engine: Engine,
}

/// A way to a surface, on the listener.
struct Address {
    site: Arc<Site>,
    /// What follows `/mcp` and `/sse`.
    suffix: String,
    /// Who authorizes callers, if anybody does.
    authority: Option<Arc<Authority>>,
}

impl Address {
    /// Finds out who asks.
    async fn asker(&self, parts: &Parts) -> Result<Asker, Box<Response<Payload>>> {
        match &self.authority {
            Some(authority) => authority.asker(parts).await,
            None => Ok(Asker::anyone()),
        }
    }
}

/// A listener and all that is served on it.
struct Server {
    limits: Limits,
    allowed: Allowed,
    /// In the order of the guard's places.
    addresses: Vec<Address>,
    /// Each surface once.
    sites: Vec<Arc<Site>>,
    budget: Budget,
}

impl Server {
    /// Lays out where everything is.
    fn new(first: Mount, others: Vec<Mount>, address: SocketAddr, options: &Options) -> Result<Self, ServeError> {
        let limits = first.engine.limits().clone();
        let (places, replay) = (Places::new(limits.sessions), Room::new(limits.replay));
        let mut addresses = Vec::new();
        let mut sites = Vec::new();
        for (index, Mount { name, engine }) in std::iter::once(first).chain(others).enumerate() {
            if options.auth.is_some() && engine.dispatcher.catalog().cache_scope() == CacheScope::Public {
                return Err(ServeError::SharedCache);
            }
            let mut suffixes: Vec<String> = (index == 0).then(String::new).into_iter().collect();
            match name {
                Some(name) if is_path_safe(&name) => suffixes.push(format!("/{name}")),
                None if index == 0 => {}
                name => return Err(ServeError::Path { name: name.unwrap_or_default() }),
            }
            let site = Arc::new(Site::new(engine, options.legacy, places.clone(), replay.clone()));
            for suffix in suffixes {
                if addresses.iter().any(|known: &Address| known.suffix == suffix) {
                    return Err(ServeError::Path { name: suffix.trim_start_matches('/').to_owned() });
                }
                let auth = options.auth.as_ref();
                let authority = auth.map(|auth| Authority::new(auth, address, &suffix)).transpose()?.map(Arc::new);
                addresses.push(Address { site: Arc::clone(&site), suffix, authority });
            }
            sites.push(site);
        }
        let place = |address: &Address| Place {
            suffix: address.suffix.clone(),
            verbs: address.site.verbs,
            sse: options.sse && address.site.offer() == Offer::Both,
        };
        let places = addresses.iter().map(place).collect();
        let metadata = Authority::paths(addresses.iter().filter_map(|address| address.authority.as_deref()));
        let allowed = Allowed::on_loopback(address, &options.allow_hosts, &options.allow_origins, places);
        let budget = Budget::new(limits.bodies);
        Ok(Self { limits, allowed: allowed.with_metadata(metadata), addresses, sites, budget })
    }

    /// Cancels what legacy clients asked for, with a session and without.
    fn end_calls(&self) {
        self.sites.iter().for_each(|site| site.end_calls());
    }

    /// Ends when no call is running.
    async fn idle(&self) {
        for site in &self.sites {
            site.engine.idle().await;
        }
    }
}

/// Whether a name stands in a path as it is, and whoever follows the path gets there.
pub fn is_path_safe(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.-@".contains(&b);
    (1..=129).contains(&name.len()) && name.bytes().all(plain) && name != "." && name != ".."
}

/// Serves one surface until `stop` ends, then lets what is in flight end for the engine's drain time.
pub async fn serve(
    engine: Engine,
    listener: TcpListener,
    options: Options,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    serve_all(Mount { name: None, engine }, Vec::new(), listener, options, stop).await
}

/// Serves several surfaces as [`serve`] does one: the first at `/mcp`, each at `/mcp/` and its name. No two know anything
/// of each other's sessions; room for sessions, bodies and sockets is shared, by the first one's limits.
pub async fn serve_all(
    first: Mount,
    others: Vec<Mount>,
    listener: TcpListener,
    options: Options,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let unset = SocketAddr::from(([0, 0, 0, 0], 0));
    let address = listener.local_addr().map_err(|source| ServeError::Listen { address: unset, source })?;
    let server = Arc::new(Server::new(first, others, address, &options)?);
    let limits = server.limits.clone();
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
            _ = sweep.tick() => server.sites.iter().for_each(|site| site.sessions.sweep()),
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
    server.sites.iter().for_each(|site| site.drain());
    let _ = stage.send(Stage::Draining);
    if tokio::time::timeout(limits.drain, stage.closed()).await.is_err() {
        server.end_calls();
        let _ = stage.send(Stage::Ending);
    }
    server.end_calls();
    let _ = tokio::time::timeout(limits.stop, async { tokio::join!(stage.closed(), server.idle()) }).await;
    Ok(())
}

/// Carries one TCP connection until it ends, or until the stop has let its last answer out.
async fn carry(server: Arc<Server>, stream: TcpStream, mut stages: watch::Receiver<Stage>) {
    let _ = stream.set_nodelay(true);
    let turn = Arc::new(Turn::new(stream));
    let socket = Socket::new(Arc::clone(&turn), &server.limits);
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
        Ok(Passed::Metadata(at)) => match server.addresses.get(at).and_then(|address| address.authority.as_deref()) {
            Some(authority) => authority.metadata(),
            None => response::empty(StatusCode::NOT_FOUND),
        },
        Ok(Passed::Entrance(entrance, at)) => match server.addresses.get(at) {
            Some(address) => match address.asker(&parts).await {
                Err(refused) => unread(*refused),
                Ok(asker) => {
                    enter(server, address, entrance, &parts, body, asker, serving).await.unwrap_or_else(unread)
                }
            },
            None => unread(response::empty(StatusCode::NOT_FOUND)),
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
    server: &Server,
    Address { site, suffix, .. }: &Address,
    entrance: Entrance,
    parts: &Parts,
    body: Incoming,
    asker: Asker,
    serving: &Serving,
) -> Result<Response<Payload>, Response<Payload>> {
    let limits = site.engine.limits();
    let refused = |refusal: Refusal| response::refused(&refusal);
    Ok(match entrance {
        Entrance::Get => site.get(parts, &asker, serving),
        Entrance::Delete => site.delete(parts, &asker),
        Entrance::SseStream => sse::open(site, suffix, parts, &asker, serving),
        Entrance::SseMessage => {
            guard::judge_sse_message(&parts.headers, limits.message).map_err(refused)?;
            let lane = sse::find(site, parts, &asker).map_err(|refused| *refused)?;
            let body = body::read(body, limits, &server.budget).await.map_err(refused)?;
            sse::deliver(site, &lane, &asker, &body)
        }
        Entrance::Post => {
            let accepted = guard::judge_post(&parts.headers, limits.message).map_err(refused)?;
            let body = body::read(body, limits, &server.budget).await.map_err(refused)?;
            post::serve(site, parts, accepted, body, asker, serving.peer()).await
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
