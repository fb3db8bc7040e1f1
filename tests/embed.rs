//! The library's face, seen by a client over pipes: typed tools, asking in line, publishing while serving.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may fail by panicking"
)]

use std::io::{BufRead as _, BufReader, PipeWriter, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use twodoor::embed::{
    Block, Call, Completing, Elicited, Form, Handle, InputKind, Json, JsonSchema, NoArguments, NotFound, Prompt,
    Refused, Resource, Roots, Sample, Server, ServerError, Skill, TaskSupport, Template, Tool, ToolError,
};
use twodoor::protocol::Revision;
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::{Caller, Invocation, Invoke, Operation, Outcome};
use twodoor::transport::stdio::{self, Streams};

const PATIENCE: Duration = Duration::from_secs(10);

/// A client of a server over two pipes.
struct Client {
    input: PipeWriter,
    said: Receiver<Value>,
    handle: Handle,
    ids: u64,
    _runtime: Runtime,
}

impl Client {
    fn new(server: Server) -> Self {
        let ready = server.ready().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (their_input, input) = std::io::pipe().unwrap();
        let (output, their_output) = std::io::pipe().unwrap();
        let streams = Streams::new(OwnedFd::from(their_input), OwnedFd::from(their_output));
        let handle = ready.handle();
        let stopped = ready.handle();
        runtime.spawn(async move { stdio::serve(ready.engine(), streams, stopped.stopped()).await });
        let (tell, said) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if tell.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { input, said, handle, ids: 0, _runtime: runtime }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn next(&mut self) -> Value {
        self.said.recv_timeout(PATIENCE).expect("the server says something")
    }

    /// A request of the modern era; the next message is taken for its answer.
    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        self.ids += 1;
        let capabilities = json!({ "elicitation": {}, "sampling": {}, "roots": {},
            "extensions": { "io.modelcontextprotocol/tasks": {} } });
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": Revision::MODERN.rules().name,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        self.send(&json!({ "jsonrpc": "2.0", "id": self.ids, "method": method, "params": params }));
        let answer = self.next();
        assert_eq!(answer["id"], self.ids, "{answer}");
        answer
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))["result"].take()
    }

    /// Calls a tool again with answers to what its last result asked.
    fn retry(&mut self, tool: &str, asked: &Value, answers: Value) -> Value {
        let mut params = json!({ "name": tool, "arguments": {}, "inputResponses": answers });
        if let Some(state) = asked.get("requestState") {
            params["requestState"] = state.clone();
        }
        self.ask("tools/call", params)["result"].take()
    }

    fn initialize(&mut self) {
        let params = json!({ "protocolVersion": "2025-11-25", "clientInfo": { "name": "c", "version": "1" },
            "capabilities": { "elicitation": {}, "sampling": {}, "roots": {} } });
        self.send(&json!({ "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params }));
        assert_eq!(self.next()["id"], "i");
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

fn accept(content: Value) -> Value {
    json!({ "action": "accept", "content": content })
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// One number.
    a: u32,
    /// Another.
    b: u32,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: u32,
}

fn sums() -> Server {
    let add = |args: Add, _: Call| async move {
        args.a.checked_add(args.b).map(|sum| Json(Sum { sum })).ok_or("the sum is too large")
    };
    Server::new("sums", "1.0.0").tool(Tool::new("add", "Adds.", add).read_only()).tool(Tool::new(
        "break",
        "Panics.",
        |_: NoArguments, call: Call| async move {
            assert!(call.is_gone(), "nobody left");
        },
    ))
}

#[test]
fn a_typed_tool_publishes_its_schemas_and_returns_what_fits_them() {
    let mut client = Client::new(sums());
    let listed = client.ask("tools/list", json!({}));
    let add = &listed["result"]["tools"][0];
    assert_eq!(add["inputSchema"]["properties"]["a"]["description"], "One number.");
    assert_eq!(add["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(add["outputSchema"]["properties"]["sum"]["type"], "integer");
    assert_eq!(add["annotations"], json!({ "readOnlyHint": true }));
    let sum = client.call("add", json!({ "a": 1, "b": 2 }));
    assert_eq!(sum["structuredContent"], json!({ "sum": 3 }));
    assert_eq!(text(&sum), r#"{"sum":3}"#);
}

#[test]
fn arguments_that_do_not_fit_the_type_never_reach_the_tool() {
    let mut client = Client::new(sums());
    for (arguments, named) in [
        (json!({ "a": 1 }), "\"b\""),
        (json!({ "a": 1, "b": "2" }), "/b"),
        (json!({ "a": 1, "b": 2, "c": 3 }), "'c'"),
        (json!({ "a": 1, "b": 4_294_967_296_u64 }), "the maximum of 4294967295"),
    ] {
        let result = client.call("add", arguments.clone());
        assert_eq!(result["isError"], true, "{arguments}: {result}");
        assert!(text(&result).contains(named), "{arguments}: {result}");
    }
}

#[test]
fn an_error_is_a_failed_result_with_its_text_and_a_panic_ends_its_call_alone() {
    let mut client = Client::new(sums());
    let failed = client.call("add", json!({ "a": u32::MAX, "b": 1 }));
    assert_eq!((text(&failed), &failed["isError"]), ("the sum is too large", &json!(true)));
    let broken = client.ask("tools/call", json!({ "name": "break" }));
    assert_eq!(broken["error"]["code"], -32603, "{broken}");
    assert!(!broken.to_string().contains("nobody left"), "{broken}");
    assert_eq!(client.call("add", json!({ "a": 1, "b": 1 }))["structuredContent"]["sum"], 2);
}

#[derive(Deserialize, JsonSchema)]
struct Guest {
    name: String,
    seats: u8,
}

/// Asks twice, one after the other.
async fn book(_: NoArguments, call: Call) -> Result<String, ToolError> {
    let Elicited::Accepted(guest) = call.elicit::<Guest>("guest", "For whom?")? else {
        return Err(ToolError::new("nobody said for whom"));
    };
    let runs = call.kept::<u32>().unwrap_or_default() + 1;
    call.keep(runs);
    let blessing = call.sample("blessing", &format!("Welcome {}.", guest.name))?;
    Ok(format!("{} {} {} {runs}", guest.name, guest.seats, blessing.text()))
}

fn tables() -> Server {
    let all = |_: NoArguments, call: Call| async move {
        let asked = (Form::<Guest>::new("guest", "Who?"), Sample::new("s", "Say.").max_tokens(5), Roots::new("r"));
        // An error of any type ends the run: what was asked is known to the call.
        let (guest, said, roots) = call.ask(asked).map_err(|asks| asks.to_string())?;
        let name = guest.accepted().map(|guest| guest.name);
        Ok::<_, String>(format!("{name:?} {} {}", said.model, roots[0].uri))
    };
    let page = |_: NoArguments, call: Call| async move {
        if !call.can(InputKind::ElicitUrl) {
            return Ok("a client that shows no pages".to_owned());
        }
        call.elicit_url("page", "Sign in", "https://example.com").map(|answer| format!("{answer:?}"))
    };
    Server::new("tables", "1.0.0")
        .tool(Tool::new("book", "Books a table.", book))
        .tool(Tool::new("all", "Asks three things at once.", all))
        .tool(Tool::new("page", "Shows a page.", page))
}

#[test]
fn a_modern_client_is_asked_by_results_and_earlier_answers_are_carried_along() {
    let mut client = Client::new(tables());
    let first = client.call("book", json!({}));
    assert_eq!(first["resultType"], "input_required");
    let asked = &first["inputRequests"]["guest"];
    assert_eq!(asked["method"], "elicitation/create");
    assert_eq!(asked["params"]["requestedSchema"]["properties"]["seats"]["type"], "integer");
    let second = client.retry("book", &first, json!({ "guest": accept(json!({ "name": "Ada", "seats": 2 })) }));
    assert_eq!(second["inputRequests"]["blessing"]["method"], "sampling/createMessage", "{second}");
    let said = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "Welcome!" } });
    let third = client.retry("book", &second, json!({ "blessing": said }));
    assert_eq!(text(&third), "Ada 2 Welcome! 2");
}

#[test]
fn an_answer_that_does_not_fit_its_question_is_asked_for_again_and_a_refusal_is_a_value() {
    let mut client = Client::new(tables());
    let first = client.call("book", json!({}));
    for wrong in [
        accept(json!({ "name": "Ada", "seats": "two" })),
        accept(json!({ "name": "Ada" })),
        accept(json!({ "name": "Ada", "seats": 300 })),
        json!({ "action": "accept" }),
        json!({ "action": "perhaps" }),
        json!({}),
    ] {
        let again = client.retry("book", &first, json!({ "guest": wrong, "other": {} }));
        assert!(again["inputRequests"]["guest"].is_object(), "{wrong}: {again}");
        assert_eq!(again.get("requestState"), None, "a wrong answer is not carried along");
    }
    let declined = client.retry("book", &first, json!({ "guest": { "action": "decline" } }));
    assert_eq!((text(&declined), &declined["isError"]), ("nobody said for whom", &json!(true)));
}

#[test]
fn answers_too_long_to_be_carried_along_are_told_from_a_defect() {
    let mut client = Client::new(tables());
    let first = client.call("book", json!({}));
    let mut with_name_of = |bytes: usize| {
        let guest = accept(json!({ "name": "a".repeat(bytes), "seats": 2 }));
        client.retry("book", &first, json!({ "guest": guest }))
    };
    let all = (1..7000).step_by(97).map(&mut with_name_of);
    let (asked, failed): (Vec<Value>, Vec<Value>) = all.partition(|result| result["resultType"] == "input_required");
    assert!(asked.len() > 50, "nearly 6 KB are carried: {}", asked.len());
    assert!(!failed.is_empty() && failed.iter().all(|result| text(result).contains("too long")), "{failed:?}");
}

#[test]
fn a_legacy_client_is_asked_by_requests_and_the_tool_cannot_tell() {
    let mut client = Client::new(tables());
    client.initialize();
    client.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": "book" } }));
    let form = client.next();
    assert_eq!(form["method"], "elicitation/create");
    let guest = accept(json!({ "name": "Ada", "seats": 2 }));
    client.send(&json!({ "jsonrpc": "2.0", "id": form["id"], "result": guest }));
    let sampling = client.next();
    assert_eq!(sampling["method"], "sampling/createMessage");
    let said = json!({ "role": "assistant", "model": "m", "content": [{ "type": "text", "text": "Hi!" }] });
    client.send(&json!({ "jsonrpc": "2.0", "id": sampling["id"], "result": said }));
    let answer = client.next();
    assert_eq!(text(&answer["result"]), "Ada 2 Hi! 2");
}

#[test]
fn several_questions_are_asked_at_once_and_only_open_ones_again() {
    let mut client = Client::new(tables());
    let first = client.call("all", json!({}));
    assert_eq!(first["inputRequests"].as_object().map(serde_json::Map::len), Some(3), "{first}");
    assert_eq!(first["inputRequests"]["s"]["params"]["maxTokens"], 5);
    let said = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "x" } });
    let second = client.retry("all", &first, json!({ "guest": { "action": "cancel" }, "s": said }));
    assert_eq!(second["inputRequests"].as_object().map(serde_json::Map::len), Some(1), "{second}");
    let third = client.retry("all", &second, json!({ "r": { "roots": [{ "uri": "file:///w" }] } }));
    assert_eq!(text(&third), "None m file:///w");
    assert_eq!(text(&client.call("page", json!({}))), "a client that shows no pages");
}

#[test]
fn what_is_published_while_serving_is_told_and_a_broken_change_changes_nothing() {
    let grow = |_: NoArguments, call: Call| async move {
        let late = Tool::new("late", "Came later.", |_: NoArguments, _: Call| async { "here" });
        call.server().change(|listing| listing.put_tool(late)).map(|()| "grown")
    };
    let mut client = Client::new(Server::new("growing", "1.0.0").tool(Tool::new("grow", "Grows.", grow)));
    client.initialize();
    let before = client.handle.digest();
    let broken = Tool::new("no such name", "", |_: NoArguments, _: Call| async {});
    let refused = client.handle.change(|listing| listing.put_tool(broken)).unwrap_err().to_string();
    assert!(refused.contains("tool no such name, /name: "), "{refused}");
    assert_eq!(client.handle.digest(), before);
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "grow" } }));
    let mut said = [client.next(), client.next()];
    said.sort_by_key(|message| message.get("id").is_some());
    assert_eq!(said[0]["method"], "notifications/tools/list_changed");
    assert_eq!(text(&said[1]["result"]), "grown");
    client.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "late" } }));
    assert_eq!(text(&client.next()["result"]), "here");
}

