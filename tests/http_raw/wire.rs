//! A server in this process, and clients that write raw bytes to it.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use twodoor::protocol::{Limits, Offer};
use twodoor::transport::http::{self, Mount, Options};
use twodoor::transport::{Engine, Hub};

use crate::common::{self, Backend, MODERN, NEWEST_LEGACY, PATIENCE, Reports};

/// A server on a loopback port, stopped when dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) backend: Arc<Backend>,
    pub(crate) reports: Reports,
    pub(crate) hub: Hub,
    runtime: tokio::runtime::Runtime,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default(), Options::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        Self::with(limits, Options::default())
    }

    pub(crate) fn with(limits: Limits, options: Options) -> Self {
        Self::offering(Offer::Both, limits, options)
    }

    pub(crate) fn offering(offer: Offer, limits: Limits, options: Options) -> Self {
        Self::several(offer, limits, options, |_| Vec::new())
    }

    /// One that serves others beside the first.
    pub(crate) fn several(
        offer: Offer,
        limits: Limits,
        options: Options,
        others: impl FnOnce(&Engine) -> Vec<Mount>,
    ) -> Self {
        let (engine, backend, reports) = common::engine(limits, offer);
        let hub = Hub::new();
        let others = others(&engine);
        let first = Mount { name: None, engine: engine.with_hub(hub.clone()) };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = runtime.block_on(http::listen(SocketAddr::from(([127, 0, 0, 1], 0)))).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = runtime.spawn(async move {
            let stop = async { drop(stopped.await) };
            http::serve_all(first, others, listener, options, stop).await.unwrap();
        });
        Self { address, backend, reports, hub, runtime, stop: Some(stop), served: Some(served) }
    }

    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.address.port())
    }

    pub(crate) fn connect(&self) -> Client {
        Client::new(self.address)
    }

    /// Asks the server to stop.
    pub(crate) fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until it has stopped.
    pub(crate) fn wait_stopped(&mut self) {
        let served = self.served.take().unwrap();
        self.runtime
            .block_on(async { tokio::time::timeout(PATIENCE, served).await })
            .expect("stopped in time")
            .unwrap();
    }

    /// Sends one request on a socket of its own and reads the whole answer.
    pub(crate) fn ask(&self, request: &Request) -> Response {
        let mut client = self.connect();
        client.send(&request.bytes(self));
        client.response()
    }

    /// Opens a legacy session; gives its id.
    pub(crate) fn session(&self, revision: &str) -> String {
        let answer = self.ask(&Request::post(&common::initialize(&0.into(), revision)));
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json()["result"]["protocolVersion"], revision);
        answer.header("mcp-session-id").expect("a session id").to_owned()
    }
}

/// A request to be: its line, its headers, its body.
#[derive(Clone)]
pub(crate) struct Request {
    verb: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(verb: &str, target: &str) -> Self {
        Self { verb: verb.to_owned(), target: target.to_owned(), headers: Vec::new(), body: Vec::new() }
    }

    /// The same request at another path.
    pub(crate) fn with_target(mut self, target: &str) -> Self {
        target.clone_into(&mut self.target);
        self
    }

    pub(crate) fn get() -> Self {
        Self::new("GET", "/mcp").header("Accept", "text/event-stream")
    }

    pub(crate) fn delete() -> Self {
        Self::new("DELETE", "/mcp")
    }

    pub(crate) fn post(body: &str) -> Self {
        let mut request = Self::new("POST", "/mcp")
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .header("Content-Length", &body.len().to_string());
        request.body = body.as_bytes().to_vec();
        request
    }

    /// A modern request with the headers that mirror its body.
    pub(crate) fn modern(id: impl Into<Value>, method: &str, params: &Value) -> Self {
        let request = Self::post(&common::modern(&id.into(), method, params))
            .header("MCP-Protocol-Version", MODERN)
            .header("Mcp-Method", method);
        match params["name"].as_str() {
            Some(name) => request.header("Mcp-Name", name),
            None => request,
        }
    }

    /// A modern call of `act`.
    pub(crate) fn modern_act(id: impl Into<Value>, arguments: &Value) -> Self {
        Self::modern(id, "tools/call", &common::act(arguments))
    }

    /// A request in a session of the newest legacy revision.
    pub(crate) fn legacy(sid: &str, id: impl Into<Value>, method: &str, params: &Value) -> Self {
        Self::post(&common::legacy(&id.into(), method, params)).of(sid)
    }

    pub(crate) fn legacy_act(sid: &str, id: impl Into<Value>, arguments: &Value) -> Self {
        Self::legacy(sid, id, "tools/call", &common::act(arguments))
    }

    /// The same as one of a session.
    pub(crate) fn of(self, sid: &str) -> Self {
        self.header("Mcp-Session-Id", sid).header("MCP-Protocol-Version", NEWEST_LEGACY)
    }

