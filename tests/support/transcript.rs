//! The transcript format: prose, directives, client lines, server lines. `tests/wire/README.md` describes it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A way of playing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// Through the machine, by function calls.
    Memory,
    /// Through `transport::stdio` over pipes, in this process.
    Pipes,
    /// Through the binary's standard streams.
    Binary,
    /// Through `transport::http` over sockets.
    Http,
    /// The same, but by the transport before Streamable HTTP.
    Sse,
}

impl Way {
    pub(crate) const ALL: [Self; 5] = [Self::Memory, Self::Pipes, Self::Binary, Self::Http, Self::Sse];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pipes => "pipes",
            Self::Binary => "binary",
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }
}

/// How legacy clients are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Legacy {
    Sessions,
    Stateless,
    Off,
}

/// What of the world is published: a few tools, and more by the words of `tools:` and `world:`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shows {
    /// A tool whose definition differs by revision.
    pub(crate) divergent: bool,
    /// Two definitions on a page.
    pub(crate) paged: bool,
    /// Tools whose calls become tasks.
    pub(crate) tasks: bool,
    /// A skill.
    pub(crate) skills: bool,
    /// Resources, prompts, and tools that log and ask in every way.
    pub(crate) whole: bool,
}

/// One transcript.
#[derive(Debug)]
pub(crate) struct Transcript {
    pub(crate) path: PathBuf,
    pub(crate) rows: Vec<String>,
    /// The revision of a handshake that goes before the first step, and what its client declares if that is not form elicitation.
    pub(crate) session: Option<String>,
    pub(crate) legacy: Vec<Legacy>,
    /// What of the world is published.
    pub(crate) shows: Shows,
    /// Why this cannot pass yet. It must fail: one that passes has to lose this line.
    pub(crate) pending: Option<String>,
    pub(crate) ways: Vec<Way>,
    /// Everything before the first step, as written.
    pub(crate) head: String,
    pub(crate) groups: Vec<Group>,
}

/// One thing that the client does, and all that the server says before the next one.
#[derive(Debug)]
pub(crate) struct Group {
    /// Prose before it, as written.
    pub(crate) prose: String,
    pub(crate) written: Vec<String>,
    pub(crate) client: Client,
    pub(crate) expected: Vec<Expected>,
    /// The stream stays open.
    pub(crate) open: bool,
}

/// What the client does.
#[derive(Debug, Clone)]
pub(crate) enum Client {
    /// Sends a message.
    Send(String),
    /// Sends a message byte by byte.
    Drip(String),
    /// Sends bytes, without adding anything.
    Raw(Vec<u8>),
    /// Sends one HTTP request.
    Http(HttpRequest),
    /// Closes the socket of the latest HTTP request.
    Close,
    /// Ends the input.
    EndOfInput,
    /// Waits for something in the world, or makes it happen.
    Act(Act),
}

/// One HTTP request.
#[derive(Debug, Clone, Default)]
pub(crate) struct HttpRequest {
    pub(crate) verb: String,
    pub(crate) target: Option<String>,
    /// Mirror the body as a modern client does.
    pub(crate) modern: bool,
    /// Send the session's headers as a legacy client does.
    pub(crate) legacy: bool,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

/// Waits for something in the world, or makes it happen.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Until so many calls wait.
    Waiting(usize),
    /// Until so many waiting calls were told that their caller is gone.
    Cancelled(usize),
    /// Until so many waiting calls ended by themselves.
    Completed(usize),
    /// Lets the waiting calls end.
    Release,
    /// Has calls that are over tell their progress.
    Late,
    /// Until every HTTP response has ended.
    Ended,
    /// Publishes another catalog, in which these lists are not what they were.
    Publish(Vec<String>),
    /// Tells that a resource is not what it was.
    Update(String),
    /// Tells how far a task is.
    Tell(String),
    /// Stops the server.
    Stop,
    /// Lets so many seconds pass.
    Later(u64),
}

/// What the server says.
#[derive(Debug, Clone)]
pub(crate) enum Expected {
    /// One message, as written.
    Message(String),
    /// The head of an HTTP response.
    Head(ExpectedHead),
}

