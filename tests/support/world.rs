//! The small world that the transcripts talk to: a few tools whose ends the runner controls.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::json::JsonLimits;
use twodoor::protocol::{
    Annotations, Ask, CacheHints, CacheScope, Caller, Catalog, CatalogParts, Changed, Content, Dispatcher, InputKind,
    InputRequest, Invocation, Invoke, Json, Limits, Notice, Offer, Operation, Outcome, Principal, Published, TaskView,
    ToolParts,
};
use twodoor::transport::{Engine, Hub};

use super::tasks::Tasks;
use super::transcript::{Act, Legacy, Shows};
use super::whole;

/// How long anything that must happen may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Carries out the tools. Calls of `wait` end when they are released or when their caller is gone.
pub(crate) struct World {
    state: Mutex<State>,
    changed: Condvar,
    released: tokio::sync::Notify,
    tasks: Tasks,
    hub: Hub,
    /// What is published at first.
    offer: Offer,
    shows: Shows,
    shelf: Arc<Shelf>,
}

/// The catalog in force.
struct Shelf(Mutex<Arc<Catalog>>);

impl Published for Shelf {
    fn current(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Default)]
struct State {
    started: usize,
    cancelled: usize,
    completed: usize,
    /// Callers of calls that are over.
    late: Vec<Arc<dyn Caller>>,
}

pub(super) fn schema(value: Value) -> Json {
    Json::parse(value.to_string().as_bytes(), &JsonLimits::default()).unwrap()
}

pub(super) fn tool(name: &str, description: &str) -> ToolParts {
    ToolParts { description: Some(description.to_owned()), ..ToolParts::new(name) }
}

/// What the world publishes at first.
fn parts(offer: Offer, shows: Shows) -> CatalogParts {
    let object =
        |properties: Value| schema(json!({"type": "object", "properties": properties, "additionalProperties": false}));
    let mut tools = vec![
        ToolParts {
            input_schema: schema(json!({
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
                "additionalProperties": false
            })),
            annotations: Annotations { read_only: Some(true), ..Annotations::default() },
            ..tool("echo", "Returns the text.")
        },
        tool("fail", "Fails always."),
        tool("wait", "Runs until it is stopped."),
        tool("nap", "Takes a fifth of a second."),
        ToolParts {
            input_schema: object(json!({"kind": {"enum": ["form", "url", "sample"]}})),
            ..tool("ask", "Asks the client for a name, then greets it.")
        },
        tool("steps", "Tells its progress three times."),
        ToolParts {
            input_schema: object(json!({
                "region": {"type": "string", "x-mcp-header": "Region"},
                "limits": {
                    "type": "object",
                    "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}
                },
                "flag": {"type": "boolean", "x-mcp-header": "Flag"}
            })),
            ..tool("region", "Returns its arguments; three of them are mirrored in headers.")
        },
        ToolParts {
            input_schema: object(json!({"sides": {"type": "integer"}})),
            output_schema: Some(schema(json!({
                "type": "object",
                "properties": {"sides": {"type": "integer"}},
                "required": ["sides"]
            }))),
            title: Some("Shape".to_owned()),
            ..tool("shape", "Returns a structured value.")
        },
    ];
    if shows.divergent {
        tools.push(ToolParts {
            output_schema: Some(schema(json!({"type": "array", "items": {"type": "integer"}}))),
            divergent: true,
            ..tool("corners", "Returns an array.")
        });
    }
    let mut parts = CatalogParts {
        instructions: Some("A small world for tests.".to_owned()),
        cache: CacheHints { ttl_ms: 0, scope: CacheScope::Private },
        offer,
        tools,
        ..CatalogParts::new("world", "1.0.0")
    };
    if shows.whole {
        whole::extend(&mut parts);
    }
    if shows.skills {
        whole::add_skill(&mut parts);
    }
    if shows.tasks {
        super::tasks::extend(&mut parts);
    }
    if shows.paged {
        parts.page = 2;
    }
    parts
}

