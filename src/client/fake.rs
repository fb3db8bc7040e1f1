//! Servers for tests: scripted ones that misbehave as told, and one that is the engine's own machine.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::protocol::catalog::{CatalogParts, SERVER_INFO_KEY};
use crate::protocol::json::JsonLimits;
use crate::protocol::{
    Catalog, Connection, Content, Decoded, Dispatcher, Limits, Moment, Offer, Outcome, Output, Principal, Revision,
    ToolParts,
};

/// What a scripted program does next.
pub(super) enum Act {
    /// Writes these bytes.
    Write(String),
    /// Closes its output.
    Close,
}

/// The messages a server received.
pub(super) type Log = Arc<Mutex<Vec<Value>>>;

/// Short waits, for servers that do not answer.
pub(super) fn hasty() -> Options {
    Options { answer: Duration::from_millis(60), ..Options::default() }
}

/// A program that answers each line by a script; an odd line gives no acts.
pub(super) fn program(script: impl Fn(&Value) -> Vec<Act> + Send + Sync + 'static) -> (Target, Log) {
    let log = Log::default();
    let (script, kept) = (Arc::new(script), log.clone());
    let connect: Connect = Arc::new(move || {
        let (script, kept) = (script.clone(), kept.clone());
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move { run(far, &*script, &kept).await });
        let (reader, writer) = tokio::io::split(near);
        Box::pin(async move { Ok(Pipes::new(reader, writer)) })
    });
    (Target::Program(Program { shown: "fake".to_owned(), connect }), log)
}

async fn run(stream: DuplexStream, script: &(dyn Fn(&Value) -> Vec<Act> + Send + Sync), log: &Log) {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut lines = BufReader::new(reader).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        log.lock().unwrap().push(message.clone());
        for act in script(&message) {
            match act {
                Act::Write(text) => writer.write_all(text.as_bytes()).await.unwrap(),
                Act::Close => return writer.shutdown().await.unwrap(),
            }
        }
    }
}

/// A line that answers a request.
pub(super) fn line(message: &Value, result: &str) -> Act {
    Act::Write(answer(message, result) + "\n")
}

/// A line that refuses a request.
pub(super) fn refusal(message: &Value, code: i64) -> Act {
    let error = json!({ "jsonrpc": "2.0", "id": message["id"], "error": { "code": code, "message": "no" } });
    Act::Write(format!("{error}\n"))
}

/// An answer as text, so that a test can write what no JSON library would.
pub(super) fn answer(message: &Value, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, message["id"])
}

/// The result of an opening, for whichever door the message opens.
pub(super) fn opening(message: &Value) -> Option<String> {
    let server = json!({ "name": "fake", "version": "1.0.0" });
    let result = match message["method"].as_str()? {
        "server/discover" => json!({
            "resultType": "complete", "supportedVersions": Offer::Both.supported(), "capabilities": { "tools": {} },
            "ttlMs": 0, "cacheScope": "private", "_meta": { SERVER_INFO_KEY: server }, "instructions": "Be kind."
        }),
        "initialize" => json!({
            "protocolVersion": Revision::NEWEST_LEGACY.name(), "capabilities": { "tools": {} },
            "serverInfo": server, "instructions": "Be kind."
        }),
        _ => return None,
    };
    Some(result.to_string())
}

/// Whether a message carries a modern claim.
pub(super) fn is_modern(message: &Value) -> bool {
    message["params"]["_meta"].is_object()
}

/// A program that opens both doors and lists what `list` gives, as the result's text.
pub(super) fn lists(list: impl Fn(&Value) -> String + Send + Sync + 'static) -> Target {
    program(move |message| match message["method"].as_str() {
        Some("tools/list") => vec![line(message, &list(message))],
        _ => opening(message).map(|result| line(message, &result)).into_iter().collect(),
    })
    .0
}

/// A program that is the engine's own machine over these tools; every call answers its tool's name.
pub(super) fn engine(tools: Vec<ToolParts>) -> Target {
    let parts =
        CatalogParts { instructions: Some("Be brief.".to_owned()), tools, ..CatalogParts::new("engine", "1.2.3") };
    let dispatcher = Arc::new(Dispatcher::new(Arc::new(Arc::new(Catalog::build(parts).unwrap())), [7; 32]));
    let connect: Connect = Arc::new(move || {
        let mut machine = Connection::new(dispatcher.clone(), Principal::LOCAL, &Limits::default());
        let (near, far) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move {
            let (reader, mut writer) = tokio::io::split(far);
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let now = Moment { instant: Instant::now(), unix: 0 };
                machine.handle_message(now, Decoded::read(&Bytes::from(line), &JsonLimits::default()), None);
                while let Some(output) = machine.poll_output() {
                    match output {
                        Output::Reply { reply, .. } => {
                            writer.write_all(&reply.encode()).await.unwrap();
                            writer.write_all(b"\n").await.unwrap();
                        }
                        Output::Invoke { call, invocation, .. } => {
                            let said =
                                Content::text(invocation.operation.tool().map(ToString::to_string).unwrap_or_default());
                            machine.handle_outcome(now, call, Outcome::Complete(said));
                        }
                        _ => {}
                    }
                }
            }
        });
        let (reader, writer) = tokio::io::split(near);
        Box::pin(async move { Ok(Pipes::new(reader, writer)) })
    });
    Target::Program(Program { shown: "engine".to_owned(), connect })
}

/// One HTTP request as it came.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// The request line and the headers, in lower case up to the values.
    pub(super) head: String,
    /// The body; null if it is empty.
    pub(super) body: Value,
}

impl Asked {
    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The verb.
    pub(super) fn verb(&self) -> &str {
        self.head.split(' ').next().unwrap()
    }
}

/// A listener on loopback that answers each request with the bytes a script gives.
pub(super) async fn listener(
    script: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static,
) -> (Target, Arc<Mutex<Vec<Asked>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}/mcp?key=secret", listener.local_addr().unwrap());
    let (script, log) = (Arc::new(script), Arc::new(Mutex::new(Vec::new())));
    let kept = log.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (script, kept) = (script.clone(), kept.clone());
            tokio::spawn(async move { serve(&mut BufReader::new(stream), &*script, &kept).await });
        }
    });
    (Target::Http(HttpTarget::new(&url, &[]).unwrap()), log)
}

async fn serve(
    stream: &mut BufReader<TcpStream>,
    script: &(dyn Fn(&Asked) -> Vec<u8> + Send + Sync),
    log: &Mutex<Vec<Asked>>,
) -> Option<()> {
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let mut line = String::new();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            head += &if value.is_empty() { line.clone() } else { format!("{}:{value}", name.to_lowercase()) };
        }
        let mut asked = Asked { head, body: Value::Null };
        let mut body = vec![0; asked.header("content-length").map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).await.ok()?;
        asked.body = serde_json::from_slice(&body).unwrap_or_default();
        log.lock().unwrap().push(asked.clone());
        let response = script(&asked);
        stream.get_mut().write_all(&response).await.ok()?;
        if response.windows(17).any(|window| window == b"connection: close") {
            return None;
        }
    }
}

/// A response with a body of known length.
pub(super) fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A JSON answer.
pub(super) fn json_answer(asked: &Asked, result: &str) -> Vec<u8> {
    response("200 OK", "content-type: application/json; charset=utf-8\r\n", &answer(&asked.body, result))
}
