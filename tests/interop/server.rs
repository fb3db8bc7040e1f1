//! The server that the official clients are tested against, feature by feature, built on the library.
//!
//! `interop-server [--http ADDRESS]`: speaks over its standard streams, or over HTTP with HTTP+SSE beside it.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::sync::watch;
use twodoor::core::tasks::{Audience, Tasks};
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::json::JsonLimits;
use twodoor::protocol::limits::TaskLimits;
use twodoor::protocol::{
    Annotations, Ask, Block, Caller, Catalog, CatalogParts, Changed, Completes, Completing, Completion, Content,
    Dispatcher, Found, InputKind, InputRequest, Invocation, Invoke, Json, Limits, LogLevel, Notice, Operation, Outcome,
    Principal, PromptArgument, PromptMessage, PromptParts, Prompted, Published, ResourceContents, ResourceParts, Role,
    TaskSupport, TaskView, TemplateParts, ToolParts,
};
use twodoor::transport::{Engine, Hub, http, stdio};

const WATCHED: &str = "memo:watched";
const COLOURS: [&str; 4] = ["amber", "azure", "green", "grey"];

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address: Option<SocketAddr> = match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => None,
        (Some("--http"), Some(address)) => Some(address.parse().context("--http takes an address")?),
        _ => anyhow::bail!("usage: interop-server [--http ADDRESS]"),
    };
    let hub = Hub::new();
    let room = Arc::new(Room::new(hub.clone())?);
    let mut key = [0; 32];
    getrandom::fill(&mut key)?;
    let dispatcher = Arc::new(Dispatcher::new(Arc::clone(&room) as Arc<dyn Published>, key));
    let folder = tempfile::tempdir()?;
    let tasks = Tasks::open(folder.path(), &room.current(), room, Listeners(hub.clone()), TaskLimits::default())?;
    let engine = Engine::new(dispatcher, Arc::new(tasks.clone()), Limits::default()).with_hub(hub);
    match address {
        None => stdio::serve(engine, stdio::Streams::take_standard()?, std::future::pending()).await?,
        Some(address) => {
            let listener = http::listen(address).await?;
            announce(listener.local_addr()?);
            let options = http::Options { sse: true, ..http::Options::default() };
            http::serve(engine, listener, options, std::future::pending()).await?;
        }
    }
    tasks.stop().await;
    Ok(())
}

/// Everyone who listens is told of tasks.
struct Listeners(Hub);

impl Audience for Listeners {
    fn task(&self, principal: &Principal, task: TaskView) {
        self.0.task(principal, task);
    }

    fn updated(&self, uri: &str) {
        self.0.updated(uri);
    }
}

#[allow(clippy::print_stderr, reason = "the runner reads the address from here")]
fn announce(address: SocketAddr) {
    eprintln!("listening on http://{address}/mcp");
}

fn catalog(grown: bool) -> anyhow::Result<Arc<Catalog>> {
    Catalog::build(parts(grown)).map(Arc::new).map_err(|problems| anyhow::anyhow!("{problems:?}"))
}

