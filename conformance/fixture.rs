//! The server that the official conformance suite is run against: its named tools, built on the library.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::json::JsonLimits;
use twodoor::protocol::{
    Ask, Caller, Catalog, CatalogParts, Content, Dispatcher, InputKind, InputRequest, Invocation, Invoke, Json, Limits,
    Notice, Outcome, ToolParts,
};
use twodoor::transport::{Engine, http};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address: SocketAddr = match (arguments.next().as_deref(), arguments.next()) {
        (Some("--http"), Some(address)) => address.parse().context("--http takes an address")?,
        _ => anyhow::bail!("usage: conformance-fixture --http ADDRESS"),
    };
    let catalog = Arc::new(Catalog::build(parts()).map_err(|problems| anyhow::anyhow!("{problems:?}"))?);
    let mut key = [0; 32];
    getrandom::fill(&mut key)?;
    let dispatcher = Arc::new(Dispatcher::new(Arc::new(catalog), key));
    let engine = Engine::new(dispatcher, Arc::new(Tools), Limits::default());
    let listener = http::listen(address).await?;
    announce(listener.local_addr()?);
    http::serve(engine, listener, http::Options::default(), std::future::pending()).await?;
    Ok(())
}

#[allow(clippy::print_stderr, reason = "the runner reads the address from here")]
fn announce(address: SocketAddr) {
    eprintln!("listening on http://{address}/mcp");
}

const PLAIN: [(&str, &str); 14] = [
    ("test_simple_text", "Returns a fixed text."),
    ("test_error_handling", "Fails with a text."),
    ("test_tool_with_progress", "Tells progress at 0, 50 and 100."),
    ("test_missing_capability", "Needs a client that can sample."),
    ("test_streaming_elicitation", "Asks by an input request, never on the stream."),
    ("test_logging_tool", "Would log, if anybody had asked for logs."),
    ("test_input_required_result_elicitation", "Asks for a name."),
    ("test_input_required_result_sampling", "Asks a model for a capital."),
    ("test_input_required_result_list_roots", "Asks for the client's roots."),
    ("test_input_required_result_request_state", "Asks for a confirmation and keeps state."),
    ("test_input_required_result_multiple_inputs", "Asks three things at once."),
    ("test_input_required_result_multi_round", "Asks twice, one after the other."),
    ("test_input_required_result_tampered_state", "Keeps state that must come back unchanged."),
    ("test_input_required_result_capabilities", "Asks only what the client can answer."),
];

const DIALECT_TOOL: &str = r##"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},
"phone":{"type":"string"},"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},
"else":{"required":["email"]},"additionalProperties":false}"##;

const HEADER_TOOL: &str = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;

fn parts() -> CatalogParts {
    let tool =
        |name: &str, description: &str| ToolParts { description: Some(description.to_owned()), ..ToolParts::new(name) };
    let with_schema = |name: &str, description: &str, schema: &str| {
        let input_schema = Json::parse(schema.as_bytes(), &JsonLimits::default()).unwrap_or(Json::Null);
        ToolParts { input_schema, ..tool(name, description) }
    };
    let mut tools: Vec<_> = PLAIN.iter().map(|(name, description)| tool(name, description)).collect();
    tools.push(with_schema("json_schema_2020_12_tool", "Takes a schema of many keywords.", DIALECT_TOOL));
    tools.push(with_schema("test_x_mcp_header", "Mirrors its region in a header.", HEADER_TOOL));
    CatalogParts { tools, ..CatalogParts::new("conformance-fixture", "1.0.0") }
}

struct Tools;

impl Invoke for Tools {
    fn invoke(&self, call: Invocation, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        Box::pin(async move {
            match call.operation.tool().map_or("", |tool| tool.as_str()) {
                "test_error_handling" => Outcome::Failed(Content::text("This tool intentionally fails")),
                "test_tool_with_progress" => progress(caller).await,
                "test_missing_capability" => ask(vec![sampling("sample")], None),
                "test_streaming_elicitation" => answered_or(&call, &["confirm"], || vec![elicitation("confirm", "ok")]),
                "test_input_required_result_elicitation" => name(&call),
                "test_input_required_result_sampling" => {
                    answered_or(&call, &["capital_question"], || vec![sampling("capital_question")])
                }
                "test_input_required_result_list_roots" => {
                    answered_or(&call, &["client_roots"], || vec![roots("client_roots")])
                }
                "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
                    state(&call)
                }
                "test_input_required_result_multiple_inputs" => several(&call),
                "test_input_required_result_multi_round" => rounds(&call),
                "test_input_required_result_capabilities" => capabilities(&call),
                _ => Outcome::Complete(Content::text("This is a simple text response for testing.")),
            }
        })
    }
}

