//! Other MCP servers behind a surface: good ones for clients of both eras, and hostile ones, which harm nobody but
//! themselves.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fail by panicking")]

mod folder;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use folder::{Folder, load};
use serde_json::{Value, json};
use tokio::sync::Notify;
use twodoor::client::{Door, Ending, HttpTarget, Options, Target};
use twodoor::core::Router;
use twodoor::protocol::digest;
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::json::JsonLimits;
use twodoor::protocol::{
    Arguments, Ask, Caller, Catalog, ClientCapabilities, Content, Dispatcher, Era, Invocation, Invoke as _, Json,
    Limits, Notice, Operation, Outcome, Principal, RawJson, Revision,
};
use twodoor::transport::Engine;
use twodoor::transport::http::{self, LegacyMode};

/// What a call tells, and whether its caller has gone.
#[derive(Default)]
struct Peer {
    told: Mutex<Vec<Notice>>,
    gone: Notify,
}

impl Caller for Peer {
    fn notify(&self, notice: Notice) {
        self.told.lock().unwrap().push(notice);
    }
    fn is_gone(&self) -> bool {
        false
    }
    fn gone(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.gone.notified())
    }
}

struct Served {
    router: Arc<Router>,
    catalog: Arc<Catalog>,
}

impl Served {
    fn new(folder: &Folder, yaml: &str) -> Self {
        let loaded = load(&folder.file("surface.yaml", yaml));
        let router = Arc::new(Router::of(&loaded));
        Self { router, catalog: Arc::new(Catalog::build(loaded.parts).unwrap()) }
    }

    async fn outcome(&self, tool: &str, arguments: &str, peer: &Arc<Peer>) -> Outcome {
        self.router
            .invoke(Arc::new(self.invocation(tool, arguments)), Arc::<Peer>::clone(peer) as Arc<dyn Caller>)
            .await
    }

    fn invocation(&self, tool: &str, arguments: &str) -> Invocation {
        let raw = RawJson::new(Bytes::copy_from_slice(arguments.as_bytes()), &JsonLimits::default()).unwrap();
        Invocation {
            operation: Operation::Call {
                tool: self.catalog.tool(tool).unwrap().name.clone(),
                arguments: Arguments::new(raw).unwrap(),
                task: None,
            },
            catalog: Arc::clone(&self.catalog),
            answers: Vec::new(),
            state: None,
            principal: Principal::LOCAL,
            revision: Revision::MODERN,
            client: ClientCapabilities::default(),
        }
    }

    /// Says something for a client that fills in forms, with what it answered before.
    async fn asked(&self, text: &str, before: Option<(&Ask, Value)>) -> Outcome {
        let mut invocation = self.invocation("say", &format!("{{\"text\":\"{text}\"}}"));
        invocation.client = ClientCapabilities::read(&RawJson::encode(&json!({ "elicitation": {} })));
        if let Some((ask, answer)) = before {
            invocation.answers = vec![(ask.requests[0].key.as_str().into(), RawJson::encode(&answer))];
            invocation.state = ask.state.clone();
        }
        self.router.invoke(Arc::new(invocation), Arc::<Peer>::default()).await
    }

    /// Whether it was done, and the text.
    async fn call(&self, tool: &str, arguments: &str) -> (bool, String) {
        match self.outcome(tool, arguments, &Arc::default()).await {
            Outcome::Complete(content) => (true, content.plain_text()),
            Outcome::Failed(content) => (false, content.plain_text()),
            other => panic!("{other:?}"),
        }
    }

    async fn say(&self, text: &str) -> (bool, String) {
        self.call("say", &format!("{{\"text\":\"{text}\"}}")).await
    }
}

/// The digest of what the hostile server lists when it is good.
fn pin() -> String {
    let tool = |name: &str| {
        format!(
            r#"{{"name":"{name}","description":"Says it back.","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string"}}}}}}}}"#
        )
    };
    let list = format!("[{},{}]", tool("echo"), tool("other"));
    digest::of(&Json::parse(list.as_bytes(), &JsonLimits::default()).unwrap()).to_string()
}

fn program(name: &str, folder: &Folder) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/upstream/hostile.py");
    // Not the shim of a version manager, which sets variables of its own.
    let python = if Path::new("/usr/bin/python3").exists() { "/usr/bin/python3" } else { "python3" };
    format!("[{python}, {}, {name}, {}]", script.display(), folder.0.display())
}

