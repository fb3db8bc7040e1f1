//! The gate on a runtime with one thread.

use std::fs;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::protocol::json::JsonLimits;
use crate::protocol::{Catalog, CatalogParts, ClientCapabilities, Content, Principal, RawJson, Revision, ToolParts};
use crate::surface::effect::Policy;

fn invocation(tool: &str, arguments: &Value) -> Invocation {
    let parts = CatalogParts { tools: vec![ToolParts::new(tool)], ..CatalogParts::new("s", "1.0.0") };
    let catalog = Arc::new(Catalog::build(parts).unwrap());
    let text = RawJson::new(Bytes::from(arguments.to_string()), &JsonLimits::default()).unwrap();
    let tool = catalog.tool(tool).unwrap().name.clone();
    Invocation {
        catalog,
        operation: Operation::Call { tool, arguments: Arguments::new(text).unwrap(), task: None },
        answers: Vec::new(),
        state: None,
        principal: Principal::LOCAL,
        revision: Revision::MODERN,
        client: ClientCapabilities::default(),
    }
}

fn subject(tool: &str) -> Subject {
    Subject::of_tool(tool, Policy::default())
}

fn long() -> Value {
    json!({ "place": "x".repeat(QUICK) })
}

/// Whether a call is decided without any wait.
fn is_decided_at_once(gate: &Gate, invocation: Invocation) -> bool {
    let subject = subject("wipe");
    let review = pin!(gate.review(invocation, &subject));
    review.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn long_arguments_are_looked_through_where_nobody_waits_for_it() {
    let gate = Gate::new("s", "1.0.0", Arc::new(Desk::new(Stance::Deny)));
    assert!(is_decided_at_once(&gate, invocation("wipe", &json!({ "place": "attic" }))));
    assert!(!is_decided_at_once(&gate, invocation("wipe", &long())));
    let verdict = gate.review(invocation("wipe", &long()), &subject("wipe")).await;
    assert!(matches!(&verdict, Verdict::Deny(refusal) if *refusal.reason() == Reason::Headless), "{verdict:?}");
}

#[tokio::test]
async fn a_question_about_long_arguments_is_the_same_wherever_it_was_made() {
    let gate = Gate::new("s", "1.0.0", Arc::default());
    let able = ClientCapabilities::read(&RawJson::encode(&json!({ "elicitation": { "form": {} } })));
    let call = Invocation { client: able, ..invocation("wipe", &long()) };
    let Verdict::Ask(ask) = gate.review(call, &subject("wipe")).await else { panic!("it is asked about") };
    let message = ask.requests[0].params["message"].as_str().unwrap();
    assert!(message.contains("Not all of it is shown: ") && message.contains("place: \"xxx"), "{message}");
}

fn events(file: &std::path::Path) -> Vec<(String, Option<String>)> {
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let word = |value: &Value| value.as_str().map(str::to_owned);
    lines.map(|line| (word(&line["event"]).unwrap(), word(&line["outcome"]))).collect()
}

#[tokio::test]
async fn a_run_that_is_given_up_is_written_down_after_its_decision() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let desk = Arc::new(Desk::default());
    desk.audit_to(&file).unwrap();
    let gate = Gate::new("s", "1.0.0", Arc::clone(&desk));
    let subject = subject("look");
    let began = tokio::sync::Notify::new();
    let run = |_| async {
        began.notify_one();
        std::future::pending::<Outcome>().await
    };
    tokio::select! {
        outcome = gate.pass(invocation("look", &json!({})), &subject, run) => panic!("{outcome:?}"),
        () = began.notified() => {}
    }
    // One that is given up while its decision is being written.
    let _ = pin!(gate.pass(invocation("look", &json!({})), &subject, |_| std::future::pending::<Outcome>()))
        .poll(&mut Context::from_waker(Waker::noop()));
    let done = |_| async { Outcome::Complete(Content::text("seen")) };
    gate.pass(invocation("look", &json!({})), &subject, done).await;
    desk.settle(Duration::from_secs(60));
    let outcome = |word: &str| ("outcome".to_owned(), Some(word.to_owned()));
    let decision = ("decision".to_owned(), None);
    let told =
        [decision.clone(), outcome("stopped"), decision.clone(), outcome("stopped"), decision, outcome("complete")];
    assert_eq!(events(&file), told);
}
