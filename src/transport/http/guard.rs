//! The one guard of every HTTP request, pure, before any byte of a body is read.
//!
//! Promises: Host and Origin are always checked, and first; then path and verb; then, where callers are
//! authorized, their token; then media types and the declared size. Nothing here knows an era (2026-07-28 transports/streamable-http, Security;
//! CVE-2026-42559 and its kind are what happens where this is optional).

use std::net::{IpAddr, SocketAddr};

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Version};

use super::media::{self, Accepted};

/// The path of the first surface's endpoint; that of another is beneath it.
pub const ENDPOINT: &str = "/mcp";
/// The path of the first surface's stream of HTTP+SSE, where that is served; that of another is beneath it.
pub const SSE: &str = "/sse";
/// What follows the path of a stream of HTTP+SSE where its clients send their messages.
pub const SSE_MESSAGES: &str = "/message";
/// The path that says whether the server lives.
pub const HEALTH: &str = "/healthz";

/// The verbs of the document that says how to be authorized.
pub const METADATA_VERBS: &str = "GET, HEAD, OPTIONS";

/// Where a surface is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What follows `/mcp` and `/sse` in its paths: nothing, or `/` and its name.
    pub suffix: String,
    /// Verbs of its endpoint, for `Allow`.
    pub verbs: &'static str,
    /// Whether it is served over HTTP+SSE too.
    pub sse: bool,
}

/// Whom a listener answers.
#[derive(Debug, Clone)]
pub struct Allowed {
    /// Values of `Host`, lower case, exact.
    hosts: Vec<String>,
    /// Values of `Origin` beyond the server's own, lower case, exact.
    origins: Vec<String>,
    /// Where the surfaces are found.
    places: Vec<Place>,
    /// Paths of the documents that say how to be authorized, with the place of each.
    metadata: Vec<(String, usize)>,
}

impl Allowed {
    /// What a loopback listener at `address` answers, and what the operator named beyond it.
    pub fn on_loopback(address: SocketAddr, hosts: &[String], origins: &[String], places: Vec<Place>) -> Self {
        let mut own = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()];
        match address.ip() {
            IpAddr::V4(ip) if !ip.is_unspecified() => own.push(ip.to_string()),
            IpAddr::V6(ip) if !ip.is_unspecified() => own.push(format!("[{ip}]")),
            // A listener's way to say any address is no host's name.
            IpAddr::V4(_) | IpAddr::V6(_) => {}
        }
        let port = address.port();
        let mut allowed: Vec<String> = own.iter().map(|host| format!("{host}:{port}")).collect();
        if port == 80 {
            allowed.extend(own);
        }
        allowed.extend(hosts.iter().map(|host| host.to_ascii_lowercase()));
        let origins = origins.iter().map(|o| o.to_ascii_lowercase()).collect();
        Self { hosts: allowed, origins, places, metadata: Vec::new() }
    }

    /// The same, with these paths of the documents that say how to be authorized, each with the index of its place.
    #[must_use]
    pub fn with_metadata(self, metadata: Vec<(String, usize)>) -> Self {
        Self { metadata, ..self }
    }

    /// The place whose paths end in this.
    fn place(&self, suffix: &str) -> Option<(usize, &Place)> {
        self.places.iter().enumerate().find(|(_, place)| place.suffix == suffix)
    }

    fn place_over_sse(&self, suffix: &str) -> Option<usize> {
        self.place(suffix).filter(|(_, place)| place.sse).map(|(at, _)| at)
    }

    /// What a path leads to.
    fn ways(&self, path: &str) -> Ways {
        let mut ways = Ways::default();
        if let Some((at, place)) = path.strip_prefix(ENDPOINT).and_then(|suffix| self.place(suffix)) {
            ways.endpoint = Some((at, place.verbs));
        }
        if let Some(suffix) = path.strip_prefix(SSE) {
            ways.stream = self.place_over_sse(suffix);
            ways.messages = suffix.strip_suffix(SSE_MESSAGES).and_then(|suffix| self.place_over_sse(suffix));
        }
        ways
    }

    /// Whether this is one of the origins that the operator named, to which cross-origin headers are sent.
    fn is_named(&self, origin: &str) -> bool {
        self.origins.contains(&origin.to_ascii_lowercase())
    }

    /// The server's own origins are `http://` and an accepted host.
    fn is_own(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        origin.strip_prefix("http://").is_some_and(|host| self.hosts.iter().any(|own| own == host))
    }
}