/// The head of an HTTP response.
#[derive(Debug, Clone)]
pub(crate) struct ExpectedHead {
    pub(crate) status: u16,
    pub(crate) stream: bool,
    /// A header's value; `None` for one that must be absent.
    pub(crate) headers: Vec<(String, Option<String>)>,
    pub(crate) written: String,
}

/// What the server did say.
#[derive(Debug, Clone)]
pub(crate) enum Said {
    Message(String),
    Head(SaidHead),
    /// The response, or the output, ended.
    End,
    /// Nothing came for a long time.
    Nothing,
}

/// The head of an HTTP response.
#[derive(Debug, Clone)]
pub(crate) struct SaidHead {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
}

impl SaidHead {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }

    pub(crate) fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(text) => f.write_str(text),
            Self::Head(head) => {
                write!(f, "{}", head.status)?;
                if head.is_stream() {
                    f.write_str(" stream")?;
                }
                for name in ["allow", "mcp-session-id"] {
                    if let Some(value) = head.header(name) {
                        write!(f, " {name}={value:?}")?;
                    }
                }
                Ok(())
            }
            Self::End => f.write_str("(the end)"),
            Self::Nothing => f.write_str("(nothing)"),
        }
    }
}

/// Reads every transcript under a folder.
pub(crate) fn read_all(root: &Path) -> Vec<Transcript> {
    let mut transcripts = Vec::new();
    let mut folders: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders.into_iter().filter(|path| path.is_dir()) {
        let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for path in files {
            let text = std::fs::read_to_string(&path).unwrap();
            let read = Transcript::read(&path, &text);
            transcripts.push(read.unwrap_or_else(|problem| panic!("{}: {problem}", path.display())));
        }
    }
    transcripts
}

impl Shows {
    fn any(self) -> bool {
        self.divergent || self.paged || self.tasks || self.skills || self.whole
    }
}

impl Transcript {
    pub(crate) fn read(path: &Path, text: &str) -> Result<Self, String> {
        let mut groups: Vec<Group> = Vec::new();
        let mut prose = String::new();
        let mut head = String::new();
        for line in text.lines() {
            let begins = line.starts_with(['>', '~', '<']);
            if !begins {
                prose.push_str(line);
                prose.push('\n');
                continue;
            }
            if groups.is_empty() {
                head = std::mem::take(&mut prose);
            }
            if let Some(said) = line.strip_prefix('<') {
                let Some(group) = groups.last_mut() else { return Err("a server line before any client line".into()) };
                group.expect(said.trim())?;
                continue;
            }
            // The line below a request's head is its body.
            if let (Some(body), Some(Group { client: Client::Http(request), expected, written, .. })) =
                (body_line(line), groups.last_mut())
                && expected.is_empty()
                && request.body.is_none()
                && prose.is_empty()
            {
                request.body = Some(body?);
                written.push(line.to_owned());
                continue;
            }
            groups.push(Group {
                prose: std::mem::take(&mut prose),
                written: vec![line.to_owned()],
                client: Client::read(line)?,
                expected: Vec::new(),
                open: false,
            });
        }
        let mut transcript = Self {
            path: path.to_owned(),
            rows: Vec::new(),
            session: None,
            legacy: vec![Legacy::Sessions],
            shows: Shows::default(),
            pending: None,
            ways: Vec::new(),
            head,
            groups,
        };
        transcript.read_directives()?;
        if transcript.groups.is_empty() {
            return Err("no steps".into());
        }
        Ok(transcript)
    }

