//! A stage for tasks: a backend that the test steers, a disk that forgets, a clock that stands.

mod durable;
mod lifecycle;
mod orders;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use super::*;
use crate::core::store::model::ModelDisk;
use crate::protocol::invoke::{Nobody, TaskWish};
use crate::protocol::{
    Arguments, CatalogParts, ClientCapabilities, InputKind, InputRequest, Json, Notice, Revision, TaskStatus,
    TaskSupport, ToolName, ToolParts,
};

const ROOT: &str = "/state";

fn json_of(value: &Value) -> Json {
    Json::parse(value.to_string().as_bytes(), &Default::default()).unwrap()
}

/// `work` does what its argument `plan` says; `shape` promises a structured result; `brief` has a deadline.
fn catalog_with(description: &str) -> Arc<Catalog> {
    let tool = |name: &str| ToolParts {
        input_schema: json_of(&json!({"type": "object"})),
        description: Some(description.to_owned()),
        task: TaskSupport::Optional,
        ..ToolParts::new(name)
    };
    let shape = ToolParts { output_schema: Some(json_of(&json!({"type": "object"}))), ..tool("shape") };
    let brief = ToolParts { deadline: Some(Duration::from_millis(50)), ..tool("brief") };
    let parts = CatalogParts { tools: vec![tool("work"), shape, brief], ..CatalogParts::new("stage", "1.0.0") };
    Arc::new(Catalog::build(parts).unwrap())
}

/// What a backend was called with, or that its call was told to end.
#[derive(Debug, PartialEq)]
enum Report {
    Began { answers: Vec<(String, Value)>, state: Option<Value> },
    Gone,
}

struct Backend {
    reports: mpsc::UnboundedSender<Report>,
    gate: Semaphore,
}

fn question(key: &str, kind: InputKind) -> InputRequest {
    InputRequest { key: key.to_owned(), kind, params: json!({"message": key, "requestedSchema": {"type": "object"}}) }
}

impl Invoke for Backend {
    fn invoke(&self, invocation: Arc<Invocation>, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            let Operation::Call { arguments, task: None, .. } = &invocation.operation else {
                return Outcome::Complete(Content::text("passed through"));
            };
            let plan = arguments.get("plan").unwrap().as_text().unwrap();
            let answers = invocation.answers.iter().map(|(key, raw)| (key.to_string(), raw.parse().unwrap()));
            let answers: Vec<(String, Value)> = answers.collect();
            let answered = !answers.is_empty();
            let _ = self.reports.send(Report::Began { answers, state: invocation.state.clone() });
            let form = |key: &str| question(key, InputKind::ElicitForm);
            match plan.as_str() {
                "return" => Outcome::Complete(Content::text("returned")),
                "structured" => Outcome::Complete(Content::structured(json!({"a": 0.1, "b": [1, null]}))),
                "large" => Outcome::Complete(Content::text("x".repeat(100_000))),
                "fail" => Outcome::Failed(Content::text("failed")),
                "refuse" => Outcome::Refused("no such row".to_owned()),
                "miss" => Outcome::NotFound,
                "defect" => Outcome::Defect { incident: 0xabc },
                "other" => Outcome::Read(Vec::new()),
                "panic" => panic!("a secret of the backend"),
                "hold" => {
                    tokio::select! {
                        permit = self.gate.acquire() => permit.unwrap().forget(),
                        () = caller.gone() => {
                            assert!(caller.is_gone());
                            let _ = self.reports.send(Report::Gone);
                        }
                    }
                    Outcome::Complete(Content::text("released"))
                }
                "tell" => {
                    for n in 1..=20u8 {
                        let message = Some(format!("step\u{7} {n}"));
                        caller.notify(Notice::Progress { progress: n.into(), total: None, message });
                    }
                    self.gate.acquire().await.unwrap().forget();
                    caller.notify(Notice::Updated { uri: "a:b".to_owned() });
                    Outcome::Complete(Content::text("told"))
                }
                "ask" if answered => Outcome::Complete(Content::text("answered")),
                "ask" => Outcome::InputRequired(Ask {
                    requests: vec![form("name"), form("age")],
                    state: Some(json!({"round": 1})),
                }),
                "ask twice" if invocation.state == Some(json!(2)) => Outcome::Complete(Content::text("answered twice")),
                "ask twice" => Outcome::InputRequired(Ask {
                    requests: vec![form("name")],
                    state: Some(json!(if answered { 2 } else { 1 })),
                }),
                "ask for ever" => Outcome::InputRequired(Ask { requests: Vec::new(), state: Some(json!(1)) }),
                "ask nothing" => Outcome::InputRequired(Ask::default()),
                "sample" => {
                    Outcome::InputRequired(Ask { requests: vec![question("model", InputKind::Sample)], state: None })
                }
                plan => panic!("no plan {plan}"),
            }
        })
    }
}