async fn progress(caller: Arc<dyn Caller>) -> Outcome {
    for step in [0.0, 50.0, 100.0] {
        caller.notify(Notice::Progress { progress: step, total: Some(100.0), message: None });
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Outcome::Complete(Content::text("done"))
}

fn done(text: &str) -> Outcome {
    Outcome::Complete(Content::text(text))
}

fn ask(requests: Vec<InputRequest>, state: Option<Value>) -> Outcome {
    Outcome::InputRequired(Ask { requests, state })
}

fn elicitation(key: &str, property: &str) -> InputRequest {
    let schema = json!({ "type": "object", "properties": { property: { "type": "string" } }, "required": [property] });
    let params = json!({ "message": format!("Please give {property}"), "requestedSchema": schema });
    InputRequest { key: key.to_owned(), kind: InputKind::ElicitForm, params }
}

fn sampling(key: &str) -> InputRequest {
    let content = json!({ "type": "text", "text": "What is the capital of France?" });
    let params = json!({ "messages": [{ "role": "user", "content": content }], "maxTokens": 100 });
    InputRequest { key: key.to_owned(), kind: InputKind::Sample, params }
}

fn roots(key: &str) -> InputRequest {
    InputRequest { key: key.to_owned(), kind: InputKind::Roots, params: json!({}) }
}

fn answer(call: &Invocation, key: &str) -> Option<Value> {
    call.answers.iter().find(|(k, _)| &**k == key).and_then(|(_, raw)| raw.parse().ok())
}

/// Completes once every key is answered, else asks.
fn answered_or(call: &Invocation, keys: &[&str], questions: impl FnOnce() -> Vec<InputRequest>) -> Outcome {
    if keys.iter().all(|key| answer(call, key).is_some()) { done("answered") } else { ask(questions(), None) }
}

/// An elicited value counts only if it fits what was asked for.
fn name(call: &Invocation) -> Outcome {
    let given =
        answer(call, "user_name").and_then(|a| a.pointer("/content/name").and_then(Value::as_str).map(str::to_owned));
    match given {
        Some(name) => done(&format!("Hello, {name}!")),
        None => ask(vec![elicitation("user_name", "name")], None),
    }
}

fn state(call: &Invocation) -> Outcome {
    match (answer(call, "confirm"), &call.state) {
        (Some(_), Some(state)) if state == "kept" => done("state-ok"),
        _ => ask(vec![elicitation("confirm", "ok")], Some("kept".into())),
    }
}

fn several(call: &Invocation) -> Outcome {
    let keys = ["user_name", "greeting", "client_roots"];
    if call.state.is_some() && keys.iter().all(|key| answer(call, key).is_some()) {
        return done("all answered");
    }
    ask(vec![elicitation("user_name", "name"), sampling("greeting"), roots("client_roots")], Some("asked".into()))
}

fn rounds(call: &Invocation) -> Outcome {
    let step = call.state.as_ref().and_then(Value::as_u64);
    match step {
        Some(1) if answer(call, "step1").is_some() => ask(vec![elicitation("step2", "color")], Some(2.into())),
        Some(2) if answer(call, "step2").is_some() => done("both rounds answered"),
        _ => ask(vec![elicitation("step1", "name")], Some(1.into())),
    }
}

fn capabilities(call: &Invocation) -> Outcome {
    let questions = [elicitation("user_name", "name"), sampling("greeting"), roots("client_roots")];
    let possible: Vec<_> = questions.into_iter().filter(|q| call.client.can(q.kind)).collect();
    if possible.is_empty() { done("nothing can be asked") } else { ask(possible, None) }
}