    fn read_directives(&mut self) -> Result<(), String> {
        let mut ways = None;
        let mut legacy_named = false;
        for line in self.head.clone().lines() {
            let Some((key, value)) = line.split_once(": ") else { continue };
            let words = || value.split_whitespace();
            match key {
                "rows" => self.rows = words().map(str::to_owned).collect(),
                "session" => self.session = Some(value.to_owned()),
                "pending" => self.pending = Some(value.to_owned()),
                "tools" | "world" => {
                    for word in words() {
                        match word {
                            "divergent" => self.shows.divergent = true,
                            "paged" => self.shows.paged = true,
                            "tasks" => self.shows.tasks = true,
                            "skills" => self.shows.skills = true,
                            "whole" => self.shows.whole = true,
                            other => return Err(format!("{key}: {other} is unknown")),
                        }
                    }
                }
                "ways" => {
                    let way = |word: &str| Way::ALL.into_iter().find(|w| w.name() == word).ok_or(word.to_owned());
                    ways = Some(words().map(way).collect::<Result<Vec<_>, _>>()?);
                }
                "legacy" => {
                    legacy_named = true;
                    let mode = |word: &str| match word {
                        "sessions" => Ok(Legacy::Sessions),
                        "stateless" => Ok(Legacy::Stateless),
                        "off" => Ok(Legacy::Off),
                        other => Err(other.to_owned()),
                    };
                    self.legacy = words().map(mode).collect::<Result<_, _>>()?;
                }
                _ => {}
            }
        }
        if !self.head.lines().any(|line| line.starts_with("spec: ")) || self.rows.is_empty() {
            return Err("the head needs `rows: …` and `spec: …`".into());
        }
        let fits = |way: &Way| self.fits(*way, legacy_named);
        self.ways = ways.unwrap_or_else(|| Way::ALL.to_vec()).into_iter().filter(fits).collect();
        if self.ways.is_empty() { Err("no way to play this".into()) } else { Ok(()) }
    }

    fn fits(&self, way: Way, legacy_named: bool) -> bool {
        let clients = || self.groups.iter().map(|group| &group.client);
        let http = clients().any(|c| matches!(c, Client::Http(_) | Client::Close | Client::Act(Act::Ended)));
        let bytes = clients().any(|c| matches!(c, Client::Raw(_) | Client::Drip(_) | Client::EndOfInput));
        // Only the machine itself can be told what time it is.
        let clock = clients().any(|c| matches!(c, Client::Act(Act::Later(_))));
        match way {
            Way::Memory => !http && !bytes,
            _ if clock => false,
            Way::Pipes => !http,
            Way::Http => !bytes,
            Way::Sse => !http && !bytes && !legacy_named && !clients().any(claims),
            Way::Binary => {
                let calls_others = clients().any(|client| match client {
                    Client::Send(text) | Client::Drip(text) => {
                        text.contains("\"tools/call\"")
                            && text
                                .split("\"name\":\"")
                                .skip(1)
                                .any(|rest| WORLD_ONLY.iter().any(|tool| rest.starts_with(&format!("{tool}\""))))
                    }
                    Client::Act(act) => !matches!(act, Act::Waiting(_)),
                    _ => false,
                });
                !http && !legacy_named && !self.shows.any() && !calls_others
            }
        }
    }

    /// The file's name without its folder's, for a report.
    pub(crate) fn name(&self) -> String {
        let folder = self.path.parent().and_then(Path::file_name).unwrap_or_default();
        format!("{}/{}", folder.to_string_lossy(), self.path.file_name().unwrap_or_default().to_string_lossy())
    }
}

/// Tools of the world that `tests/wire/surface.yaml` lacks, since no command can be them.
const WORLD_ONLY: [&str; 5] = ["ask", "steps", "region", "shape", "corners"];

const VERBS: [&str; 9] = ["POST", "GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT"];

