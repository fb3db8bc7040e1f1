//! One task as it is kept, and everything that can happen to it: a machine without I/O.
//!
//! Promises: what has ended never changes; a key that was asked under is never asked under again
//! (tasks extension, Task Update Requests: "unique over the lifetime of a single task"); an answer counts once.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clock::iso;
use super::kept::{KeptContent, Problem, text_of, value_of};
use crate::core::store::Unreadable;
use crate::protocol::invoke::TaskWish;
use crate::protocol::json::JsonLimits;
use crate::protocol::limits::{ASKED_AT_MOST, TASK_POLL, TaskLimits};
use crate::protocol::{
    Arguments, Ask, Catalog, ClientCapabilities, Content, Fault, InputKind, InputRequest, Invocation, Operation,
    Principal, RawJson, Revision, TaskDetail, TaskId, TaskSupport, TaskView,
};

/// The format of a record.
const VERSION: u64 = 1;

/// Bounds on the texts of a record, which were checked when they came.
const TEXT: JsonLimits = JsonLimits { depth: 127, keys: usize::MAX, items: usize::MAX };

/// See the module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    v: u64,
    pub(super) id: String,
    pub(super) principal: String,
    pub(super) tool: String,
    /// Of the tool's definition.
    digest: String,
    arguments: String,
    /// What the client that made it can be asked, as a capabilities object.
    client: Value,
    pub(super) created_ms: u64,
    pub(super) updated_ms: u64,
    pub(super) ttl_ms: u64,
    pub(super) message: Option<String>,
    /// How often it asked.
    rounds: u32,
    /// How many keys it has asked under.
    keys: u64,
    pub(super) phase: Phase,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Phase {
    /// It runs.
    Working,
    /// It waits for the answers to what is open.
    Waiting { open: Vec<Question>, answered: Vec<(String, String)>, state: Option<String> },
    /// It returned.
    Returned { content: KeptContent, failed: bool },
    /// It ended with an error.
    Error { code: i64, message: String },
    /// Its client ended it.
    Cancelled,
}

/// A question that is not answered yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    /// The key that the client sees.
    key: String,
    /// The backend's own.
    own: String,
    kind: Kind,
    params: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    ElicitForm,
    ElicitUrl,
    Sample,
    SampleWithTools,
    Roots,
}

impl Kind {
    const ALL: [Self; 5] = [Self::ElicitForm, Self::ElicitUrl, Self::Sample, Self::SampleWithTools, Self::Roots];

    fn asked(self) -> InputKind {
        match self {
            Self::ElicitForm => InputKind::ElicitForm,
            Self::ElicitUrl => InputKind::ElicitUrl,
            Self::Sample => InputKind::Sample,
            Self::SampleWithTools => InputKind::SampleWithTools,
            Self::Roots => InputKind::Roots,
        }
    }

    fn of(kind: InputKind) -> Self {
        match kind {
            InputKind::ElicitForm => Self::ElicitForm,
            InputKind::ElicitUrl => Self::ElicitUrl,
            InputKind::Sample => Self::Sample,
            InputKind::SampleWithTools => Self::SampleWithTools,
            InputKind::Roots => Self::Roots,
        }
    }
}

/// What a backend is called again with.
#[derive(Debug, Clone)]
pub(super) struct Again {
    pub(super) answers: Vec<(Box<str>, RawJson)>,
    pub(super) state: Option<Value>,
}

/// What some answers came to.
#[derive(Debug, Clone)]
pub(super) enum Taken {
    /// None was asked for.
    Nothing,
    /// Others are still open.
    Some,
    /// All are there.
    All(Again),
}

/// What asking came to.
#[derive(Debug, Clone)]
pub(super) enum Parked {
    /// It waits, or has ended meanwhile.
    Waits,
    /// It asked for nothing but to be called again.
    Again(Again),
}

impl Record {
    /// A task that begins now. `None` if the invocation is no call of a tool that is published.
    pub(super) fn begin(
        id: &TaskId,
        invocation: &Invocation,
        wish: TaskWish,
        limits: &TaskLimits,
        now: u64,
    ) -> Option<Self> {
        let Operation::Call { tool, arguments, .. } = &invocation.operation else { return None };
        let ttl_ms = wish.ttl_ms.unwrap_or(limits.ttl_ms).clamp(limits.ttl_at_least_ms, limits.ttl_at_most_ms);
        let kinds = Kind::ALL.into_iter().map(Kind::asked).filter(|kind| invocation.client.can(*kind));
        Some(Self {
            v: VERSION,
            id: id.as_str().to_owned(),
            principal: invocation.principal.name().to_owned(),
            tool: tool.as_str().to_owned(),
            digest: invocation.catalog.tool(tool.as_str())?.digest.to_string(),
            arguments: arguments.text().as_str().to_owned(),
            client: ClientCapabilities::default().missing(kinds).unwrap_or_else(|| serde_json::json!({})),
            created_ms: now,
            updated_ms: now,
            ttl_ms,
            message: None,
            rounds: 0,
            keys: 0,
            phase: Phase::Working,
        })
    }

