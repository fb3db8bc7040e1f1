//! Messages as a client writes and reads them: one request as text, an answer matched to it.

use bytes::{BufMut as _, Bytes, BytesMut};

use super::aside::reading;
use super::problem::Problem;
use crate::protocol::{Decoded, Malformed, Message, RawJson, RequestId, json::JsonLimits};

/// One request before it has an id.
#[derive(Debug)]
pub(super) struct Ask<'a> {
    /// What is asked for.
    pub(super) method: &'a str,
    /// The members of `params`.
    pub(super) params: Vec<(&'a str, RawJson)>,
    /// The HTTP headers that go with it; other transports leave them out.
    pub(super) headers: Vec<(String, String)>,
}

impl Ask<'_> {
    /// The request as one line of JSON.
    pub(super) fn with_id(&self, id: i64) -> Bytes {
        message(self.method, Some(id), &self.params)
    }

    /// The notification as one line of JSON.
    pub(super) fn without_id(&self) -> Bytes {
        message(self.method, None, &self.params)
    }
}

/// An object of members that are already text.
pub(super) fn object<'m>(members: impl IntoIterator<Item = (&'m str, &'m RawJson)>) -> RawJson {
    let members: std::collections::BTreeMap<&str, &serde_json::value::RawValue> =
        members.into_iter().filter_map(|(key, value)| Some((key, value.parse().ok()?))).collect();
    RawJson::encode(&members)
}

fn message(method: &str, id: Option<i64>, params: &[(&str, RawJson)]) -> Bytes {
    let mut out = BytesMut::with_capacity(256);
    out.put_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        out.put_slice(format!("\"id\":{id},").as_bytes());
    }
    out.put_slice(b"\"method\":");
    out.put_slice(RawJson::encode(&method).as_bytes());
    if !params.is_empty() {
        out.put_slice(b",\"params\":");
        // A line must hold no raw line end, which text taken over from a caller may do between its tokens.
        let text = object(params.iter().map(|(key, value)| (*key, value)));
        out.extend(text.as_bytes().iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    }
    out.put_u8(b'}');
    out.freeze()
}

/// Answers a request that a server made of us; `None` where nothing is to be sent.
///
/// `ping` is answered as every revision that has it demands, anything else is not known here.
pub(super) fn answer_server(id: &RequestId, method: &str) -> Bytes {
    let mut out = BytesMut::from(&br#"{"jsonrpc":"2.0","id":"#[..]);
    id.write(&mut out);
    out.put_slice(match method {
        "ping" => br#","result":{}}"#,
        _ => br#","error":{"code":-32601,"message":"this client answers no requests"}}"#,
    });
    out.freeze()
}

/// The messages of one line, one body or one event; a long one is read on a thread where nothing else waits for it.
pub(super) async fn read(text: &Bytes, limits: &JsonLimits) -> Vec<Result<Message, Malformed>> {
    let (bytes, text, limits) = (text.len(), text.clone(), *limits);
    let read = move || match Decoded::read(&text, &limits) {
        Decoded::One(message) => vec![message],
        Decoded::Batch(messages) => messages,
    };
    reading(bytes, read).await.unwrap_or_default()
}

/// The outcome of a response to `method`.
pub(super) fn outcome(method: &str, result: Result<RawJson, RawJson>) -> Result<RawJson, Problem> {
    result.map_err(|error| Problem::refused(method, &error))
}

/// What a malformed message means for the request it seems to answer.
pub(super) fn not_strict(method: &str, malformed: &Malformed) -> Problem {
    Problem::NotStrict { method: method.to_owned(), why: malformed.fault.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_line_and_carries_its_params_as_they_were_written() {
        let raw =
            |text: &'static str| RawJson::new(Bytes::from_static(text.as_bytes()), &JsonLimits::default()).unwrap();
        let ask = Ask {
            method: "tools/call",
            params: vec![("name", raw("\"a\"")), ("arguments", raw("{\"n\":\n1.50,\r\n\"t\":\"x\\ny\"}"))],
            headers: Vec::new(),
        };
        let text = String::from_utf8(ask.with_id(7).to_vec()).unwrap();
        assert_eq!(
            text,
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"n": 1.50,  "t":"x\ny"},"name":"a"}}"#
        );
        let bare = Ask { method: "notifications/initialized", params: Vec::new(), headers: Vec::new() };
        assert_eq!(&bare.without_id()[..], br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    #[test]
    fn a_servers_ping_is_answered_and_its_other_requests_are_refused() {
        let id = RequestId::String("a\"".into());
        assert_eq!(&answer_server(&id, "ping")[..], br#"{"jsonrpc":"2.0","id":"a\"","result":{}}"#);
        let refusal: serde_json::Value = serde_json::from_slice(&answer_server(&id, "roots/list")).unwrap();
        assert_eq!(refusal["error"]["code"], -32601);
    }
}
