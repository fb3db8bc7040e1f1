//! The operator surface over real projects: manifests, scripts, child processes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::time::timeout;
use twodoor::core::Router;
use twodoor::core::capability::Registry;
use twodoor::core::capability::registry::Options;
use twodoor::core::capability::secrets::Secrets;
use twodoor::core::gate::{Approvals, Decision, Desk, Stance};
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::{
    Arguments, Caller, Catalog, CatalogParts, ClientCapabilities, Invocation, Invoke, Notice, Operation, Outcome,
    Principal, RawJson, Revision, ToolName, ToolParts,
};
use twodoor::surface::builtin::Builtin;
use twodoor::surface::declaration::{DeclaredBackend, DeclaredBuiltin, DeclaredTool};
use twodoor::surface::effect::Policy;
use twodoor::surface::manifest::ManifestSecret;

const PATIENCE: Duration = Duration::from_secs(60);

struct Peer(watch::Sender<bool>);

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

/// Secrets that a test knows; the environment of a test is everybody's.
#[derive(Debug)]
struct Vault;

const TOKEN: &str = "tok-9f8e7d6c/5b+4a\"é";

impl Secrets for Vault {
    fn value(&self, secret: &ManifestSecret) -> Option<String> {
        (secret.name == "vault:token").then(|| TOKEN.to_owned())
    }
}

const ECHO: &str = r#"
import json, os, sys
stdin = sys.stdin.read()
print(json.dumps({"argv": sys.argv[1:], "stdin": len(stdin), "begins": stdin[:10], "env": sorted(os.environ), "user": os.environ.get("AAT_USER_ID"), "workspace": os.environ.get("AAT_WORKSPACE_ID"), "cwd": os.getcwd()}))
"#;

const ECHO_MANIFEST: &str = r#"
name: echo
description: Tells what it was started with.
runtime: python
routing: { primary_action: show, example: Show it }
actions:
  - name: show
    description: Show everything.
    args:
      - { name: text, type: string, description: A text. }
      - { name: n, type: integer, description: A number. }
      - { name: max-results, type: integer, description: How many. }
      - { name: flag, type: boolean, description: A flag. }
      - { name: list, type: array, description: A list. }
      - { name: obj, type: object, description: An object. }
      - { name: long, type: string, stdin: true, description: A long text. }
      - { name: rows, type: array, description: Rows., schema: { items: { type: object, required: [id] }, maxItems: 2 } }
  - name: read-path
    description: Read a path.
    args:
      - { name: path, type: string, required: true, description: A path. }
"#;

const NOISE: &str = r#"#!/bin/sh
case "$1" in
  last-line) echo 'loading'; echo '{"a":1}' ;;
  two-lines) echo '{"a":1}'; echo '{"a":2}' ;;
  error-zero) echo '{"error":{"code":"not_found","message":"no such thing"}}' ;;
  usage) echo '{"error":{"code":"usage","message":"unrecognized arguments: --x"}}'; exit 2 ;;
  remote) echo '{"error":{"code":"http","message":"HTTP 400: unrecognized arguments"}}'; exit 1 ;;
  plain) echo 'plain words' ;;
  invalid-utf8) printf '{"a":"\377\376"}' ;;
  huge) head -c 104857600 /dev/zero | tr '\0' x ;;
  endless) while :; do echo '{"a":1}'; done ;;
  rows) printf '['; i=0; while [ $i -lt 5000 ]; do printf '{"row":%d,"text":"some text of it"},' $i; i=$((i+1)); done; printf 'null]' ;;
  slow) echo $$ > "pid-slow"; sleep 600 & echo $! > "pid-child"; echo ready > "ready"; wait ;;
  fails) echo 'went wrong' >&2; exit 3 ;;
  signal) kill -9 $$ ;;
  hidden) printf '{"a":"x\\u001b[31m\\u0000"}' ;;
  deep) i=0; while [ $i -lt 500 ]; do printf '['; i=$((i+1)); done ;;
  nothing) ;;
  closes) exec >&-; exit 0 ;;
  delete-all) echo ran > "deleted"; echo '{"deleted":true}' ;;
esac
"#;

const NOISE_MANIFEST: &str = r#"
name: noise
description: Writes what it should not.
entrypoint: noise.sh
actions:
ACTIONS
"#;

const LEAK: &str = r#"
import base64, json, os, sys
token = os.environ["VAULT_TOKEN"]
sys.stderr.write("using " + token + "\n")
print(json.dumps({"plain": "key=" + token, token: 1, "b64": base64.b64encode(("u:" + token).encode()).decode(), "others": sorted(k for k in os.environ)}))
"#;