    /// Reads a record.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Version {
            v: u64,
        }
        let corrupt = |error: serde_json::Error| Unreadable::Corrupt(error.to_string());
        let Version { v } = serde_json::from_slice(bytes).map_err(corrupt)?;
        match v {
            VERSION => {}
            newer if newer > VERSION => return Err(Unreadable::Newer(newer, VERSION)),
            older => return Err(Unreadable::Corrupt(format!("there is no format {older}"))),
        }
        let record: Self = serde_json::from_slice(bytes).map_err(corrupt)?;
        // All that is read later is read now, so that a damaged file is known at the start.
        record.view().map_err(Unreadable::Corrupt)?;
        record.call().ok_or_else(|| Unreadable::Corrupt("its call".to_owned()))?;
        record.again().map_err(Unreadable::Corrupt)?;
        Ok(record)
    }

    /// The record as it is kept.
    pub(super) fn write(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Whether it never changes again.
    pub(super) fn has_ended(&self) -> bool {
        !matches!(self.phase, Phase::Working | Phase::Waiting { .. })
    }

    /// When it may be forgotten.
    pub(super) fn expires_ms(&self) -> u64 {
        self.created_ms.saturating_add(self.ttl_ms)
    }

    /// Ends it, unless it has ended.
    pub(super) fn end(&mut self, phase: Phase) -> bool {
        if self.has_ended() {
            return false;
        }
        self.message = match &phase {
            Phase::Error { message, .. } => Some(message.clone()),
            Phase::Cancelled => Some("cancelled by its client".to_owned()),
            Phase::Returned { failed: true, .. } => Some("the tool reported a failure".to_owned()),
            Phase::Returned { .. } | Phase::Working | Phase::Waiting { .. } => None,
        };
        self.phase = phase;
        true
    }

    /// Takes the questions of its backend. An error is for whoever reads the result.
    pub(super) fn ask(&mut self, ask: &Ask, client: ClientCapabilities) -> Result<Parked, String> {
        if self.has_ended() {
            return Ok(Parked::Waits);
        }
        if self.rounds >= ASKED_AT_MOST {
            return Err(format!("the tool {} asked {} times and did not come to an end", self.tool, self.rounds));
        }
        let missing: Vec<&str> =
            ask.requests.iter().map(|r| r.kind).filter(|kind| !client.can(*kind)).map(InputKind::needs).collect();
        if !missing.is_empty() {
            return Err(format!(
                "the tool {} has to ask the client, which did not declare that it can be asked ({}): use a client that can",
                self.tool,
                missing.join(", ")
            ));
        }
        self.rounds += 1;
        if ask.requests.is_empty() {
            return Ok(Parked::Again(Again { answers: Vec::new(), state: ask.state.clone() }));
        }
        let unkept = |problem: Problem| format!("what the tool {} asks cannot be kept: {problem}", self.tool);
        let mut open = Vec::new();
        let mut keys = self.keys;
        for request in &ask.requests {
            keys += 1;
            open.push(Question {
                key: format!("{}-{keys}", request.key),
                own: request.key.clone(),
                kind: Kind::of(request.kind),
                params: text_of(&request.params).map_err(unkept)?,
            });
        }
        let state = ask.state.as_ref().map(text_of).transpose().map_err(unkept)?;
        self.keys = keys;
        self.message = Some(match open.len() {
            1 => "waiting for the answer to a question".to_owned(),
            questions => format!("waiting for the answers to {questions} questions"),
        });
        self.phase = Phase::Waiting { open, answered: Vec::new(), state };
        Ok(Parked::Waits)
    }

    /// Takes answers; those to what is not open count for nothing.
    pub(super) fn answer(&mut self, answers: &[(Box<str>, RawJson)]) -> Result<Taken, Problem> {
        let Phase::Waiting { open, answered, .. } = &mut self.phase else { return Ok(Taken::Nothing) };
        let mut any = false;
        for (key, answer) in answers {
            let Some(position) = open.iter().position(|question| *question.key == **key) else { continue };
            let question = open.remove(position);
            answered.push((question.own, answer.as_str().to_owned()));
            any = true;
        }
        if !any {
            return Ok(Taken::Nothing);
        }
        match self.again()? {
            Some(again) => {
                self.phase = Phase::Working;
                self.message = None;
                Ok(Taken::All(again))
            }
            None => Ok(Taken::Some),
        }
    }

    /// What the backend is called again with, if all that it asked was answered.
    fn again(&self) -> Result<Option<Again>, Problem> {
        let Phase::Waiting { open, answered, state } = &self.phase else { return Ok(None) };
        let answers = answered.iter().map(|(own, text)| Ok((own.as_str().into(), raw(text)?)));
        let answers = answers.collect::<Result<Vec<_>, Problem>>()?;
        let state = state.as_deref().map(value_of).transpose()?;
        Ok(open.is_empty().then_some(Again { answers, state }))
    }

    /// The tool's name and arguments.
    fn call(&self) -> Option<Operation> {
        let tool = crate::protocol::ToolName::new(&self.tool)?;
        Some(Operation::Call { tool, arguments: Arguments::new(raw(&self.arguments).ok()?)?, task: None })
    }

    /// Whether the tool is still what it was when the task began.
    pub(super) fn fits(&self, catalog: &Catalog) -> bool {
        catalog
            .tool(&self.tool)
            .is_some_and(|tool| tool.digest.to_string() == self.digest && tool.task != TaskSupport::Forbidden)
    }

    /// The call, for a process that did not see it begin.
    pub(super) fn invocation(
        &self,
        catalog: &std::sync::Arc<Catalog>,
        principal: &Principal,
        revision: Revision,
    ) -> Option<Invocation> {
        let operation = self.call().filter(|_| self.fits(catalog))?;
        Some(Invocation {
            catalog: std::sync::Arc::clone(catalog),
            operation,
            answers: Vec::new(),
            state: None,
            principal: principal.clone(),
            revision,
            client: ClientCapabilities::read(&RawJson::encode(&self.client)),
        })
    }

    /// What its client may see.
    pub(super) fn view(&self) -> Result<TaskView, Problem> {
        let detail = match &self.phase {
            Phase::Working | Phase::Cancelled => TaskDetail::Nothing,
            Phase::Waiting { open, .. } => {
                let requests = open.iter().map(|question| {
                    let params = value_of(&question.params)?;
                    Ok(InputRequest { key: question.key.clone(), kind: question.kind.asked(), params })
                });
                TaskDetail::Asks(requests.collect::<Result<_, Problem>>()?)
            }
            Phase::Returned { content, failed } => {
                TaskDetail::Returned { content: content.content()?, failed: *failed }
            }
            Phase::Error { code, message } => TaskDetail::Error { code: *code, message: message.clone(), data: None },
        };
        Ok(TaskView {
            id: TaskId::new(&self.id).ok_or("its name")?,
            message: self.message.clone(),
            created: iso(self.created_ms),
            updated: iso(self.updated_ms),
            ttl_ms: Some(self.ttl_ms),
            poll_ms: Some(super::clock::millis(TASK_POLL)),
            cancelled: self.phase == Phase::Cancelled,
            detail,
        })
    }

    /// The record without what may be large once it has ended.
    pub(super) fn slim(mut self) -> Self {
        if let Phase::Returned { content, .. } = &mut self.phase {
            *content = KeptContent::default();
        }
        if self.has_ended() {
            self.arguments = "{}".to_owned();
        }
        self
    }
}

impl Phase {
    /// The end by what a tool returned.
    pub(super) fn returned(content: &Content, failed: bool) -> Result<Self, Problem> {
        Ok(Self::Returned { content: KeptContent::of(content)?, failed })
    }

    /// The end by a text that a model reads.
    pub(super) fn failed(text: impl Into<String>) -> Self {
        let content = KeptContent::of(&Content::text(text)).unwrap_or_default();
        Self::Returned { content, failed: true }
    }

    /// The end by an error.
    pub(super) fn fault(fault: &Fault) -> Self {
        Self::Error { code: fault.number(), message: fault.to_string() }
    }
}

fn raw(text: &str) -> Result<RawJson, Problem> {
    RawJson::new(bytes::Bytes::copy_from_slice(text.as_bytes()), &TEXT).map_err(|error| error.to_string())
}
