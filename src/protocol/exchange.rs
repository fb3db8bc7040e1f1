//! One request from its arrival to its one answer: what is kept of it, and how its end is told.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::{Map, Value, json};

use super::asking::Asking;
use super::catalog::Catalog;
use super::connection::Arrival;
use super::content::{Content, PromptMessage, ResourceContents};
use super::dispatch::{Dispatcher, encode_completion};
use super::fault::Fault;
use super::invoke::{Ask, InputKind, Invocation, Notice, Operation, Outcome};
use super::json::{Json, RawJson};
use super::log::LogLevel;
use super::message::RequestId;
use super::notice::{Logs, Progress};
use super::revision::{Elicitation, Method, Revision};
use super::seal::Binding;
use super::task;

/// A request that a backend is carrying out, or that waits for its client's answer.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Exchange {
    pub(super) arrival: Arrival,
    pub(super) id: RequestId,
    pub(super) revision: Revision,
    pub(super) deadline: Instant,
    /// How long it was given, for the text that says so.
    pub(super) time: Duration,
    /// Whether its answer belongs to a batch.
    pub(super) batched: bool,
    pub(super) progress: Option<Box<Progress>>,
    /// The least level of log messages that a modern request wants.
    pub(super) level: Option<LogLevel>,
    pub(super) logs: Option<Box<Logs>>,
    /// What a legacy client is being asked, while it is.
    pub(super) asking: Option<Box<Asking>>,
    /// How often it was asked.
    pub(super) asked: u32,
    method: Method,
    /// As it was invoked first; it goes back to the backend with what a legacy client answers.
    pub(super) invocation: Arc<Invocation>,
}

/// What is needed besides the invocation to keep track of it.
pub(super) struct Arrived {
    pub(super) arrival: Arrival,
    pub(super) id: RequestId,
    pub(super) method: Method,
    pub(super) batched: bool,
    pub(super) now: Instant,
    pub(super) time: Duration,
    pub(super) progress: Option<RawJson>,
    pub(super) level: Option<LogLevel>,
}

/// What an outcome comes to.
pub(super) enum Answered {
    Reply(Result<Bytes, Fault>),
    /// The legacy client is to be asked first.
    Ask(Ask),
}

impl Exchange {
    pub(super) fn new(arrived: Arrived, invocation: Arc<Invocation>) -> Self {
        let Arrived { arrival, id, method, batched, now, time, progress, level } = arrived;
        Self {
            arrival,
            id,
            revision: invocation.revision,
            deadline: now + time,
            time,
            batched,
            progress: progress.map(|token| Box::new(Progress::new(token, now))),
            level,
            logs: None,
            asking: None,
            asked: 0,
            method,
            invocation,
        }
    }

    fn catalog(&self) -> &Arc<Catalog> {
        &self.invocation.catalog
    }

    /// What to send for a notice, if anything. `level` is the session's, where there is one.
    pub(super) fn tell(&mut self, notice: Notice, session: Option<LogLevel>, now: Instant) -> Option<Bytes> {
        match notice {
            Notice::Progress { progress, total, message } => {
                self.progress.as_mut()?.tell(progress, total, message, self.revision, now)
            }
            Notice::Log { level, logger, data } => {
                let least = if self.revision.rules().level_by_request { self.level } else { session };
                if !self.catalog().logs() || least.is_none_or(|least| level < least) {
                    return None;
                }
                self.logs.get_or_insert_with(|| Box::new(Logs::new(now))).tell(level, logger.as_deref(), data, now)
            }
            Notice::Updated { .. } | Notice::Detach => None,
        }
    }

    /// What an outcome comes to. `way_back` is whether a legacy client can be asked at all.
    pub(super) fn answer(&self, outcome: Outcome, dispatcher: &Dispatcher, now: u64, way_back: bool) -> Answered {
        let ask = match outcome {
            Outcome::InputRequired(ask) => ask,
            outcome => return Answered::Reply(self.reply(outcome, dispatcher, now)),
        };
        let may_ask =
            matches!(self.method, Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead | Method::TasksResult);
        if !may_ask || (ask.requests.is_empty() && ask.state.is_none()) {
            return Answered::Reply(Err(self.defect(dispatcher, "it asks for nothing, or may not ask")));
        }
        let keys: BTreeSet<&str> = ask.requests.iter().map(|request| request.key.as_str()).collect();
        if keys.len() < ask.requests.len() {
            // One of the answers could not be told from another (2026-07-28 basic/patterns/mrtr).
            return Answered::Reply(Err(self.defect(dispatcher, "it asks twice under one key")));
        }
        if self.revision.rules().input_required {
            return Answered::Reply(self.ask_modern(ask, dispatcher, now));
        }
        match self.unaskable(&ask, way_back) {
            None => Answered::Ask(ask),
            Some(why) => Answered::Reply(self.failed(&Content::text(why))),
        }
    }

