//! Commands as tools: what a model is told, whatever the program does.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]

mod children;

use std::sync::Arc;

use children::{PATIENCE, Scratch, all_vanished};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;
use twodoor::core::Router;
use twodoor::core::command::{Called, CommandTool};
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::{
    Arguments, Caller, Catalog, CatalogParts, ClientCapabilities, Invocation, Invoke, Notice, Operation, Outcome,
    Principal, RawJson, Revision, ToolName, ToolParts,
};
use twodoor::surface::declaration::{
    Argument, ArgumentKind, DeclaredBackend, DeclaredTool, Element, Feed, Output, Piece, Run, Template, Variable,
};
use twodoor::surface::effect::Policy;

/// A far end that can leave.
struct Peer(watch::Sender<bool>);

impl Peer {
    fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(false)))
    }
}

impl Caller for Peer {
    fn notify(&self, _: Notice) {}
    fn is_gone(&self) -> bool {
        *self.0.borrow()
    }
    fn gone(&self) -> BoxFuture<'_, ()> {
        let mut gone = self.0.subscribe();
        Box::pin(async move { drop(gone.wait_for(|gone| *gone).await) })
    }
}

/// `sh -c script sh SCRATCH {a}`, which is fed `{text}`.
fn declared(script: &str, scratch: &Scratch) -> Run {
    let literal = |text: &str| Element::One(Template(vec![Piece::Literal(text.to_owned())]));
    let argument = |name: &str, kind| Argument { name: name.to_owned(), kind, default: None };
    Run {
        argv: vec![
            literal("sh"),
            literal("-c"),
            literal(script),
            literal("sh"),
            literal(scratch.0.to_str().unwrap()),
            Element::One(Template(vec![Piece::Argument("a".to_owned())])),
        ],
        arguments: vec![argument("a", ArgumentKind::Data), argument("text", ArgumentKind::Data)],
        root: scratch.0.clone(),
        cwd: scratch.0.clone(),
        env: vec![Variable::Literal("SECRET".into(), "swordfish".into())],
        stdin: Some(Feed::Argument("text".to_owned())),
        cap: 100,
        exit_codes: vec![0, 3],
        output: Output::Text,
        talk: false,
    }
}

fn arguments(value: Value) -> Arguments {
    Arguments::new(RawJson::encode(&value)).unwrap()
}

fn told(outcome: &Outcome) -> (bool, String) {
    let (complete, content) = match outcome {
        Outcome::Complete(content) => (true, content),
        Outcome::Failed(content) => (false, content),
        other => panic!("{other:?}"),
    };
    (complete, content.plain_text())
}

/// Calls a tool as one that was asked nothing.
async fn run(tool: &CommandTool, arguments: &Arguments, caller: &Peer) -> Outcome {
    let catalog = Arc::new(Catalog::build(CatalogParts::new("test", "1.0.0")).unwrap());
    tool.run(Called { arguments, answers: &[], state: None, catalog: &catalog }, caller).await
}

async fn call(run: Run, with: Value) -> (bool, String) {
    let tool = CommandTool::new("show".to_owned(), run);
    let outcome = timeout(PATIENCE, self::run(&tool, &arguments(with), &Peer::new())).await.expect("ends in time");
    told(&outcome)
}

#[tokio::test]
async fn a_call_runs_where_and_with_what_is_declared() {
    let scratch = Scratch::new();
    let script = r#"[ "$PWD" -ef "$1" ] && pwd -P | sed 's/.*\///' | cut -c1-7; printf '%s|' "$2"; cat"#;
    let (complete, text) = call(declared(script, &scratch), json!({ "a": "-$(id) é", "text": "fed\n" })).await;
    assert_eq!((complete, text.as_str()), (true, "twodoor\n-$(id) é|fed\n"));
}

#[tokio::test]
async fn the_end_decides_between_complete_and_failed() {
    let scratch = Scratch::new();
    for (script, expected) in [
        ("echo fine", (true, "fine\n")),
        ("echo fine; exit 3", (true, "fine\n")),
        ("exit 0", (true, "")),
        ("exit 1", (false, "sh failed with exit code 1 and wrote nothing")),
        ("echo out; echo err >&2; exit 126", (false, "sh failed with exit code 126\nstderr:\nerr\nstdout:\nout")),
        ("exec no-such-program 2>/dev/null", (false, "sh failed with exit code 127 and wrote nothing")),
        ("exit 255", (false, "sh failed with exit code 255 and wrote nothing")),
        ("kill -SEGV $$", (false, "sh was ended by signal 11 (SIGSEGV) and wrote nothing")),
        ("kill -KILL $$", (false, "sh was ended by signal 9 (SIGKILL) and wrote nothing")),
        ("printf 'a\\377\\033[1mb\\000\\n'", (true, "a\u{fffd}[1mb\n[removed: 2 invisible characters]\n")),
        ("printf '%0200d' 0", (true, &format!("{:0100}\n[cut: 100 of 200 bytes shown; narrow show with a]\n", 0))),
    ] {
        let got = call(declared(script, &scratch), json!({})).await;
        assert_eq!((got.0, got.1.as_str()), expected, "{script}");
    }
}

