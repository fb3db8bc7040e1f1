//! The requests that are sent.

use memchr::memmem;
use serde_json::json;

/// The first id. All ids have as many digits, so that they can be written in place.
pub const FIRST_ID: u64 = 100_000_000;
pub const ID_DIGITS: usize = 9;
pub const MODERN: &str = "2026-07-28";
pub const LEGACY: &str = "2025-11-25";

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
    /// An echo that tells its progress.
    Progress,
    /// An echo that takes its time.
    Slow,
    List,
    Discover,
    Initialize,
    Listen,
}

impl Ask {
    pub fn method(self) -> &'static str {
        match self {
            Self::Echo | Self::Progress | Self::Slow => "tools/call",
            Self::List => "tools/list",
            Self::Discover => "server/discover",
            Self::Initialize => "initialize",
            Self::Listen => "subscriptions/listen",
        }
    }

    /// The tool that is called.
    pub fn tool(self) -> Option<&'static str> {
        match self {
            Self::Echo => Some("echo"),
            Self::Progress => Some("progress"),
            Self::Slow => Some("slow"),
            Self::List | Self::Discover | Self::Initialize | Self::Listen => None,
        }
    }
}

/// A text unlike that of any other `seed`, with characters that JSON escapes and some beyond ASCII, of so many bytes or a
/// few more.
pub fn text(seed: usize, bytes: usize) -> String {
    const FILLING: &str = "The quick brown fox jumps over the lazy dog. ";
    let mut text = format!("hello {seed} from \"load\"\té\nend");
    let missing = bytes.saturating_sub(text.len());
    text.push_str(&FILLING.repeat(missing.div_ceil(FILLING.len())));
    text
}

/// One question of one client, whatever its id.
#[derive(Debug, Clone)]
pub struct Question {
    pub era: Era,
    pub ask: Ask,
    pub text: String,
    /// How many tools the server has.
    pub tools: usize,
}

impl Question {
    fn body(&self) -> String {
        let client = json!({ "name": "load", "version": "0" });
        let mut params = match self.ask {
            Ask::Initialize => json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client }),
            Ask::Listen => json!({ "notifications": { "toolsListChanged": true } }),
            ask => {
                ask.tool().map_or_else(|| json!({}), |tool| json!({ "name": tool, "arguments": { "text": self.text } }))
            }
        };
        if self.era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": client,
                "io.modelcontextprotocol/clientCapabilities": {}
            });
        }
        if self.ask == Ask::Progress {
            params["_meta"]["progressToken"] = json!(1);
        }
        format!(r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"{}","params":{params}}}"#, self.ask.method())
    }

    /// One line of stdio.
    pub fn line(&self) -> Request {
        let mut bytes = self.body().into_bytes();
        bytes.push(b'\n');
        Request::new(bytes)
    }

    /// A whole HTTP request.
    pub fn post(&self, at: &Address, session: Option<&str>) -> Request {
        let headers = match (self.era, self.ask.tool()) {
            (Era::Modern, Some(tool)) => {
                format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n")
            }
            (Era::Modern, None) => {
                format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: {}\r\n", self.ask.method())
            }
            (Era::Legacy, _) => session_headers(session),
        };
        Request::new(at.post(&headers, &self.body()))
    }
}

/// A request whose id is rewritten for each use.
pub struct Request {
    bytes: Vec<u8>,
    id_at: usize,
}

impl Request {
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

/// Where HTTP requests go.
#[derive(Debug, Clone)]
pub struct Address {
    pub host: String,
    path: String,
}

impl Address {
    pub fn read(url: &str) -> Option<Self> {
        let (host, path) = url.strip_prefix("http://")?.split_once('/')?;
        Some(Self { host: host.to_owned(), path: format!("/{path}") })
    }

    /// The HTTP request that ends a legacy handshake.
    pub fn initialized(&self, session: &str) -> Vec<u8> {
        self.post(&session_headers(Some(session)), r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
    }

    /// The HTTP request that ends a legacy session.
    pub fn delete(&self, session: &str) -> Vec<u8> {
        self.request("DELETE", &session_headers(Some(session)), "")
    }

    /// The HTTP request that opens a legacy session's stream.
    pub fn get(&self, session: &str) -> Vec<u8> {
        self.request("GET", &format!("Accept: text/event-stream\r\n{}", session_headers(Some(session))), "")
    }

    fn post(&self, headers: &str, body: &str) -> Vec<u8> {
        let headers = format!(
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\n",
            body.len()
        );
        self.request("POST", &headers, body)
    }

    fn request(&self, method: &str, headers: &str, body: &str) -> Vec<u8> {
        let Self { host, path } = self;
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n{body}").into_bytes()
    }
}

fn session_headers(session: Option<&str>) -> String {
    session.map_or_else(String::new, |id| format!("MCP-Protocol-Version: {LEGACY}\r\nMcp-Session-Id: {id}\r\n"))
}