fn project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let put = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        if text.starts_with("#!") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    };
    put("tools/echo/tool.yaml", ECHO_MANIFEST);
    put("tools/echo/main.py", ECHO);
    let actions: String = NOISE
        .lines()
        .filter_map(|line| line.trim().split_once(") ").map(|(name, _)| name))
        .filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
        .map(|name| format!("  - {{ name: {name}, description: Does {name}., args: [{{ name: page, type: integer, description: x. }}] }}\n"))
        .collect();
    put("tools/noise/tool.yaml", &NOISE_MANIFEST.replace("ACTIONS", &actions));
    put("tools/noise/noise.sh", NOISE);
    put(
        "tools/leak/tool.yaml",
        "name: leak\ndescription: Leaks.\nruntime: python\nsecrets: [{ name: \"vault:token\", description: The token. }]\n",
    );
    put("tools/leak/main.py", LEAK);
    put(
        "tools/mail/tool.yaml",
        "name: mail\ndescription: Mails.\nruntime: python\nsecrets: [{ name: \"mail:password\", description: x. }]\n\
         actions: [{ name: list, description: Lists. }]\n",
    );
    put("tools/mail/main.py", "");
    put("tools/broken/tool.yaml", "name: [");
    put(
        "agents/helper/agent.yaml",
        "name: helper\ndescription: Helps.\nruntime: python\ntools: [echo]\nactions: [{ name: guidance, description: Tells. }]\n",
    );
    put("agents/helper/main.py", "print('{\"advice\": \"none\"}')");
    put(
        "agents/orchestrator/agent.yaml",
        "name: orchestrator\ndescription: Drives.\nruntime: python\ntools: []\nactions: [{ name: drive, description: Drives. }]\n",
    );
    put("agents/orchestrator/main.py", "print('{}')");
    put("skills/how/SKILL.md", "---\nname: how\ndescription: Teaches how.\n---\nThis is how.\n");
    put("skills/how/references/more.md", "More.");
    folder
}

fn tools<N: Into<String>>(
    coerce_arg_names: bool,
    timeout: Option<Duration>,
    named: impl Fn(Builtin) -> N,
) -> [DeclaredTool; 6] {
    Builtin::ALL.map(|builtin| DeclaredTool {
        asks_itself: false,
        defaults: Vec::new(),
        name: named(builtin).into(),
        policy: Policy::of_flags(Some(!builtin.runs()), None),
        backend: DeclaredBackend::Builtin(DeclaredBuiltin { builtin, timeout, cap: None, coerce_arg_names }),
    })
}

fn router(folder: &TempDir, tools: &[DeclaredTool], variable: impl Fn(&str) -> Option<String>) -> Router {
    let registry = Registry::open(folder.path(), Options::read(&variable), Arc::new(Vault)).unwrap();
    Router::new(Vec::new()).with_operator(tools, Arc::new(registry), variable)
}

struct Served {
    folder: TempDir,
    router: Router,
    catalog: Arc<Catalog>,
}

impl Served {
    fn new() -> Self {
        Self::with(|_| None, None, |builtin| builtin.name().to_owned())
    }

    fn with(
        variable: impl Fn(&str) -> Option<String>,
        limit: Option<Duration>,
        named: impl Fn(Builtin) -> String,
    ) -> Self {
        Self::coercing(false, variable, limit, named)
    }

    fn coercing(
        coerce_arg_names: bool,
        variable: impl Fn(&str) -> Option<String>,
        limit: Option<Duration>,
        named: impl Fn(Builtin) -> String,
    ) -> Self {
        twodoor::core::process::become_subreaper().unwrap();
        let folder = project();
        let router = router(&folder, &tools(coerce_arg_names, limit, &named), variable);
        let parts = Builtin::ALL.map(|builtin| {
            let mut parts = ToolParts::new(named(builtin));
            parts.input_schema = builtin.definition().input_schema;
            parts
        });
        let parts = CatalogParts { tools: parts.to_vec(), ..CatalogParts::new("operator", "1.0.0") };
        Self { folder, router, catalog: Arc::new(Catalog::build(parts).unwrap()) }
    }