    /// Sets a header, in place of all of that name.
    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        let mut request = self.without(name);
        request.headers.push((name.to_owned(), value.to_owned()));
        request
    }

    /// Adds a header beside those of that name.
    pub(crate) fn also(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn bytes(&self, server: &Server) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.verb, self.target);
        if !self.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("Host: {}\r\n", server.host()));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        [head.as_bytes(), b"\r\n", &self.body].concat()
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The messages of an event stream.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"), "{self:?}");
        self.text().split("\n\n").filter_map(message_of).collect()
    }

    /// The error's code, or 0.
    pub(crate) fn code(&self) -> i64 {
        serde_json::from_slice::<Value>(&self.body).ok().and_then(|v| v["error"]["code"].as_i64()).unwrap_or(0)
    }

    /// Status and code together.
    pub(crate) fn verdict(&self) -> (u16, i64) {
        (self.status, self.code())
    }
}

fn message_of(event: &str) -> Option<Value> {
    let data = event.lines().find_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty())?;
    Some(serde_json::from_str(data).unwrap())
}

/// One TCP connection.
pub(crate) struct Client {
    stream: TcpStream,
    read: Vec<u8>,
    /// Bytes of a chunked body that were decoded and not yet asked for.
    events: Vec<u8>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, read: Vec::new(), events: Vec::new() }
    }

    #[track_caller]
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends what the server may no longer want to read.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Ends our half; the server may have closed already.
    pub(crate) fn finish_sending(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Whether something can be read now, or never more.
    pub(crate) fn has_answer(&self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        !peeked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    /// Reads more; false at the end, an orderly one or a reset.
    #[track_caller]
    fn more(&mut self) -> bool {
        let mut block = [0; 16 * 1024];
        match self.stream.read(&mut block) {
            Ok(0) => false,
            Ok(count) => {
                self.read.extend_from_slice(&block[..count]);
                true
            }
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => false,
            Err(error) => panic!("{error}; read so far: {:?}", String::from_utf8_lossy(&self.read)),
        }
    }

    #[track_caller]
    fn take(&mut self, count: usize) -> Vec<u8> {
        while self.read.len() < count {
            assert!(self.more(), "closed after {:?}", String::from_utf8_lossy(&self.read));
        }
        self.read.drain(..count).collect()
    }

    #[track_caller]
    fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.read.windows(2).position(|w| w == b"\r\n") {
                let line: Vec<u8> = self.read.drain(..end + 2).collect();
                return String::from_utf8(line[..end].to_vec()).unwrap();
            }
            assert!(self.more(), "closed after {:?}", String::from_utf8_lossy(&self.read));
        }
    }

    /// Reads one line of a head, and the blank one after it.
    #[track_caller]
    pub(crate) fn line_now(&mut self) -> String {
        let line = self.line();
        assert_eq!(self.line(), "");
        line
    }

    /// Reads the head of an answer; interim answers are passed over.
    #[track_caller]
    pub(crate) fn head(&mut self) -> Response {
        loop {
            let line = self.line();
            let status = line.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or_else(|| panic!("{line:?}"));
            let mut headers = Vec::new();
            loop {
                let line = self.line();
                let Some((name, value)) = line.split_once(':') else { break };
                headers.push((name.to_owned(), value.trim().to_owned()));
            }
            if status != 100 {
                return Response { status, headers, body: Vec::new() };
            }
        }
    }

    /// Reads a whole answer.
    #[track_caller]
    pub(crate) fn response(&mut self) -> Response {
        let mut response = self.head();
        if let Some(length) = response.header("content-length").map(|l| l.parse().unwrap()) {
            response.body = self.take(length);
        } else if response.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk() {
                response.body.extend(chunk);
            }
        }
        response
    }

    /// One chunk of a chunked body; `None` at its end.
    #[track_caller]
    fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line(), 16).unwrap();
        let chunk = self.take(size);
        assert_eq!(self.take(2), b"\r\n");
        (size > 0).then_some(chunk)
    }

    /// The next event of a stream whose head was read, comments passed over; `None` at its orderly end.
    #[track_caller]
    pub(crate) fn event(&mut self) -> Option<Value> {
        while let Some(block) = self.block() {
            if let Some(message) = message_of(&block) {
                return Some(message);
            }
        }
        None
    }

    /// The next event or comment.
    #[track_caller]
    pub(crate) fn block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.events.windows(2).position(|w| w == b"\n\n") {
                let block: Vec<u8> = self.events.drain(..end + 2).collect();
                return Some(String::from_utf8(block).unwrap());
            }
            let chunk = self.chunk()?;
            self.events.extend(chunk);
        }
    }

    /// Waits for the end of the connection; gives what still came.
    #[track_caller]
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.read)
    }

    /// Whether nothing more comes: the server has closed.
    #[track_caller]
    pub(crate) fn is_closed(&mut self) -> bool {
        self.rest().is_empty()
    }
}

/// One event of a session's stream: its id and its data.
pub(crate) type Event = (String, String);

/// The next one; comments are passed over.
#[track_caller]
pub(crate) fn event(client: &mut Client) -> Option<Event> {
    loop {
        let block = client.block()?;
        let field = |name| block.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        if let Some(data) = field("data: ") {
            return Some((field("id: ").expect("an id"), data));
        }
    }
}

pub(crate) fn message(event: &Event) -> Value {
    serde_json::from_str(&event.1).unwrap_or_else(|_| panic!("no message: {event:?}"))
}

/// A request that is answered by a stream.
#[track_caller]
pub(crate) fn stream(server: &Server, request: &Request) -> Client {
    let mut client = server.connect();
    client.send(&request.bytes(server));
    let head = client.head();
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    client
}