/// Hears what is told.
struct Ears(mpsc::UnboundedSender<(Principal, TaskView)>, Arc<Mutex<Vec<String>>>);

impl Audience for Ears {
    fn task(&self, principal: &Principal, task: TaskView) {
        let _ = self.0.send((principal.clone(), task));
    }

    fn updated(&self, uri: &str) {
        self.1.lock().unwrap().push(uri.to_owned());
    }
}

struct Stage {
    tasks: Tasks,
    catalog: Arc<Catalog>,
    backend: Arc<Backend>,
    reports: mpsc::UnboundedReceiver<Report>,
    told: mpsc::UnboundedReceiver<(Principal, TaskView)>,
    updated: Arc<Mutex<Vec<String>>>,
    disk: ModelDisk,
    now: Arc<AtomicU64>,
    principal: Principal,
    revision: Revision,
    client: ClientCapabilities,
}

impl Stage {
    fn new() -> Self {
        Self::on(ModelDisk::new(Path::new(ROOT)), 1_000_000, catalog_with("Works."), TaskLimits::default())
    }

    fn limited(limits: TaskLimits) -> Self {
        Self::on(ModelDisk::new(Path::new(ROOT)), 1_000_000, catalog_with("Works."), limits)
    }

    fn on(disk: ModelDisk, now: u64, catalog: Arc<Catalog>, limits: TaskLimits) -> Self {
        let (sender, reports) = mpsc::unbounded_channel();
        let backend = Arc::new(Backend { reports: sender, gate: Semaphore::new(0) });
        let (sender, told) = mpsc::unbounded_channel();
        let updated = Arc::default();
        let audience = Ears(sender, Arc::clone(&updated));
        let adopt = |name: &str, bytes: &[u8]| keeper::adopt(name, bytes, &catalog, now);
        let store = Store::open_on(Arc::new(disk.clone()), Path::new(ROOT), &adopt).unwrap();
        let now = Arc::new(AtomicU64::new(now));
        let time = Arc::clone(&now);
        let clock = Clock::of(move || time.load(Ordering::SeqCst));
        let running = Running::new(&limits).0;
        let keeper =
            Keeper::new(store, clock, Arc::<Backend>::clone(&backend), Box::new(audience), limits, running).unwrap();
        Self {
            tasks: Tasks(keeper),
            catalog,
            backend,
            reports,
            told,
            updated,
            disk,
            now,
            principal: Principal::LOCAL,
            revision: Revision::MODERN,
            client: can(&json!({"elicitation": {}})),
        }
    }

    /// Another process after a loss of power in this one.
    fn after_a_crash(&self, luck: u64) -> Self {
        self.after(self.disk.crash(luck), Arc::clone(&self.catalog))
    }

    fn after(&self, disk: ModelDisk, catalog: Arc<Catalog>) -> Self {
        Self::on(disk, self.now.load(Ordering::SeqCst), catalog, TaskLimits::default())
    }

    fn pass(&self, time: Duration) {
        self.now.fetch_add(clock::millis(time), Ordering::SeqCst);
    }