    fn invocation(&self, tool: &str, arguments: &Value, principal: Principal) -> Invocation {
        Invocation {
            catalog: Arc::clone(&self.catalog),
            operation: Operation::Call {
                tool: ToolName::new(tool).unwrap(),
                arguments: Arguments::new(RawJson::encode(arguments)).unwrap(),
                task: None,
            },
            answers: Vec::new(),
            state: None,
            principal,
            revision: Revision::MODERN,
            client: ClientCapabilities::default(),
        }
    }

    async fn outcome(&self, tool: &str, arguments: &Value, principal: Principal, peer: Arc<Peer>) -> Outcome {
        let invocation = self.invocation(tool, arguments, principal);
        timeout(PATIENCE, self.router.invoke(Arc::new(invocation), peer)).await.expect("an end in time")
    }

    async fn call(&self, tool: &str, arguments: Value) -> (bool, Value) {
        self.call_as(tool, arguments, Principal::LOCAL).await
    }

    async fn call_as(&self, tool: &str, arguments: Value, principal: Principal) -> (bool, Value) {
        let outcome = self.outcome(tool, &arguments, principal, Arc::new(Peer(watch::Sender::new(false)))).await;
        let (complete, content) = match outcome {
            Outcome::Complete(content) => (true, content),
            Outcome::Failed(content) => (false, content),
            other => panic!("{other:?}"),
        };
        assert!(content.blocks.len() <= 1, "one block of text");
        let text = content.structured.as_ref().map_or_else(|| content.plain_text(), ToString::to_string);
        assert!(complete || !text.contains(&*self.folder.path().to_string_lossy()), "no failure tells a path: {text}");
        (complete, serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}")))
    }

    async fn noise(&self, action: &str) -> (bool, Value) {
        self.call("run_tool", json!({ "tool": "noise", "action": action })).await
    }

