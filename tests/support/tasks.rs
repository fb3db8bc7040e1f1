//! Tasks of the small world: kept in memory, each as far as the call that made it says.

use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use twodoor::protocol::invoke::TaskWish;
use twodoor::protocol::{
    Arguments, Ask, CatalogParts, Content, InputKind, InputRequest, Invocation, Outcome, TaskAnswer, TaskDetail,
    TaskId, TaskRequest, TaskSupport, TaskView, ToolName, ToolParts,
};

use super::world::{schema, tool};

/// Tasks on one page of their list.
const PAGE: usize = 2;

/// See the module.
#[derive(Default)]
pub(super) struct Tasks(Mutex<Vec<TaskView>>);

/// Adds the tools whose calls become tasks.
pub(super) fn extend(parts: &mut CatalogParts) {
    let input_schema = schema(json!({
        "type": "object",
        "properties": {"end": {"enum": ["well", "badly", "broken", "asking"]}},
        "additionalProperties": false
    }));
    parts.task_list = true;
    parts.tools.extend([
        ToolParts {
            input_schema: input_schema.clone(),
            task: TaskSupport::Optional,
            ..tool("dig", "Digs, for as long as that takes.")
        },
        ToolParts { input_schema, task: TaskSupport::Required, ..tool("mine", "Digs deep.") },
    ]);
}

impl Tasks {
    fn with<T>(&self, how: impl FnOnce(&mut Vec<TaskView>) -> T) -> T {
        how(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn view(&self, id: &str) -> Option<TaskView> {
        self.with(|tasks| tasks.iter().find(|task| task.id.as_str() == id).cloned())
    }

    /// A call that becomes a task: it is running when its client is told of it.
    pub(super) fn begin(&self, tool: &ToolName, arguments: &Arguments, wish: TaskWish) -> Outcome {
        let end = arguments.get("end").and_then(|raw| raw.as_text()).unwrap_or_default();
        self.with(|tasks| {
            let time = "2026-01-01T00:00:00Z".to_owned();
            let begun = TaskView {
                id: TaskId::new(&format!("task-{}", tasks.len() + 1)).unwrap(),
                message: Some(format!("{tool} runs")),
                created: time.clone(),
                updated: time,
                ttl_ms: wish.ttl_ms,
                poll_ms: Some(100),
                cancelled: false,
                detail: TaskDetail::Nothing,
            };
            let detail = match &*end {
                "well" => TaskDetail::Returned { content: Content::text("gold"), failed: false },
                "badly" => TaskDetail::Returned { content: Content::text("stone"), failed: true },
                "broken" => TaskDetail::Error { code: -32603, message: "the shovel broke".to_owned(), data: None },
                "asking" => TaskDetail::Asks(vec![InputRequest {
                    key: "depth".to_owned(),
                    kind: InputKind::ElicitForm,
                    params: json!({
                        "message": "How deep?",
                        "requestedSchema": {"type": "object", "properties": {"metres": {"type": "integer"}}}
                    }),
                }]),
                _ => TaskDetail::Nothing,
            };
            tasks.push(TaskView { detail, ..begun.clone() });
            Outcome::Task(TaskAnswer::Created(begun))
        })
    }

    pub(super) fn answer(&self, asked: &TaskRequest, invocation: &Invocation) -> Outcome {
        match asked {
            TaskRequest::List { from } => self.with(|tasks| {
                let page: Vec<_> = tasks.iter().skip(*from).take(PAGE).cloned().collect();
                let next = (from + page.len() < tasks.len()).then_some(from + page.len());
                Outcome::Task(TaskAnswer::List(page, next))
            }),
            TaskRequest::Get(id) => self.of(id, |task| Outcome::Task(TaskAnswer::Is(task.clone()))),
            TaskRequest::Cancel(id) => self.of(id, |task| {
                let modern = invocation.revision.rules().input_required;
                match (&task.detail, modern) {
                    (TaskDetail::Nothing | TaskDetail::Asks(_), _) if !task.cancelled => {
                        task.detail = TaskDetail::Nothing;
                        task.cancelled = true;
                    }
                    (_, true) => {}
                    (_, false) => return Outcome::Refused("the task has ended already".to_owned()),
                }
                Outcome::Task(if modern { TaskAnswer::Done } else { TaskAnswer::Is(task.clone()) })
            }),
            TaskRequest::Update(id, answers) => self.of(id, |task| {
                let depth = answers.iter().find(|(key, _)| &**key == "depth");
                if let Some((_, answer)) = depth {
                    dug(task, &answer.parse::<Value>().unwrap_or_default());
                }
                Outcome::Task(TaskAnswer::Done)
            }),
            TaskRequest::Result(id) => self.of(id, |task| {
                if let (TaskDetail::Asks(requests), answer) = (&task.detail, invocation.answer("depth")) {
                    match answer {
                        None => {
                            return Outcome::InputRequired(Ask { requests: requests.clone(), state: None });
                        }
                        Some(answer) => dug(task, &answer.parse::<Value>().unwrap_or_default()),
                    }
                }
                Outcome::Task(TaskAnswer::Ended(task.clone()))
            }),
        }
    }

    fn of(&self, id: &TaskId, how: impl FnOnce(&mut TaskView) -> Outcome) -> Outcome {
        self.with(|tasks| tasks.iter_mut().find(|task| task.id == *id).map_or(Outcome::NotFound, how))
    }
}

/// Ends a task that asked, if it still does.
fn dug(task: &mut TaskView, answer: &Value) {
    if let TaskDetail::Asks(_) = task.detail {
        let content = Content::text(format!("dug {} m", answer["content"]["metres"]));
        task.detail = TaskDetail::Returned { content, failed: false };
    }
}