/// A surface with `say`, of a server that misbehaves so, and `calm`, of one that does not.
fn beside_a_calm_one(mode: &str, folder: &Folder) -> Served {
    beside_a_calm_one_as("legacy", mode, folder)
}

/// The same, where the server that misbehaves is spoken to as that says.
fn beside_a_calm_one_as(era: &str, mode: &str, folder: &Folder) -> Served {
    let args = "args: { text: { type: string } }";
    let tool = |name: &str, of: &str| {
        format!(
            "  {name}: {{ description: Says it back., read_only: true, timeout: 5s, {args}, upstream: {of}/echo }}\n"
        )
    };
    let upstream = |name: &str, era: &str, mode: &str| {
        format!("  {name}: {{ run: {}, era: {era}, digest: \"{}\" }}\n", program(mode, folder), pin())
    };
    let yaml = format!(
        "surface: s\nversion: 1.0.0\nupstreams:\n{}{}tools:\n{}{}",
        upstream("bad", era, mode),
        upstream("good", "legacy", "calm"),
        tool("say", "bad"),
        tool("calm", "good"),
    );
    Served::new(folder, &yaml)
}

fn noted(folder: &Folder, mode: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.0.join(mode)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

async fn until_noted(folder: &Folder, mode: &str, line: &str) {
    let waiting = async {
        while noted(folder, mode).last().is_none_or(|last| last != line) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap();
}

/// Says once to a server that misbehaves; the other one goes on.
async fn says(mode: &str) -> (bool, String) {
    let folder = Folder::new(&format!("upstream-{mode}"));
    let served = beside_a_calm_one(mode, &folder);
    let said = served.say("hi").await;
    assert_eq!(served.call("calm", r#"{"text":"still here"}"#).await, (true, "still here".to_owned()), "{mode}");
    twodoor::core::upstream::close_all().await;
    said
}

#[tokio::test]
async fn a_reviewed_tool_is_called_and_its_failure_stays_one() {
    let folder = Folder::new("upstream-calm");
    let served = beside_a_calm_one("calm_too", &folder);
    assert_eq!(served.say("hi").await, (true, "hi".to_owned()));
    assert_eq!(served.say("fail").await, (false, "fail".to_owned()));
    assert_eq!(noted(&folder, "calm_too"), ["started"], "one program for all calls");
    assert_eq!(noted(&folder, "calm"), [""; 0], "none is started before it is called");
}

#[tokio::test]
async fn a_list_that_changes_withholds_its_tools_until_it_is_the_reviewed_one_again() {
    let folder = Folder::new("upstream-flips");
    let served = beside_a_calm_one("flips", &folder);
    assert_eq!(served.say("hi").await, (true, "hi".to_owned()));
    // The next call hears of the change, or a later one does: the notification follows the answer.
    let withheld = loop {
        let (done, text) = served.say("hi").await;
        if !done {
            break text;
        }
    };
    assert!(withheld.starts_with("bad is withheld: what it lists is not what was reviewed"), "{withheld}");
    assert!(withheld.contains("changed: echo; gone: other; new: 1"), "{withheld}");
    assert!(!withheld.contains("stolen"), "nobody has reviewed that name: {withheld}");
    assert!(!withheld.contains("Ignore all rules"), "{withheld}");
    assert!(served.call("calm", r#"{"text":"x"}"#).await.0);
    // Its third list is the first again.
    let patience = tokio::time::timeout(Duration::from_secs(30), async {
        while !served.say("hi").await.0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    patience.await.unwrap();
}

#[tokio::test]
async fn a_list_that_was_never_reviewed_is_withheld_from_the_start() {
    let folder = Folder::new("upstream-unreviewed");
    let zeros = "0".repeat(64);
    let yaml = format!(
        "surface: s\nversion: 1.0.0\nupstreams:\n  bad: {{ run: {}, digest: \"sha256:{zeros}\" }}\ntools:\n  say: {{ description: x, upstream: bad/echo }}\n",
        program("calm", &folder)
    );
    let (done, text) = Served::new(&folder, &yaml).call("say", "{}").await;
    assert!(!done && text.contains("bad is withheld"), "{text}");
}

#[tokio::test]
async fn answers_with_wrong_ids_and_second_answers_are_nobodys() {
    let (done, text) = says("wrong_id").await;
    assert!(!done && text.starts_with("bad did not answer within 4.75s"), "{text}");
    assert_eq!(says("twice").await, (true, "first".to_owned()));
}

#[tokio::test]
async fn a_second_answer_to_a_call_is_not_the_next_calls() {
    let folder = Folder::new("upstream-echoes");
    let served = beside_a_calm_one("echoes", &folder);
    for said in ["one", "two", "three"] {
        assert_eq!(served.say(said).await, (true, said.to_owned()));
    }
    assert_eq!(noted(&folder, "echoes"), ["started"], "one connection for all");
}

#[tokio::test]
async fn an_answer_under_an_id_that_is_open_with_another_upstream_is_nobodys() {
    let folder = Folder::new("upstream-others");
    let served = beside_a_calm_one("others", &folder);
    let forging = async {
        until_noted(&folder, "calm", "held").await;
        assert_eq!(served.say("mine").await, (true, "mine".to_owned()));
        folder.file("go", "");
    };
    let (held, ()) = tokio::join!(served.call("calm", r#"{"text":"hold"}"#), forging);
    assert_eq!(held, (true, "hold".to_owned()));
}

#[tokio::test]
async fn one_that_floods_during_a_call_fails_it_while_the_others_go_on() {
    let folder = Folder::new("upstream-flooded");
    let served = beside_a_calm_one("flood_progress", &folder);
    let peer = Arc::<Peer>::default();
    let others = async {
        until_noted(&folder, "flood_progress", "floods").await;
        for said in ["a", "b", "c"] {
            assert_eq!(served.call("calm", &format!("{{\"text\":\"{said}\"}}")).await, (true, said.to_owned()));
        }
    };
    let (outcome, ()) = tokio::join!(served.outcome("say", "{}", &peer), others);
    let Outcome::Failed(content) = outcome else { panic!("{outcome:?}") };
    // Cut off or, where this machine is too slow for that, out of time.
    let text = content.plain_text();
    assert!(text.starts_with("bad ended before its answer") || text.starts_with("bad did not answer"), "{text}");
    let told = peer.told.lock().unwrap();
    // What was not heard in time is dropped, and a message is cut.
    let bytes: usize = told
        .iter()
        .map(|notice| match notice {
            Notice::Progress { message, .. } => message.as_ref().map_or(0, String::len),
            other => panic!("{other:?}"),
        })
        .sum();
    assert!(told.len() <= 6 * 5000 && bytes <= told.len() * 300, "{} of {bytes} bytes", told.len());
}

#[tokio::test]
async fn a_server_that_comes_back_as_another_revision_is_served_and_compared_anew() {
    let folder = Folder::new("upstream-turns");
    let served = beside_a_calm_one_as("auto", "turns", &folder);
    for era in ["legacy", "modern"] {
        assert_eq!(served.say("hi").await, (true, format!("hi, {era}")));
        let (done, text) = served.say("end").await;
        assert!(!done && text.starts_with("bad ended before its answer"), "{text}");
    }
    // The third is legacy again, and lists something else.
    let (done, text) = served.say("hi").await;
    assert!(!done && text.starts_with("bad is withheld") && text.contains("changed: echo"), "{text}");
    assert_eq!(noted(&folder, "turns"), ["started"; 3]);
    assert!(served.call("calm", r#"{"text":"x"}"#).await.0);
}

#[tokio::test]
async fn clients_of_both_eras_call_an_upstream_that_is_modern_alone() {
    let folder = Folder::new("upstream-modern");
    let url = serve(&beside_a_calm_one_as("auto", "modern", &folder)).await;
    for era in [Era::Modern, Era::Legacy] {
        assert_eq!(asked_by(era, &url).await, "both");
    }
    assert_eq!(noted(&folder, "modern"), ["started"]);
}

#[tokio::test]
async fn a_long_result_is_read_and_cut() {
    let (done, text) = says("long").await;
    assert!(done && text.contains("of 3145728 bytes shown"), "{}", text.len());
}

#[tokio::test]
async fn a_connection_that_fails_late_takes_no_newer_one_with_it() {
    let folder = Folder::new("upstream-late");
    let served = beside_a_calm_one("late", &folder);
    let anew = async {
        until_noted(&folder, "late", "held").await;
        let (done, text) = served.say("anew").await;
        assert!(!done && text.contains("error -32600"), "{text}");
        assert_eq!(served.say("hi").await, (true, "hi".to_owned()));
        folder.file("go", "");
    };
    let ((done, text), ()) = tokio::join!(served.say("hold"), anew);
    assert!(!done && text.starts_with("bad ended before its answer"), "{text}");
    assert_eq!(served.say("hi").await, (true, "hi".to_owned()));
    assert_eq!(noted(&folder, "late"), ["started", "held", "started"], "the newer connection goes on");
}

#[tokio::test]
async fn one_that_hangs_or_dies_or_floods_or_answers_hugely_fails_its_own_call() {
    for (mode, why) in [
        ("hang", "bad did not answer within 4.75s"),
        ("dies", "bad ended before its answer"),
        ("flood", "bad ended before its answer"),
        ("huge", "bad answered with more than 4194304 bytes"),
        ("never_up", "bad ended before its answer"),
        ("future", "bad speaks no revision of the protocol"),
        ("endless_list", "bad answered with something that is no answer"),
        ("huge_list", "bad answered with"),
    ] {
        let (done, text) = says(mode).await;
        assert!(!done && text.starts_with(why), "{mode}: {text}");
    }
}

#[tokio::test]
async fn lines_that_are_no_messages_are_passed_over() {
    assert_eq!(says("garbage").await, (true, "hi".to_owned()));
}

#[tokio::test]
async fn an_error_is_a_failed_result_cleaned_labelled_and_shortened() {
    let (done, text) = says("error").await;
    assert!(!done && text.starts_with("bad refused the call (error -32001); in its own words: denied"), "{text}");
    assert!(text.len() < 500 && !text.contains(['\x1b', '\u{e0041}']) && !text.contains("in the data"), "{text}");
}

#[tokio::test]
async fn what_it_asks_of_its_client_is_refused_and_the_call_goes_on() {
    assert_eq!(says("asks").await, (true, "[-32601, -32601, -32601]".to_owned()));
}

#[tokio::test]
async fn a_modern_servers_form_reaches_who_can_fill_it_in_and_the_answer_goes_back() {
    let folder = Folder::new("upstream-questions");
    let served = beside_a_calm_one_as("auto", "questions", &folder);
    let ask = || async {
        let Outcome::InputRequired(ask) = served.asked("hi", None).await else { panic!("it does not ask") };
        ask
    };
    for (answer, expected) in [
        (json!({ "action": "accept", "content": { "name": "Ada", "more": 1 } }), "Ada, inner state"),
        (json!({ "action": "decline" }), "decline, inner state"),
    ] {
        let asked = ask().await;
        assert_eq!(asked.requests[0].params["message"], "The server \"bad\" asks: Who?");
        assert!(!format!("{asked:?}").contains("inner"), "its state is nobody else's: {asked:?}");
        let answered = served.asked("hi", Some((&asked, answer))).await;
        let Outcome::Complete(content) = answered else { panic!("{answered:?}") };
        assert_eq!(content.plain_text(), expected);
    }
    let sampled = served.asked("sample", None).await;
    let Outcome::Failed(content) = sampled else { panic!("{sampled:?}") };
    assert!(content.plain_text().starts_with("bad asks something that is not passed on"), "{}", content.plain_text());
    // It is told that this client cannot be asked, and asks all the same.
    let (done, text) = served.say("hi").await;
    assert!(!done && text.contains("use a client that can fill in forms"), "{text}");
    assert_eq!(noted(&folder, "questions"), ["started", "asks", "asks", "asks", "cannot ask"]);
}

#[tokio::test]
async fn a_result_is_cleaned_and_what_no_client_knows_is_left_out() {
    let folder = Folder::new("upstream-poisoned");
    let served = beside_a_calm_one("poisoned", &folder);
    let Outcome::Complete(content) = served.outcome("say", "{}", &Arc::default()).await else { panic!("it failed") };
    let Content { structured, .. } = &content;
    assert_eq!(structured, &Some(serde_json::json!({ "n": 1, "s": "y" })));
    let text = content.plain_text();
    assert!(text.starts_with("a[2Jb") && text.contains("[left out: 1 blocks"), "{text}");
}

#[tokio::test]
async fn its_program_starts_with_nothing_of_ours() {
    let (_, text) = says("env").await;
    let names: Vec<String> = serde_json::from_str(&text).unwrap();
    let known = ["LANG", "LC_CTYPE", "PATH", "TWODOOR_CALL", "TZ"];
    assert!(names.iter().all(|name| known.contains(&name.as_str())), "{names:?}");
}

#[tokio::test]
async fn its_progress_reaches_the_caller_of_that_call_cleaned() {
    let folder = Folder::new("upstream-progress");
    let served = beside_a_calm_one("progress", &folder);
    let peer = Arc::<Peer>::default();
    let outcome = served.outcome("say", r#"{"text":"hi"}"#, &peer).await;
    assert!(matches!(outcome, Outcome::Complete(_)), "{outcome:?}");
    for notice in peer.told.lock().unwrap().iter() {
        let Notice::Progress { progress, total, message } = notice else { panic!("{notice:?}") };
        assert!((1.0..=2.0).contains(progress) && *total == Some(2.0), "{notice:?}");
        assert!(!message.as_ref().unwrap().contains('\x1b'), "{notice:?}");
    }
}

#[tokio::test]
async fn a_caller_that_goes_cancels_its_call_there() {
    let folder = Folder::new("upstream-cancel");
    let served = beside_a_calm_one("cancel", &folder);
    let peer = Arc::<Peer>::default();
    let going = async {
        until_noted(&folder, "cancel", "called").await;
        peer.gone.notify_one();
    };
    let (outcome, ()) = tokio::join!(served.outcome("say", "{}", &peer), going);
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    until_noted(&folder, "cancel", "cancelled").await;
}

#[tokio::test]
async fn a_program_that_keeps_dying_is_started_at_most_five_times_in_a_minute() {
    let folder = Folder::new("upstream-dying");
    let served = beside_a_calm_one("never_up", &folder);
    let mut refused = String::new();
    for _ in 0..20 {
        refused = served.say("hi").await.1;
    }
    assert!(refused.contains("is not asked for a while: try again in"), "{refused}");
    let starts = noted(&folder, "never_up").len();
    assert!((1..=5).contains(&starts), "{starts}");
    assert!(served.call("calm", r#"{"text":"x"}"#).await.0);
}

/// Serves a surface over HTTP, as `twodoor serve` would.
async fn serve(served: &Served) -> String {
    let router = Arc::clone(&served.router);
    let dispatcher = Arc::new(Dispatcher::new(Arc::new(Arc::clone(&served.catalog)), [1; 32]));
    let engine = Engine::new(dispatcher, router, Limits::default());
    let listener = http::listen(([127, 0, 0, 1], 0).into()).await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let options = http::Options { legacy: LegacyMode::Sessions, ..http::Options::default() };
    tokio::spawn(async move { http::serve(engine, listener, options, std::future::pending()).await });
    url
}

async fn asked_by(era: Era, url: &str) -> String {
    let target = Target::Http(HttpTarget::new(url, &[]).unwrap());
    let door = Door::open(&target, era, &Options::default()).await.unwrap();
    let listed = door.list_tools().await.unwrap().names();
    assert_eq!(listed, ["say", "calm"], "what is published does not change by what an upstream does");
    let raw = RawJson::new(Bytes::from_static(br#"{"text":"both"}"#), &JsonLimits::default()).unwrap();
    let called = door.call_tool("say", &Arguments::new(raw).unwrap(), Duration::from_secs(20)).await.unwrap();
    assert_eq!(called.ending, Ending::Complete, "{}", called.result.as_str());
    let result: Value = serde_json::from_str(called.result.as_str()).unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn clients_of_both_eras_call_a_legacy_upstream_and_through_it_a_chain_of_either_era() {
    let folder = Folder::new("upstream-eras");
    let first = beside_a_calm_one("calm_too", &folder);
    let url = serve(&first).await;
    for era in [Era::Modern, Era::Legacy] {
        assert_eq!(asked_by(era, &url).await, "both");
    }
    // The engine itself as an upstream behind an address, by each of its doors.
    for era in ["modern", "legacy", "auto"] {
        let args = "args: { text: { type: string } }";
        let yaml = format!(
            "surface: s\nversion: 1.0.0\nupstreams:\n  up: {{ url: \"{url}\", allow_private: true, era: {era}, digest: \"{}\" }}\n\
             tools:\n  say: {{ description: x, read_only: true, {args}, upstream: up/say }}\n  calm: {{ description: x, read_only: true, {args}, upstream: up/calm }}\n",
            digest_of(&url).await
        );
        let second = Folder::new(&format!("upstream-eras-{era}"));
        let outer = serve(&Served::new(&second, &yaml)).await;
        for era in [Era::Modern, Era::Legacy] {
            assert_eq!(asked_by(era, &outer).await, "both");
        }
    }
}

async fn digest_of(url: &str) -> String {
    let target = Target::Http(HttpTarget::new(url, &[]).unwrap());
    let door = Door::open(&target, Era::Legacy, &Options::default()).await.unwrap();
    door.list_tools().await.unwrap().digest.sorted_keys.unwrap().to_string()
}