    async fn show(&self, args: Value) -> Vec<String> {
        let (complete, value) = self.call("run_tool", json!({ "tool": "echo", "action": "show", "args": args })).await;
        assert!(complete, "{value}");
        let argv = value["data"]["argv"].as_array().unwrap();
        argv.iter().map(|element| element.as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test]
async fn what_is_discovered_can_be_called_as_it_was_told() {
    let served = Served::new();
    let (_, all) = served.call("capabilities", json!({})).await;
    let names: Vec<&str> =
        all["capabilities"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["echo", "leak", "mail", "noise", "helper", "orchestrator", "how"],
        "a broken one hides no other"
    );
    let (_, found) = served.call("capabilities", json!({ "search": "read path" })).await;
    let first = &found["matches"][0];
    let (_, one) = served.call("capabilities", json!({ "name": first["name"], "action": first["action"] })).await;
    let mut call = one["capability"]["call"]["run_tool"].clone();
    assert_eq!(call, json!({ "tool": "echo", "action": "read-path", "args": { "path": "<string>" } }));
    call["args"]["path"] = json!("a b");
    let (complete, ran) = served.call("run_tool", call).await;
    assert!(complete);
    assert_eq!(ran["data"]["argv"], json!(["read-path", "--path=a b"]));
    for key in ["ok", "data", "error", "returncode", "stderr"] {
        assert!(ran.get(key).is_some(), "{key}");
    }
}

#[tokio::test]
async fn no_value_becomes_an_option_and_every_one_arrives_byte_for_byte() {
    let served = Served::new();
    for text in
        ["--evil", "-o/etc/x", "; rm -rf x", "$(id)", "`id`", "a\nb", "%PATH%", "'\"", "", "é\u{1F600}", "@/etc/passwd"]
    {
        assert_eq!(served.show(json!({ "text": text })).await, ["show".to_owned(), format!("--text={text}")]);
    }
    let long = "x".repeat(50 * 1024);
    assert_eq!(served.show(json!({ "text": long })).await[1].len(), long.len() + "--text=".len());
    assert_eq!(served.show(json!({ "n": -5 })).await, ["show", "--n=-5"]);
    assert_eq!(served.show(json!({ "text": null, "flag": false })).await, ["show"]);
    assert_eq!(
        served.show(json!({ "flag": true, "list": [1, "a b"], "obj": { "k": null } })).await,
        ["show", "--flag", "--list", "[1,\"a b\"]", "--obj", "{\"k\":null}"]
    );
}

#[tokio::test]
async fn what_no_vector_holds_is_fed_or_refused_before_any_start() {
    let served = Served::new();
    let megabyte = "x".repeat(1024 * 1024);
    let (complete, fed) =
        served.call("run_tool", json!({ "tool": "echo", "action": "show", "args": { "long": megabyte } })).await;
    assert!(complete, "{fed}");
    assert_eq!((&fed["data"]["argv"][1], &fed["data"]["stdin"]), (&json!("--long=@-"), &json!(1024 * 1024)));
    let (complete, refused) =
        served.call("run_tool", json!({ "tool": "echo", "action": "show", "args": { "text": megabyte } })).await;
    assert!(
        !complete && refused["error"]["code"] == "bad_argument" && refused["returncode"] == Value::Null,
        "{refused}"
    );
    let (_, refused) =
        served.call("run_tool", json!({ "tool": "echo", "action": "show", "args": { "text": "a\u{0}b" } })).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("NUL"), "{refused}");
}

#[tokio::test]
async fn a_wrong_use_is_answered_with_the_right_one_and_starts_nothing() {
    let served = Served::new();
    let run = |args: Value| json!({ "tool": "echo", "action": "show", "args": args });
    for (call, expected) in [
        (
            json!({ "tool": "echo", "action": "path-read" }),
            json!({ "unknown_action": "path-read", "did_you_mean": ["read-path"] }),
        ),
        (
            run(json!({ "max_results": 3 })),
            json!({ "unknown_args": [{ "name": "max_results", "did_you_mean": ["max-results"] }] }),
        ),
        (json!({ "tool": "echo", "action": "read-path" }), json!({ "missing_args": ["path"] })),
        (
            json!({ "tool": "echo", "action": "read-path", "args": { "path": null } }),
            json!({ "missing_args": ["path"] }),
        ),
        (run(json!({ "n": "3" })), json!({ "action": "show" })),
        (run(json!({ "--text": "x" })), json!({ "unknown_args": [{ "name": "--text", "did_you_mean": ["text"] }] })),
        (json!({ "tool": "echo" }), json!({ "action_count": 2 })),
        // A parser that takes beginnings of flags never sees one.
        (
            run(json!({ "max-res": 3 })),
            json!({ "unknown_args": [{ "name": "max-res", "did_you_mean": ["max-results"] }] }),
        ),
        (run(json!({ "rows": [{ "id": 1 }, {}] })), json!({ "action": "show" })),
        (run(json!({ "rows": [{ "id": 1 }, { "id": 2 }, { "id": 3 }] })), json!({ "of": "echo" })),
    ] {
        let (complete, value) = served.call("run_tool", call.clone()).await;
        assert!(
            !complete && value["error"]["code"] == "usage" && value["returncode"] == Value::Null,
            "{call}: {value}"
        );
        assert!(value["hint"].as_str().unwrap().contains("capabilities {"), "{value}");
        for (key, expected) in expected.as_object().unwrap() {
            assert_eq!(&value["schema"][key], expected, "{call}: {value}");
        }
    }
    let (complete, value) = served.call("run_tool", json!({ "tool": "ecko" })).await;
    assert!(!complete && value["did_you_mean"][0] == "echo", "{value}");
    let (_, value) = served.call("run_tool", json!({ "tool": "helper", "action": "guidance" })).await;
    assert!(value["hint"].as_str().unwrap().contains("run_agent"), "{value}");
    let (_, value) = served.call("run_tool", json!({ "tool": "broken" })).await;
    assert_eq!(value["error"]["code"], "unknown_capability");
}

#[tokio::test]
async fn a_value_beside_the_schema_of_its_argument_is_told_where_it_does_not_fit() {
    let served = Served::new();
    assert_eq!(served.show(json!({ "rows": [{ "id": 1 }] })).await, ["show", "--rows", "[{\"id\":1}]"]);
    let call = json!({ "tool": "echo", "action": "show", "args": { "rows": [{ "id": 1 }, {}] } });
    let (_, value) = served.call("run_tool", call).await;
    let message = value["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("argument \"rows\" does not fit its schema: at /1") && message.contains("id"),
        "{message}"
    );
}

#[tokio::test]
async fn a_name_with_the_wrong_dashes_is_taken_where_the_surface_says_so_and_told() {
    let served = Served::coercing(true, |_| None, None, |builtin| builtin.name().to_owned());
    let call = |args: Value| json!({ "tool": "echo", "action": "show", "args": args });
    let (complete, value) = served.call("run_tool", call(json!({ "max_results": 3, "text": "a_b" }))).await;
    assert!(complete, "{value}");
    assert_eq!(value["data"]["argv"], json!(["show", "--max-results", "3", "--text=a_b"]));
    assert_eq!(value["coerced_args"], json!({ "max_results": "max-results" }));
    let (_, value) = served.call("run_tool", call(json!({ "max-results": 3 }))).await;
    assert_eq!(value.get("coerced_args"), None, "{value}");
    for wrong in
        [json!({ "max_results": 3, "max-results": 4 }), json!({ "maxresults": 3 }), json!({ "max_results": "3" })]
    {
        let (complete, value) = served.call("run_tool", call(wrong)).await;
        assert!(!complete && value["error"]["code"] == "usage", "{value}");
    }
}