    fn reply(&self, outcome: Outcome, dispatcher: &Dispatcher, now: u64) -> Result<Bytes, Fault> {
        match (outcome, &self.invocation.operation) {
            (Outcome::Complete(content), Operation::Call { .. }) => {
                if let Some(problem) = self.invocation.tool().and_then(|tool| tool.misfit(&content)) {
                    return Err(self.defect(dispatcher, &problem));
                }
                Ok(encode_result(&content, false, self.revision, self.catalog()))
            }
            (Outcome::Failed(content), _) => self.failed(&content),
            (Outcome::Prompted(prompted), Operation::Prompt { .. }) => {
                let mut out = BytesMut::new();
                out.put_u8(b'{');
                if let Some(description) = &prompted.description {
                    out.put_slice(format!("\"description\":{},", RawJson::encode(description).as_str()).as_bytes());
                }
                out.put_slice(br#""messages":"#);
                PromptMessage::write_all(&prompted.messages, self.revision.rules(), &mut out);
                write_tail(&mut out, self.revision, self.catalog());
                Ok(out.freeze())
            }
            (Outcome::Read(contents), Operation::Read { .. }) => {
                // What came of an answer to a question is that client's alone (2026-07-28 server/utilities/caching).
                let shared = self.invocation.answers.is_empty() && self.invocation.state.is_none();
                Ok(encode_read(&contents, shared, self.revision, self.catalog()))
            }
            (Outcome::Completed(completion), Operation::Complete(_)) => {
                Ok(encode_completion(completion, self.revision, self.catalog()))
            }
            (Outcome::Task(answer), Operation::Task(_) | Operation::Call { task: Some(_), .. }) => {
                let principal = self.invocation.principal.name();
                task::encode(answer, self.revision, self.catalog(), |from| {
                    dispatcher.cursor(principal, Method::TasksList, super::digest::of_bytes(b""), from, now)
                })
            }
            (Outcome::NotFound, Operation::Read { uri, .. }) => {
                Err(Fault::ResourceNotFound { uri: uri.to_string(), code: self.revision.rules().resource_missing })
            }
            (Outcome::NotFound, Operation::Task(_)) => Err(Fault::InvalidParams("unknown task".to_owned())),
            (Outcome::Refused(problem), _) => Err(Fault::InvalidParams(problem)),
            (Outcome::Defect { incident }, _) => Err(Fault::Internal { incident }),
            _ => Err(self.defect(dispatcher, "the backend gave an answer of another kind")),
        }
    }

    /// The answer to a request that ran out of time.
    pub(super) fn overdue(&self) -> Result<Bytes, Fault> {
        let seconds = self.time.as_secs_f64();
        let name = self.invocation.operation.name();
        if matches!(self.invocation.operation, Operation::Task(_)) {
            return self.failed(&Content::text(format!("the task has not ended within {seconds} s: ask again")));
        }
        self.failed(&Content::text(format!(
            "the {name} did not end within {seconds} s and was stopped: narrow what it has to do, then try again"
        )))
    }

    /// The answer to a legacy client that was asked and did not answer.
    pub(super) fn unanswered(&self) -> Result<Bytes, Fault> {
        let name = self.invocation.operation.name();
        self.failed(&Content::text(format!("the {name} asked the client, which did not answer in time: try again")))
    }

    /// The answer to what cannot be done: a result that the model reads, where there is one.
    pub(super) fn failed(&self, content: &Content) -> Result<Bytes, Fault> {
        match &self.invocation.operation {
            Operation::Call { .. } => Ok(encode_result(content, true, self.revision, self.catalog())),
            _ => Err(Fault::Failed(content.plain_text())),
        }
    }

    fn ask_modern(&self, ask: Ask, dispatcher: &Dispatcher, now: u64) -> Result<Bytes, Fault> {
        if let Some(required) = self.invocation.client.missing(ask.requests.iter().map(|r| r.kind)) {
            return Err(Fault::MissingClientCapability { required });
        }
        let mut members = Map::new();
        members.insert("resultType".to_owned(), "input_required".into());
        if !ask.requests.is_empty() {
            let requests = ask
                .requests
                .into_iter()
                .map(|request| (request.key.clone(), question(request.kind, request.params, self.revision)));
            members.insert("inputRequests".to_owned(), Value::Object(requests.collect()));
        }
        if let Some(state) = ask.state {
            let binding = bind(self.invocation.principal.name(), self.method, &self.invocation.operation);
            let Some(sealed) = dispatcher.sealer().seal(now, binding, state) else {
                return Err(self.defect(dispatcher, "the state is too large to seal"));
            };
            members.insert("requestState".to_owned(), sealed.into());
        }
        members.insert("_meta".to_owned(), self.catalog().identity_value());
        Ok(Value::Object(members).to_string().into())
    }

    /// Why a legacy client cannot be asked this; `None` if it can.
    fn unaskable(&self, ask: &Ask, way_back: bool) -> Option<String> {
        let name = self.invocation.operation.name();
        let exists = |kind: InputKind| match (kind, self.revision.rules().elicitation) {
            (InputKind::ElicitForm, elicitation) => elicitation != Elicitation::None,
            (InputKind::ElicitUrl, elicitation) => {
                matches!(elicitation, Elicitation::FormAndUrl | Elicitation::Modern)
            }
            (InputKind::SampleWithTools, _) => self.revision.rules().sampling_tools,
            (InputKind::Sample | InputKind::Roots, _) => true,
        };
        let missing: Vec<&str> = ask
            .requests
            .iter()
            .filter(|request| !exists(request.kind) || !self.invocation.client.can(request.kind))
            .map(|request| request.kind.needs())
            .collect();
        if !missing.is_empty() {
            let missing = missing.join(", ");
            return Some(format!(
                "the {name} has to ask the client for what it did not declare, or what revision {} does not have \
                 ({missing}): use a client that can be asked, or one of revision {}",
                self.revision,
                Revision::MODERN
            ));
        }
        if !way_back {
            return Some(format!(
                "the {name} has to ask the client, and this connection has no way to: open a session, or use revision {}",
                Revision::MODERN
            ));
        }
        (self.asked >= super::limits::ASKED_AT_MOST)
            .then(|| format!("the {name} asked {} times and did not come to an end", self.asked))
    }

    /// Logs a defect under a number, which is all that the peer is told.
    pub(super) fn defect(&self, dispatcher: &Dispatcher, problem: &str) -> Fault {
        let incident = dispatcher.incident();
        let operation = self.invocation.operation.name();
        tracing::error!(incident = format!("{incident:016x}"), %operation, "{problem}");
        Fault::Internal { incident }
    }
}

/// What sealed state is bound to.
pub(super) fn bind<'p>(principal: &'p str, method: Method, operation: &Operation) -> Binding<'p> {
    let text = |text: &str| Json::String(text.to_owned());
    match operation {
        Operation::Call { tool, arguments, .. } => {
            Binding::to_call(principal, method.name(), tool.as_str(), arguments.text().as_bytes())
        }
        Operation::Prompt { name, arguments } => {
            let arguments = arguments.iter().map(|(key, value)| (key.to_string(), text(value))).collect();
            let arguments = Json::Object(arguments).to_text();
            Binding::to_call(principal, method.name(), name, arguments.as_bytes())
        }
        Operation::Read { uri, .. } => Binding::to_call(principal, method.name(), uri, b"null"),
        Operation::Complete(_) | Operation::Task(_) => Binding::to_call(principal, method.name(), "", b"null"),
    }
}

