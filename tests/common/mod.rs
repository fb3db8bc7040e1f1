//! An engine over a backend that the test steers, for the tests of transports.
//!
//! Nothing here sleeps: a test waits for what the backend reports, or for bytes.

#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::{
    Ask, Caller, Catalog, CatalogParts, Content, Dispatcher, InputKind, InputRequest, Invocation, Invoke, Json, Limits,
    Notice, Offer, Outcome, ToolParts,
};
use twodoor::transport::Engine;

/// No test waits longer for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) const MODERN: &str = "2026-07-28";
pub(crate) const NEWEST_LEGACY: &str = "2025-11-25";

/// What a call of the tool `act` reports; the text is the call's argument `text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    Began(String),
    /// It holds, and its caller is gone.
    Gone(String),
}

/// Carries out `act`: tells `notices` at once, holds if `hold` until released or gone, tells `later` notices, then
/// answers its `text`, or `size` bytes. Panics if `panic`. Says that the answer takes a while if `detach`, before it
/// holds. Asks its client if `ask`, keeping its text in a sealed state if `keep`, and answers with the answer; it begins again for that.
pub(crate) struct Backend {
    reports: Mutex<Sender<Report>>,
    gates: Mutex<HashMap<String, Arc<Semaphore>>>,
}

impl Backend {
    fn gate(&self, text: &str) -> Arc<Semaphore> {
        let mut gates = self.gates.lock().unwrap();
        Arc::clone(gates.entry(text.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(0))))
    }

    /// Lets one call that holds under this text go on.
    pub(crate) fn release(&self, text: &str) {
        self.gate(text).add_permits(1);
    }

    fn report(&self, report: Report) {
        let _ = self.reports.lock().unwrap().send(report);
    }
}

impl Invoke for Backend {
    fn invoke(&self, invocation: Arc<Invocation>, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            let arguments: Value =
                serde_json::from_slice(invocation.operation.arguments().unwrap().text().as_bytes()).unwrap();
            let count = |name: &str| arguments[name].as_u64().unwrap_or_default();
            let text = arguments["text"].as_str().unwrap_or_default().to_owned();
            self.report(Report::Began(text.clone()));
            assert!(!arguments["panic"].as_bool().unwrap_or_default(), "a secret of the backend");
            for n in 1..=count("notices") {
                caller.notify(progress(n));
            }
            if arguments["detach"].as_bool().unwrap_or_default() {
                caller.notify(Notice::Detach);
            }
            if arguments["hold"].as_bool().unwrap_or_default() {
                let gate = self.gate(&text);
                tokio::select! {
                    () = caller.gone() => {
                        self.report(Report::Gone(text));
                        return Outcome::Failed(Content::text("gone"));
                    }
                    permit = gate.acquire() => permit.unwrap().forget(),
                }
            }
            for n in 1..=count("later") {
                caller.notify(progress(count("notices") + n));
            }
            if arguments["ask"].as_bool().unwrap_or_default() {
                let keeps = arguments["keep"].as_bool().unwrap_or_default();
                let Some((_, answer)) = invocation.answers.first() else { return question(&text, keeps) };
                return Outcome::Complete(Content::text(answer.as_str()));
            }
            let size = usize::try_from(count("size")).unwrap();
            Outcome::Complete(Content::text(if size > 0 { "x".repeat(size) } else { text }))
        })
    }
}

fn question(text: &str, keeps: bool) -> Outcome {
    let params = json!({ "message": text, "requestedSchema": { "type": "object", "properties": {} } });
    let request = InputRequest { key: "answer".to_owned(), kind: InputKind::ElicitForm, params };
    Outcome::InputRequired(Ask { requests: vec![request], state: keeps.then(|| json!(text)) })
}

fn progress(n: u64) -> Notice {
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    let progress = n as f64;
    Notice::Progress { progress, total: None, message: None }
}

/// A backend's reports, in order.
pub(crate) struct Reports(Mutex<Receiver<Report>>);

impl Reports {
    pub(crate) fn next(&self) -> Report {
        self.0.lock().unwrap().recv_timeout(PATIENCE).expect("a report in time")
    }

    pub(crate) fn began(&self, text: &str) {
        assert_eq!(self.next(), Report::Began(text.to_owned()));
    }

    pub(crate) fn gone(&self, text: &str) {
        assert_eq!(self.next(), Report::Gone(text.to_owned()));
    }

    /// What was reported up to now.
    pub(crate) fn so_far(&self) -> Vec<Report> {
        self.0.lock().unwrap().try_iter().collect()
    }
}

fn schema(value: &Value) -> Json {
    Json::from(value)
}

/// An engine that serves `act` and `mirrored`, whose arguments `region` and `count` are mirrored in headers and
/// which takes two scopes where callers are authorized.
pub(crate) fn engine(limits: Limits, offer: Offer) -> (Engine, Arc<Backend>, Reports) {
    // What does not end by itself when it is stopped is a hang here, which patience ends.
    let limits = Limits { stop: 10 * PATIENCE, ..limits };
    let mut act = ToolParts::new("act");
    act.input_schema = schema(&json!({ "type": "object" }));
    let mut mirrored = ToolParts::new("mirrored");
    mirrored.input_schema = schema(&json!({
        "type": "object",
        "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": "integer", "x-mcp-header": "Count" },
        },
    }));
    mirrored.scopes = ["use", "write"].map(str::to_owned).to_vec();
    let mut hasty = ToolParts::new("hasty");
    hasty.input_schema = schema(&json!({ "type": "object" }));
    hasty.deadline = Some(Duration::from_millis(50));
    let parts = CatalogParts { offer, tools: vec![act, mirrored, hasty], ..CatalogParts::new("wire", "1.0.0") };
    let catalog = Arc::new(Catalog::build(parts).unwrap());
    let dispatcher = Arc::new(Dispatcher::new(Arc::new(catalog), [7; 32]));
    let (sender, receiver) = channel();
    let backend = Arc::new(Backend { reports: Mutex::new(sender), gates: Mutex::default() });
    let invoke: Arc<dyn Invoke> = Arc::clone(&backend) as _;
    (Engine::new(dispatcher, invoke, limits), backend, Reports(Mutex::new(receiver)))
}

/// A legacy message.
pub(crate) fn legacy(id: &Value, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// A modern message, its metadata complete.
pub(crate) fn modern(id: &Value, method: &str, params: &Value) -> String {
    let mut params = params.clone();
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    legacy(id, method, &params)
}

/// The params of a call of `act` that asks to hear progress.
pub(crate) fn act(arguments: &Value) -> Value {
    json!({ "name": "act", "arguments": arguments, "_meta": { "progressToken": "p" } })
}

pub(crate) fn initialize(id: &Value, revision: &str) -> String {
    let client = json!({ "name": "raw", "version": "1" });
    legacy(id, "initialize", &json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": client }))
}

pub(crate) fn notification(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()
}

/// The text of a tool result's first block.
pub(crate) fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {answer}"))
}

/// The error's code.
pub(crate) fn code_of(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error in {answer}"))
}