fn parts(grown: bool) -> CatalogParts {
    let tool = |name: &str, description: &str, argument: Option<&str>| {
        let properties = argument.map_or_else(|| json!({}), |name| json!({ name: { "type": "string" } }));
        let required: Vec<&str> = argument.into_iter().collect();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        ToolParts {
            description: Some(description.to_owned()),
            input_schema: Json::parse(schema.to_string().as_bytes(), &JsonLimits::default()).unwrap_or(Json::Null),
            annotations: Annotations { read_only: Some(true), ..Annotations::default() },
            ..ToolParts::new(name)
        }
    };
    let mut tools = vec![
        tool("ask_form", "Asks the user for a name by a form.", None),
        tool("ask_url", "Sends the user to a page.", None),
        tool("ask_sample", "Has the client's model say something.", None),
        tool("ask_roots", "Asks the client for its roots.", None),
        tool(
            "count",
            "Counts to three, tells each number, and ends once the finish of that key is called.",
            Some("key"),
        ),
        tool("wait", "Tells that it began, and waits until it is told to stop.", Some("key")),
        tool("stopped", "Answers once the wait or slow of that key was told to stop.", Some("key")),
        ToolParts {
            task: TaskSupport::Optional,
            ..tool("slow", "Takes until the finish of that key is called.", Some("key"))
        },
        tool("finish", "Lets the count or slow of that key end.", Some("key")),
        tool("grow", "Publishes one more tool.", None),
        tool("touch", "Changes the watched memo.", None),
        tool("log", "Logs a message at info and one at warning.", None),
    ];
    if grown {
        tools.push(tool("grown", "Was not there before.", None));
    }
    let resources = vec![ResourceParts {
        uri: WATCHED.to_owned(),
        name: "watched".to_owned(),
        mime_type: Some("text/plain".to_owned()),
        ..ResourceParts::default()
    }];
    let templates = vec![TemplateParts {
        uri_template: "memo:colours/{colour}".to_owned(),
        name: "colour".to_owned(),
        completes: vec![("colour".to_owned(), Completes::Backend)],
        ..TemplateParts::default()
    }];
    let language = PromptArgument {
        name: "language".to_owned(),
        required: true,
        completes: Completes::Of(["danish", "dutch", "german"].map(str::to_owned).into()),
        ..PromptArgument::default()
    };
    let prompts =
        vec![PromptParts { name: "greeting".to_owned(), arguments: vec![language], ..PromptParts::default() }];
    CatalogParts { logging: true, tools, resources, templates, prompts, ..CatalogParts::new("interop-server", "1.0.0") }
}

/// Keys that something happened to, and who waits for it.
#[derive(Default)]
struct Keys(watch::Sender<BTreeSet<String>>);

impl Keys {
    fn add(&self, key: String) {
        self.0.send_modify(|keys| {
            keys.insert(key);
        });
    }

    async fn has(&self, key: &str) {
        let mut keys = self.0.subscribe();
        let _ = keys.wait_for(|keys| keys.contains(key)).await;
    }
}

/// What the tools act on.
struct Room {
    hub: Hub,
    catalog: Mutex<Arc<Catalog>>,
    stopped: Keys,
    finished: Keys,
    touched: Mutex<u32>,
}

impl Published for Room {
    fn current(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Invoke for Room {
    fn invoke(&self, call: Arc<Invocation>, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            match &call.operation {
                Operation::Call { tool, .. } => match self.tool(tool.as_str(), &call, caller).await {
                    Ok(outcome) => outcome,
                    Err(problem) => Outcome::Failed(Content::text(format!("{problem:#}"))),
                },
                Operation::Prompt { arguments, .. } => prompt(arguments),
                Operation::Read { uri, found } => self.read(uri, found),
                Operation::Complete(completing) => complete(completing),
                Operation::Task(_) => Outcome::NotFound,
            }
        })
    }
}

impl Room {
    fn new(hub: Hub) -> anyhow::Result<Self> {
        Ok(Self {
            hub,
            catalog: Mutex::new(catalog(false)?),
            stopped: Keys::default(),
            finished: Keys::default(),
            touched: Mutex::default(),
        })
    }

