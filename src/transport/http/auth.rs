//! Who may ask over HTTP: bearer tokens, what they allow, and how a client is told what it lacks
//! (RFC 6750, RFC 9728; 2026-07-28 basic/authorization).
//!
//! Promises: each request is authorized on its own, before its body is read, and the same in every era;
//! a token counts in the `Authorization` header alone, and is neither kept, logged nor sent back.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use ctutils::{Choice, CtEq as _};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode, Uri};
use serde_json::json;

use super::body::Payload;
use super::guard::{ENDPOINT, METADATA_VERBS};
use super::{post, response};
use crate::protocol::catalog::is_scope;
use crate::protocol::invoke::BoxFuture;
use crate::protocol::{Catalog, Decoded, Digest, Message, Method, Principal, digest};
use crate::transport::ServeError;

/// Where the metadata of a resource at a host's root is found (RFC 9728 3).
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// Whose token it was, and what it allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorized {
    /// Whose: everything that is kept between requests belongs to a principal.
    pub principal: Principal,
    /// The scopes it has, those that others imply included.
    pub scopes: Vec<String>,
}

/// Why a token authorizes nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejected {
    /// It is unknown, expired, or meant for another server.
    Invalid,
    /// Whoever knows cannot be asked now.
    Unavailable,
}

/// Knows whose a token is.
pub trait Authorize: Send + Sync {
    /// Judges a token, which must not be logged. It has the form of one, and nothing else was checked.
    fn authorize<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Authorized, Rejected>>;
}

/// How callers of a listener are authorized.
#[derive(Clone)]
pub struct Auth {
    /// Knows whose a token is.
    pub authorize: Arc<dyn Authorize>,
    /// The first endpoint's URI as clients have it; `http://`, the listener's address and the endpoint's path if absent.
    /// That of another surface is beneath it.
    pub resource: Option<String>,
    /// Where tokens are given out, for the metadata.
    pub authorization_servers: Vec<String>,
    /// The scopes that basic use takes, for the metadata and for whoever comes without a token.
    pub scopes_supported: Vec<String>,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth").field("resource", &self.resource).finish_non_exhaustive()
    }
}

/// A token that is known by its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownToken {
    /// Whose it is.
    pub principal: Principal,
    /// The SHA-256 of its text.
    pub sha256: Digest,
    /// The scopes it has.
    pub scopes: Vec<String>,
}

/// Tokens that were given out by hand.
#[derive(Debug)]
pub struct KnownTokens(Vec<KnownToken>);

impl KnownTokens {
    /// These and no others.
    pub fn new(tokens: Vec<KnownToken>) -> Self {
        Self(tokens)
    }

    /// Compares with every hash, whole, so that the time tells nothing of any.
    fn find(&self, token: &str) -> Option<&KnownToken> {
        let hash = digest::of_bytes(token.as_bytes());
        self.0.iter().fold(None, |found, known| {
            let same: Choice = known.sha256.as_bytes().ct_eq(hash.as_bytes());
            if same.to_bool() { Some(known) } else { found }
        })
    }
}

impl Authorize for KnownTokens {
    fn authorize<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Authorized, Rejected>> {
        let found = self
            .find(token)
            .map(|known| Authorized { principal: known.principal.clone(), scopes: known.scopes.clone() });
        Box::pin(std::future::ready(found.ok_or(Rejected::Invalid)))
    }
}

/// Who asks by one request.
pub(super) struct Asker {
    pub(super) principal: Principal,
    /// Who authorized it, and for which scopes; `None` where nobody is asked for a token.
    granted: Option<(Arc<Authority>, Vec<String>)>,
}

impl Asker {
    /// Whoever reaches a listener that authorizes nobody.
    pub(super) fn anyone() -> Self {
        Self { principal: Principal::LOCAL, granted: None }
    }

