//! A server behind a URL: one POST a message, the answer as JSON or as an event stream.
//!
//! Promises: no redirect is followed, no proxy is asked, nothing is resolved but the URL's own
//! host; every answer is bounded in size and time; a request is sent once, and cancelled where its
//! asker is gone. The session id that a handshake brings goes with what follows it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use hyper::{Request, Response, StatusCode, Uri};

use super::Options;
use super::hear::Flood;
use super::outbound::{Origin, Pool, Reach, Sender, Unanswered, Unreachable, collect};
use super::problem::{Problem, excerpt};
use super::sse::Events;
use super::wire::{self, Ask};
use crate::protocol::json::{JsonLimits, shortened};
use crate::protocol::limits::{ERROR_BODY_BYTES, SESSION_ID_BYTES};
use crate::protocol::{Malformed, Message, Method, RawJson, RequestId, headers};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Requests of the server that are answered on one event stream.
const ANSWERED_ON_A_STREAM: usize = 100;

/// How long the end of a session may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// Where a server listens, the headers that go with every request, and how it may be reached.
#[derive(Debug, Clone)]
pub struct HttpTarget {
    origin: Origin,
    path: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    reach: Reach,
}

impl HttpTarget {
    /// Reads a URL that the operator typed, whose address may be any; `headers` are names and values, for
    /// authorization say.
    pub fn new(url: &str, headers: &[(String, String)]) -> Result<Self, Problem> {
        let refused = |why: &str| Problem::Url(why.to_owned());
        let uri: Uri = url.parse().map_err(|_| refused("expected https://host:port/path"))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(refused("expected https://host:port/path or http://host:port/path")),
        };
        let authority = uri.authority().ok_or_else(|| refused("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(refused("it holds a user name: send an authorization header instead"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        let path = uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
        Self::at(Origin { tls, host, port }, path, headers, Reach::new(true))
    }

    /// A server of that origin; `path` is path and query as they go on the wire.
    pub fn at(origin: Origin, path: String, headers: &[(String, String)], reach: Reach) -> Result<Self, Problem> {
        let headers = headers.iter().map(|(name, value)| secret_header(name, value)).collect::<Result<_, _>>()?;
        Ok(Self { origin, path, headers, reach })
    }

    /// The address for a person, without the query, which may hold a secret.
    pub fn shown(&self) -> String {
        format!("{}{}", self.origin, self.path.split('?').next().unwrap_or_default())
    }
}

/// A header that is not shown where a request is.
fn secret_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Problem> {
    let (name, mut value) = header(name, value)?;
    value.set_sensitive(true);
    Ok((name, value))
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Problem> {
    let bad = || Problem::Header(shortened(name, 64));
    Ok((name.parse().map_err(|_| bad())?, value.parse().map_err(|_| bad())?))
}

/// One server behind a URL.
#[derive(Debug)]
pub(super) struct HttpPeer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    target: HttpTarget,
    options: Options,
    next_id: AtomicI64,
    pool: Pool,
    session: Mutex<Option<HeaderValue>>,
    flood: Mutex<Flood>,
}

/// A request whose answer is awaited; dropped before, it tells the server, where closing the stream does not.
struct Waiting {
    /// `None` once there is nothing to cancel.
    inner: Option<Arc<Inner>>,
    id: i64,
    headers: Vec<(String, String)>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let (Some(inner), Ok(runtime)) = (self.inner.take(), tokio::runtime::Handle::try_current()) else { return };
        let (id, headers) = (self.id, std::mem::take(&mut self.headers));
        // 2025-11-25 basic/transports: a closed connection is no cancellation; the notification is.
        runtime.spawn(async move {
            let params = vec![("requestId", RawJson::encode(&id))];
            let cancelled = Ask { method: "notifications/cancelled", params, headers };
            let _ = tokio::time::timeout(FAREWELL, inner.notify(&cancelled)).await;
        });
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a request is about, for what is said of it.
#[derive(Clone, Copy)]
struct About<'a> {
    method: &'a str,
    id: i64,
}

impl HttpPeer {
    pub(super) fn new(target: HttpTarget, options: &Options) -> Self {
        let reach = Reach { within: options.connect, ..target.reach.clone() };
        Self(Arc::new(Inner {
            pool: Pool::new(target.origin.clone(), reach),
            target,
            options: options.clone(),
            next_id: AtomicI64::new(1),
            session: Mutex::default(),
            flood: Mutex::default(),
        }))
    }