    async fn tool(&self, name: &str, call: &Invocation, caller: Arc<dyn Caller>) -> anyhow::Result<Outcome> {
        Ok(match name {
            "ask_form" => asked(call, InputKind::ElicitForm, form(), elicited),
            "ask_url" => asked(call, InputKind::ElicitUrl, page(), elicited),
            "ask_sample" => asked(call, InputKind::Sample, sample(), |answer| text_at(answer, "/content/text")),
            "ask_roots" => asked(call, InputKind::Roots, json!({}), |answer| text_at(answer, "/roots/0/uri")),
            "count" => {
                for step in 1..=3_u32 {
                    let message = Some(format!("at {step}"));
                    caller.notify(Notice::Progress { progress: f64::from(step), total: Some(3.0), message });
                }
                self.finished.has(&argument(call, "key")?).await;
                said("counted")
            }
            "wait" => {
                let key = argument(call, "key")?;
                caller.notify(Notice::Progress { progress: 1.0, total: None, message: None });
                caller.gone().await;
                self.stopped.add(key);
                said("told to stop")
            }
            "stopped" => {
                self.stopped.has(&argument(call, "key")?).await;
                said("stopped")
            }
            "slow" => {
                let key = argument(call, "key")?;
                tokio::select! {
                    () = self.finished.has(&key) => said("done slowly"),
                    () = caller.gone() => {
                        self.stopped.add(key);
                        said("told to stop")
                    }
                }
            }
            "finish" => {
                self.finished.add(argument(call, "key")?);
                said("finished")
            }
            "grow" => {
                let grown = catalog(true)?;
                let old = {
                    let mut current = self.catalog.lock().unwrap_or_else(PoisonError::into_inner);
                    std::mem::replace(&mut *current, Arc::clone(&grown))
                };
                self.hub.published(Changed::between(&old, &grown));
                said("grown")
            }
            "touch" => {
                *self.touched.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                self.hub.updated(WATCHED);
                said("touched")
            }
            "log" => {
                for level in [LogLevel::Info, LogLevel::Warning] {
                    let data = json!({ "said at": level.name() });
                    caller.notify(Notice::Log { level, logger: Some("interop".to_owned()), data });
                }
                said("logged")
            }
            _ => said("of no use"),
        })
    }

    fn read(&self, uri: &str, found: &Found) -> Outcome {
        let text = match found {
            Found::Resource(_) => {
                let touched = *self.touched.lock().unwrap_or_else(PoisonError::into_inner);
                format!("touched {touched} times")
            }
            Found::Template { variables, .. } => match variables.first() {
                Some((_, colour)) if COLOURS.contains(&colour.as_str()) => format!("the colour {colour}"),
                _ => return Outcome::NotFound,
            },
        };
        Outcome::Read(vec![ResourceContents::text(uri, Some("text/plain"), text)])
    }
}

fn said(text: &str) -> Outcome {
    Outcome::Complete(Content::text(text))
}

fn argument(call: &Invocation, name: &str) -> anyhow::Result<String> {
    let given = call.operation.arguments().and_then(|arguments| arguments.get(name));
    Ok(given.with_context(|| format!("no argument {name}"))?.parse()?)
}

/// Asks one question, and once it is answered says what `read` makes of the answer.
fn asked(call: &Invocation, kind: InputKind, params: Value, read: fn(&Value) -> String) -> Outcome {
    match call.answer("question").and_then(|answer| answer.parse::<Value>().ok()) {
        Some(answer) => said(&read(&answer)),
        None => {
            let request = InputRequest { key: "question".to_owned(), kind, params };
            Outcome::InputRequired(Ask { requests: vec![request], state: Some(json!("asked")) })
        }
    }
}

fn form() -> Value {
    let properties = json!({ "name": { "type": "string", "title": "Name" } });
    json!({
        "message": "What is your name?",
        "requestedSchema": { "type": "object", "properties": properties, "required": ["name"] },
    })
}

fn page() -> Value {
    json!({ "message": "Please sign in.", "url": "https://example.com/sign-in" })
}

fn sample() -> Value {
    let content = json!({ "type": "text", "text": "Say something." });
    json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 16 })
}

fn elicited(answer: &Value) -> String {
    format!("{} {}", text_at(answer, "/action"), text_at(answer, "/content/name")).trim().to_owned()
}

fn text_at(answer: &Value, pointer: &str) -> String {
    answer.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn prompt(arguments: &[(Box<str>, String)]) -> Outcome {
    let language = arguments.iter().map(|(_, value)| value.as_str()).next().unwrap_or_default();
    let block = Block::text(format!("Greet me in {language}."));
    Outcome::Prompted(Prompted { description: None, messages: vec![PromptMessage { role: Role::User, block }] })
}

fn complete(completing: &Completing) -> Outcome {
    let begins = |colour: &&str| colour.starts_with(completing.typed.as_str());
    let values = COLOURS.iter().copied().filter(begins).map(str::to_owned).collect();
    Outcome::Completed(Completion { values, total: None, more: false })
}