    /// The refusal of a message that calls tools whose scopes the asker lacks.
    pub(super) fn refusal(&self, catalog: &Catalog, decoded: &Decoded) -> Option<Response<Payload>> {
        let (authority, granted) = self.granted.as_ref()?;
        let needed = match decoded {
            Decoded::One(message) => needed(catalog, std::slice::from_ref(message)),
            Decoded::Batch(messages) => needed(catalog, messages),
        };
        let lacks = needed.iter().any(|scope| !granted.iter().any(|granted| granted == scope));
        lacks.then(|| authority.insufficient(&needed))
    }
}

/// All scopes of the tools that are called.
fn needed<'c, E>(catalog: &'c Catalog, messages: &[Result<Message, E>]) -> BTreeSet<&'c str> {
    let called = messages.iter().filter_map(|message| match message {
        Ok(Message::Request(request)) if Method::parse(&request.method) == Some(Method::ToolsCall) => {
            let name = request.params.text("name")?;
            catalog.tool(&name)
        }
        _ => None,
    });
    called.flat_map(|tool| tool.scopes.iter().map(String::as_str)).collect()
}

/// What the `Authorization` header holds.
#[derive(Debug, PartialEq, Eq)]
enum Presented<'h> {
    /// No token: no header, or another scheme's.
    Nothing,
    Token(&'h str),
    /// What cannot be a token (RFC 6750 2.1).
    Garbled,
    /// More than one credential.
    Several,
}

fn presented<'h>(headers: &'h HeaderMap, query: Option<&str>) -> Presented<'h> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Presented::Nothing };
    let in_query = query.unwrap_or_default().split('&').any(|pair| pair.split('=').next() == Some("access_token"));
    if values.next().is_some() || in_query {
        return Presented::Several;
    }
    let bytes = value.as_bytes();
    let (scheme, rest) = bytes.split_at(bytes.iter().position(|b| *b == b' ').unwrap_or(bytes.len()));
    let token = rest.trim_ascii();
    if !scheme.eq_ignore_ascii_case(b"bearer") || token.is_empty() {
        return Presented::Nothing;
    }
    let body = token.iter().rposition(|b| *b != b'=').map_or(0, |last| last + 1);
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-._~+/".contains(b);
    let fits = body > 0 && token.iter().take(body).all(plain);
    std::str::from_utf8(token).ok().filter(|_| fits).map_or(Presented::Garbled, Presented::Token)
}

/// How the callers at one place are authorized.
pub(super) struct Authority {
    authorize: Arc<dyn Authorize>,
    /// Where the metadata is, whole.
    metadata_url: String,
    metadata: String,
    /// The scopes that basic use takes.
    scopes: Vec<String>,
    /// Where the metadata is, on this listener: as clients have the resource, and as we do.
    paths: [String; 2],
}

impl Authority {
    /// For the place whose paths end in `suffix`.
    pub(super) fn new(auth: &Auth, address: SocketAddr, suffix: &str) -> Result<Self, ServeError> {
        let written = auth.resource.clone().unwrap_or_else(|| format!("http://{address}{ENDPOINT}"));
        let (origin, path) = canonical(&written).ok_or(ServeError::Resource { uri: written })?;
        let path = format!("{}{suffix}", path.trim_end_matches('/'));
        let resource = format!("{origin}{path}");
        let scopes: Vec<String> = auth.scopes_supported.iter().filter(|scope| is_scope(scope)).cloned().collect();
        let mut metadata = json!({ "resource": resource, "bearer_methods_supported": ["header"] });
        // An empty list is left out (RFC 9728 3.2).
        for (key, list) in [("authorization_servers", &auth.authorization_servers), ("scopes_supported", &scopes)] {
            if let Some(metadata) = metadata.as_object_mut().filter(|_| !list.is_empty()) {
                metadata.insert(key.to_owned(), json!(list));
            }
        }
        Ok(Self {
            authorize: Arc::clone(&auth.authorize),
            metadata_url: format!("{origin}{WELL_KNOWN}{path}"),
            metadata: metadata.to_string(),
            scopes,
            paths: [format!("{WELL_KNOWN}{path}"), format!("{WELL_KNOWN}{ENDPOINT}{suffix}")],
        })
    }

