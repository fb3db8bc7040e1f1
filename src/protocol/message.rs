//! Messages: strict decoding and encoding of JSON-RPC 2.0 as MCP uses it.
//!
//! Promises: exact key case, no duplicate keys at any level, no loose ids, bounded depth and
//! counts. What passes is kept as slices of the bytes that arrived; nothing is copied or rounded.

use std::fmt;

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::value::RawValue;

use super::fault::Fault;
use super::json::{JsonError, JsonLimits, Kind, RawJson};
use super::limits::{BATCH_MESSAGES, REQUEST_ID_BYTES};
use super::members::{Members, Object, Text};
use super::scan::{self, Envelope, Found, Role, Span};

/// The id of a request: an integer or a text, echoed with its type (2026-07-28 basic, Requests).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// Within 64 bits.
    Integer(i64),
    /// At most 256 bytes.
    String(Box<str>),
}

impl RequestId {
    /// Reads an id; `None` for null, fractions, exponents, wide integers, long texts and other kinds.
    pub fn read(raw: &RawJson) -> Option<Self> {
        match raw.kind() {
            // The text decides, not the value: 1.0 and 1e3 are integers to some readers and not to others.
            Kind::Number => raw.as_str().parse().ok().filter(|_| raw.as_str() != "-0").map(Self::Integer),
            Kind::String => raw.as_text().filter(|t| t.len() <= REQUEST_ID_BYTES).map(|t| Self::String(t.into())),
            _ => None,
        }
    }

    /// The id as a value.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Integer(number) => (*number).into(),
            Self::String(text) => (&**text).into(),
        }
    }

    /// The id as JSON.
    pub fn write(&self, out: &mut BytesMut) {
        // Writing to memory does not fail.
        let _ = match self {
            Self::Integer(number) => serde_json::to_writer(out.writer(), number),
            Self::String(text) => serde_json::to_writer(out.writer(), text),
        };
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::String(text) => write!(f, "{text:?}"),
        }
    }
}

/// The `params` of a message.
#[expect(clippy::large_enum_variant, reason = "nearly every one is the large variant; a box would cost each request")]
#[derive(Debug, Clone)]
pub enum Params {
    /// None were sent.
    Absent,
    /// The members of an object.
    Object(Members),
    /// Something other than an object, which no MCP method takes.
    Other,
}

impl Params {
    /// One member.
    pub fn get(&self, name: &str) -> Option<RawJson> {
        self.members()?.get(name)
    }

    /// The text of a member that is one.
    pub fn text(&self, name: &str) -> Option<Text> {
        self.members()?.text(name)
    }

    /// The kind of one member.
    pub fn kind(&self, name: &str) -> Option<Kind> {
        self.members()?.kind(name)
    }

    fn members(&self) -> Option<Object<'_>> {
        self.within(Role::Params)
    }

    /// The metadata, if it is an object.
    pub(super) fn meta(&self) -> Option<Object<'_>> {
        self.within(Role::Meta).filter(|_| self.kind("_meta") == Some(Kind::Object))
    }

    /// The arguments, if they are an object.
    pub(super) fn arguments(&self) -> Option<Object<'_>> {
        self.within(Role::Arguments).filter(|_| self.kind("arguments") == Some(Kind::Object))
    }

    fn within(&self, role: Role) -> Option<Object<'_>> {
        match self {
            Self::Object(members) => Some(members.of(role)),
            Self::Absent | Self::Other => None,
        }
    }
}

/// A request: to be answered exactly once, unless it is cancelled.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its id.
    pub id: RequestId,
    /// What is asked for, as sent.
    pub method: Text,
    /// With what.
    pub params: Params,
}

/// A notification: never answered.
#[derive(Debug, Clone)]
pub struct Notification {
    /// What is told, as sent.
    pub method: Text,
    /// With what.
    pub params: Params,
}

/// An answer to a request of ours, or to none.
#[derive(Debug, Clone)]
pub struct Response {
    /// Which request it answers; an error about an unreadable message has none.
    pub id: Option<RequestId>,
    /// The result, or the error object.
    pub result: Result<RawJson, RawJson>,
}

/// One message.
#[derive(Debug, Clone)]
pub enum Message {
    /// See [`Request`].
    Request(Request),
    /// See [`Notification`].
    Notification(Notification),
    /// See [`Response`].
    Response(Response),
}