#[test]
fn a_call_ends_on_what_it_began_with() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let inner = Arc::clone(&gate);
    let slow = Tool::new("slow", "Waits.", move |_: NoArguments, _: Call| {
        let gate = Arc::clone(&inner);
        async move {
            gate.notified().await;
            "the old one"
        }
    });
    let mut client = Client::new(Server::new("s", "1.0.0").tool(slow));
    client.initialize();
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "slow" } }));
    client.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }));
    assert_eq!(client.next()["id"], 2);
    client.handle.change(|listing| assert!(listing.remove_tool("slow"))).unwrap();
    assert_eq!(client.next()["method"], "notifications/tools/list_changed");
    gate.notify_one();
    assert_eq!(text(&client.next()["result"]), "the old one");
}

#[derive(Deserialize)]
struct Day {
    day: String,
}

#[derive(Deserialize, JsonSchema)]
struct Review {
    /// The file.
    path: String,
    tone: Option<String>,
}

fn library() -> Server {
    let days = Template::new("notes:{day}", "notes", |Day { day }, _: Call| async move {
        match day.as_str() {
            "monday" => Ok("Water the plants."),
            "friday" => Err(ToolError::from(Refused("fridays are closed".to_owned()))),
            _ => Err(ToolError::from(NotFound)),
        }
    })
    .complete_with("day", |typing: Completing| async move { vec![format!("{}day", typing.typed)] });
    let review = Prompt::new("review", "Reviews a file.", |Review { path, tone }, _: Call| async move {
        format!("{path} {}", tone.unwrap_or_default())
    })
    .complete("tone", ["strict", "kind"]);
    Server::new("library", "1.0.0")
        .resource(Resource::text("notes:all", "all", "Everything.").description("All notes."))
        .resource(Resource::new("notes:picture", "picture", |_: Call| async { vec![1_u8, 2] }).mime_type("image/png"))
        .template(days)
        .prompt(review)
        .skill(
            Skill::new("skill://desk/file", "How to \"file\".", "File it.\n")
                .front_matter("license", &json!("MIT"))
                .file("forms/a.txt", "text/plain", "A\n"),
        )
}

