//! Other MCP servers behind a surface: good ones for clients of both eras, and hostile ones, which harm nobody but
//! themselves.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fail by panicking")]

mod folder;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use folder::{Folder, load};
use serde_json::Value;
use tokio::sync::Notify;
use twodoor::client::{Door, Ending, HttpTarget, Options, Target};
use twodoor::core::Router;
use twodoor::protocol::digest;
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::json::JsonLimits;
use twodoor::protocol::{
    Arguments, Caller, Catalog, ClientCapabilities, Content, Dispatcher, Era, Invocation, Invoke as _, Json, Limits,
    Notice, Operation, Outcome, Principal, RawJson, Revision,
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
        let raw = RawJson::new(Bytes::copy_from_slice(arguments.as_bytes()), &JsonLimits::default()).unwrap();
        let invocation = Invocation {
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
        };
        self.router.invoke(Arc::new(invocation), Arc::<Peer>::clone(peer) as Arc<dyn Caller>).await
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
    let args = "args: { text: { type: string } }";
    let tool = |name: &str, of: &str| {
        format!(
            "  {name}: {{ description: Says it back., read_only: true, timeout: 5s, {args}, upstream: {of}/echo }}\n"
        )
    };
    let upstream = |name: &str, mode: &str| {
        format!("  {name}: {{ run: {}, era: legacy, digest: \"{}\" }}\n", program(mode, folder), pin())
    };
    let yaml = format!(
        "surface: s\nversion: 1.0.0\nupstreams:\n{}{}tools:\n{}{}",
        upstream("bad", mode),
        upstream("good", "calm"),
        tool("say", "bad"),
        tool("calm", "good"),
    );
    Served::new(folder, &yaml)
}

fn noted(folder: &Folder, mode: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.0.join(mode)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
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
async fn one_that_hangs_or_dies_or_floods_or_answers_hugely_fails_its_own_call() {
    for (mode, why) in [
        ("hang", "bad did not answer within 4.75s"),
        ("dies", "bad ended before its answer"),
        ("flood", "bad ended before its answer"),
        ("huge", "bad answered with more than 16777216 bytes"),
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
        while noted(&folder, "cancel").len() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        peer.gone.notify_one();
    };
    let (outcome, ()) = tokio::join!(served.outcome("say", "{}", &peer), going);
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
    let told = tokio::time::timeout(Duration::from_secs(20), async {
        while noted(&folder, "cancel").last().map(String::as_str) != Some("cancelled") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    told.await.unwrap();
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