#[tokio::test]
async fn a_program_that_knows_no_equals_sign_gets_its_values_apart() {
    let served = Served::new();
    let path = served.folder.path().join("tools/echo/tool.yaml");
    fs::write(path, format!("{ECHO_MANIFEST}argv_style: space\n")).unwrap();
    assert_eq!(served.show(json!({ "text": "a b" })).await, ["show", "--text", "a b"]);
    assert_eq!(served.show(json!({ "text": "--evil" })).await, ["show", "--text=--evil"]);
}

#[tokio::test]
async fn one_run_more_than_a_manifest_allows_waits_and_is_told_when_nothing_ended() {
    let served = Served::new();
    let path = served.folder.path().join("tools/noise/tool.yaml");
    let manifest = fs::read_to_string(&path).unwrap();
    fs::write(path, format!("{manifest}max_concurrent: 1\n")).unwrap();
    let (_, whole) = served.call("capabilities", json!({ "name": "noise" })).await;
    assert_eq!(whole["capability"]["max_concurrent"], 1);
    let peer = Arc::new(Peer(watch::Sender::new(false)));
    let call = json!({ "tool": "noise", "action": "slow" });
    let other = async {
        while !served.folder.path().join("ready").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mut waiting = std::pin::pin!(served.noise("last-line"));
        tokio::select! {
            biased;
            early = &mut waiting => panic!("it did not wait: {early:?}"),
            (_, echo) = served.call("run_tool", json!({ "tool": "echo", "action": "show" })) => {
                assert_eq!(echo["ok"], true, "another capability goes on: {echo}");
            }
        }
        peer.0.send_replace(true);
        waiting.await
    };
    let (_, (complete, value)) =
        tokio::join!(served.outcome("run_tool", &call, Principal::LOCAL, Arc::clone(&peer)), other);
    assert!(complete && value["ok"] == true, "{value}");

    fs::remove_file(served.folder.path().join("ready")).unwrap();
    let peer = Arc::new(Peer(watch::Sender::new(false)));
    let impatient = router(&served.folder, &tools(false, Some(Duration::from_millis(200)), Builtin::name), |_| None);
    let other = async {
        while !served.folder.path().join("ready").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let call = json!({ "tool": "noise", "action": "last-line" });
        let busy = impatient
            .invoke(Arc::new(served.invocation("run_tool", &call, Principal::LOCAL)), Arc::clone(&peer) as _)
            .await;
        peer.0.send_replace(true);
        busy
    };
    let (_, outcome) = tokio::join!(served.outcome("run_tool", &call, Principal::LOCAL, Arc::clone(&peer)), other);
    let Outcome::Failed(content) = outcome else { panic!("{outcome:?}") };
    let busy: Value = serde_json::from_str(&content.plain_text()).unwrap();
    assert_eq!((&busy["error"]["code"], &busy["returncode"]), (&json!("busy"), &Value::Null), "{busy}");
    assert!(busy["hint"].as_str().unwrap().contains("again"), "{busy}");
}

#[tokio::test]
async fn output_after_noise_and_the_last_of_two_lines_count() {
    let served = Served::new();
    assert_eq!(
        served.noise("last-line").await,
        (true, json!({ "ok": true, "data": { "a": 1 }, "error": null, "returncode": 0, "stderr": "" }))
    );
    assert_eq!(served.noise("two-lines").await.1["data"], json!({ "a": 2 }));
}

#[tokio::test]
async fn a_stated_error_with_exit_zero_is_a_failure() {
    let (complete, value) = Served::new().noise("error-zero").await;
    assert!(!complete);
    assert_eq!(value["error"], json!({ "code": "not_found", "message": "no such thing" }));
    assert!(value["returncode"] == 0 && value["hint"].as_str().unwrap().contains("do not fall back to a shell"));
}