    /// The paths of all documents on a listener, each with the index of its place. Where two would have one path, it is
    /// that of the resource which clients have under it.
    pub(super) fn paths<'a>(all: impl Iterator<Item = &'a Self> + Clone) -> Vec<(String, usize)> {
        let of =
            |which: usize| all.clone().enumerate().filter_map(move |(at, a)| Some((a.paths.get(which)?.clone(), at)));
        // Clients that find nothing else look at the root (2025-11-25 basic/authorization, Protected Resource Metadata Discovery).
        let root = all.clone().take(1).map(|_| (WELL_KNOWN.to_owned(), 0));
        let mut paths: Vec<(String, usize)> = Vec::new();
        for (path, at) in of(0).chain(of(1)).chain(root) {
            if paths.iter().all(|(known, _)| *known != path) {
                paths.push((path, at));
            }
        }
        paths
    }

    /// Finds out who asks, by the head alone; or the answer that says why that is not known.
    pub(super) async fn asker(self: &Arc<Self>, parts: &Parts) -> Result<Asker, Box<Response<Payload>>> {
        let refuse = |status, error: Option<&str>, problem: &str| {
            tracing::debug!(problem, "a request is not authorized");
            Err(Box::new(self.challenge(status, error, &self.scopes, problem)))
        };
        let token = match presented(&parts.headers, parts.uri.query()) {
            Presented::Nothing => {
                return refuse(StatusCode::UNAUTHORIZED, None, "send a token as Authorization: Bearer TOKEN");
            }
            Presented::Garbled => return refuse(StatusCode::UNAUTHORIZED, INVALID, "the token is malformed"),
            Presented::Several => {
                let problem = "there must be one Authorization header, and no other credential";
                return refuse(StatusCode::BAD_REQUEST, Some("invalid_request"), problem);
            }
            Presented::Token(token) => token,
        };
        match self.authorize.authorize(token).await {
            Ok(Authorized { principal, scopes }) => Ok(Asker { principal, granted: Some((Arc::clone(self), scopes)) }),
            Err(Rejected::Invalid) => refuse(StatusCode::UNAUTHORIZED, INVALID, "the token is not valid here"),
            Err(Rejected::Unavailable) => {
                tracing::warn!("tokens cannot be judged now");
                let mut response = told(StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable", UNAVAILABLE);
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
                Err(Box::new(response))
            }
        }
    }

    /// The refusal of a call that needs more scopes than the token has (2026-07-28 basic/authorization, Scope Challenge).
    fn insufficient(&self, needed: &BTreeSet<&str>) -> Response<Payload> {
        let needed: Vec<String> = needed.iter().map(|scope| (*scope).to_owned()).collect();
        self.challenge(StatusCode::FORBIDDEN, Some("insufficient_scope"), &needed, "the token lacks a scope")
    }

    /// No value here is a client's; those of the operator were checked to need no quoting.
    fn challenge(&self, status: StatusCode, error: Option<&str>, scopes: &[String], text: &str) -> Response<Payload> {
        let mut fields = Vec::new();
        fields.extend(error.map(|error| format!("error=\"{error}\", error_description=\"{text}\"")));
        fields.push(format!("resource_metadata=\"{}\"", self.metadata_url));
        if !scopes.is_empty() {
            fields.push(format!("scope=\"{}\"", scopes.join(" ")));
        }
        let mut response = told(status, error.unwrap_or("unauthorized"), text);
        if let Ok(value) = HeaderValue::from_str(&format!("Bearer {}", fields.join(", "))) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
        }
        response
    }

    /// The document that says how to be authorized.
    pub(super) fn metadata(&self) -> Response<Payload> {
        opened(response::json(StatusCode::OK, self.metadata.clone().into()))
    }
}

const INVALID: Option<&str> = Some("invalid_token");
const UNAVAILABLE: &str = "tokens cannot be judged now: try again later";

/// The answer to a browser that asks whether the metadata may be asked for.
pub(super) fn metadata_preflight() -> Response<Payload> {
    let mut response = opened(response::empty(StatusCode::NO_CONTENT));
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METADATA_VERBS));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(post::CROSS_ORIGIN_HEADERS));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