/// A question as a revision has it, without the envelope of a request.
pub(super) fn question(kind: InputKind, mut params: Value, revision: Revision) -> Value {
    if let Some(params) = params.as_object_mut() {
        write_mode(kind, revision, params);
    }
    json!({ "method": kind.method(), "params": params })
}

/// Adds the mode of an elicitation, where the revision has modes.
pub(super) fn write_mode(kind: InputKind, revision: Revision, params: &mut Map<String, Value>) {
    let mode = match kind {
        InputKind::ElicitForm => "form",
        InputKind::ElicitUrl => "url",
        InputKind::Sample | InputKind::SampleWithTools | InputKind::Roots => return,
    };
    if matches!(revision.rules().elicitation, Elicitation::FormAndUrl | Elicitation::Modern) {
        params.insert("mode".to_owned(), mode.into());
    }
}

/// A `CallToolResult` as a revision has it, written without building a tree of it.
pub(super) fn encode_result(content: &Content, failed: bool, revision: Revision, catalog: &Catalog) -> Bytes {
    let rules = revision.rules();
    let mut out = BytesMut::with_capacity(content.size_hint() + catalog.identity_meta().len() + 128);
    out.put_slice(br#"{"content":"#);
    content.write_blocks(rules, &mut out);
    if failed {
        out.put_slice(br#","isError":true"#);
    } else if let Some(structured) = content.structured_for(rules) {
        out.put_slice(br#","structuredContent":"#);
        out.put_slice(structured.to_string().as_bytes());
    }
    write_tail(&mut out, revision, catalog);
    out.freeze()
}

/// A `ReadResourceResult` as a revision has it; what is not shared may be kept by nobody.
pub(super) fn encode_read(contents: &[ResourceContents], shared: bool, revision: Revision, catalog: &Catalog) -> Bytes {
    let rules = revision.rules();
    let contents = Json::Array(contents.iter().map(|contents| contents.to_json(rules)).collect());
    let mut out = BytesMut::from(format!("{{\"contents\":{}", contents.to_text()).as_bytes());
    if rules.cache_hints {
        out.put_u8(b',');
        match shared {
            true => out.put_slice(catalog.cache_hints()),
            false => out.put_slice(br#""ttlMs":0,"cacheScope":"private""#),
        }
    }
    write_tail(&mut out, revision, catalog);
    out.freeze()
}

/// What every result of a revision ends with.
pub(super) fn write_tail(out: &mut BytesMut, revision: Revision, catalog: &Catalog) {
    let rules = revision.rules();
    let begun = !out.ends_with(b"{");
    if rules.result_type {
        out.put_slice(if begun { br#","resultType":"complete""# } else { br#""resultType":"complete""# });
    }
    if rules.identity_in_meta {
        out.put_slice(br#","_meta":"#);
        out.put_slice(catalog.identity_meta());
    }
    out.put_u8(b'}');
}