#[tokio::test]
async fn a_programs_own_usage_error_gets_the_valid_arguments_and_a_remote_one_does_not() {
    let served = Served::new();
    let (_, value) = served.noise("usage").await;
    assert_eq!(value["schema"]["valid_args"], json!([{ "name": "page", "type": "integer", "required": false }]));
    assert_eq!(value["error"], json!({ "code": "usage", "message": "unrecognized arguments: --x" }));
    assert!(served.noise("remote").await.1.get("schema").is_none());
}

#[tokio::test]
async fn hostile_output_is_told_in_the_same_shape() {
    let served = Served::new();
    assert_eq!(served.noise("plain").await.1["data"], json!({ "text": "plain words\n" }));
    assert_eq!(served.noise("invalid-utf8").await.1["data"], json!({ "a": "\u{fffd}\u{fffd}" }));
    assert_eq!(served.noise("hidden").await.1["data"], json!({ "a": "x[31m" }));
    for (action, code) in
        [("plain", "no_json"), ("deep", "no_json"), ("nothing", "no_json"), ("closes", "no_json"), ("fails", "no_json")]
    {
        let (complete, value) = served.noise(action).await;
        assert!(!complete && value["error"]["code"] == code, "{action}: {value}");
    }
    let (_, failed) = served.noise("fails").await;
    assert_eq!((&failed["returncode"], &failed["stderr"]), (&json!(3), &json!("went wrong")));
    assert_eq!(served.noise("signal").await.1["returncode"], json!(-9));
}

#[tokio::test]
async fn a_hundred_mebibytes_and_an_endless_stream_are_stopped() {
    let served = Served::new();
    for action in ["huge", "endless"] {
        let (complete, value) = served.noise(action).await;
        assert!(!complete && value["error"]["code"] == "output_too_large", "{action}: {value}");
    }
}

#[tokio::test]
async fn a_large_answer_is_cut_with_a_hint_that_names_the_narrowing_argument() {
    let (complete, value) = Served::new().noise("rows").await;
    assert!(complete && value["truncated"] == true && value["max_response_bytes"] == 60_000, "{value}");
    assert_eq!(value["item_count"], 5001);
    assert_eq!(value["items"][0], json!({ "row": 0, "text": "some text of it" }));
    assert!(value["hint"].as_str().unwrap().ends_with("Narrow it with page."));
    assert!(value.to_string().len() <= 60_000);
}