/// Something that is no message, with as much of it as an answer needs.
#[derive(Debug, Clone)]
pub struct Malformed {
    /// The id, if one could be read; an error without one carries none (2025-11-25 basic, Responses).
    pub id: Option<RequestId>,
    /// What to answer.
    pub fault: Fault,
    /// Whether it was to be a response: its id is one of ours, and may be that of another request of the peer's own.
    pub is_response: bool,
}

impl Malformed {
    fn invalid(id: Option<RequestId>, problem: impl Into<String>) -> Self {
        Self { id, fault: Fault::InvalidRequest(problem.into()), is_response: false }
    }

    /// The id that an answer to it carries.
    pub fn answered_as(&self) -> Option<RequestId> {
        self.id.clone().filter(|_| !self.is_response)
    }

    /// What it says to whoever waits for a response under its id: that there is none.
    pub fn as_response(&self) -> Option<Response> {
        let id = self.id.clone().filter(|_| self.is_response)?;
        let error = serde_json::json!({ "message": format!("its response is no message: {}", self.fault) });
        Some(Response { id: Some(id), result: Err(RawJson::encode(&error)) })
    }
}

/// What one line or one body holds.
#[expect(clippy::large_enum_variant, reason = "nearly every one is the large variant; a box would cost each request")]
#[derive(Debug, Clone)]
pub enum Decoded {
    /// One message, or what is wrong with it.
    One(Result<Message, Malformed>),
    /// An array, each element a message or what is wrong with it.
    Batch(Vec<Result<Message, Malformed>>),
}

impl Decoded {
    /// Decodes one line or one body.
    pub fn read(text: &Bytes, limits: &JsonLimits) -> Self {
        match decode(text, limits) {
            Ok(decoded) => decoded,
            Err(malformed) => Self::One(Err(malformed)),
        }
    }
}

fn decode(text: &Bytes, limits: &JsonLimits) -> Result<Decoded, Malformed> {
    let text = text.slice_ref(super::json::trim(text));
    let found = scan::walk(&text, limits, Role::Message).map_err(|error| refused(&text, error))?;
    if text.first() != Some(&b'[') {
        return Ok(Decoded::One(decode_one(&text, found)));
    }
    let elements: Vec<&RawValue> =
        serde_json::from_slice(&text).map_err(|_| Malformed::invalid(None, "unreadable batch"))?;
    if elements.is_empty() {
        return Err(Malformed::invalid(None, "an empty batch: send one message, or an array of at least one"));
    }
    if elements.len() > BATCH_MESSAGES {
        let problem = format!("a batch of {} messages: at most {BATCH_MESSAGES} are taken", elements.len());
        return Err(Malformed::invalid(None, problem));
    }
    let element = |element: &&RawValue| {
        let text = text.slice_ref(element.get().as_bytes());
        let found = scan::walk(&text, limits, Role::Message).map_err(|error| refused(&text, error))?;
        decode_one(&text, found)
    };
    Ok(Decoded::Batch(elements.iter().map(element).collect()))
}

/// What is no message: no JSON, or JSON that breaks our rules and may still say whose answer it is.
fn refused(text: &Bytes, error: JsonError) -> Malformed {
    match error {
        JsonError::Syntax(problem) => Malformed { id: None, fault: Fault::Parse(problem), is_response: false },
        refused => {
            let whole = serde_json::from_slice(text).ok().and_then(|whole| RawJson::part(text, whole).members());
            let members = whole.unwrap_or_default();
            let has = |name: &str| members.iter().any(|(key, _)| &**key == name);
            let is_response = !has("method") && (has("result") || has("error"));
            Malformed { is_response, ..Malformed::invalid(lone_id(&members), refused.to_string()) }
        }
    }
}

/// The id of a message that is JSON but breaks our rules, if it has exactly one good one.
fn lone_id(members: &[(Box<str>, RawJson)]) -> Option<RequestId> {
    let mut ids = members.iter().filter(|(key, _)| &**key == "id");
    let id = ids.next().map(|(_, raw)| RequestId::read(raw))?;
    id.filter(|_| ids.next().is_none())
}