/// What one path leads to, each by the index of its place. A surface that is named `message` has its stream where the
/// first one has its messages; their verbs differ.
#[derive(Default)]
struct Ways {
    endpoint: Option<(usize, &'static str)>,
    stream: Option<usize>,
    messages: Option<usize>,
}

impl Ways {
    /// The verbs that are served; `None` where there is nothing.
    fn verbs(&self) -> Option<&'static str> {
        match (self.endpoint, self.stream, self.messages) {
            (Some((_, verbs)), ..) => Some(verbs),
            (None, Some(_), Some(_)) => Some("GET, POST"),
            (None, Some(_), None) => Some("GET"),
            (None, None, Some(_)) => Some("POST"),
            (None, None, None) => None,
        }
    }

    /// Where a verb that is served leads.
    fn by(&self, verb: &Method) -> Option<(Entrance, usize)> {
        match (self.endpoint, verb) {
            (Some((at, _)), &Method::POST) => Some((Entrance::Post, at)),
            (Some((at, _)), &Method::DELETE) => Some((Entrance::Delete, at)),
            (Some((at, _)), _) => Some((Entrance::Get, at)),
            (None, &Method::POST) => self.messages.map(|at| (Entrance::SseMessage, at)),
            (None, _) => self.stream.map(|at| (Entrance::SseStream, at)),
        }
    }
}

/// A request that may be served; what belongs to a place has its index.
#[derive(Debug, PartialEq, Eq)]
pub enum Passed {
    /// What only those may ask who are authorized, where anybody must be.
    Entrance(Entrance, usize),
    /// A browser asks whether a named origin may send; these verbs it may.
    Preflight(&'static str),
    /// How to be authorized, which anybody may ask.
    Metadata(usize),
    /// A browser asks whether any origin may ask that.
    MetadataPreflight,
    /// Whether the server lives.
    Health,
}

/// A way to the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entrance {
    /// A message for the endpoint.
    Post,
    /// A stream of the endpoint's session.
    Get,
    /// The end of the endpoint's session.
    Delete,
    /// A stream of HTTP+SSE.
    SseStream,
    /// A message of HTTP+SSE.
    SseMessage,
}

/// Why a request is not served.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// What is wrong, for whoever wrote the client.
    pub problem: &'static str,
    /// The verbs that are served, where the verb was not.
    pub allow: Option<&'static str>,
}

fn refuse<T>(status: StatusCode, problem: &'static str) -> Result<T, Refusal> {
    Err(Refusal { status, problem, allow: None })
}

/// Judges a request by its head, as far as that says where it leads.
pub fn judge(parts: &Parts, allowed: &Allowed) -> Result<Passed, Refusal> {
    check_host(parts, allowed)?;
    if let Some((_, at)) = allowed.metadata.iter().find(|(path, _)| path == parts.uri.path()) {
        // The same for everyone, so a page of any origin may read it (RFC 9728 3.1).
        return match parts.method {
            Method::GET | Method::HEAD => Ok(Passed::Metadata(*at)),
            Method::OPTIONS => Ok(Passed::MetadataPreflight),
            _ => Err(wrong_verb(METADATA_VERBS)),
        };
    }
    let named = check_origin(&parts.headers, allowed)?;
    check_site(&parts.headers)?;
    if parts.uri.path() == HEALTH {
        return match parts.method {
            Method::GET | Method::HEAD => Ok(Passed::Health),
            _ => Err(wrong_verb("GET, HEAD")),
        };
    }
    let ways = allowed.ways(parts.uri.path());
    let Some(verbs) = ways.verbs() else {
        return refuse(
            StatusCode::NOT_FOUND,
            "there is nothing at this path: the first surface is at /mcp, each at /mcp/ and its name",
        );
    };
    if parts.headers.contains_key(header::UPGRADE) {
        return refuse(StatusCode::BAD_REQUEST, "the protocol is not upgraded here");
    }
    if parts.method == Method::OPTIONS && named {
        return Ok(Passed::Preflight(verbs));
    }
    let is_served = verbs.split(", ").any(|verb| verb == parts.method.as_str());
    let way = ways.by(&parts.method).filter(|_| is_served);
    way.map(|(entrance, at)| Passed::Entrance(entrance, at)).ok_or_else(|| wrong_verb(verbs))
}

/// The refusal of a verb that the endpoint does not serve.
pub fn wrong_verb(verbs: &'static str) -> Refusal {
    let problem = "this verb is not served here";
    Refusal { status: StatusCode::METHOD_NOT_ALLOWED, problem, allow: Some(verbs) }
}

/// The one value of a header, `None` if there is none.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Result<Option<&'h str>, ()> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    }
}