#[tokio::test]
async fn a_secret_reaches_the_program_that_declares_it_and_leaves_it_nowhere() {
    let served = Served::new();
    let (complete, value) = served.call("run_tool", json!({ "tool": "leak" })).await;
    assert!(complete, "{value}");
    let text = value.to_string();
    for part in ["9f8e7d6c", "dG9rL", "b2stOWY4", "5b+4a"] {
        assert!(!text.contains(part), "{part} in {text}");
    }
    assert_eq!(value["data"]["plain"], "key=[redacted]");
    assert_eq!(value["stderr"], "using [redacted]");
    let others: Vec<&str> = value["data"]["others"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(others.contains(&"VAULT_TOKEN") && !others.contains(&"HOME") && !others.contains(&"CARGO"), "{others:?}");
    let (_, echo) = served.call("run_tool", json!({ "tool": "echo", "action": "show" })).await;
    assert!(!echo["data"]["env"].to_string().contains("VAULT_TOKEN"), "{echo}");
}

#[tokio::test]
async fn a_capability_that_is_not_ready_is_refused_with_what_it_lacks() {
    let served = Served::new();
    let (complete, value) = served.call("run_tool", json!({ "tool": "mail", "action": "list" })).await;
    assert!(!complete);
    assert_eq!(
        (&value["error"]["code"], &value["error"]["missing_secrets"]),
        (&json!("not_ready"), &json!(["mail:password"]))
    );
    assert!(value["hint"].as_str().unwrap().contains("MAIL_PASSWORD"), "{value}");
}

#[tokio::test]
async fn the_user_comes_from_who_was_proven_and_from_nothing_else() {
    let served = Served::new();
    let call = json!({ "tool": "echo", "action": "show" });
    let (_, local) = served.call("run_tool", call.clone()).await;
    assert_eq!(local["data"]["user"], Value::Null);
    let (_, named) = served.call_as("run_tool", call, Principal::named("ann")).await;
    assert_eq!(named["data"]["user"], "ann");
    assert_eq!(named["data"]["cwd"], json!(fs::canonicalize(served.folder.path()).unwrap()));
}

#[tokio::test]
async fn the_workspace_comes_from_the_servers_environment_and_from_nothing_else() {
    let variable = |name: &str| (name == "AAT_WORKSPACE_ID").then(|| "w-1".to_owned());
    let served = Served::with(variable, None, |builtin| builtin.name().to_owned());
    let call = json!({ "tool": "echo", "action": "show" });
    let (_, told) = served.call("run_tool", call.clone()).await;
    assert_eq!((&told["data"]["workspace"], &told["data"]["user"]), (&json!("w-1"), &Value::Null));
    let (_, none) = Served::new().call("run_tool", call).await;
    assert_eq!(none["data"]["workspace"], Value::Null);
    let claimed = json!({ "tool": "echo", "action": "show", "args": { "workspace": "w-2" } });
    let (complete, value) = served.call("run_tool", claimed).await;
    assert!(!complete && value["error"]["code"] == "usage", "{value}");
}

#[tokio::test]
async fn what_an_action_does_is_told_before_it_is_called() {
    let served = Served::new();
    let (_, whole) = served.call("capabilities", json!({ "name": "noise" })).await;
    let actions = whole["capability"]["actions"].as_array().unwrap();
    let delete = actions.iter().find(|action| action["name"] == "delete-all").unwrap();
    assert_eq!((&delete["effects"], &delete["blast_class"]), (&json!("irreversible"), &json!("data-loss")));
    let plain = actions.iter().find(|action| action["name"] == "plain").unwrap();
    assert_eq!((&plain["effects"], plain.get("blast_class")), (&json!("write"), None));
    let (_, one) = served.call("capabilities", json!({ "name": "noise", "action": "delete-all" })).await;
    assert_eq!(one["capability"]["action"]["effects"], "irreversible");
    let (_, flat) = served.call("capabilities", json!({ "name": "leak" })).await;
    assert_eq!(flat["capability"]["effects"], "write", "{flat}");
}

#[tokio::test]
async fn an_agent_runs_and_one_that_would_drive_its_own_turn_does_not() {
    let served = Served::new();
    let (complete, value) = served.call("run_agent", json!({ "agent": "helper", "action": "guidance" })).await;
    assert!(complete && value["data"] == json!({ "advice": "none" }), "{value}");
    let drive = json!({ "agent": "orchestrator", "action": "drive" });
    assert!(served.call("run_agent", drive.clone()).await.0);
    let managed = Served::with(
        |name| (name == "AAT_MCP_MANAGED_TURN").then(|| "1".to_owned()),
        None,
        |builtin| builtin.name().to_owned(),
    );
    for tool in ["run_agent", "run_agent_confirmed"] {
        let (complete, value) = managed.call(tool, drive.clone()).await;
        assert!(!complete && value["refused"]["reason"] == "managed_turn", "{value}");
    }
}

#[tokio::test]
async fn what_cannot_be_undone_is_refused_with_the_name_of_the_tool_that_asks() {
    let served = Served::with(|_| None, None, |builtin| format!("ops_{}", builtin.name()));
    let delete = json!({ "tool": "noise", "action": "delete-all" });
    let (complete, value) = served.call("ops_run_tool", delete.clone()).await;
    assert!(complete, "it is no failure: {value}");
    let about = &value["approval_required"];
    assert_eq!(
        (&value["status"], &about["verb"], &about["blast_class"]),
        (&json!("approval_required"), &json!("delete"), &json!("data-loss"))
    );
    assert!(
        about["request_id"].is_string() && about["next"].as_str().unwrap().contains("ops_run_tool_confirmed"),
        "{value}"
    );
    let (complete, value) = served.call("ops_run_tool_confirmed", delete).await;
    assert!(!complete, "nobody can be asked: {value}");
    assert!(!served.folder.path().join("deleted").exists(), "nothing ran");
    let (complete, value) =
        served.call("ops_run_tool", json!({ "tool": "noise", "action": "delete-all", "args": { "pages": 1 } })).await;
    assert!(!complete && value["error"]["code"] == "usage", "nobody is asked about a call that is wrong: {value}");
    let (complete, _) = served.call("ops_run_tool_confirmed", json!({ "tool": "noise", "action": "last-line" })).await;
    assert!(complete, "the confirmed tool runs what can be undone");
    let (complete, _) = served
        .call("ops_run_tool", json!({ "tool": "echo", "action": "show", "args": { "text": "please send and delete" } }))
        .await;
    assert!(complete, "values are not looked at");
}

#[tokio::test]
async fn an_approval_of_a_manifest_runs_no_other() {
    let mut served = Served::new();
    let state = tempfile::tempdir().unwrap();
    let desk = Arc::new(Desk::new(Stance::Ask));
    desk.open(state.path()).unwrap();
    served.router = std::mem::take(&mut served.router).at(desk);
    let call = json!({ "tool": "noise", "action": "delete-all" });
    let requested = async || {
        let (_, value) = served.call("run_tool_confirmed", call.clone()).await;
        assert_eq!(value["status"], "approval_required", "{value}");
        value["approval_required"]["request_id"].as_str().unwrap().to_owned()
    };
    let id = requested().await;
    assert_eq!(requested().await, id);
    let approvals = Approvals::open(state.path()).unwrap();
    approvals.decide(&approvals.named(&id).unwrap(), Decision::Approve).unwrap();

    let path = served.folder.path().join("tools/noise/tool.yaml");
    let manifest = fs::read_to_string(&path).unwrap();
    for (was, is) in [
        ("Does delete-all.", "Sends it too."),
        ("delete-all,", "delete-all, effects: irreversible,"),
        ("noise.sh", "other.sh"),
    ] {
        fs::copy(path.with_file_name("noise.sh"), path.with_file_name("other.sh")).unwrap();
        fs::write(&path, manifest.replace(was, is)).unwrap();
        assert_ne!(requested().await, id, "{is}");
    }
    assert!(!served.folder.path().join("deleted").exists(), "what was approved is something else");
    fs::write(&path, manifest).unwrap();
    let (complete, value) = served.call("run_tool_confirmed", call.clone()).await;
    assert!(complete && value["data"]["deleted"] == true, "{value}");
}

#[tokio::test]
async fn a_run_that_is_too_slow_or_not_wanted_any_more_leaves_nothing() {
    let vanished = |served: &Served| {
        let read = |name: &str| fs::read_to_string(served.folder.path().join(name)).unwrap().trim().to_owned();
        for name in ["pid-slow", "pid-child"] {
            let process = std::path::Path::new("/proc").join(read(name));
            assert!(!process.exists(), "{name} is left");
        }
    };
    let served = Served::with(|_| None, Some(Duration::from_secs(3)), |builtin| builtin.name().to_owned());
    let (complete, value) = served.noise("slow").await;
    assert!(!complete && value["error"]["code"] == "timeout", "{value}");
    vanished(&served);

    let served = Served::new();
    let peer = Arc::new(Peer(watch::Sender::new(false)));
    let call = json!({ "tool": "noise", "action": "slow" });
    let leaving = async {
        while !served.folder.path().join("ready").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        peer.0.send_replace(true);
    };
    let (outcome, ()) = tokio::join!(served.outcome("run_tool", &call, Principal::LOCAL, Arc::clone(&peer)), leaving);
    let Outcome::Failed(content) = outcome else { panic!("{outcome:?}") };
    assert!(content.plain_text().contains("\"stopped\""));
    vanished(&served);
}

#[tokio::test]
async fn a_skill_is_read_and_no_path_leads_out_of_it() {
    let served = Served::new();
    let (_, value) = served.call("get_skill", json!({ "name": "how" })).await;
    assert!(
        value["content"].as_str().unwrap().contains("This is how.")
            && value["resources"]["references"] == json!(["references/more.md"])
    );
    let (_, value) = served.call("get_skill", json!({ "name": "how", "resource": "references/more.md" })).await;
    assert_eq!((&value["resource"]["content"], value.get("content")), (&json!("More."), None));
    for path in ["../../tools/echo/main.py", "/etc/passwd", "", "references/../../x"] {
        let (complete, value) = served.call("get_skill", json!({ "name": "how", "resource": path })).await;
        assert!(!complete && value["error"]["code"].is_string(), "{value}");
    }
    let (complete, value) = served.call("get_skill", json!({ "name": "hwo" })).await;
    assert!(!complete && value["did_you_mean"] == json!(["how"]), "{value}");
}

#[tokio::test]
async fn a_changed_manifest_counts_at_the_next_call() {
    let served = Served::new();
    let path = served.folder.path().join("tools/echo/tool.yaml");
    fs::write(&path, ECHO_MANIFEST.replace("name: read-path", "name: read-file")).unwrap();
    let call = |action: &str| json!({ "tool": "echo", "action": action, "args": { "path": "x" } });
    assert!(!served.call("run_tool", call("read-path")).await.0);
    assert!(served.call("run_tool", call("read-file")).await.0);
}
