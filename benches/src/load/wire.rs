//! The requests that are sent and the check of every answer.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use memchr::memmem;
use serde_json::{Value, json};
use twodoor_benches::TOOLS;

/// The first id. All ids have as many digits, so that they can be written in place.
pub const FIRST_ID: u64 = 100_000_000;
const ID_DIGITS: usize = 9;
const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// How a request names its revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// In its `_meta` and headers.
    Modern,
    /// By the session it belongs to.
    Legacy,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    Echo,
    List,
    Discover,
    Initialize,
}

impl Ask {
    fn method(self) -> &'static str {
        match self {
            Self::Echo => "tools/call",
            Self::List => "tools/list",
            Self::Discover => "server/discover",
            Self::Initialize => "initialize",
        }
    }
}

/// A text unlike that of any other `seed`, with characters that JSON escapes and some beyond ASCII.
pub fn text(seed: usize) -> String {
    format!("hello {seed} from \"load\"\té\n")
}

/// A request whose id is rewritten for each use.
pub struct Request {
    bytes: Vec<u8>,
    id_at: usize,
}

impl Request {
    /// One line of stdio.
    pub fn line(era: Era, ask: Ask, text: &str) -> Self {
        let mut bytes = body(era, ask, text).into_bytes();
        bytes.push(b'\n');
        Self::new(bytes)
    }

    /// A whole HTTP request.
    pub fn post(host: &str, path: &str, era: Era, ask: Ask, text: &str, session: Option<&str>) -> Self {
        let body = body(era, ask, text);
        let headers = match (era, ask) {
            (Era::Modern, Ask::Echo) => {
                format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n")
            }
            (Era::Modern, _) => format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: {}\r\n", ask.method()),
            (Era::Legacy, _) => legacy_headers(session),
        };
        Self::new(post(host, path, &headers, &body))
    }

    fn new(bytes: Vec<u8>) -> Self {
        let id_at = memmem::find(&bytes, FIRST_ID.to_string().as_bytes()).unwrap_or(0);
        Self { bytes, id_at }
    }

    /// The request under that id.
    pub fn with_id(&mut self, mut id: u64) -> &[u8] {
        for digit in self.bytes[self.id_at..self.id_at + ID_DIGITS].iter_mut().rev() {
            *digit = b'0' + (id % 10) as u8;
            id /= 10;
        }
        &self.bytes
    }
}

/// The HTTP request that ends a legacy handshake.
pub fn initialized(host: &str, path: &str, session: &str) -> Vec<u8> {
    post(host, path, &legacy_headers(Some(session)), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
}

fn legacy_headers(session: Option<&str>) -> String {
    session.map_or_else(String::new, |id| format!("MCP-Protocol-Version: {LEGACY}\r\nMcp-Session-Id: {id}\r\n"))
}

fn post(host: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn body(era: Era, ask: Ask, text: &str) -> String {
    let client = json!({ "name": "load", "version": "0" });
    let mut params = match ask {
        Ask::Echo => json!({ "name": "echo", "arguments": { "text": text } }),
        Ask::Initialize => json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client }),
        Ask::List | Ask::Discover => json!({}),
    };
    if era == Era::Modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": client,
            "io.modelcontextprotocol/clientCapabilities": {}
        });
    }
    let mut body = format!(r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"{}","params":"#, ask.method());
    let _ = write!(body, "{params}}}");
    body
}

/// Checks answers. One is parsed and judged in full; those after it are equal to it in every byte
/// but the id, or are judged in full too. So the check is complete and costs little.
pub struct Checker {
    era: Era,
    ask: Ask,
    text: String,
    judged: Option<(Vec<u8>, usize)>,
}

impl Checker {
    pub fn new(era: Era, ask: Ask, text: &str) -> Self {
        Self { era, ask, text: text.to_owned(), judged: None }
    }

    /// The id of a right answer.
    pub fn check(&mut self, answer: &[u8]) -> Result<u64> {
        if let Some(id) = self.same_but_id(answer) {
            return Ok(id);
        }
        let id = self
            .judge(answer)
            .with_context(|| format!("wrong answer: {}", String::from_utf8_lossy(&answer[..answer.len().min(400)])))?;
        self.judged = memmem::find(answer, id.to_string().as_bytes()).map(|at| (answer.to_vec(), at));
        Ok(id)
    }