    pub(super) async fn request(&self, ask: &Ask<'_>, within: Duration) -> Result<RawJson, Problem> {
        let about = About { method: ask.method, id: self.0.next_id.fetch_add(1, Ordering::Relaxed) };
        let legacy = !ask.headers.iter().any(|(name, _)| name == headers::METHOD);
        let cancels = legacy && ask.method != Method::Initialize.name();
        let mut waiting =
            Waiting { inner: cancels.then(|| Arc::clone(&self.0)), id: about.id, headers: ask.headers.clone() };
        // Dropping the exchange closes its stream, which cancels a modern request.
        match tokio::time::timeout(within, self.0.exchange(ask, about)).await {
            Ok(outcome) => {
                waiting.inner = None;
                outcome
            }
            Err(_) => Err(Problem::Time { method: ask.method.to_owned(), within, strays: None }),
        }
    }

    pub(super) async fn notify(&self, ask: &Ask<'_>) -> Result<(), Problem> {
        self.0.notify(ask).await
    }

    /// Ends the session, if there is one; the server need not agree.
    pub(super) async fn close(self, headers: Vec<(String, String)>) {
        if locked(&self.0.session).is_some() {
            let about = About { method: "DELETE", id: 0 };
            let end = self.0.send(about, hyper::Method::DELETE, Bytes::new(), &headers);
            let _ = tokio::time::timeout(FAREWELL, end).await;
        }
    }
}

impl Inner {
    async fn notify(&self, ask: &Ask<'_>) -> Result<(), Problem> {
        let about = About { method: ask.method, id: 0 };
        let (response, sender) = self.send(about, hyper::Method::POST, ask.without_id(), &ask.headers).await?;
        if !response.status().is_success() {
            return Err(self.failure(about, response).await);
        }
        if collect(response, ERROR_BODY_BYTES).await.is_ok() {
            self.pool.keep(sender);
        }
        Ok(())
    }

    async fn exchange(&self, ask: &Ask<'_>, about: About<'_>) -> Result<RawJson, Problem> {
        let (response, sender) = self.send(about, hyper::Method::POST, ask.with_id(about.id), &ask.headers).await?;
        if !response.status().is_success() {
            return Err(self.failure(about, response).await);
        }
        if about.method == Method::Initialize.name() {
            self.begin_session(&response)?;
        }
        let media_type = media_type(&response);
        match media_type.as_str() {
            "application/json" => {
                let body = self.body(about, response).await?;
                self.pool.keep(sender);
                let messages = wire::read(&body, &JsonLimits::default()).await;
                match messages.into_iter().find_map(|message| answer(about, message)) {
                    Some(outcome) => outcome,
                    None => Err(Problem::shape(about.method, "the body holds no answer to this request")),
                }
            }
            "text/event-stream" => self.stream(about, response, &ask.headers).await,
            "" => {
                Err(Problem::shape(about.method, format!("HTTP status {} without content", response.status().as_u16())))
            }
            other => Err(Problem::MediaType { method: about.method.to_owned(), media_type: shortened(other, 64) }),
        }
    }