fn is_http(line: &str) -> bool {
    VERBS.iter().any(|verb| line.strip_prefix(verb).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
}

/// Whether a message is of the modern era.
fn claims(client: &Client) -> bool {
    matches!(client, Client::Send(text) if text.contains("\"io.modelcontextprotocol/"))
}

/// The bytes of a line that is the body of the request above it.
fn body_line(line: &str) -> Option<Result<Vec<u8>, String>> {
    let text = line.strip_prefix("> ").filter(|text| !is_http(text)).map(|text| Ok(expand(text).into_bytes()));
    text.or_else(|| line.strip_prefix(">raw ").map(|text| unescape(&expand(text))))
}

impl Client {
    fn read(line: &str) -> Result<Self, String> {
        if let Some(act) = line.strip_prefix("~ ") {
            let mut words = act.split_whitespace();
            let word = words.next().unwrap_or_default();
            let rest: Vec<String> = words.map(str::to_owned).collect();
            let first = || rest.first().cloned().ok_or_else(|| format!("{line}: of what?"));
            let count = || rest.first().map_or(Ok(1), |text| text.parse()).map_err(|_| format!("{line}: not a count"));
            return Ok(Self::Act(match word {
                "waiting" => Act::Waiting(count()?),
                "cancelled" => Act::Cancelled(count()?),
                "completed" => Act::Completed(count()?),
                "publish" => Act::Publish(rest),
                "update" => Act::Update(first()?),
                "tell" => Act::Tell(first()?),
                "stop" => Act::Stop,
                "later" => Act::Later(first()?.parse().map_err(|_| format!("{line}: not a number of seconds"))?),
                "release" => Act::Release,
                "late" => Act::Late,
                "ended" => Act::Ended,
                _ => return Err(format!("{line}: unknown")),
            }));
        }
        if let Some(text) = line.strip_prefix(">drip ") {
            return Ok(Self::Drip(expand(text)));
        }
        if let Some(text) = line.strip_prefix(">raw ") {
            return Ok(Self::Raw(unescape(&expand(text))?));
        }
        let Some(text) = line.strip_prefix("> ") else { return Err(format!("{line}: unknown")) };
        match text {
            "close" => Ok(Self::Close),
            "eof" => Ok(Self::EndOfInput),
            _ if is_http(text) => HttpRequest::read(text).map(Self::Http),
            _ => Ok(Self::Send(expand(text))),
        }
    }
}

impl HttpRequest {
    fn read(line: &str) -> Result<Self, String> {
        let mut words = split_words(line)?.into_iter();
        let mut request = Self { verb: words.next().unwrap_or_default(), ..Self::default() };
        for word in words {
            match word.split_once('=') {
                None if word == "modern" => request.modern = true,
                None if word == "legacy" => request.legacy = true,
                None if word.starts_with('/') || word.starts_with("http:") => request.target = Some(word),
                None => return Err(format!("{word}: neither a header nor a shorthand")),
                Some((name, value)) => request.headers.push((header_name(name), value.to_owned())),
            }
        }
        Ok(request)
    }
}

/// Shorthand for the headers that stand in most transcripts.
fn header_name(name: &str) -> String {
    match name {
        "version" => "MCP-Protocol-Version",
        "sid" => "Mcp-Session-Id",
        "method" => "Mcp-Method",
        "name" => "Mcp-Name",
        "last" => "Last-Event-ID",
        other => other,
    }
    .to_owned()
}

/// Words with `key="a value"` kept together.
fn split_words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let mut word = String::new();
        let mut quoted = false;
        let mut end = rest.len();
        for (index, character) in rest.char_indices() {
            match character {
                '"' => quoted = !quoted,
                ' ' if !quoted => {
                    end = index;
                    break;
                }
                other => word.push(other),
            }
        }
        if quoted {
            return Err(format!("{line}: a quote is open"));
        }
        words.push(word);
        rest = rest.get(end..).unwrap_or_default().trim_start();
    }
    Ok(words)
}

impl Group {
    fn expect(&mut self, said: &str) -> Result<(), String> {
        if said == "open" {
            self.open = true;
            return Ok(());
        }
        if said.starts_with(['{', '[', '"']) {
            self.expected.push(Expected::Message(said.to_owned()));
            return Ok(());
        }
        let mut words = split_words(said)?.into_iter();
        let status = words.next().and_then(|word| word.parse().ok()).ok_or(format!("< {said}: unknown"))?;
        let mut head = ExpectedHead { status, stream: false, headers: Vec::new(), written: said.to_owned() };
        for word in words {
            match word.split_once('=') {
                None if word == "stream" => head.stream = true,
                Some((name, value)) => {
                    head.headers.push((header_name(name), Some(value.to_owned()).filter(|v| v != "-")));
                }
                None => return Err(format!("< {said}: {word} is unknown")),
            }
        }
        self.expected.push(Expected::Head(head));
        Ok(())
    }
}

const PREFIX: &str = "io.modelcontextprotocol";