    fn same_but_id(&self, answer: &[u8]) -> Option<u64> {
        let (judged, at) = self.judged.as_ref()?;
        let end = at + ID_DIGITS;
        if answer.len() != judged.len() || answer[..*at] != judged[..*at] || answer[end..] != judged[end..] {
            return None;
        }
        answer[*at..end].iter().try_fold(0, |id, d| d.is_ascii_digit().then(|| id * 10 + u64::from(d - b'0')))
    }

    fn judge(&self, answer: &[u8]) -> Result<u64> {
        let answer: Value = serde_json::from_slice(answer)?;
        ensure!(answer["jsonrpc"] == "2.0", "jsonrpc is not 2.0");
        ensure!(answer.get("error").is_none(), "it is an error");
        let result = &answer["result"];
        ensure!(result.is_object(), "it has no result");
        if self.era == Era::Modern {
            ensure!(result["resultType"] == "complete", "resultType is not complete");
        }
        match self.ask {
            Ask::Echo => {
                ensure!(result["isError"] != true, "isError");
                ensure!(result["content"] == json!([{ "type": "text", "text": self.text }]), "the content differs");
            }
            Ask::List => {
                let tools = result["tools"].as_array().context("no tools")?;
                ensure!(tools.len() == TOOLS, "{} tools", tools.len());
                let whole = |t: &Value| t["name"].is_string() && t["inputSchema"]["properties"].is_object();
                ensure!(tools.iter().all(whole), "a tool lacks its name or its schema");
                ensure!(tools.iter().any(|t| t["name"] == "echo"), "no echo");
                ensure!(result.get("nextCursor").is_none(), "a page instead of the whole");
            }
            Ask::Discover => {
                let versions = result["supportedVersions"].as_array().context("no supportedVersions")?;
                ensure!(versions.iter().any(|v| v == MODERN), "supportedVersions lacks {MODERN}");
            }
            Ask::Initialize => ensure!(result["protocolVersion"] == LEGACY, "protocolVersion is not {LEGACY}"),
        }
        answer["id"].as_u64().filter(|id| *id >= FIRST_ID).context("the id is none of ours")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twodoor_benches::Fixed;

    fn answer(ask: Ask) -> Vec<u8> {
        let mut request = Request::line(Era::Modern, ask, "a \"text\"");
        let answer = Fixed::new().answer(request.with_id(FIRST_ID + 7)).unwrap().unwrap();
        [&answer.head[..], &answer.tail].concat()
    }

    fn replaced(answer: &[u8], old: &str, new: &str) -> Vec<u8> {
        let text = String::from_utf8(answer.to_vec()).unwrap();
        assert!(text.contains(old));
        text.replacen(old, new, 1).into_bytes()
    }

    #[test]
    fn bare_answers_are_right() {
        for ask in [Ask::Echo, Ask::List, Ask::Discover] {
            let mut checker = Checker::new(Era::Modern, ask, "a \"text\"");
            for _ in 0..2 {
                assert_eq!(checker.check(&answer(ask)).unwrap(), FIRST_ID + 7);
            }
        }
    }

    #[test]
    fn wrong_answers_are_found_first_and_later() {
        let cases = [
            (Ask::Echo, "text\\\"", "test\\\""),
            (Ask::Echo, "100000007", "\"10000007\""),
            (Ask::Echo, "\"isError\":false", "\"isError\":true "),
            (Ask::Echo, "\"complete\"", "\"accepted\""),
            (Ask::List, "\"name\":\"tool_0099\"", "\"mane\":\"tool_0099\""),
            (Ask::Discover, "2026-07-28", "2026-07-29"),
            (Ask::Discover, "\"result\":", "\"error\":1,\"result\":"),
        ];
        for (ask, old, new) in cases {
            let right = answer(ask);
            let wrong = replaced(&right, old, new);
            let mut checker = Checker::new(Era::Modern, ask, "a \"text\"");
            assert!(checker.check(&wrong).is_err(), "{new} first");
            checker.check(&right).unwrap();
            assert!(checker.check(&wrong).is_err(), "{new} later");
        }
    }
}
