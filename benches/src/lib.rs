//! What all servers of a comparison share: the tools, and the fixed answers of the bare ones.
//!
//! A bare server does what no server can leave out: it reads the message, parses it once without
//! copying and sends bytes that were encoded beforehand. It validates nothing.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Tools in a listing: `echo` and fillers.
pub const TOOLS: usize = 100;

/// A tool as every server defines it.
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// JSON text of its `inputSchema`.
    pub input_schema: &'static str,
}

const ECHO_SCHEMA: &str = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
const FILLER_SCHEMA: &str = r#"{"type":"object","properties":{"query":{"type":"string","description":"Free text query"},"limit":{"type":"integer","minimum":1,"maximum":100},"verbose":{"type":"boolean"}},"required":["query"]}"#;

/// `echo` and 99 fillers of realistic size.
pub fn tools() -> Vec<Tool> {
    let echo =
        Tool { name: "echo".to_owned(), description: "Echo the text back".to_owned(), input_schema: ECHO_SCHEMA };
    let filler = |i| Tool {
        name: format!("tool_{i:04}"),
        description: format!("Synthetic tool number {i}, here to give tools/list a realistic size."),
        input_schema: FILLER_SCHEMA,
    };
    std::iter::once(echo).chain((1..TOOLS).map(filler)).collect()
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    arguments: Echo<'a>,
}

#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

/// An answer: bytes of its own, then bytes that all answers share.
pub struct Answer {
    pub head: Vec<u8>,
    pub tail: Bytes,
    /// Whether it opens a legacy session.
    pub opens: bool,
}

/// The answers of a bare server.
pub struct Fixed {
    list: Bytes,
}

const DISCOVER: &[u8] = br#","result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bare","version":"0"}},"ttlMs":0,"cacheScope":"private"}}"#;
const INITIALIZE: &[u8] = br#","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bare","version":"0"}}}"#;
const UNKNOWN: &[u8] = br#","error":{"code":-32601,"message":"Method not found"}}"#;

impl Fixed {
    /// Encodes the listing.
    pub fn new() -> Self {
        let tools: Vec<_> = tools()
            .iter()
            .map(|t| {
                format!(r#"{{"name":"{}","description":"{}","inputSchema":{}}}"#, t.name, t.description, t.input_schema)
            })
            .collect();
        let list = format!(
            r#","result":{{"resultType":"complete","tools":[{}],"ttlMs":0,"cacheScope":"private"}}}}"#,
            tools.join(",")
        );
        Self { list: list.into() }
    }

    /// `None`: a notification, nothing to answer.
    pub fn answer(&self, message: &[u8]) -> Result<Option<Answer>, serde_json::Error> {
        let request: Request = serde_json::from_slice(message)?;
        let Some(id) = request.id else { return Ok(None) };
        let mut head = Vec::with_capacity(160);
        head.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        head.extend_from_slice(id.get().as_bytes());
        let tail = match request.method {
            "tools/call" => {
                let call: Call = serde_json::from_str(request.params.map_or("{}", RawValue::get))?;
                let text = call.arguments.text.get().as_bytes();
                head.reserve(text.len() + 96);
                head.extend_from_slice(br#","result":{"resultType":"complete","content":[{"type":"text","text":"#);
                head.extend_from_slice(text);
                head.extend_from_slice(br#"}],"isError":false}}"#);
                Bytes::new()
            }
            "tools/list" => self.list.clone(),
            "server/discover" => Bytes::from_static(DISCOVER),
            "initialize" => Bytes::from_static(INITIALIZE),
            _ => Bytes::from_static(UNKNOWN),
        };
        Ok(Some(Answer { head, tail, opens: request.method == "initialize" }))
    }
}

impl Default for Fixed {
    fn default() -> Self {
        Self::new()
    }
}
