//! The one guard of every HTTP request, pure, before any byte of a body is read.
//!
//! Promises: Host and Origin are always checked, and first; then path, verb, media types and the
//! declared size. Nothing here knows an era (2026-07-28 transports/streamable-http, Security;
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
        Self { hosts: allowed, origins: origins.iter().map(|o| o.to_ascii_lowercase()).collect(), verbs, sse: false }
    }

    /// The same, with the two paths of HTTP+SSE if `sse` is set.
    #[must_use]
    pub fn with_sse(self, sse: bool) -> Self {
        Self { sse, ..self }
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
    /// A message for the endpoint.
    Post(Accepted),
    /// A stream of the endpoint's session.
    Get,
    /// The end of the endpoint's session.
    Delete,
    /// A stream of HTTP+SSE.
    SseStream,
    /// A message of HTTP+SSE.
    SseMessage,
    /// A browser asks whether a named origin may send; these verbs it may.
    Preflight(&'static str),
    /// Whether the server lives.
    Health,
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

/// Judges a request by its head. `message` is the longest body, in bytes.
pub fn judge(parts: &Parts, allowed: &Allowed, message: usize) -> Result<Passed, Refusal> {
    check_host(parts, allowed)?;
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
    match (parts.uri.path(), &parts.method) {
        (_, &Method::OPTIONS) if named => Ok(Passed::Preflight(verbs)),
        _ if !is_served => Err(wrong_verb(verbs)),
        (SSE, _) => Ok(Passed::SseStream),
        (SSE_MESSAGES, _) => {
            check_media(&parts.headers)?;
            check_size(&parts.headers, message).map(|()| Passed::SseMessage)
        }
        (_, &Method::POST) => judge_post(&parts.headers, message).map(Passed::Post),
        (_, &Method::DELETE) => Ok(Passed::Delete),
        _ => Ok(Passed::Get),
    }
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

fn judge_post(headers: &HeaderMap, message: usize) -> Result<Accepted, Refusal> {
    check_media(headers)?;
    let accepted = media::accepted(headers.get_all(header::ACCEPT).iter().map(|v| v.as_bytes()));
    if !accepted.json && !accepted.events {
        return refuse(StatusCode::NOT_ACCEPTABLE, "Accept must allow application/json or text/event-stream");
    }
    check_size(headers, message).map(|()| accepted)
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
mod tests {
    use super::*;

    const VERBS: &str = "GET, POST, DELETE";

    fn allowed() -> Allowed {
        let address = SocketAddr::from(([127, 0, 0, 1], 7000));
        Allowed::on_loopback(address, &["mcp.example:443".to_owned()], &["http://localhost:6274".to_owned()], VERBS)
    }

    fn head(method: &str, target: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = hyper::Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn status(method: &str, target: &str, headers: &[(&str, &str)]) -> u16 {
        judge(&head(method, target, headers), &allowed(), 1000).map_or_else(|refusal| refusal.status.as_u16(), |_| 200)
    }

    fn post(extra: &[(&str, &str)]) -> u16 {
        let mut headers = vec![("host", "localhost:7000"), ("content-type", "application/json")];
        headers.retain(|(name, _)| !extra.iter().any(|(n, _)| n == name));
        headers.extend(extra.iter().filter(|(_, v)| *v != "-").copied());
        status("POST", "/mcp", &headers)
    }

    #[test]
    fn only_our_own_hosts_are_served() {
        for host in ["localhost:7000", "LOCALHOST:7000", "127.0.0.1:7000", "[::1]:7000", "mcp.example:443"] {
            assert_eq!(post(&[("host", host)]), 200, "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1@evil",
            "localhost:80@evil",
            "0.0.0.0:7000",
            "[::]:7000",
            "127.1:7000",
            "2130706433:7000",
            "0x7f.1:7000",
            "127.0.0.2:7000",
            "localhost.:7000",
            "localhost:7001",
            "localhost",
            "localhost:07000",
        ] {
            assert_eq!(post(&[("host", host)]), 403, "{host}");
        }
        let long = "x".repeat(10_000);
        for host in ["", "local host:7000", "localhost:7000, evil", long.as_str(), "-"] {
            assert_eq!(post(&[("host", host)]), 400, "{host:.30}");
        }
        assert_eq!(status("POST", "/mcp", &[("host", "localhost:7000"), ("host", "localhost:7000")]), 400);
        assert_eq!(status("GET", "http://evil.example/mcp", &[("host", "localhost:7000")]), 400);
        assert_eq!(status("GET", "http://localhost:7000/mcp", &[("host", "localhost:7000")]), 200);
    }

    #[test]
    fn a_listener_answers_at_the_address_that_it_is_bound_to() {
        for (bound, host, expected) in [
            ("127.0.0.2:7000", "127.0.0.2:7000", true),
            ("127.0.0.2:7000", "localhost:7000", true),
            ("127.0.0.2:7000", "127.0.0.3:7000", false),
            ("127.0.0.2:7000", "127.0.0.2", false),
            ("127.0.0.2:80", "127.0.0.2", true),
            ("127.0.0.2:80", "localhost", true),
            ("[::1]:7000", "[::1]:7000", true),
            ("0.0.0.0:7000", "0.0.0.0:7000", false),
            ("[::]:7000", "[::]:7000", false),
        ] {
            let allowed = Allowed::on_loopback(bound.parse().unwrap(), &[], &[], VERBS);
            let judged = judge(&head("GET", "/healthz", &[("host", host)]), &allowed, 1000);
            assert_eq!(judged.is_ok(), expected, "{host} at {bound}");
        }
    }

    #[test]
    fn a_forwarded_host_changes_nothing() {
        for name in ["x-forwarded-host", "forwarded", "x-original-url"] {
            assert_eq!(post(&[(name, "localhost:7000"), ("host", "evil.example")]), 403);
            assert_eq!(post(&[(name, "evil.example")]), 200);
        }
    }

    #[test]
    fn an_origin_that_is_present_must_be_ours_or_named() {
        for origin in
            ["http://localhost:7000", "HTTP://LocalHost:7000", "http://[::1]:7000", "http://localhost:6274", "-"]
        {
            assert_eq!(post(&[("origin", origin)]), 200, "{origin}");
        }
        for origin in [
            "http://evil.example",
            "null",
            "",
            "file://",
            "chrome-extension://x",
            "http://localhost:7001",
            "https://localhost:7000",
            "http://localhost:7000.evil",
            "http://localhost:7000/",
            "http://localhost:7000/x",
            "http://a@localhost:7000",
            "http://localhost",
        ] {
            assert_eq!(post(&[("origin", origin)]), 403, "{origin}");
        }
        assert_eq!(post(&[("origin", "http://localhost:7000"), ("origin", "http://evil.example")]), 403);
        assert_eq!(post(&[("origin", "http://localhost:7000"), ("host", "evil.example")]), 403);
    }

    #[test]
    fn a_page_of_another_site_is_refused_unless_its_origin_is_accepted() {
        let from = |site: &str, extra: &[(&str, &str)]| {
            let headers = [&[("host", "localhost:7000"), ("sec-fetch-site", site)], extra].concat();
            status("GET", "/healthz", &headers)
        };
        assert_eq!((from("same-origin", &[]), from("none", &[])), (200, 200));
        for site in ["cross-site", "same-site", "", "none, cross-site"] {
            assert_eq!(from(site, &[]), 403, "{site}");
            assert_eq!(from(site, &[("origin", "http://localhost:6274")]), 200, "{site}");
        }
    }

    #[test]
    fn the_paths_of_the_older_transport_are_there_only_where_it_is_served() {
        let host = ("host", "localhost:7000");
        let json = ("content-type", "application/json");
        let foreign = ("origin", "http://evil.example");
        let table = [
            ("GET", "/sse", &[host][..], 200),
            ("GET", "/sse?x", &[host], 200),
            ("GET", "/sse/", &[host], 404),
            ("POST", "/sse", &[host, json], 405),
            ("GET", "/sse/message", &[host], 405),
            ("DELETE", "/sse/message", &[host], 405),
            ("POST", "/sse/message?session=x", &[host, json, ("accept", "text/html")], 200),
            ("POST", "/sse/message", &[host, ("content-type", "text/plain")], 415),
            ("POST", "/sse/message", &[host, json, ("content-length", "1001")], 413),
            ("POST", "/sse/message", &[host, json, foreign], 403),
            ("GET", "/sse", &[host, foreign], 403),
            ("GET", "/sse", &[("host", "evil.example")], 403),
        ];
        for (method, target, headers, expected) in table {
            let judged = judge(&head(method, target, headers), &allowed().with_sse(true), 1000);
            assert_eq!(judged.map_or_else(|r| r.status.as_u16(), |_| 200), expected, "{method} {target} {headers:?}");
        }
        assert_eq!(status("GET", "/sse", &[host]), 404);
        assert_eq!(status("POST", "/sse/message?session=x", &[host, json]), 404);
        let preflight = [host, ("origin", "http://localhost:6274")];
        let judged = judge(&head("OPTIONS", "/sse", &preflight), &allowed().with_sse(true), 1000);
        assert_eq!(judged, Ok(Passed::Preflight("GET")));
    }

    #[test]
    fn the_guard_comes_before_path_and_verb() {
        for (method, target) in
            [("GET", "/healthz"), ("GET", "/"), ("PUT", "/mcp"), ("DELETE", "/mcp"), ("GET", "/mcp")]
        {
            assert_eq!(status(method, target, &[("host", "evil.example")]), 403);
            assert_eq!(status(method, target, &[("host", "localhost:7000"), ("origin", "null")]), 403);
        }
    }

    #[test]
    fn paths_are_exact_and_queries_are_ignored() {
        let at = |target: &str| status("GET", target, &[("host", "localhost:7000")]);
        assert_eq!((at("/mcp"), at("/mcp?x=1"), at("/healthz")), (200, 200, 200));
        for target in ["/", "/mcp/", "/mcp/..", "//mcp", "/MCP", "/mcp%2f", "/health", "/metrics"] {
            assert_eq!(at(target), 404, "{target}");
        }
    }

    #[test]
    fn other_verbs_are_refused_with_what_is_allowed() {
        for verb in ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT", "BREW"] {
            let refusal = judge(&head(verb, "/mcp", &[("host", "localhost:7000")]), &allowed(), 1000).unwrap_err();
            assert_eq!((refusal.status.as_u16(), refusal.allow), (405, Some(VERBS)), "{verb}");
        }
        let preflight = [("host", "localhost:7000"), ("origin", "http://localhost:6274")];
        assert_eq!(judge(&head("OPTIONS", "/mcp", &preflight), &allowed(), 1000), Ok(Passed::Preflight(VERBS)));
        let own = [("host", "localhost:7000"), ("origin", "http://localhost:7000")];
        assert_eq!(status("OPTIONS", "/mcp", &own), 405);
    }

    #[test]
    fn a_post_needs_json_an_acceptable_answer_and_a_size_within_the_limit() {
        for bad in [
            "-",
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "application/jsonp",
            "application/json-evil",
            "application/json, text/plain",
            "application/json; charset=utf-16",
        ] {
            assert_eq!(post(&[("content-type", bad)]), 415, "{bad}");
        }
        for good in [
            "application/json; charset=utf-8",
            "Application/JSON",
            "application/json;charset=\"UTF-8\"",
            "application/json; x=y",
        ] {
            assert_eq!(post(&[("content-type", good)]), 200, "{good}");
        }
        assert_eq!(post(&[("content-encoding", "gzip")]), 415);
        assert_eq!(post(&[("accept", "text/html")]), 406);
        assert_eq!(post(&[("expect", "200-maybe")]), 417);
        for (length, expected) in [("999", 200), ("1000", 200), ("1001", 413), ("10737418240", 413)] {
            assert_eq!(post(&[("content-length", length)]), expected, "{length}");
        }
    }
}
