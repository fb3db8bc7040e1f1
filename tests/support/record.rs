//! Writes down what the server says, with what the specification's schema depends on: `./test.sh schema` judges it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use twodoor::protocol::Revision;

use super::play::Player;
use super::transcript::{Client, Said, Transcript, Way};

/// The request of HTTP on whose response a message came.
pub(crate) struct Exchange {
    /// Its body; if it has none, as a stream of a session that may be told late answers: those of the session's requests.
    pub(crate) bodies: Vec<Vec<u8>>,
    /// The revision under which a message without a claim is served there.
    pub(crate) revision: Revision,
}

/// A player whose messages from the server are written to a file of its own in the folder `RECORD`.
pub(crate) struct Recorder {
    player: Box<dyn Player>,
    file: File,
    transcript: String,
    way: Way,
    /// Requests on a stream that are not answered yet.
    asked: Vec<Asked>,
    /// The revision of a stream's session.
    agreed: Option<Revision>,
    /// The bytes of a line that is sent in pieces.
    line: Vec<u8>,
}

/// What a request says about its answers.
#[derive(Debug, Clone)]
struct Asked {
    id: Value,
    method: String,
    claims: bool,
    /// The revision that an `initialize` wants.
    wanted: Option<String>,
    /// It may be answered by a task.
    task: bool,
    progress_token: Option<Value>,
    wants_log: bool,
}

impl Asked {
    /// The requests in the text of a message, or of an array of messages.
    fn all(text: &[u8]) -> Vec<Self> {
        // A byte order mark is let pass.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let value: Value = serde_json::from_slice(text).unwrap_or_default();
        match value {
            Value::Array(messages) => messages.iter().filter_map(Self::read).collect(),
            message => Self::read(&message).into_iter().collect(),
        }
    }

    fn read(message: &Value) -> Option<Self> {
        let (id, method, params) = (message.get("id")?, message["method"].as_str()?, &message["params"]);
        Some(Self {
            id: id.clone(),
            method: method.to_owned(),
            claims: claims(message),
            wanted: (method == "initialize").then(|| params["protocolVersion"].as_str().unwrap_or_default().to_owned()),
            task: params.get("task").is_some(),
            progress_token: params["_meta"].get("progressToken").cloned(),
            wants_log: params["_meta"].get("io.modelcontextprotocol/logLevel").is_some(),
        })
    }

    /// The revision that answers this, where one without a claim is answered by `legacy`.
    fn revision(&self, answer: &Value, legacy: Revision) -> Revision {
        match &self.wanted {
            // Discovery is a method of the modern era, claimed or not.
            _ if self.claims || self.method == "server/discover" => Revision::MODERN,
            Some(wanted) => {
                Revision::negotiate(answer["result"]["protocolVersion"].as_str().unwrap_or(wanted.as_str()))
            }
            None => legacy,
        }
    }
}

/// Whether a message makes a modern claim, be it a complete one.
pub(crate) fn claims(message: &Value) -> bool {
    message["params"]["_meta"].as_object().is_some_and(|meta| {
        ["protocolVersion", "clientCapabilities", "clientInfo"]
            .iter()
            .any(|key| meta.contains_key(&format!("io.modelcontextprotocol/{key}")))
    })
}