/// The catalog of a world, with one definition more in each of these lists. Built once: a catalog never changes, and
/// building one takes longer than most transcripts.
fn catalog(offer: Offer, shows: Shows, more: &[String]) -> Arc<Catalog> {
    type Key = (bool, Shows, Vec<String>);
    static BUILT: Mutex<BTreeMap<Key, Arc<Catalog>>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let build = || {
        let mut parts = parts(offer, shows);
        more.iter().for_each(|list| whole::add(list, &mut parts));
        Arc::new(Catalog::build(parts).unwrap())
    };
    Arc::clone(built.entry((offer == Offer::Both, shows, more.to_vec())).or_insert_with(build))
}

impl World {
    pub(crate) fn new(legacy: Legacy, shows: Shows) -> Arc<Self> {
        let offer = if legacy == Legacy::Off { Offer::ModernOnly } else { Offer::Both };
        Arc::new(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            released: tokio::sync::Notify::new(),
            tasks: Tasks::default(),
            hub: Hub::new(),
            shelf: Arc::new(Shelf(Mutex::new(catalog(offer, shows, &[])))),
            offer,
            shows,
        })
    }

    /// The catalog in force.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.shelf.current()
    }

    /// A dispatcher over what the world publishes.
    pub(crate) fn dispatcher(&self) -> Arc<Dispatcher> {
        Arc::new(Dispatcher::new(Arc::<Shelf>::clone(&self.shelf), [7; 32]))
    }

    /// An engine whose connections hear what the world tells.
    pub(crate) fn engine(self: &Arc<Self>, limits: Limits) -> Engine {
        Engine::new(self.dispatcher(), Arc::<Self>::clone(self), limits).with_hub(self.hub.clone())
    }

    /// Publishes the first catalog with one definition more in each of these lists; nobody is told yet.
    pub(crate) fn publish(&self, lists: &[String]) -> Changed {
        let (old, new) = (self.catalog(), catalog(self.offer, self.shows, lists));
        let changed = Changed::between(&old, &new);
        *self.shelf.0.lock().unwrap_or_else(PoisonError::into_inner) = new;
        changed
    }

    /// A task as it is now.
    pub(crate) fn task(&self, id: &str) -> Option<TaskView> {
        self.tasks.view(id)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, how: impl FnOnce(&mut State)) {
        how(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits for something, or makes it happen; false if it does not come about.
    pub(crate) fn act(&self, act: &Act) -> bool {
        let until = |done: &dyn Fn(&State) -> bool| {
            let waited = self.changed.wait_timeout_while(self.lock(), PATIENCE, |state| !done(state));
            !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
        };
        match act {
            Act::Waiting(count) => until(&|state| state.started >= *count),
            Act::Cancelled(count) => until(&|state| state.cancelled >= *count),
            Act::Completed(count) => until(&|state| state.completed >= *count),
            Act::Release => {
                self.released.notify_waiters();
                true
            }
            Act::Late => {
                let late = std::mem::take(&mut self.lock().late);
                let told = Notice::Progress { progress: 9.0, total: None, message: None };
                late.iter().for_each(|caller| caller.notify(told.clone()));
                !late.is_empty()
            }
            Act::Publish(lists) => {
                self.hub.published(self.publish(lists));
                true
            }
            Act::Update(uri) => {
                self.hub.updated(uri);
                true
            }
            Act::Tell(task) => {
                let task = self.task(task);
                let known = task.is_some();
                task.into_iter().for_each(|task| self.hub.task(&Principal::LOCAL, task));
                known
            }
            Act::Ended | Act::Stop | Act::Later(_) => false,
        }
    }

    async fn wait(&self, caller: &dyn Caller) -> Outcome {
        let mut released = std::pin::pin!(self.released.notified());
        released.as_mut().enable();
        caller.notify(Notice::Progress { progress: 0.0, total: None, message: None });
        self.change(|state| state.started += 1);
        tokio::select! {
            biased;
            () = caller.gone() => {
                self.change(|state| state.cancelled += 1);
                Outcome::Failed(Content::text("stopped"))
            }
            () = released => {
                self.change(|state| state.completed += 1);
                Outcome::Complete(Content::text("waited"))
            }
        }
    }

    async fn run(&self, invocation: Invocation, caller: Arc<dyn Caller>) -> Outcome {
        match &invocation.operation {
            Operation::Call { tool, arguments, task: Some(wish) } => self.tasks.begin(tool, arguments, *wish),
            Operation::Call { .. } => self.call(invocation, caller).await,
            Operation::Prompt { name, arguments } => whole::prompt(name, arguments, &invocation),
            Operation::Read { uri, found } => whole::read(uri, found, &invocation),
            Operation::Complete(completing) => whole::complete(completing),
            Operation::Task(asked) => self.tasks.answer(asked, &invocation),
        }
    }

    async fn call(&self, invocation: Invocation, caller: Arc<dyn Caller>) -> Outcome {
        let argument =
            |name: &str| invocation.operation.arguments().unwrap().get(name).and_then(|raw| raw.parse::<Value>().ok());
        match invocation.operation.tool().unwrap().as_str() {
            "echo" => Outcome::Complete(Content::text(argument("text").unwrap().as_str().unwrap())),
            "fail" => Outcome::Failed(Content::text("broken")),
            "wait" => self.wait(&*caller).await,
            "nap" => {
                tokio::time::sleep(Duration::from_millis(200)).await;
                Outcome::Complete(Content::text("rested"))
            }
            "steps" => {
                for step in 1..=3 {
                    let message = Some(format!("step {step}"));
                    caller.notify(Notice::Progress { progress: f64::from(step), total: Some(3.0), message });
                }
                // A tool that tells the same thing again is not heard.
                caller.notify(Notice::Progress { progress: 3.0, total: Some(3.0), message: None });
                self.change(|state| state.late.push(caller));
                Outcome::Complete(Content::text("3 steps"))
            }
            "region" => Outcome::Complete(Content::text(invocation.operation.arguments().unwrap().text().as_str())),
            "shape" => Outcome::Complete(Content::structured(json!({"sides": argument("sides").unwrap_or(json!(3))}))),
            "corners" => Outcome::Complete(Content::structured(json!([1, 2, 3]))),
            "ask" => ask(&invocation, argument("kind").as_ref().and_then(Value::as_str).unwrap_or("form")),
            other => whole::call(other, &invocation, &*caller),
        }
    }
}

fn ask(invocation: &Invocation, kind: &str) -> Outcome {
    let answer = invocation.answers.iter().find(|(key, _)| &**key == "name");
    if let Some(answer) = answer.and_then(|(_, raw)| raw.parse::<Value>().ok()) {
        assert!(invocation.state.as_ref().is_none_or(|state| *state == json!({"asked": 1})));
        return Outcome::Complete(Content::text(match answer["action"].as_str() {
            Some("accept") => format!("hello, {}", answer["content"]["name"].as_str().unwrap_or("nobody")),
            _ => "hello, whoever you are".to_owned(),
        }));
    }
    let (kind, params) = match kind {
        "url" => (InputKind::ElicitUrl, json!({"message": "Who are you?", "url": "https://example.org/who"})),
        "sample" => (InputKind::Sample, json!({"messages": [], "maxTokens": 10})),
        _ => (
            InputKind::ElicitForm,
            json!({
                "message": "Who are you?",
                "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
            }),
        ),
    };
    Outcome::InputRequired(Ask {
        requests: vec![InputRequest { key: "name".to_owned(), kind, params }],
        state: Some(json!({"asked": 1})),
    })
}

impl Invoke for World {
    fn invoke(&self, invocation: Arc<Invocation>, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        Box::pin(self.run(Arc::unwrap_or_clone(invocation), caller))
    }
}
