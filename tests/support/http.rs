//! Plays over Streamable HTTP: each request on a socket of its own, written and read byte by byte, no client library.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::runtime::Handle;
use twodoor::protocol::{Arguments, RawJson, Revision};

use super::play::Player;
use super::record::{Exchange, claims};
use super::served::Served;
use super::transcript::{Act, Client, HttpRequest, Legacy, Said, SaidHead, Transcript};
use super::world::PATIENCE;

pub(crate) struct Http {
    served: Served,
    tell: Sender<(usize, Event)>,
    told: Receiver<(usize, Event)>,
    waiting: VecDeque<(usize, Event)>,
    /// Messages that came while the end of their response was waited for.
    unexpected: Vec<Said>,
    requests: Vec<Request>,
    /// The request whose head the transcript spells out, while it is looked at.
    current: Option<usize>,
    sid: Option<String>,
    agreed: Option<Revision>,
    /// The ids of the events that came, in order.
    events: Vec<String>,
    /// The revisions of the sessions that were opened.
    sessions: BTreeMap<String, Revision>,
    /// The request on whose response the latest message came.
    heard: Option<usize>,
}

/// What the events of a response must have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbering {
    pub(super) ids: bool,
    /// An event without a message goes before all others.
    pub(super) primed: bool,
    /// An event that says where to post goes before all others; it counts as a message.
    pub(super) endpoint: bool,
}

/// One request that was sent.
struct Request {
    stream: TcpStream,
    body: Vec<u8>,
    /// The session and the revision that its headers name.
    sid: Option<String>,
    version: Option<String>,
    /// The session that its response opened.
    opened: Option<String>,
    /// Whether its head and its end are checked by the runner instead of the transcript.
    implied: bool,
    /// Whether the body made a modern claim.
    claimed: bool,
    /// Whether it asks for a stream that goes on until one side ends it.
    listens: bool,
    status: u16,
    over: bool,
    /// The transcript leaves its stream open.
    left_open: bool,
}

#[derive(Debug)]
pub(super) enum Event {
    Head(SaidHead),
    /// A message, and the id of its event.
    Message(String, Option<String>),
    /// An event without a message: its id.
    Blank(String),
    /// The response is over; or how it broke.
    End(Result<(), String>),
}

impl Http {
    pub(crate) fn open(transcript: &Transcript, legacy: Legacy, runtime: &Handle) -> Self {
        let (tell, told) = channel();
        Self {
            served: Served::start(transcript, legacy, runtime),
            tell,
            told,
            waiting: VecDeque::new(),
            unexpected: Vec::new(),
            requests: Vec::new(),
            current: None,
            sid: None,
            agreed: None,
            events: Vec::new(),
            sessions: BTreeMap::new(),
            heard: None,
        }
    }

    /// The headers that a well-behaved client sends with a message.
    fn implied(&self, body: &[u8]) -> (HttpRequest, bool, bool) {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        let claimed = claims(&value);
        let answered = value.get("id").is_some() || value.get("method").is_none();
        let request = HttpRequest {
            verb: "POST".to_owned(),
            modern: claimed,
            legacy: !claimed,
            body: Some(body.to_vec()),
            ..HttpRequest::default()
        };
        (request, claimed, answered)
    }