    /// Reads events up to the answer; hands notifications on, answers what the server asks.
    async fn stream(
        &self,
        about: About<'_>,
        response: Response<Incoming>,
        headers: &[(String, String)],
    ) -> Result<RawJson, Problem> {
        let mut events = Events::new(self.options.answer_bytes);
        let mut body = response.into_body();
        let mut asked = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| closed(about, &error))?;
            let Ok(bytes) = frame.into_data() else { continue };
            events.push(&bytes);
            while let Some(event) = events.poll_event() {
                let event = event.map_err(|_| self.too_long(about))?;
                for message in wire::read(&event, &JsonLimits::default()).await {
                    match message {
                        Ok(Message::Notification(notification)) => {
                            if locked(&self.flood).is_over() {
                                let why = Flood::WHY.to_owned();
                                return Err(Problem::Closed { method: about.method.to_owned(), why });
                            }
                            if let Some(hear) = &self.options.hear {
                                hear.tell(notification);
                            }
                        }
                        Ok(Message::Request(request)) if asked < ANSWERED_ON_A_STREAM => {
                            asked += 1;
                            let text = wire::answer_server(&request.id, &request.method);
                            // Whether the server takes the answer shows in what it does next.
                            let _ = self.send(about, hyper::Method::POST, text, headers).await;
                        }
                        Ok(Message::Request(_)) => {
                            return Err(Problem::shape(about.method, "the stream asks too much of the client"));
                        }
                        other => {
                            if let Some(outcome) = answer(about, other) {
                                return outcome;
                            }
                        }
                    }
                }
            }
        }
        let why = "the event stream ended before the answer".to_owned();
        Err(Problem::Closed { method: about.method.to_owned(), why })
    }

    /// Sends one request, on a connection that is open if there is one.
    async fn send(
        &self,
        about: About<'_>,
        verb: hyper::Method,
        body: Bytes,
        headers: &[(String, String)],
    ) -> Result<(Response<Incoming>, Sender), Problem> {
        let request = self.build(about, verb, body, headers)?;
        self.pool.send(request).await.map_err(|error| self.unanswered(about, error))
    }

    fn unanswered(&self, about: About<'_>, error: Unanswered) -> Problem {
        let to = self.target.shown();
        match error {
            Unanswered::Closed(error) => closed(about, &error),
            Unanswered::Unreachable(Unreachable::Time(within)) => Problem::ConnectTime { to, within },
            Unanswered::Unreachable(Unreachable::Connect(source)) => Problem::Connect { to, source },
            Unanswered::Unreachable(other) => Problem::Connect { to, source: std::io::Error::other(other) },
        }
    }

    fn build(
        &self,
        about: About<'_>,
        verb: hyper::Method,
        body: Bytes,
        headers: &[(String, String)],
    ) -> Result<Request<Full<Bytes>>, Problem> {
        let has_body = verb == hyper::Method::POST;
        let built = Request::builder().method(verb).uri(&self.target.path).body(Full::new(body));
        let mut request = built.map_err(|_| Problem::Url("its path is no path of HTTP".to_owned()))?;
        let sent = request.headers_mut();
        let authority = self.target.origin.authority().parse().map_err(|_| Problem::Header("host".to_owned()))?;
        sent.insert(HOST, authority);
        sent.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        if has_body {
            sent.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in &self.target.headers {
            sent.insert(name.clone(), value.clone());
        }
        for (name, value) in headers {
            let (name, value) = header(name, value)?;
            sent.insert(name, value);
        }
        if let Some(session) = locked(&self.session).clone().filter(|_| about.method != Method::Initialize.name()) {
            sent.insert(SESSION, session);
        }
        Ok(request)
    }

    fn begin_session(&self, response: &Response<Incoming>) -> Result<(), Problem> {
        let Some(id) = response.headers().get(SESSION) else { return Ok(()) };
        // 2025-11-25 basic/transports, Session Management: visible ASCII.
        let visible = id.as_bytes().iter().all(|byte| matches!(byte, 0x21..=0x7e));
        if !visible || id.is_empty() || id.len() > SESSION_ID_BYTES {
            let why = format!("its session id is not visible ASCII of at most {SESSION_ID_BYTES} bytes");
            return Err(Problem::shape(Method::Initialize.name(), why));
        }
        *locked(&self.session) = Some(id.clone());
        Ok(())
    }

    /// What a status other than success means.
    async fn failure(&self, about: About<'_>, response: Response<Incoming>) -> Problem {
        let status = response.status();
        let text = |name: HeaderName| response.headers().get(name).and_then(|value| excerpt(value.as_bytes()));
        if status.is_redirection() {
            let to = text(LOCATION).unwrap_or_else(|| format!("nowhere (HTTP status {})", status.as_u16()));
            return Problem::Redirected { method: about.method.to_owned(), to };
        }
        if status == StatusCode::NOT_FOUND && locked(&self.session).is_some() {
            return Problem::SessionGone;
        }
        let wanted = text(WWW_AUTHENTICATE);
        let is_json = media_type(&response) == "application/json";
        let body = collect(response, ERROR_BODY_BYTES).await.unwrap_or_default();
        if is_json {
            let messages = wire::read(&body, &JsonLimits::default()).await;
            let error = messages.into_iter().filter(Result::is_ok).find_map(|message| answer(about, message));
            if let Some(Err(problem)) = error {
                return problem;
            }
        }
        let excerpt = wanted.or_else(|| excerpt(&body));
        Problem::Status { method: about.method.to_owned(), status: status.as_u16(), excerpt }
    }

    async fn body(&self, about: About<'_>, response: Response<Incoming>) -> Result<Bytes, Problem> {
        collect(response, self.options.answer_bytes).await.map_err(|error| match error {
            Some(error) => closed(about, &error),
            None => self.too_long(about),
        })
    }

    fn too_long(&self, about: About<'_>) -> Problem {
        Problem::TooLong { method: about.method.to_owned(), limit: self.options.answer_bytes }
    }
}

/// What a message says about the request; nothing if it answers another one.
fn answer(about: About<'_>, message: Result<Message, Malformed>) -> Option<Result<RawJson, Problem>> {
    let ours = |id: &Option<RequestId>| id.as_ref().is_none_or(|id| *id == RequestId::Integer(about.id));
    match message {
        Ok(Message::Response(response)) if ours(&response.id) => Some(wire::outcome(about.method, response.result)),
        // The body is the answer to this one request, whatever is wrong with it.
        Err(malformed) if ours(&malformed.id) => Some(Err(wire::not_strict(about.method, &malformed))),
        _ => None,
    }
}

fn closed(about: About<'_>, error: &hyper::Error) -> Problem {
    let mut why = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        why.push_str(": ");
        why.push_str(&source.to_string());
    }
    Problem::Closed { method: about.method.to_owned(), why }
}

/// The media type without its parameters, in lower case; empty if there is none.
fn media_type(response: &Response<Incoming>) -> String {
    let value = response.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default();
    String::from_utf8_lossy(essence.trim_ascii()).to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