    fn invocation(&self, operation: Operation) -> Invocation {
        Invocation {
            catalog: Arc::clone(&self.catalog),
            operation,
            answers: Vec::new(),
            state: None,
            principal: self.principal.clone(),
            revision: self.revision,
            client: self.client,
        }
    }

    fn call(&self, tool: &str, plan: &str, task: Option<TaskWish>) -> Invocation {
        let arguments = Arguments::new(RawJson::encode(&json!({"plan": plan}))).unwrap();
        self.invocation(Operation::Call { tool: ToolName::new(tool).unwrap(), arguments, task })
    }

    async fn invoke(&self, invocation: Invocation) -> Outcome {
        self.tasks.invoke(Arc::new(invocation), Arc::new(Nobody)).await
    }

    async fn create(&self, tool: &str, plan: &str) -> TaskView {
        self.create_for(tool, plan, TaskWish::default()).await.unwrap()
    }

    async fn create_for(&self, tool: &str, plan: &str, wish: TaskWish) -> Result<TaskView, String> {
        match self.invoke(self.call(tool, plan, Some(wish))).await {
            Outcome::Task(TaskAnswer::Created(view)) => Ok(view),
            Outcome::Failed(content) => Err(content.plain_text()),
            other => panic!("{other:?}"),
        }
    }

    async fn ask(&self, request: TaskRequest) -> Outcome {
        self.invoke(self.invocation(Operation::Task(request))).await
    }

    async fn view(&self, id: &TaskId) -> Option<TaskView> {
        match self.ask(TaskRequest::Get(id.clone())).await {
            Outcome::Task(TaskAnswer::Is(view)) => Some(view),
            Outcome::NotFound => None,
            other => panic!("{other:?}"),
        }
    }

    async fn update(&self, id: &TaskId, answers: &[(&str, Value)]) -> Outcome {
        let answers = answers.iter().map(|(key, value)| ((*key).into(), RawJson::encode(value))).collect();
        self.ask(TaskRequest::Update(id.clone(), answers)).await
    }

    /// Waits until a task is told to be so far.
    async fn until(&mut self, id: &TaskId, status: TaskStatus) -> TaskView {
        let told = async {
            loop {
                let (_, view) = self.told.recv().await.unwrap();
                if view.id == *id && view.status(Form::Extension) == status {
                    return view;
                }
            }
        };
        tokio::time::timeout(PATIENCE, told).await.unwrap_or_else(|_| panic!("never {status:?}"))
    }

    async fn end(&mut self, tool: &str, plan: &str) -> TaskView {
        let created = self.create(tool, plan).await;
        loop {
            let (_, view) = tokio::time::timeout(PATIENCE, self.told.recv()).await.unwrap().unwrap();
            if view.id == created.id && has_ended(&view) {
                return view;
            }
        }
    }

    async fn report(&mut self) -> Report {
        tokio::time::timeout(PATIENCE, self.reports.recv()).await.unwrap().unwrap()
    }
}

/// Whether it never changes again.
fn has_ended(view: &TaskView) -> bool {
    matches!(view.status(Form::Extension), TaskStatus::Completed | TaskStatus::Cancelled | TaskStatus::Failed)
}

/// Far above what anything here takes, so that only a hang meets it.
const PATIENCE: Duration = Duration::from_secs(20);

fn can(capabilities: &Value) -> ClientCapabilities {
    ClientCapabilities::read(&RawJson::encode(capabilities))
}

fn text(view: &TaskView) -> String {
    match &view.detail {
        TaskDetail::Returned { content, .. } => content.plain_text(),
        TaskDetail::Error { message, .. } => message.clone(),
        TaskDetail::Nothing => String::new(),
        TaskDetail::Asks(requests) => requests.iter().map(|r| r.key.as_str()).collect::<Vec<_>>().join(" "),
    }
}

fn began() -> Report {
    Report::Began { answers: Vec::new(), state: None }
}