fn check_host(parts: &Parts, allowed: &Allowed) -> Result<(), Refusal> {
    let plain = |host: &str| {
        (1..=255).contains(&host.len()) && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]@%~".contains(&b))
    };
    let host = match single(&parts.headers, &header::HOST) {
        Ok(Some(host)) if plain(host) => host,
        Ok(None) if parts.version < Version::HTTP_11 => {
            return refuse(StatusCode::BAD_REQUEST, "the Host header is missing");
        }
        _ => return refuse(StatusCode::BAD_REQUEST, "there must be exactly one plain Host header"),
    };
    if let Some(authority) = parts.uri.authority()
        && !authority.as_str().eq_ignore_ascii_case(host)
    {
        return refuse(StatusCode::BAD_REQUEST, "the target's authority differs from the Host header");
    }
    if allowed.hosts.iter().any(|own| own.eq_ignore_ascii_case(host)) {
        Ok(())
    } else {
        refuse(StatusCode::FORBIDDEN, "this Host is not served: the operator can allow it with --allow-host")
    }
}

/// Whether the origin is one that the operator named; an absent one is no browser's.
fn check_origin(headers: &HeaderMap, allowed: &Allowed) -> Result<bool, Refusal> {
    match single(headers, &header::ORIGIN) {
        Ok(None) => Ok(false),
        Ok(Some(origin)) if allowed.is_named(origin) => Ok(true),
        Ok(Some(origin)) if allowed.is_own(origin) => Ok(false),
        _ => refuse(StatusCode::FORBIDDEN, "this Origin is not served: the operator can allow it with --allow-origin"),
    }
}

/// A browser sends no Origin with a plain GET, but says whose page asks (W3C Fetch Metadata).
fn check_site(headers: &HeaderMap) -> Result<(), Refusal> {
    let ours = |value: &HeaderValue| value == "same-origin" || value == "none";
    if headers.contains_key(header::ORIGIN) || headers.get_all("sec-fetch-site").iter().all(ours) {
        return Ok(());
    }
    refuse(StatusCode::FORBIDDEN, "this is asked by a page of another site")
}

/// Judges what the head says of a message for the endpoint. `message` is the longest body, in bytes.
pub fn judge_post(headers: &HeaderMap, message: usize) -> Result<Accepted, Refusal> {
    check_media(headers)?;
    let accepted = media::accepted(headers.get_all(header::ACCEPT).iter().map(|v| v.as_bytes()));
    if !accepted.json && !accepted.events {
        return refuse(StatusCode::NOT_ACCEPTABLE, "Accept must allow application/json or text/event-stream");
    }
    check_size(headers, message).map(|()| accepted)
}

/// The same of a message of HTTP+SSE, whose answer goes elsewhere.
pub fn judge_sse_message(headers: &HeaderMap, message: usize) -> Result<(), Refusal> {
    check_media(headers)?;
    check_size(headers, message)
}

fn check_media(headers: &HeaderMap) -> Result<(), Refusal> {
    let json = single(headers, &header::CONTENT_TYPE).is_ok_and(|value| value.is_some_and(media::is_json));
    if !json {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json in UTF-8");
    }
    if headers.get_all(header::CONTENT_ENCODING).iter().any(|v| !v.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must not be compressed");
    }
    Ok(())
}

fn check_size(headers: &HeaderMap, message: usize) -> Result<(), Refusal> {
    let expected = headers.get(header::EXPECT).map(|v| v.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    if expected == Some(false) {
        return refuse(StatusCode::EXPECTATION_FAILED, "only 100-continue can be expected");
    }
    let length = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()).and_then(|v| v.parse::<u64>().ok());
    if length.is_some_and(|length| usize::try_from(length).map_or(true, |length| length > message)) {
        return Err(too_large());
    }
    Ok(())
}

/// The refusal of a head that could be read in two ways.
pub fn ambiguous() -> Refusal {
    let problem = "the request could be read in two ways: send one body length, and CR LF after each line of the head";
    Refusal { status: StatusCode::BAD_REQUEST, problem, allow: None }
}

/// The refusal of a body over the limit.
pub fn too_large() -> Refusal {
    Refusal { status: StatusCode::PAYLOAD_TOO_LARGE, problem: "the body is larger than this server takes", allow: None }
}

/// The cross-origin headers for a request's origin, if the operator named it.
pub fn cross_origin<'h>(headers: &'h HeaderMap, allowed: &Allowed) -> Option<&'h str> {
    single(headers, &header::ORIGIN).ok().flatten().filter(|origin| allowed.is_named(origin))
}

#[cfg(test)]
mod tests;