#[tokio::test]
async fn a_failure_names_no_path_and_no_variable_of_ours() {
    let scratch = Scratch::new();
    let mut gone = declared("exit 0", &scratch);
    gone.root = scratch.0.join("gone");
    gone.cwd = scratch.0.join("gone");
    let mut missing = declared("", &scratch);
    missing.argv = vec![Element::One(Template(vec![Piece::Literal("/opt/secret/tool".to_owned())]))];
    for run in [gone, missing, declared("exit 9", &scratch)] {
        let (complete, text) = call(run, json!({ "a": "argument" })).await;
        assert!(!complete);
        for secret in ["/", "swordfish", "SECRET", "argument "] {
            assert!(!text.contains(secret), "{text}");
        }
    }
}

#[tokio::test]
async fn what_is_refused_starts_nothing() {
    let scratch = Scratch::new();
    let (complete, text) = call(declared("touch $1/started", &scratch), json!({ "a": "b\u{0}c" })).await;
    assert_eq!((complete, text.as_str()), (false, "argument \"a\" contains a NUL character: give a value without it"));
    assert!(!scratch.0.join("started").exists());
}

#[tokio::test]
async fn json_output_is_structured_or_said_not_to_be() {
    let scratch = Scratch::new();
    let json_of = |script: &str| Run { output: Output::Json, ..declared(script, &scratch) };
    let tool = CommandTool::new("show".to_owned(), json_of(r#"echo '{"b": [1, 2.50]}'"#));
    let outcome = run(&tool, &arguments(json!({})), &Peer::new()).await;
    assert_eq!(told(&outcome), (true, r#"{"b":[1,2.50]}"#.to_owned()));
    let Outcome::Complete(content) = outcome else { panic!() };
    assert_eq!(content.structured, Some(json!({ "b": [1, 2.5] })));
    let (complete, text) = call(json_of("echo hello"), json!({})).await;
    assert!(
        !complete && text.contains("should have written one JSON value") && text.ends_with("stdout:\nhello"),
        "{text}"
    );
}

#[tokio::test]
async fn a_caller_that_leaves_ends_the_call_and_its_program() {
    let scratch = Scratch::new();
    let script = "echo $$ > $1/a; echo 1 > $1/ready; exec sleep 1000";
    let tool = CommandTool::new("show".to_owned(), declared(script, &scratch));
    let (peer, none) = (Peer::new(), arguments(json!({})));
    let (outcome, pids) = tokio::join!(timeout(PATIENCE, run(&tool, &none, &peer)), async {
        let pids = scratch.pids(&["a"]).await;
        peer.0.send_replace(true);
        pids
    });
    assert_eq!(told(&outcome.expect("ends in time")), (false, "stopped before it ended".to_owned()));
    all_vanished(pids).await;
    // One that has left before is not served at all.
    let marked = CommandTool::new("show".to_owned(), declared("touch $1/started", &scratch));
    run(&marked, &none, &peer).await;
    assert!(!scratch.0.join("started").exists());
}

#[tokio::test]
async fn a_tool_runs_on_its_own_backend_and_one_without_is_a_defect() {
    let scratch = Scratch::new();
    let tools = ["one", "two"].map(|name| DeclaredTool {
        name: name.to_owned(),
        policy: Policy::default(),
        asks_itself: false,
        defaults: Vec::new(),
        backend: DeclaredBackend::Command(declared(&format!("echo {name}"), &scratch)),
    });
    let router = Router::new(tools.into());
    let catalog = Arc::new(
        Catalog::build(CatalogParts { tools: vec![ToolParts::new("one")], ..CatalogParts::new("test", "1.0.0") })
            .unwrap(),
    );
    let invocation = |tool: &str| Invocation {
        catalog: Arc::clone(&catalog),
        operation: Operation::Call { tool: ToolName::new(tool).unwrap(), arguments: arguments(json!({})), task: None },
        answers: Vec::new(),
        state: None,
        principal: Principal::LOCAL,
        revision: Revision::MODERN,
        client: ClientCapabilities::default(),
    };
    for name in ["one", "two"] {
        assert_eq!(told(&router.invoke(Arc::new(invocation(name)), Peer::new()).await), (true, format!("{name}\n")));
    }
    assert!(matches!(router.invoke(Arc::new(invocation("three")), Peer::new()).await, Outcome::Defect { .. }));
    assert!(router.backend("one").is_some() && router.backend("three").is_none());
}