fn decode_one(text: &Bytes, found: Found) -> Result<Message, Malformed> {
    if text.first() != Some(&b'{') {
        return Err(Malformed::invalid(None, "a message is a JSON object"));
    }
    let Found { envelope: Envelope { jsonrpc, id: raw_id, method, params, result, error }, outline } = found;
    let raw = |span: Span| RawJson::checked(text.slice_ref(span.of(text)));
    let id = raw_id.and_then(|id| RequestId::read(&raw(id)));
    let is_response = method.is_none() && (result.is_some() || error.is_some());
    let invalid = |problem: &str| Err(Malformed { is_response, ..Malformed::invalid(id.clone(), problem) });
    if jsonrpc.and_then(|said| raw(said).as_words()).as_deref() != Some("2.0") {
        return invalid("jsonrpc must be the text \"2.0\"");
    }
    let Some(method) = method else {
        return match (result, error.map(raw)) {
            (Some(result), None) if id.is_some() => Ok(Message::Response(Response { id, result: Ok(raw(result)) })),
            (None, Some(error)) if error.kind() == Kind::Object => {
                Ok(Message::Response(Response { id, result: Err(error) }))
            }
            (None, None) => invalid("a message has a method, a result or an error"),
            _ => invalid("a response has an id and either a result or an error object"),
        };
    };
    if result.is_some() || error.is_some() {
        return invalid("a message with a method has neither a result nor an error");
    }
    let Some(method) = raw(method).as_words().filter(|m| !m.is_empty()) else {
        return invalid("method must be a text");
    };
    let params = match params {
        None => Params::Absent,
        Some(span) if span.of(text).first() == Some(&b'{') => Params::Object(Members::new(text.clone(), outline)),
        Some(_) => Params::Other,
    };
    match (raw_id, id) {
        (None, _) => Ok(Message::Notification(Notification { method, params })),
        (Some(_), Some(id)) => Ok(Message::Request(Request { id, method, params })),
        (Some(_), None) => Err(Malformed::invalid(
            None,
            format!("id must be an integer of at most 64 bits or a text of at most {REQUEST_ID_BYTES} bytes"),
        )),
    }
}

/// Encodes an answer: a result that is already text, or a fault.
pub fn encode_response(id: Option<&RequestId>, result: &Result<Bytes, Fault>) -> Bytes {
    let size = result.as_ref().map_or(256, Bytes::len) + ENVELOPE_BYTES;
    let mut out = BytesMut::with_capacity(size);
    write_response(id, result, &mut out);
    out.freeze()
}

/// Writes an answer, see [`encode_response`].
pub fn write_response(id: Option<&RequestId>, result: &Result<Bytes, Fault>, out: &mut BytesMut) {
    write_head(id, result, out);
    if let Ok(result) = result {
        out.put_slice(result);
        out.put_slice(CLOSE);
    }
}

/// An answer in parts, to be sent without joining them: what is its own, the result, and the end.
pub fn response_parts(id: Option<&RequestId>, result: &Result<Bytes, Fault>) -> (BytesMut, Bytes, &'static [u8]) {
    let mut head = BytesMut::with_capacity(ENVELOPE_BYTES);
    write_head(id, result, &mut head);
    match result {
        Ok(result) => (head, result.clone(), CLOSE),
        Err(_) => (head, Bytes::new(), b""),
    }
}

/// Bytes that an answer has besides its result, if its id is of ordinary length.
const ENVELOPE_BYTES: usize = 64;

/// What an answer ends with.
const CLOSE: &[u8] = b"}";