fn opened(mut response: Response<Payload>) -> Response<Payload> {
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

/// No JSON-RPC, so that no client takes it for a word of its own era or of another.
fn told(status: StatusCode, error: &str, text: &str) -> Response<Payload> {
    response::json(status, json!({ "error": error, "error_description": text }).to_string().into())
}

/// The origin and the path of a resource's URI, scheme and host in lower case (RFC 8707 2; RFC 3986 6.2.2.1).
fn canonical(written: &str) -> Option<(String, String)> {
    let uri: Uri = written.parse().ok().filter(|_| !written.contains('#'))?;
    let (scheme, authority) = (uri.scheme_str()?.to_ascii_lowercase(), uri.authority()?.as_str().to_ascii_lowercase());
    let plain = matches!(&*scheme, "http" | "https") && uri.query().is_none() && !authority.contains('@');
    let quotable = uri.path().bytes().all(|b| b != b'"' && b != b'\\');
    let path = if uri.path() == "/" { "" } else { uri.path() };
    (plain && quotable).then(|| (format!("{scheme}://{authority}"), path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (header::AUTHORIZATION, HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn a_token_is_one_of_the_bearer_scheme_whatever_its_case() {
        for (values, expected) in [
            (&["Bearer abc"][..], Presented::Token("abc")),
            (&["bEARER   a.b-c_d~e+f/g== "], Presented::Token("a.b-c_d~e+f/g==")),
            (&[], Presented::Nothing),
            (&["Bearer"], Presented::Nothing),
            (&["Bearer "], Presented::Nothing),
            (&["abc"], Presented::Nothing),
            (&["Basic abc"], Presented::Nothing),
            (&["Bearerabc"], Presented::Nothing),
            (&["Bearer a b"], Presented::Garbled),
            (&["Bearer a, Bearer b"], Presented::Garbled),
            (&["Bearer a=b"], Presented::Garbled),
            (&["Bearer =="], Presented::Garbled),
            (&["Bearer a\"b"], Presented::Garbled),
            (&["Bearer a", "Bearer a"], Presented::Several),
            (&["Basic a", "Bearer a"], Presented::Several),
        ] {
            assert_eq!(presented(&headers(values), None), expected, "{values:?}");
        }
    }

    #[test]
    fn a_token_in_the_query_is_none_and_beside_another_one_too_many() {
        for query in ["access_token=x", "a=b&access_token=x", "access_token"] {
            assert_eq!(presented(&headers(&[]), Some(query)), Presented::Nothing);
            assert_eq!(presented(&headers(&["Bearer a"]), Some(query)), Presented::Several);
        }
        assert_eq!(presented(&headers(&["Bearer a"]), Some("my_access_token=x")), Presented::Token("a"));
    }

    #[test]
    fn a_known_token_is_found_by_its_hash_among_others() {
        let known = |text: &str| KnownToken {
            principal: Principal::named(text),
            sha256: digest::of_bytes(text.as_bytes()),
            scopes: Vec::new(),
        };
        let tokens = KnownTokens::new(vec![known("one"), known("two"), known("three")]);
        for text in ["one", "two", "three"] {
            assert_eq!(tokens.find(text).map(|found| found.principal.name()), Some(text));
        }
        assert!(tokens.find("").is_none() && tokens.find("four").is_none());
        assert!(KnownTokens::new(Vec::new()).find("").is_none());
    }

    #[test]
    fn a_resource_has_one_spelling() {
        let of = |text: &str| canonical(text).map(|(origin, path)| origin + &path);
        for (written, canonical) in [
            ("HTTPS://MCP.Example.org/Mcp", Some("https://mcp.example.org/Mcp")),
            ("https://mcp.example.org/", Some("https://mcp.example.org")),
            ("http://[::1]:8484/mcp", Some("http://[::1]:8484/mcp")),
            ("https://mcp.example.org/mcp#x", None),
            ("https://mcp.example.org/mcp?x", None),
            ("https://a:b@mcp.example.org/mcp", None),
            ("ftp://mcp.example.org/mcp", None),
            ("/mcp", None),
            ("mcp.example.org", None),
        ] {
            assert_eq!(of(written).as_deref(), canonical, "{written}");
        }
    }
}