#[test]
fn resources_are_fixed_texts_read_bytes_or_a_templates_and_may_not_be_there() {
    let mut client = Client::new(library());
    let mut read = |uri: &str| client.ask("resources/read", json!({ "uri": uri }));
    let all = json!([{ "uri": "notes:all", "mimeType": "text/plain", "text": "Everything." }]);
    assert_eq!(read("notes:all")["result"]["contents"], all);
    let picture = json!([{ "uri": "notes:picture", "mimeType": "image/png", "blob": "AQI=" }]);
    assert_eq!(read("notes:picture")["result"]["contents"], picture);
    assert_eq!(read("notes:monday")["result"]["contents"][0]["text"], "Water the plants.");
    assert_eq!(read("notes:tuesday")["error"]["data"]["uri"], "notes:tuesday");
    assert_eq!(read("notes:friday")["error"]["message"], "invalid params: fridays are closed");
}

#[test]
fn a_skill_is_its_front_matter_its_text_and_the_files_beside_it() {
    let mut client = Client::new(library());
    let listed = client.ask("skills/list", json!({}))["result"]["skills"][0].take();
    let front = json!({ "name": "file", "description": "How to \"file\".", "license": "MIT" });
    assert_eq!((&listed["uri"], &listed["frontmatter"]), (&json!("skill://desk/file/SKILL.md"), &front));
    let text = "---\nname: \"file\"\ndescription: \"How to \\\"file\\\".\"\nlicense: \"MIT\"\n---\n\nFile it.\n";
    let mut read = |uri: &str| client.ask("resources/read", json!({ "uri": uri }))["result"]["contents"][0].take();
    assert_eq!(read("skill://desk/file/SKILL.md")["text"], text);
    assert_eq!(read("skill://desk/file/forms/a.txt")["text"], "A\n");
}

