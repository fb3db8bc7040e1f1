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

/// The path of the one MCP endpoint.
pub const ENDPOINT: &str = "/mcp";
/// The path of the one stream of HTTP+SSE, where that is served.
pub const SSE: &str = "/sse";
/// The path of messages from clients of HTTP+SSE.
pub const SSE_MESSAGES: &str = "/sse/message";
/// The path that says whether the server lives.
pub const HEALTH: &str = "/healthz";

/// The verbs of the document that says how to be authorized.
pub const METADATA_VERBS: &str = "GET, HEAD, OPTIONS";

/// Whom a listener answers.
#[derive(Debug, Clone)]
pub struct Allowed {
    /// Values of `Host`, lower case, exact.
    hosts: Vec<String>,
    /// Values of `Origin` beyond the server's own, lower case, exact.
    origins: Vec<String>,
    /// Verbs of the endpoint, for `Allow`.
    verbs: &'static str,
    /// Whether HTTP+SSE is served.
    sse: bool,
    /// Paths of the document that says how to be authorized.
    metadata: Vec<String>,
}

impl Allowed {
    /// What a loopback listener at `address` answers, and what the operator named beyond it.
    pub fn on_loopback(address: SocketAddr, hosts: &[String], origins: &[String], verbs: &'static str) -> Self {
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
        Self { hosts: allowed, origins, verbs, sse: false, metadata: Vec::new() }
    }

    /// The same, with the two paths of HTTP+SSE if `sse` is set.
    #[must_use]
    pub fn with_sse(self, sse: bool) -> Self {
        Self { sse, ..self }
    }

    /// The same, with these paths of the document that says how to be authorized.
    #[must_use]
    pub fn with_metadata(self, metadata: Vec<String>) -> Self {
        Self { metadata, ..self }
    }

    /// The verbs of the endpoint.
    pub fn verbs(&self) -> &'static str {
        self.verbs
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

/// A request that may be served.
#[derive(Debug, PartialEq, Eq)]
pub enum Passed {
    /// What only those may ask who are authorized, where anybody must be.
    Entrance(Entrance),
    /// A browser asks whether a named origin may send; these verbs it may.
    Preflight(&'static str),
    /// How to be authorized, which anybody may ask.
    Metadata,
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
    if allowed.metadata.iter().any(|path| path == parts.uri.path()) {
        // The same for everyone, so a page of any origin may read it (RFC 9728 3.1).
        return match parts.method {
            Method::GET | Method::HEAD => Ok(Passed::Metadata),
            Method::OPTIONS => Ok(Passed::MetadataPreflight),
            _ => Err(wrong_verb(METADATA_VERBS)),
        };
    }
    let named = check_origin(&parts.headers, allowed)?;
    check_site(&parts.headers)?;
    let verbs = match parts.uri.path() {
        HEALTH => {
            return match parts.method {
                Method::GET | Method::HEAD => Ok(Passed::Health),
                _ => Err(wrong_verb("GET, HEAD")),
            };
        }
        ENDPOINT => allowed.verbs,
        SSE if allowed.sse => "GET",
        SSE_MESSAGES if allowed.sse => "POST",
        _ => return refuse(StatusCode::NOT_FOUND, "there is nothing at this path: the endpoint is /mcp"),
    };
    if parts.headers.contains_key(header::UPGRADE) {
        return refuse(StatusCode::BAD_REQUEST, "the protocol is not upgraded here");
    }
    let is_served = verbs.split(", ").any(|verb| verb == parts.method.as_str());
    let entrance = match (parts.uri.path(), &parts.method) {
        (_, &Method::OPTIONS) if named => return Ok(Passed::Preflight(verbs)),
        _ if !is_served => return Err(wrong_verb(verbs)),
        (SSE, _) => Entrance::SseStream,
        (SSE_MESSAGES, _) => Entrance::SseMessage,
        (_, &Method::POST) => Entrance::Post,
        (_, &Method::DELETE) => Entrance::Delete,
        _ => Entrance::Get,
    };
    Ok(Passed::Entrance(entrance))
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