impl Recorder {
    pub(crate) fn new(player: Box<dyn Player>, folder: &OsStr, transcript: &Transcript, way: Way) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        let file = tempfile::Builder::new().prefix("said-").suffix(".jsonl").tempfile_in(folder).unwrap();
        let (file, _) = file.keep().unwrap();
        Self { player, file, transcript: transcript.name(), way, asked: Vec::new(), agreed: None, line: Vec::new() }
    }

    fn sent(&mut self, bytes: &[u8]) {
        self.line.extend_from_slice(bytes);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            self.asked.extend(Asked::all(&line));
        }
    }

    fn heard(&mut self, text: &str) {
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            return self.write(&json!({"unreadable": text}), None, Revision::NEWEST_LEGACY, false);
        };
        match value {
            // An event that asks the client to come back later is no message.
            Value::String(_) => {}
            Value::Array(messages) => messages.iter().for_each(|message| self.heard_one(message, true)),
            message => self.heard_one(&message, false),
        }
    }

    fn heard_one(&mut self, message: &Value, batch: bool) {
        if let Some(Exchange { bodies, revision }) = self.player.exchange() {
            let mut asked = bodies.iter().flat_map(|body| Asked::all(body)).collect();
            let (answered, revision) = placed(message, &mut asked, revision);
            return self.write(message, answered, revision, batch);
        }
        let legacy = self.agreed.unwrap_or(Revision::NEWEST_LEGACY);
        let (answered, revision) = placed(message, &mut self.asked, legacy);
        if answered.as_ref().is_some_and(|asked| asked.wanted.is_some()) && message.get("result").is_some() {
            self.agreed = Some(revision);
        }
        self.write(message, answered, revision, batch);
    }

    fn write(&mut self, message: &Value, answered: Option<Asked>, revision: Revision, batch: bool) {
        let asked = answered.map(|asked| json!({"method": asked.method, "task": asked.task}));
        let line = json!({
            "transcript": self.transcript,
            "way": self.way.name(),
            "revision": revision.name(),
            "batch": batch,
            "asked": asked,
            "message": message,
        });
        writeln!(self.file, "{line}").unwrap();
    }
}

/// The request that a message answers, and the revision that the message is of.
fn placed(message: &Value, asked: &mut Vec<Asked>, legacy: Revision) -> (Option<Asked>, Revision) {
    let of = |found: Option<&Asked>| if found.is_some_and(|a| a.claims) { Revision::MODERN } else { legacy };
    let (id, params) = (message.get("id"), &message["params"]);
    match (message["method"].as_str(), id) {
        // A server asks by a request in a session alone.
        (Some(_), Some(_)) => (None, legacy),
        (Some("notifications/progress"), None) => {
            let token = params.get("progressToken");
            (None, of(asked.iter().rfind(|a| a.progress_token.as_ref() == token)))
        }
        (Some("notifications/message"), None) => (None, of(asked.iter().rfind(|a| a.claims && a.wants_log))),
        (Some("notifications/cancelled"), None) => {
            (None, of(asked.iter().rfind(|a| Some(&a.id) == params.get("requestId"))))
        }
        (Some(_), None) => {
            let subscribed = params["_meta"].get("io.modelcontextprotocol/subscriptionId").is_some();
            (None, if subscribed { Revision::MODERN } else { legacy })
        }
        (None, Some(id)) => {
            // An id in flight may come again: that request is refused before the first one is answered. One
            // that was cancelled is never answered. Either way it is the latest that is meant.
            let found = asked.iter().rposition(|a| a.id == *id).map(|position| asked.remove(position));
            let revision = found.as_ref().map_or(legacy, |asked| asked.revision(message, legacy));
            (found, revision)
        }
        (None, None) => (None, legacy),
    }
}

impl Player for Recorder {
    fn play(&mut self, client: &Client) -> Result<(), String> {
        match client {
            Client::Send(text) | Client::Drip(text) => {
                self.sent(text.as_bytes());
                self.sent(b"\n");
            }
            Client::Raw(bytes) => self.sent(bytes),
            Client::EndOfInput => self.sent(b"\n"),
            Client::Http(_) | Client::Close | Client::Act(_) => {}
        }
        self.player.play(client)
    }

    fn listen(&mut self, patience: Duration) -> Said {
        let said = self.player.listen(patience);
        if let Said::Message(text) = &said {
            self.heard(text);
        }
        said
    }

    fn leave_open(&mut self) {
        self.player.leave_open();
    }

    fn exchange(&self) -> Option<Exchange> {
        self.player.exchange()
    }

    fn finish(&mut self) -> Result<Vec<Said>, String> {
        let rest = self.player.finish()?;
        for said in &rest {
            if let Said::Message(text) = said {
                self.heard(text);
            }
        }
        Ok(rest)
    }
}