#[test]
fn what_stands_before_the_handlers_may_fail_to_begin() {
    let failed = sums().with_invoke(|_| Err("the disk is full".into())).ready().err().unwrap();
    assert_eq!(failed.to_string(), "what stands before the handlers cannot begin: the disk is full");
}

#[test]
fn prompts_take_their_arguments_from_a_type_and_complete_them() {
    let mut client = Client::new(library());
    let listed = client.ask("prompts/list", json!({}))["result"]["prompts"][0].take();
    let arguments = json!([{ "name": "path", "description": "The file.", "required": true }, { "name": "tone" }]);
    assert_eq!(listed["arguments"], arguments);
    let got = client.ask("prompts/get", json!({ "name": "review", "arguments": { "path": "a.rs" } }));
    assert_eq!(got["result"]["messages"], json!([{ "role": "user", "content": { "type": "text", "text": "a.rs " } }]));
    let complete =
        |of: Value, name: &str, typed: &str| json!({ "ref": of, "argument": { "name": name, "value": typed } });
    let tone = complete(json!({ "type": "ref/prompt", "name": "review" }), "tone", "s");
    assert_eq!(client.ask("completion/complete", tone)["result"]["completion"]["values"], json!(["strict"]));
    let day = complete(json!({ "type": "ref/resource", "uri": "notes:{day}" }), "day", "mon");
    assert_eq!(client.ask("completion/complete", day)["result"]["completion"]["values"], json!(["monday"]));
}

