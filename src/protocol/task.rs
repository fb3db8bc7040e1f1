//! Tasks: calls that outlive their request, in both of their forms on the wire.
//!
//! Promises: what a client may see of a task is written here alone; the form of 2025-11-25 and the
//! extension of 2026-07-28 are two projections of one [`TaskView`].

use std::fmt;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::catalog::Catalog;
use super::content::Content;
use super::exchange::{encode_result, question};
use super::fault::Fault;
use super::invoke::InputRequest;
use super::json::RawJson;
use super::revision::{Revision, Tasks};

/// The `_meta` key that ties a message of 2025-11-25 to its task.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The name of a task: at least 128 bits of randomness, visible ASCII.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(Box<str>);

impl TaskId {
    /// Reads what a client sent, or what was made: 1 to 128 of visible ASCII.
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        fits.then(|| Self(text.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    /// It runs.
    Working,
    /// It waits for answers of the client.
    InputRequired,
    /// It ended with a result.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// It ended with an error.
    Failed,
}

impl TaskStatus {
    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
        }
    }
}

/// What comes with a task's status.
#[derive(Debug, Clone)]
pub enum TaskDetail {
    /// Nothing: it runs, or was cancelled.
    Nothing,
    /// The questions that are not answered yet.
    Asks(Vec<InputRequest>),
    /// What the call returned.
    Returned {
        /// The content.
        content: Content,
        /// Whether the tool failed.
        failed: bool,
    },
    /// The error that the call ended with.
    Error {
        /// The code.
        code: i64,
        /// The message.
        message: String,
        /// The data.
        data: Option<Value>,
    },
}

/// A task as its client may see it.
#[derive(Debug, Clone)]
pub struct TaskView {
    /// Its name.
    pub id: TaskId,
    /// What is being done, or why it ended so.
    pub message: Option<String>,
    /// ISO 8601, UTC.
    pub created: String,
    /// ISO 8601, UTC.
    pub updated: String,
    /// Milliseconds from creation after which it may be forgotten; `None` for never.
    pub ttl_ms: Option<u64>,
    /// Milliseconds that a client should wait between two looks at it.
    pub poll_ms: Option<u64>,
    /// Whether it was cancelled; with a [`TaskDetail::Nothing`] that is what ended it.
    pub cancelled: bool,
    /// What comes with its status.
    pub detail: TaskDetail,
}

/// What a client asks of its tasks.
#[derive(Debug, Clone)]
pub enum TaskRequest {
    /// How far it is.
    Get(TaskId),
    /// What it returned, once it has ended. Its questions are asked meanwhile.
    Result(TaskId),
    /// Which there are, from a position on.
    List {
        /// Position of the first.
        from: usize,
    },
    /// To end it.
    Cancel(TaskId),
    /// To go on with these answers: bare results by key.
    Update(TaskId, Vec<(Box<str>, RawJson)>),
}

/// The answer to a [`TaskRequest`], or the task that a call became.
#[derive(Debug, Clone)]
pub enum TaskAnswer {
    /// The call became this.
    Created(TaskView),
    /// It is this far.
    Is(TaskView),
    /// It ended like this.
    Ended(TaskView),
    /// These there are, and the position after the last if more follow.
    List(Vec<TaskView>, Option<usize>),
    /// Done.
    Done,
}

impl TaskView {
    /// Its status; a tool's own failure is one only in the older form (2025-11-25 basic/utilities/tasks).
    pub fn status(&self, form: Tasks) -> TaskStatus {
        match &self.detail {
            TaskDetail::Nothing if self.cancelled => TaskStatus::Cancelled,
            TaskDetail::Nothing => TaskStatus::Working,
            TaskDetail::Asks(_) => TaskStatus::InputRequired,
            TaskDetail::Returned { failed: true, .. } if form == Tasks::Experimental => TaskStatus::Failed,
            TaskDetail::Returned { .. } => TaskStatus::Completed,
            TaskDetail::Error { .. } => TaskStatus::Failed,
        }
    }

