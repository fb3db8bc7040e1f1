//! Responses, each with the headers that its kind needs.

use bytes::Bytes;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

use super::body::{Parts, Payload};
use super::guard::Refusal;
use crate::protocol::{Fault, Reply, RequestId};

fn with(code: StatusCode, payload: Payload, headers: &[(HeaderName, &'static str)]) -> Response<Payload> {
    let mut response = Response::new(payload);
    *response.status_mut() = code;
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

pub(super) fn empty(code: StatusCode) -> Response<Payload> {
    with(code, Payload::empty(), &[])
}

/// The last of its connection.
pub(super) fn last(code: StatusCode) -> Response<Payload> {
    with(code, Payload::empty(), &[(header::CONNECTION, "close")])
}

/// JSON in parts, which are sent without joining them.
pub(super) fn json_in_parts(code: StatusCode, message: Parts) -> Response<Payload> {
    with(code, Payload::Whole(message), &[(header::CONTENT_TYPE, "application/json")])
}

pub(super) fn json(code: StatusCode, message: Bytes) -> Response<Payload> {
    with(code, Payload::whole(message), &[(header::CONTENT_TYPE, "application/json")])
}

/// `X-Accel-Buffering` keeps proxies from holding events back (2026-07-28 transports/streamable-http).
const EVENT_HEADERS: [(HeaderName, &str); 3] = [
    (header::CONTENT_TYPE, "text/event-stream"),
    (header::CACHE_CONTROL, "no-cache"),
    (HeaderName::from_static("x-accel-buffering"), "no"),
];

pub(super) fn events(payload: Payload) -> Response<Payload> {
    with(StatusCode::OK, payload, &EVENT_HEADERS)
}

/// A stream of a single event that is known already.
pub(super) fn one_event(code: StatusCode, event: Bytes) -> Response<Payload> {
    with(code, Payload::whole(event), &EVENT_HEADERS)
}

/// A refusal by the guard: a JSON-RPC error without an id, of no era's own codes.
pub(super) fn refused(refusal: &Refusal) -> Response<Payload> {
    refused_to(None, refusal)
}

fn refused_to(id: Option<RequestId>, refusal: &Refusal) -> Response<Payload> {
    let fault = Fault::InvalidRequest(refusal.problem.to_owned());
    let mut response = json(refusal.status, Reply { id, result: Err(fault) }.encode());
    if let Some(verbs) = refusal.allow {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(verbs));
    }
    if refusal.status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Refuses a request that was read, for now.
pub(super) fn busy(id: Option<RequestId>, problem: &'static str) -> Response<Payload> {
    refused_to(id, &Refusal { status: StatusCode::SERVICE_UNAVAILABLE, problem, allow: None })
}