/// Stands where an engine of tasks would: says what reached it.
struct Outer(Arc<dyn Invoke>);

impl Invoke for Outer {
    fn invoke(&self, invocation: Arc<Invocation>, caller: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
        let mut invocation = Arc::unwrap_or_clone(invocation);
        let Operation::Call { task, .. } = &mut invocation.operation else { panic!("nothing else is called") };
        let wished = task.take().is_some();
        Box::pin(async move {
            match self.0.invoke(Arc::new(invocation), caller).await {
                Outcome::Complete(mut content) => {
                    content.blocks.push(Block::text(format!("as a task: {wished}")));
                    Outcome::Complete(content)
                }
                other => other,
            }
        })
    }
}

#[test]
fn what_wraps_the_handlers_is_reached_once_the_first_questions_are_answered() {
    let name = |call: Call| async move {
        let guest = call.elicit::<Guest>("guest", "Who?")?;
        Ok::<_, ToolError>(guest.accepted().map_or_else(String::new, |guest| guest.name))
    };
    let tool = Tool::new("work", "Works.", move |_: NoArguments, call: Call| name(call))
        .task(TaskSupport::Required)
        .ask_first(move |_: NoArguments, call: Call| async move { name(call).await.map(drop) });
    let server = Server::new("s", "1.0.0").tool(tool).with_invoke(|inside| Ok(Arc::new(Outer(inside.invoke))));
    let mut client = Client::new(server);
    let first = client.call("work", json!({}));
    assert!(first["inputRequests"]["guest"].is_object(), "{first}");
    let second = client.retry("work", &first, json!({ "guest": accept(json!({ "name": "Ada", "seats": 1 })) }));
    assert_eq!(
        second["content"],
        json!([{ "type": "text", "text": "Ada" }, { "type": "text", "text": "as a task: true" }])
    );
}

#[test]
fn every_problem_of_a_server_is_named_before_it_is_served() {
    let list = Tool::new("list", "Lists.", |_: NoArguments, _: Call| async { Json(vec![1, 2]) });
    let texts = Tool::new("texts", "Takes no object.", |_: Vec<String>, _: Call| async {});
    let server = Server::new("s", "1.0.0")
        .tool(list.clone())
        .tool(texts)
        .tool(Tool::new("twice", "", |_: NoArguments, _: Call| async {}))
        .tool(Tool::new("twice", "", |_: NoArguments, _: Call| async {}))
        .resource(Resource::text("not a uri", "r", ""))
        .template(Template::new("notes:{a}{b}", "t", |_: Value, _: Call| async { "" }));
    let Err(ServerError::Unpublishable(problems)) = server.ready() else { panic!("it cannot be published") };
    let what: Vec<&str> = problems.iter().map(|problem| problem.what.as_str()).collect();
    assert_eq!(what, ["tool list", "tool texts", "tool twice", "resource not a uri", "template notes:{a}{b}"]);
    assert!(Server::new("s", "1.0.0").tool(list.divergent()).ready().is_ok());
}

#[tokio::test]
async fn an_address_that_others_can_reach_is_refused() {
    let exposed = sums().serve_http("0.0.0.0:0".parse().unwrap()).await;
    assert!(matches!(exposed, Err(ServerError::Exposed(_))), "{exposed:?}");
}