    fn headers(&self, request: &HttpRequest) -> Vec<(String, String)> {
        let mut headers = BTreeMap::new();
        let mut set = |name: &str, value: String| headers.insert(name.to_ascii_lowercase(), (name.to_owned(), value));
        set("Host", self.served.address.to_string());
        if let Some(body) = &request.body {
            set("Content-Type", "application/json".to_owned());
            set("Content-Length", body.len().to_string());
        }
        let accept = match (&*request.verb, &request.body) {
            ("POST", _) => Some("application/json, text/event-stream"),
            ("GET", _) => Some("text/event-stream"),
            _ => None,
        };
        if let Some(accept) = accept {
            set("Accept", accept.to_owned());
        }
        if request.legacy {
            if let Some(sid) = &self.sid {
                set("Mcp-Session-Id", sid.clone());
            }
            if let Some(agreed) = self.agreed.filter(|r| ["2025-06-18", "2025-11-25"].contains(&r.name())) {
                set("MCP-Protocol-Version", agreed.name().to_owned());
            }
        }
        if request.modern {
            let body: Value = request.body.as_deref().and_then(|b| serde_json::from_slice(b).ok()).unwrap_or_default();
            let version = body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
            set("MCP-Protocol-Version", version.unwrap_or("2026-07-28").to_owned());
            if let Some(method) = body["method"].as_str() {
                set("Mcp-Method", method.to_owned());
            }
            let mirrored = match body["method"].as_str() {
                Some("tools/call" | "prompts/get") => "name",
                Some("resources/read") => "uri",
                Some("tasks/get" | "tasks/update" | "tasks/cancel") => "taskId",
                _ => "",
            };
            if let Some(name) = body["params"][mirrored].as_str() {
                set("Mcp-Name", twodoor::protocol::headers::encode(name));
            }
            if let (Some("tools/call"), Some(name)) = (body["method"].as_str(), body["params"]["name"].as_str()) {
                let arguments = body["params"].get("arguments").map(|a| RawJson::encode(&a));
                if let (Some(tool), Some(arguments)) =
                    (self.served.catalog.tool(name), arguments.and_then(Arguments::new))
                {
                    for (name, value) in tool.headers.headers(&arguments) {
                        set(&name, value);
                    }
                }
            }
        }
        let mut all: Vec<_> = headers.into_values().collect();
        for (index, (name, value)) in request.headers.iter().enumerate() {
            // A header named for the first time replaces the usual one; named again, it stands twice.
            let repeated = request.headers[..index].iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
            if !repeated {
                all.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
            }
            if value != "-" {
                all.push((name.clone(), value.clone()));
            }
        }
        all
    }