/// Writes the shorthand of a client or server line out.
pub(crate) fn expand(text: &str) -> String {
    let claim = |capabilities: &str| {
        format!(r#""{PREFIX}/protocolVersion":"2026-07-28","{PREFIX}/clientCapabilities":{capabilities}"#)
    };
    let mut text = text.to_owned();
    // A claim of one that declares so much more, such as `$claim{"sampling":{}}`.
    while let Some(start) = text.find("$claim{") {
        let object = &text[start + "$claim".len()..];
        let mut values = serde_json::Deserializer::from_str(object).into_iter::<Value>();
        let Some(Ok(declared)) = values.next() else { break };
        let end = start + "$claim".len() + values.byte_offset();
        text.replace_range(start..end, &claim(&declared.to_string()));
    }
    let mut text = text
        .replace("$claim_elicit", &claim(r#"{"elicitation":{}}"#))
        .replace("$claim", &claim("{}"))
        .replace("$server", &format!(r#""{PREFIX}/serverInfo":{{"name":"world","version":"1.0.0"}}"#))
        .replace("$io/", &format!("{PREFIX}/"));
    while let Some(start) = text.find("$times(") {
        let Some(length) = text[start..].find(')') else { break };
        let inner = &text[start + "$times(".len()..start + length];
        let (count, piece) = inner.split_once(' ').unwrap_or(("0", ""));
        let many = piece.repeat(count.parse().unwrap_or(0));
        text.replace_range(start..=start + length, &many);
    }
    text
}

/// `\n`, `\r`, `\\` and `\xNN` in a line of raw bytes.
fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'\\' {
            out.push(*first);
            continue;
        }
        let [kind, tail @ ..] = rest else { return Err("a lone backslash".into()) };
        rest = tail;
        match kind {
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b'\\' => out.push(b'\\'),
            b'x' => {
                let [high, low, tail @ ..] = rest else { return Err("\\x needs two digits".into()) };
                rest = tail;
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).map_err(|e| e.to_string())?;
                out.push(u8::from_str_radix(digits, 16).map_err(|e| e.to_string())?);
            }
            _ => return Err(format!("\\{} is unknown", char::from(*kind))),
        }
    }
    Ok(out)
}

/// What `$=name` bound, for `$(name)` in client lines.
pub(crate) type Bound = BTreeMap<String, Value>;

/// Puts bound values into a client line: `$(name)` is a text without its quotes, `$[name]` is JSON.
pub(crate) fn substitute(text: &str, bound: &Bound) -> String {
    let mut text = text.to_owned();
    for (name, value) in bound {
        let plain = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text = text.replace(&format!("$({name})"), &plain).replace(&format!("$[{name}]"), &value.to_string());
    }
    text
}

/// Whether a message is what was expected; binds what the pattern names.
pub(crate) fn matches(pattern: &str, got: &str, bound: &mut Bound) -> bool {
    let Ok(pattern) = serde_json::from_str::<Value>(&expand(pattern)) else { panic!("not JSON: {pattern}") };
    serde_json::from_str::<Value>(got).is_ok_and(|got| fits(&pattern, &got, bound))
}

/// Whether a value is what was expected.
pub(crate) fn fits(pattern: &Value, got: &Value, bound: &mut Bound) -> bool {
    match (pattern, got) {
        (Value::String(pattern), got) if pattern == "$any" => !got.is_null(),
        (Value::String(pattern), got) if pattern.starts_with("$=") => {
            let name = pattern.trim_start_matches("$=");
            bound.entry(name.to_owned()).or_insert_with(|| got.clone()) == got
        }
        (Value::String(pattern), Value::String(got)) if pattern.starts_with("$text:") => {
            glob(pattern.trim_start_matches("$text:"), got)
        }
        (Value::Object(pattern), Value::Object(got)) => {
            pattern.len() == got.len()
                && pattern.iter().all(|(key, pattern)| got.get(key).is_some_and(|got| fits(pattern, got, bound)))
        }
        (Value::Array(pattern), Value::Array(got)) => {
            pattern.len() == got.len() && pattern.iter().zip(got).all(|(pattern, got)| fits(pattern, got, bound))
        }
        (pattern, got) => pattern == got,
    }
}

/// `*` stands for any text.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            let cuts = rest.char_indices().map(|(index, _)| index).chain([rest.len()]);
            let mut tails = cuts.filter_map(|index| rest.get(index..));
            tails.any(|tail| glob(after, tail))
        }),
    }
}

/// A shortened line for a report.
pub(crate) fn short(text: &str) -> String {
    const MOST: usize = 1200;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((cut, _)) => format!("{}… ({} bytes)", &text[..cut], text.len()),
    }
}