    /// The members that both forms have, under the names of each.
    pub(super) fn members(&self, form: Tasks) -> Map<String, Value> {
        let (ttl, poll) = match form {
            Tasks::Experimental | Tasks::None => ("ttl", "pollInterval"),
            Tasks::Extension => ("ttlMs", "pollIntervalMs"),
        };
        let mut members = Map::new();
        members.insert("taskId".to_owned(), self.id.as_str().into());
        members.insert("status".to_owned(), self.status(form).name().into());
        if let Some(message) = &self.message {
            members.insert("statusMessage".to_owned(), message.as_str().into());
        }
        members.insert("createdAt".to_owned(), self.created.as_str().into());
        members.insert("lastUpdatedAt".to_owned(), self.updated.as_str().into());
        members.insert(ttl.to_owned(), self.ttl_ms.into());
        if let Some(ms) = self.poll_ms {
            members.insert(poll.to_owned(), ms.into());
        }
        members
    }

    /// The extension's task with all that comes with its status.
    pub(super) fn detailed(&self, revision: Revision, catalog: &Catalog) -> Map<String, Value> {
        let mut members = self.members(Tasks::Extension);
        match &self.detail {
            TaskDetail::Nothing => {}
            TaskDetail::Asks(requests) => {
                let asked = requests.iter().map(|r| (r.key.clone(), question(r.kind, r.params.clone(), revision)));
                members.insert("inputRequests".to_owned(), Value::Object(asked.collect()));
            }
            TaskDetail::Returned { content, failed } => {
                let result = encode_result(content, *failed, revision, catalog);
                members.insert("result".to_owned(), serde_json::from_slice(&result).unwrap_or_default());
            }
            TaskDetail::Error { code, message, data } => {
                let mut error = json!({ "code": code, "message": message });
                if let (Some(data), Some(error)) = (data, error.as_object_mut()) {
                    error.insert("data".to_owned(), data.clone());
                }
                members.insert("error".to_owned(), error);
            }
        }
        members
    }
}

/// The answer on the wire. `cursor` makes a cursor of a position.
pub(super) fn encode(
    answer: TaskAnswer,
    revision: Revision,
    catalog: &Catalog,
    cursor: impl FnOnce(usize) -> String,
) -> Result<Bytes, Fault> {
    let form = revision.rules().tasks;
    let modern = |mut members: Map<String, Value>, kind: &str| {
        members.insert("resultType".to_owned(), kind.into());
        members.insert("_meta".to_owned(), catalog.identity_value());
        members
    };
    let members = match (answer, form) {
        (TaskAnswer::Created(task), Tasks::Extension) => modern(task.members(form), "task"),
        (TaskAnswer::Created(task), _) => Map::from_iter([("task".to_owned(), Value::Object(task.members(form)))]),
        (TaskAnswer::Is(task), Tasks::Extension) => modern(task.detailed(revision, catalog), "complete"),
        (TaskAnswer::Is(task), _) => task.members(form),
        (TaskAnswer::Ended(task), _) => return result(&task, revision, catalog),
        (TaskAnswer::List(tasks, next), _) => {
            let tasks = tasks.iter().map(|task| Value::Object(task.members(form))).collect();
            let mut members = Map::from_iter([("tasks".to_owned(), Value::Array(tasks))]);
            if let Some(next) = next {
                members.insert("nextCursor".to_owned(), cursor(next).into());
            }
            members
        }
        (TaskAnswer::Done, Tasks::Extension) => modern(Map::new(), "complete"),
        (TaskAnswer::Done, _) => Map::new(),
    };
    Ok(Value::Object(members).to_string().into())
}

/// Exactly what the call would have returned, tied to its task (2025-11-25 basic/utilities/tasks, Result Retrieval).
fn result(task: &TaskView, revision: Revision, catalog: &Catalog) -> Result<Bytes, Fault> {
    match &task.detail {
        TaskDetail::Returned { content, failed } => {
            let text = encode_result(content, *failed, revision, catalog);
            let mut value: Value = serde_json::from_slice(&text).unwrap_or_default();
            if let Some(members) = value.as_object_mut() {
                members.insert("_meta".to_owned(), json!({ RELATED_TASK: { "taskId": task.id.as_str() } }));
            }
            Ok(value.to_string().into())
        }
        TaskDetail::Error { code, message, data } => {
            Err(Fault::Kept { code: *code, message: message.clone(), data: data.clone() })
        }
        TaskDetail::Nothing | TaskDetail::Asks(_) => {
            Err(Fault::InvalidParams("this task was cancelled: it has no result".to_owned()))
        }
    }
}