    fn send(&mut self, request: &HttpRequest, implied: bool, claimed: bool) -> Result<usize, String> {
        let target = request.target.as_deref().unwrap_or("/mcp");
        let mut bytes = format!("{} {target} HTTP/1.1\r\n", request.verb).into_bytes();
        let headers = self.headers(request);
        let has = |header: &str| headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(header));
        let ids = has("Mcp-Session-Id") && !claimed;
        let polling = self.agreed.is_some_and(|revision| revision.rules().polling);
        let numbering = Numbering { ids, primed: ids && polling && !has("Last-Event-ID"), endpoint: false };
        for (name, value) in &headers {
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(b": ");
            bytes.extend_from_slice(&unescape_header(value, &self.served.address));
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(request.body.as_deref().unwrap_or_default());
        let mut stream = TcpStream::connect(self.served.address).map_err(|e| format!("cannot connect: {e}"))?;
        // A server that refuses by the head alone may have closed before the body is written.
        let _ = stream.write_all(&bytes);
        let index = self.requests.len();
        let reader = stream.try_clone().map_err(|e| e.to_string())?;
        let tell = self.tell.clone();
        let head_only = request.verb == "HEAD";
        std::thread::spawn(move || {
            let mut tell_one = |event| drop(tell.send((index, event)));
            let outcome = read_response(BufReader::new(reader), head_only, numbering, &mut tell_one);
            tell_one(Event::End(outcome));
        });
        let header = |wanted: &str| {
            headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.clone())
        };
        self.requests.push(Request {
            stream,
            body: request.body.clone().unwrap_or_default(),
            sid: header("mcp-session-id"),
            version: header("mcp-protocol-version"),
            opened: None,
            implied,
            claimed,
            listens: request.body.as_deref().is_some_and(|body| body_method(body) == "subscriptions/listen"),
            status: 0,
            over: false,
            left_open: false,
        });
        Ok(index)
    }

    /// The next event, of one request or of any.
    fn next(&mut self, of: Option<usize>, patience: Duration) -> Option<(usize, Event)> {
        let until = Instant::now() + patience;
        loop {
            let found = self.waiting.iter().position(|(index, _)| of.is_none_or(|of| of == *index));
            if let Some(event) = found.and_then(|position| self.waiting.remove(position)) {
                return Some(event);
            }
            match self.told.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(event) => self.waiting.push_back(event),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn note(&mut self, index: usize, event: &Event) {
        match event {
            Event::Head(head) => {
                self.requests[index].status = head.status;
                if let Some(sid) = head.header("mcp-session-id") {
                    self.sid = Some(sid.to_owned());
                    self.requests[index].opened = Some(sid.to_owned());
                }
            }
            Event::Blank(id) => self.events.push(id.clone()),
            Event::Message(text, id) => {
                self.events.extend(id.clone());
                self.heard = Some(index);
                let value: Value = serde_json::from_str(text).unwrap_or_default();
                if let Some(agreed) = value["result"]["protocolVersion"].as_str() {
                    self.agreed = Revision::parse(agreed).ok();
                    let opened = self.requests[index].opened.clone();
                    self.sessions.extend(opened.zip(self.agreed));
                }
            }
            Event::End(_) => self.requests[index].over = true,
        }
    }

    /// Waits until all requests of a kind have ended; what comes instead is kept as unexpected.
    fn wait_for_ends(&mut self, kind: impl Fn(&Request) -> bool) -> Result<(), String> {
        while self.requests.iter().any(|request| kind(request) && !request.over) {
            let Some((index, event)) = self.next(None, PATIENCE) else {
                return Err("a response does not end".to_owned());
            };
            self.note(index, &event);
            let said = match event {
                event if self.requests[index].implied => self.implied_event(index, event),
                Event::Message(text, _) => Some(Said::Message(text)),
                Event::Head(_) | Event::Blank(_) | Event::End(_) => None,
            };
            self.unexpected.extend(said);
        }
        Ok(())
    }

    /// What a message of an implied request says, once its status was checked.
    fn implied_event(&mut self, index: usize, event: Event) -> Option<Said> {
        let request = &self.requests[index];
        match event {
            Event::Head(_) | Event::Blank(_) => None,
            Event::Message(text, _) => {
                let value: Value = serde_json::from_str(&text).unwrap_or_default();
                let expected = if value.get("method").is_some() { 200 } else { status_of(&value, request.claimed) };
                if request.status == expected {
                    return Some(Said::Message(text));
                }
                Some(Said::Message(format!("(with status {} instead of {expected}) {text}", request.status)))
            }
            Event::End(Ok(())) => None,
            Event::End(Err(problem)) => Some(Said::Message(format!("(the response broke) {problem}"))),
        }
    }
}

fn body_method(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    body["method"].as_str().unwrap_or_default().to_owned()
}

/// The status that the specification has for an answer (`spec.md` 1.8, NEG-22).
fn status_of(answer: &Value, claimed: bool) -> u16 {
    match answer["error"]["code"].as_i64() {
        None => 200,
        Some(-32700 | -32600 | -32022..=-32020) => 400,
        Some(-32601) if claimed => 404,
        Some(-32602) if answer["error"]["data"].get("missing").is_some() => 400,
        Some(_) => 200,
    }
}

/// `$host` is our address, `\xNN` a byte.
fn unescape_header(value: &str, address: &SocketAddr) -> Vec<u8> {
    let value = value.replace("$host", &address.to_string());
    let mut out = Vec::new();
    let mut rest = value.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if let (b'\\', [b'x', high, low, tail @ ..]) = (first, rest) {
            let digit = |d: &u8| char::from(*d).to_digit(16).and_then(|d| u8::try_from(d).ok()).expect("a digit");
            out.push(digit(high) * 16 + digit(low));
            rest = tail;
        } else {
            out.push(*first);
        }
    }
    out
}

