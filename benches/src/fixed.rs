//! What a bare server answers.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::tools::{PROGRESS_NOTICES, tools};

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
    name: &'a str,
    #[serde(borrow)]
    arguments: Echo<'a>,
}

#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

/// An answer: bytes of its own, then bytes that all answers share.
#[derive(Default)]
pub struct Answer {
    pub head: Vec<u8>,
    pub tail: Bytes,
    /// Whether it opens a legacy session.
    pub opens: bool,
    /// What is told before it, as events of a stream.
    pub events: Vec<Bytes>,
}

/// The answers of a bare server.
pub struct Fixed {
    list: Bytes,
    progress: Vec<Bytes>,
}

const DISCOVER: &[u8] = br#","result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bare","version":"0"}},"ttlMs":0,"cacheScope":"private"}}"#;
const INITIALIZE: &[u8] = br#","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bare","version":"0"}}}"#;
const UNKNOWN: &[u8] = br#","error":{"code":-32601,"message":"Method not found"}}"#;

impl Fixed {
    /// Encodes the listing of so many tools.
    pub fn new(count: usize) -> Self {
        let tools: Vec<_> = tools(count)
            .iter()
            .map(|t| {
                format!(r#"{{"name":"{}","description":"{}","inputSchema":{}}}"#, t.name, t.description, t.input_schema)
            })
            .collect();
        let list = format!(
            r#","result":{{"resultType":"complete","tools":[{}],"ttlMs":0,"cacheScope":"private"}}}}"#,
            tools.join(",")
        );
        let notice = |i| {
            format!(
                "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":1,\"progress\":{i},\"total\":{PROGRESS_NOTICES}}}}}\n\n"
            )
            .into()
        };
        Self { list: list.into(), progress: (1..=PROGRESS_NOTICES).map(notice).collect() }
    }

    /// `None`: a notification, nothing to answer.
    pub fn answer(&self, message: &[u8]) -> Result<Option<Answer>, serde_json::Error> {
        let request: Request = serde_json::from_slice(message)?;
        let Some(id) = request.id else { return Ok(None) };
        let mut answer = Answer { head: Vec::with_capacity(160), ..Answer::default() };
        let head = &mut answer.head;
        head.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        head.extend_from_slice(id.get().as_bytes());
        match request.method {
            "tools/call" => {
                let call: Call = serde_json::from_str(request.params.map_or("{}", RawValue::get))?;
                let text = call.arguments.text.get().as_bytes();
                head.reserve(text.len() + 96);
                head.extend_from_slice(br#","result":{"resultType":"complete","content":[{"type":"text","text":"#);
                head.extend_from_slice(text);
                head.extend_from_slice(br#"}],"isError":false}}"#);
                if call.name == "progress" {
                    answer.events.clone_from(&self.progress);
                }
            }
            "tools/list" => answer.tail = self.list.clone(),
            "server/discover" => answer.tail = Bytes::from_static(DISCOVER),
            "initialize" => {
                answer.tail = Bytes::from_static(INITIALIZE);
                answer.opens = true;
            }
            _ => answer.tail = Bytes::from_static(UNKNOWN),
        }
        Ok(Some(answer))
    }
}