/// All of a fault, or what goes before a result.
fn write_head(id: Option<&RequestId>, result: &Result<Bytes, Fault>, out: &mut BytesMut) {
    out.put_slice(br#"{"jsonrpc":"2.0""#);
    if let Some(id) = id {
        out.put_slice(br#","id":"#);
        id.write(out);
    }
    match result {
        Ok(_) => out.put_slice(br#","result":"#),
        Err(fault) => {
            out.put_slice(br#","error":"#);
            out.put_slice(fault.to_json().to_string().as_bytes());
            out.put_slice(CLOSE);
        }
    }
}

/// Encodes a request of ours; `params` is the text of an object.
pub fn encode_request(id: &RequestId, method: &str, params: &str) -> Bytes {
    let mut out = BytesMut::with_capacity(params.len() + method.len() + 64);
    out.put_slice(br#"{"jsonrpc":"2.0","id":"#);
    id.write(&mut out);
    out.put_slice(format!(",\"method\":\"{method}\",\"params\":{params}}}").as_bytes());
    out.freeze()
}

/// Encodes a notification of ours; `params` is the text of an object, or empty for none.
pub fn encode_notification(method: &str, params: &str) -> Bytes {
    if params.is_empty() {
        return format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}").into();
    }
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\",\"params\":{params}}}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Message, Malformed> {
        match Decoded::read(&Bytes::copy_from_slice(text.as_bytes()), &JsonLimits::default()) {
            Decoded::One(message) => message,
            Decoded::Batch(_) => panic!("a batch: {text}"),
        }
    }

    fn id_of(text: &str) -> Option<RequestId> {
        match one(text) {
            Ok(Message::Request(request)) => Some(request.id),
            _ => None,
        }
    }

    #[test]
    fn ids_are_integers_of_64_bits_or_texts_of_256_bytes() {
        let with = |id: &str| id_of(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
        assert_eq!(with("7"), Some(RequestId::Integer(7)));
        assert_eq!(with("-9223372036854775808"), Some(RequestId::Integer(i64::MIN)));
        assert_eq!(with("\"7\""), Some(RequestId::String("7".into())));
        assert_eq!(with("\"\""), Some(RequestId::String("".into())));
        assert!(with(&format!("\"{}\"", "x".repeat(256))).is_some());
        for bad in ["null", "1.5", "1.0", "1e3", "-0", "true", "{}", "[1]", "9223372036854775808"] {
            assert_eq!(with(bad), None, "{bad}");
        }
        assert_eq!(with(&format!("\"{}\"", "x".repeat(257))), None);
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_id_where_one_can_be_read() {
        let table = [
            ("[[1]", -32700, None),
            ("\u{feff}{}", -32700, None),
            ("\u{c}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", -32700, None),
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\u{b}", -32700, None),
            ("3", -32600, None),
            (r#"{"jsonrpc":"2.0","id":1,"Method":"tools/list"}"#, -32600, Some(1)),
            (r#"{"jsonrpc":"2","id":1,"method":"ping"}"#, -32600, Some(1)),
            (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, -32600, Some(1)),
            (r#"{"id":1,"method":"ping"}"#, -32600, Some(1)),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600, Some(1)),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, -32600, Some(1)),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600, Some(1)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#, -32600, Some(1)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","meth\u006fd":"tools/call"}"#, -32600, Some(1)),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32600, None),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"name":"a","name":"b"}}"#, -32600, Some(1)),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"k":1,"k":2}}}"#, -32600, Some(1)),
        ];
        for (text, code, id) in table {
            let malformed = one(text).expect_err(text);
            assert_eq!(malformed.fault.code().number(), code, "{text}");
            assert_eq!(malformed.answered_as(), id.map(RequestId::Integer), "{text}");
        }
    }

    #[test]
    fn an_escaped_key_is_the_same_key_and_unknown_members_are_ignored() {
        let text = r#"{"jsonrpc":"2.0","id":1,"meth\u006fd":"ping","paramſ":{"a":1},"Params":3,"extra":[{}]}"#;
        match one(text).unwrap() {
            Message::Request(request) => {
                assert_eq!(&*request.method, "ping");
                assert!(matches!(request.params, Params::Absent));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn batches_are_bounded_and_hold_each_elements_own_verdict() {
        let read = |text: &str| Decoded::read(&Bytes::copy_from_slice(text.as_bytes()), &JsonLimits::default());
        match read(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},5]"#) {
            Decoded::Batch(elements) => assert!(elements[0].is_ok() && elements[1].is_err()),
            Decoded::One(_) => panic!("not a batch"),
        }
        let of = |n: usize| read(&format!("[{}]", vec!["{}"; n].join(",")));
        assert!(matches!(of(0), Decoded::One(Err(_))));
        assert!(matches!(of(64), Decoded::Batch(_)));
        assert!(matches!(of(65), Decoded::One(Err(_))));
    }

    #[test]
    fn answers_echo_the_id_with_its_type_and_omit_one_that_could_not_be_read() {
        let text = |id| String::from_utf8(encode_response(id, &Ok(Bytes::from_static(b"{}"))).to_vec()).unwrap();
        assert_eq!(text(Some(&RequestId::Integer(1))), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        let quoted = RequestId::String("a\"".into());
        assert_eq!(text(Some(&quoted)), r#"{"jsonrpc":"2.0","id":"a\"","result":{}}"#);
        assert_eq!(text(None), r#"{"jsonrpc":"2.0","result":{}}"#);
    }
}