pub(super) fn read_response(
    mut input: BufReader<TcpStream>,
    head_only: bool,
    mut numbering: Numbering,
    tell: &mut dyn FnMut(Event),
) -> Result<(), String> {
    let broken = |error: std::io::Error| error.to_string();
    let mut line = String::new();
    input.read_line(&mut line).map_err(broken)?;
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or(format!("no status in {line:?}"))?;
    let mut head = SaidHead { status, headers: Vec::new() };
    loop {
        line.clear();
        input.read_line(&mut line).map_err(broken)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        head.headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let (stream, length) = (head.is_stream(), head.header("content-length").and_then(|l| l.parse::<usize>().ok()));
    let chunked = head.header("transfer-encoding") == Some("chunked");
    tell(Event::Head(head));
    if head_only {
        return Ok(());
    }
    let mut text = String::new();
    if let Some(length) = length {
        let mut body = vec![0; length];
        input.read_exact(&mut body).map_err(broken)?;
        text = String::from_utf8(body).map_err(|e| e.to_string())?;
    }
    let mut ended = !chunked;
    while !ended {
        line.clear();
        input.read_line(&mut line).map_err(broken)?;
        let length = usize::from_str_radix(line.trim(), 16).map_err(|_| format!("no chunk size in {line:?}"))?;
        let mut chunk = vec![0; length + 2];
        input.read_exact(&mut chunk).map_err(broken)?;
        ended = length == 0;
        text.push_str(std::str::from_utf8(&chunk[..length]).map_err(|e| e.to_string())?);
        if stream {
            tell_events(&mut text, &mut numbering, tell)?;
        }
    }
    if stream {
        tell_events(&mut text, &mut numbering, tell)?;
        return if text.is_empty() { Ok(()) } else { Err(format!("half an event: {text:?}")) };
    }
    if !text.is_empty() {
        tell(Event::Message(text, None));
    }
    Ok(())
}

/// An event that asks the client to come back later counts as the message `"retry"`.
fn tell_events(text: &mut String, numbering: &mut Numbering, tell: &mut dyn FnMut(Event)) -> Result<(), String> {
    while let Some(end) = text.find("\n\n") {
        let event: String = text.drain(..end + 2).collect();
        if event.starts_with(':') {
            continue;
        }
        let (mut data, mut id, mut retry) = (None, None, false);
        for line in event.trim_end_matches('\n').lines() {
            match line.split_once(": ") {
                Some(("data", value)) if data.is_none() => data = Some(value.to_owned()),
                Some(("id", value)) if id.is_none() => id = Some(value.to_owned()),
                Some(("retry", _)) => retry = true,
                Some(("event", "message")) if !numbering.endpoint => {}
                Some(("event", "endpoint")) if numbering.endpoint => numbering.endpoint = false,
                _ => return Err(format!("an unexpected line in an event: {line:?}")),
            }
        }
        if id.is_some() != numbering.ids {
            return Err(format!("an event must have an id in a session, and nowhere else: {event:?}"));
        }
        let primes = std::mem::take(&mut numbering.primed);
        match (data, id) {
            (Some(data), Some(id)) if primes && data.is_empty() && !retry => tell(Event::Blank(id)),
            _ if primes => return Err(format!("the stream begins with {event:?}")),
            (Some(data), id) if retry && data.is_empty() => tell(Event::Message("\"retry\"".to_owned(), id)),
            (Some(data), id) if !data.is_empty() => tell(Event::Message(data, id)),
            _ => return Err(format!("an event without a message: {event:?}")),
        }
    }
    Ok(())
}

impl Player for Http {
    fn play(&mut self, client: &Client) -> Result<(), String> {
        self.current = None;
        match client {
            Client::Send(text) => {
                let (request, claimed, answered) = self.implied(text.as_bytes());
                let index = self.send(&request, true, claimed)?;
                if answered {
                    return Ok(());
                }
                // A notification is accepted, without a body, before the next message is sent.
                loop {
                    let Some((_, event)) = self.next(Some(index), PATIENCE) else {
                        return Err("no response to a notification".to_owned());
                    };
                    self.note(index, &event);
                    match event {
                        Event::Head(SaidHead { status: 202, .. }) => {}
                        Event::End(Ok(())) => return Ok(()),
                        other => return Err(format!("a notification is answered with {other:?}")),
                    }
                }
            }
            Client::Http(request) => {
                let mut request = request.clone();
                for (_, value) in &mut request.headers {
                    *value = value.replace("$(sid)", self.sid.as_deref().unwrap_or("(none)"));
                    // The id of the latest event, or of one so many before it.
                    for (before, id) in self.events.iter().rev().enumerate() {
                        *value = value.replace(&format!("$(event-{before})"), id);
                    }
                }
                self.current = Some(self.send(&request, false, request.modern)?);
                Ok(())
            }
            Client::Close => {
                let Some(request) = self.requests.iter().rev().find(|request| !request.over) else {
                    return Err("no request is open".to_owned());
                };
                request.stream.shutdown(Shutdown::Both).map_err(|e| e.to_string())
            }
            Client::Act(Act::Ended) => self.wait_for_ends(|_| true),
            Client::Act(Act::Stop) => self.served.begin_stop(),
            Client::Act(act) if self.served.world.act(act) => Ok(()),
            Client::Act(act) => Err(format!("{act:?} did not come about")),
            other => Err(format!("{other:?} has no meaning over HTTP")),
        }
    }

    fn listen(&mut self, patience: Duration) -> Said {
        while let Some((index, event)) = self.next(self.current, patience) {
            self.note(index, &event);
            let said = match (self.current, event) {
                (None, event) if self.requests[index].implied => self.implied_event(index, event),
                (_, Event::Message(text, _)) => Some(Said::Message(text)),
                (None, Event::Head(_) | Event::End(_)) | (_, Event::Blank(_)) => None,
                (Some(_), Event::Head(head)) => Some(Said::Head(head)),
                (Some(_), Event::End(Ok(()))) => Some(Said::End),
                (Some(_), Event::End(Err(problem))) => Some(Said::Message(format!("(the response broke) {problem}"))),
            };
            if let Some(said) = said {
                return said;
            }
        }
        Said::Nothing
    }

    fn leave_open(&mut self) {
        if let Some(current) = self.current.take() {
            self.requests[current].left_open = true;
        }
    }

    fn exchange(&self) -> Option<Exchange> {
        let request = &self.requests[self.heard?];
        let agreed = request.sid.as_ref().and_then(|sid| self.sessions.get(sid)).copied();
        // Without a session the header names the revision, and where it is absent one is assumed.
        let named = || match &request.version {
            Some(version) => Revision::parse(version).unwrap_or(Revision::NEWEST_LEGACY),
            None => Revision::ASSUMED_OVER_HTTP,
        };
        let bodies = match &request.sid {
            Some(sid) if request.body.is_empty() => {
                let same = self.requests.iter().filter(|other| other.sid.as_ref() == Some(sid));
                same.map(|other| other.body.clone()).collect()
            }
            _ => vec![request.body.clone()],
        };
        Some(Exchange { bodies, revision: agreed.unwrap_or_else(named) })
    }

    fn finish(&mut self) -> Result<Vec<Said>, String> {
        self.current = None;
        let mut rest = Vec::new();
        // Implied requests end by themselves; what the transcript left open is closed by the stop.
        self.wait_for_ends(|request| request.implied && !request.listens)?;
        rest.append(&mut self.unexpected);
        let stays = |request: &&Request| (request.left_open || request.listens) && !request.over;
        for request in self.requests.iter().filter(stays) {
            let _ = request.stream.shutdown(Shutdown::Both);
        }
        self.served.stop()?;
        while let Ok((index, event)) = self.told.try_recv() {
            if let (false, Event::Message(text, _)) = (self.requests[index].over, event) {
                rest.push(Said::Message(text));
            }
        }
        Ok(rest)
    }
}
