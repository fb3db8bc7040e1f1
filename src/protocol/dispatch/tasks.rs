//! Tasks: whether a call becomes one, and what is asked of those there are.

use std::sync::Arc;

use serde_json::json;

use super::{Context, Dispatcher, Step, answers, first_invocation, needs};
use crate::protocol::admit::Admitted;
use crate::protocol::catalog::{Catalog, TASKS_EXTENSION, TaskSupport, Tool};
use crate::protocol::digest;
use crate::protocol::fault::Fault;
use crate::protocol::invoke::{Operation, TaskWish};
use crate::protocol::json::Kind;
use crate::protocol::revision::{Method, Tasks};
use crate::protocol::task::{TaskId, TaskRequest};

/// A client that did not declare the extension on this request learns nothing of any task.
pub(super) fn declared(request: &Admitted) -> Result<(), Fault> {
    if request.client().follows_tasks() {
        return Ok(());
    }
    Err(Fault::MissingClientCapability { required: json!({ "extensions": { TASKS_EXTENSION: {} } }) })
}

/// Whether a call becomes a task: by the client's wish in 2025-11-25, by the server's choice with the extension.
pub(super) fn wish(tool: &Tool, request: &Admitted, catalog: &Catalog) -> Result<Option<TaskWish>, Fault> {
    let params = &request.request().params;
    match (request.revision().rules().tasks, tool.task) {
        // Where no tasks are offered, a wish for one is not looked at (2025-11-25 basic/utilities/tasks).
        _ if !catalog.has_tasks() => Ok(None),
        (Tasks::None, _) | (Tasks::Extension, TaskSupport::Forbidden) => Ok(None),
        (Tasks::Extension, support) => match declared(request) {
            Ok(()) => Ok(Some(TaskWish::default())),
            Err(_) if support == TaskSupport::Optional => Ok(None),
            Err(fault) => Err(fault),
        },
        (Tasks::Experimental, support) => {
            let wish = params.get("task").map(|raw| {
                let ttl = raw.members().unwrap_or_default().into_iter().find(|(key, _)| &**key == "ttl");
                let ttl_ms = ttl.as_ref().and_then(|(_, raw)| raw.as_str().parse().ok());
                let fits = raw.kind() == Kind::Object && (ttl.is_none() || ttl_ms.is_some());
                fits.then_some(TaskWish { ttl_ms })
            });
            match (wish, support) {
                (Some(None), _) => {
                    Err(Fault::InvalidParams("params.task must be an object; its ttl, whole milliseconds".to_owned()))
                }
                (Some(Some(_)), TaskSupport::Forbidden) => {
                    Err(Fault::MethodNotFound(format!("tool {} cannot be called as a task", tool.name)))
                }
                (None, TaskSupport::Required) => {
                    Err(Fault::MethodNotFound(format!("tool {} can only be called as a task", tool.name)))
                }
                (Some(wish), _) => Ok(wish),
                (None, _) => Ok(None),
            }
        }
    }
}

impl Dispatcher {
    pub(super) fn task(&self, request: &Admitted, context: &Context<'_>, catalog: Arc<Catalog>) -> Result<Step, Fault> {
        if request.revision().rules().tasks == Tasks::Extension {
            declared(request)?;
        }
        let params = &request.request().params;
        let id = || {
            let id = params.text("taskId").ok_or_else(|| needs(request, "taskId"))?;
            TaskId::new(&id).ok_or_else(|| Fault::InvalidParams("unknown task".to_owned()))
        };
        let asked = match request.method() {
            Method::TasksResult => TaskRequest::Result(id()?),
            Method::TasksList => {
                let from = self.position(params, Method::TasksList, digest::of_bytes(b""), context)?;
                TaskRequest::List { from }
            }
            Method::TasksCancel => TaskRequest::Cancel(id()?),
            Method::TasksUpdate => {
                let id = id()?;
                if params.get("inputResponses").is_none() {
                    return Err(Fault::InvalidParams("tasks/update needs params.inputResponses, an object".to_owned()));
                }
                TaskRequest::Update(id, answers(params)?)
            }
            _ => TaskRequest::Get(id()?),
        };
        Ok(Step::Invoke(Arc::new(first_invocation(Operation::Task(asked), request, context, catalog))))
    }
}
