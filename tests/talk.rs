//! Programs that talk while they run: what their caller hears, what they read, and how a talk ends.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may")]

mod children;

use std::sync::{Arc, Mutex};

use children::{PATIENCE, Scratch, all_vanished, until, vanished};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;
use twodoor::core::command::{Called, CommandTool};
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::{Arguments, Ask, Caller, Catalog, CatalogParts, LogLevel, Notice, Outcome, RawJson};
use twodoor::surface::declaration::{Element, Output, Piece, Run, Template};

/// A far end that keeps what it hears, and can leave.
struct Peer {
    heard: Mutex<Vec<Notice>>,
    gone: watch::Sender<bool>,
}

impl Peer {
    fn new() -> Self {
        Self { heard: Mutex::default(), gone: watch::Sender::new(false) }
    }

    fn progress(&self) -> Vec<f64> {
        let heard = self.heard.lock().unwrap();
        let progress = |notice: &Notice| match notice {
            Notice::Progress { progress, .. } => Some(*progress),
            _ => None,
        };
        heard.iter().filter_map(progress).collect()
    }

    fn logs(&self) -> Vec<(LogLevel, Value)> {
        let heard = self.heard.lock().unwrap();
        let log = |notice: &Notice| match notice {
            Notice::Log { level, data, .. } => Some((*level, data.clone())),
            _ => None,
        };
        heard.iter().filter_map(log).collect()
    }
}

impl Caller for Peer {
    fn notify(&self, notice: Notice) {
        self.heard.lock().unwrap().push(notice);
    }
    fn is_gone(&self) -> bool {
        *self.gone.borrow()
    }
    fn gone(&self) -> BoxFuture<'_, ()> {
        let mut gone = self.gone.subscribe();
        Box::pin(async move { drop(gone.wait_for(|gone| *gone).await) })
    }
}

/// `bash -c script bash SCRATCH`
fn talking(script: &str, scratch: &Scratch) -> CommandTool {
    let literal = |text: &str| Element::One(Template(vec![Piece::Literal(text.to_owned())]));
    let run = Run {
        argv: ["bash", "-c", script, "bash", scratch.0.to_str().unwrap()].map(literal).into(),
        arguments: Vec::new(),
        root: scratch.0.clone(),
        cwd: scratch.0.clone(),
        env: Vec::new(),
        stdin: None,
        cap: 2000,
        exit_codes: vec![0],
        output: Output::Text,
        talk: true,
    };
    CommandTool::new("talk".to_owned(), run)
}

async fn run(tool: &CommandTool, peer: &Peer, answers: &[(Box<str>, RawJson)], state: Option<&Value>) -> Outcome {
    let arguments = Arguments::new(RawJson::empty_object()).unwrap();
    let catalog = Arc::new(Catalog::build(CatalogParts::new("test", "1.0.0")).unwrap());
    let called = Called { arguments: &arguments, answers, state, catalog: &catalog };
    timeout(PATIENCE, tool.run(called, peer)).await.expect("ends in time")
}

async fn once(script: &str, scratch: &Scratch) -> (Outcome, Peer) {
    let peer = Peer::new();
    let outcome = run(&talking(script, scratch), &peer, &[], None).await;
    (outcome, peer)
}

fn text(outcome: &Outcome) -> String {
    let Outcome::Complete(content) = outcome else { panic!("{outcome:?}") };
    content.plain_text()
}

fn asked(outcome: Outcome) -> (String, Value, Value) {
    let Outcome::InputRequired(Ask { mut requests, state }) = outcome else { panic!("{outcome:?}") };
    let request = requests.pop().unwrap();
    assert!(requests.is_empty());
    (request.key, request.params, state.unwrap())
}

fn answer(key: &str, value: &Value) -> Vec<(Box<str>, RawJson)> {
    vec![(key.into(), RawJson::encode(value))]
}

const OK: &str = r#"echo '{"ask":"ok","message":"Go on?"}' >&3; read -r -u 3 line; echo "$line""#;

#[tokio::test]
async fn progress_and_logs_reach_the_caller_in_order_while_it_runs() {
    let scratch = Scratch::new();
    let script = r#"
        echo '{"progress":1,"total":3,"message":"one"}' >&$TWODOOR_FD
        echo '{"log":"warning","message":"careful"}' >&3
        until [ -e $1/heard ]; do sleep 0.01; done
        echo '{"progress":3}' >&3
        echo done"#;
    let (tool, peer) = (talking(script, &scratch), Peer::new());
    let (outcome, ()) = tokio::join!(run(&tool, &peer, &[], None), async {
        until("both are heard", || (peer.heard.lock().unwrap().len() == 2).then_some(())).await;
        std::fs::write(scratch.0.join("heard"), "").unwrap();
    });
    assert_eq!(text(&outcome), "done\n");
    assert_eq!(peer.progress(), [1.0, 3.0]);
    assert_eq!(peer.logs(), [(LogLevel::Warning, json!("careful"))]);
}

#[tokio::test]
async fn a_question_ends_the_run_and_its_answer_is_read_by_the_next_one() {
    let scratch = Scratch::new();
    let script = format!("echo $$ > $1/pid; sleep 1000 & echo $! > $1/child; {OK}");
    let (outcome, _) = once(&script, &scratch).await;
    let (key, params, state) = asked(outcome);
    assert_eq!((key.as_str(), &params["message"]), ("ok", &json!("Go on?")));
    // The whole group is gone before the client is asked.
    vanished(scratch.pid("pid").await).await;
    vanished(scratch.pid("child").await).await;
    let yes = json!({ "action": "accept", "content": { "confirm": true } });
    for given in [yes, json!({ "action": "decline" }), json!({ "action": "cancel" })] {
        let outcome = run(&talking(OK, &scratch), &Peer::new(), &answer("ok", &given), Some(&state)).await;
        assert_eq!(text(&outcome), format!("{}\n", json!({ "answer": given })));
    }
}

#[tokio::test]
async fn several_questions_take_a_run_each_and_the_last_run_hears_every_answer() {
    let scratch = Scratch::new();
    let script = r#"
        echo run >> $1/runs
        for key in a b c; do
            echo "{\"ask\":\"$key\",\"message\":\"May $key?\"}" >&3
            read -r -u 3 line
            echo "$key $line"
        done"#;
    let tool = talking(script, &scratch);
    let (mut answers, mut state) = (Vec::new(), None);
    for expected in ["a", "b", "c"] {
        let (key, _, next) = asked(run(&tool, &Peer::new(), &answers, state.as_ref()).await);
        assert_eq!(key, expected);
        answers = answer(&key, &json!({ "action": "accept", "content": { "confirm": key != "b" } }));
        state = Some(next);
    }
    let told = text(&run(&tool, &Peer::new(), &answers, state.as_ref()).await);
    let line = |key: &str, yes: bool| {
        format!("{key} {}\n", json!({ "answer": { "action": "accept", "content": { "confirm": yes } } }))
    };
    assert_eq!(told, line("a", true) + &line("b", false) + &line("c", true));
    assert_eq!(std::fs::read_to_string(scratch.0.join("runs")).unwrap().lines().count(), 4);
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_is_asked_all_the_same() {
    let scratch = Scratch::new();
    let script = r#"echo '{"ask":"ok","message":"Go on?"}' >&3; echo told"#;
    for _ in 0..10 {
        let (outcome, _) = once(script, &scratch).await;
        let (_, _, state) = asked(outcome);
        let no = answer("ok", &json!({ "action": "decline" }));
        assert_eq!(text(&run(&talking(script, &scratch), &Peer::new(), &no, Some(&state)).await), "told\n");
    }
}

#[tokio::test]
async fn what_is_written_last_counts_with_and_without_an_end_of_line() {
    let scratch = Scratch::new();
    let (outcome, peer) = once(r#"printf '{"progress":1}\n{"progress":2}' >&3; echo out"#, &scratch).await;
    assert_eq!((text(&outcome).as_str(), peer.progress()), ("out\n", vec![1.0, 2.0]));
    let (outcome, peer) = once(r#"printf '{"progress":1}\n{"progress":' >&3; echo out"#, &scratch).await;
    assert_eq!((text(&outcome).as_str(), peer.progress()), ("out\n", vec![1.0]));
    let (outcome, peer) = once(r#"printf '{"progr' >&3; sleep 0.05; printf 'ess":7}\n' >&3"#, &scratch).await;
    assert_eq!((text(&outcome).as_str(), peer.progress()), ("", vec![7.0]));
}

#[tokio::test]
async fn a_descriptor_that_is_closed_or_never_used_harms_nothing() {
    let scratch = Scratch::new();
    for script in [
        "exec 3>&-; echo out",
        "echo out",
        "exec 3>&-; sleep 0.05; echo out",
        r#"echo '{"progress":1}' >&3; exec 3>&-; echo out"#,
        r#"echo rubbish >&3; exec 3>&-; sleep 0.05; echo out"#,
        "sleep 1000 & echo out",
    ] {
        let (outcome, _) = once(script, &scratch).await;
        assert_eq!(text(&outcome), "out\n", "{script}");
    }
    let (outcome, _) = once(r#"echo '{"progress":1}' >&3; exit 4"#, &scratch).await;
    assert!(matches!(outcome, Outcome::Failed(_)));
}

#[tokio::test]
async fn rubbish_is_answered_by_what_was_expected_and_the_program_goes_on() {
    let scratch = Scratch::new();
    let script = r#"
        echo 'not json' >&3; read -r -u 3 line; echo "$line"
        echo '{"ask":"ok"}' >&3; read -r -u 3 line; echo "$line"
        head -c 70000 /dev/zero | tr '\0' x >&3; echo >&3; read -r -u 3 line; echo "$line"
        echo '{"progress":1}' >&3"#;
    let (outcome, peer) = once(script, &scratch).await;
    let told = text(&outcome);
    let errors: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(errors[0]["error"].as_str().unwrap().contains("not valid JSON"), "{told}");
    assert!(errors[1]["error"].as_str().unwrap().contains("message is missing"), "{told}");
    assert!(errors[2]["error"].as_str().unwrap().contains("longer than 65536 bytes"), "{told}");
    assert_eq!((errors.len(), peer.progress()), (3, vec![1.0]));
}

#[tokio::test]
async fn a_flood_is_read_without_harm_and_its_program_is_told_that_nobody_listens() {
    let scratch = Scratch::new();
    // All of it is read, though nobody listens; the program finds one line, then the end.
    let script = r#"
        for n in {1..12000}; do echo "{\"progress\":$n}"; done >&3
        cat <&3"#;
    let (outcome, peer) = once(script, &scratch).await;
    let told: Value = serde_json::from_str(&text(&outcome)).unwrap();
    assert!(told["error"].as_str().unwrap().contains("more than 10000 lines"), "{told}");
    assert_eq!(peer.progress().len(), 10_000);
    let (outcome, peer) = once("yes 2>&1 | head -c 3000000 >&3; wc -l <&3", &scratch).await;
    assert_eq!((text(&outcome).trim(), peer.progress().len()), ("101", 0));
    let (outcome, _) = once("head -c 3000000 /dev/zero >&3; exec 3>&-; echo out", &scratch).await;
    assert_eq!(text(&outcome), "out\n");
}

#[tokio::test]
async fn a_program_that_reads_no_answer_goes_on() {
    let scratch = Scratch::new();
    let (outcome, _) = once(r#"echo '{"ask":"ok","message":"Go on?"}' >&3; read -r -u 3 line"#, &scratch).await;
    let (_, _, state) = asked(outcome);
    let yes = answer("ok", &json!({ "action": "accept", "content": { "confirm": true } }));
    let script = r#"for n in {1..1000}; do echo '{"ask":"ok","message":"Go on?"}'; done >&3; echo out"#;
    assert_eq!(text(&run(&talking(script, &scratch), &Peer::new(), &yes, Some(&state)).await), "out\n");
}

#[tokio::test]
async fn a_program_that_reads_late_loses_no_answer() {
    let scratch = Scratch::new();
    let question = r#"{"ask":"t","message":"m","schema":{"type":"object","properties":{"t":{"type":"string"}}}}"#;
    let (outcome, _) = once(&format!("echo '{question}' >&3; read -r -u 3 line"), &scratch).await;
    let (_, _, state) = asked(outcome);
    let long = answer("t", &json!({ "action": "accept", "content": { "t": "x".repeat(4000) } }));
    // Far more than the line and we hold together, before the first is read.
    let script = format!(
        r#"(for n in {{1..200}}; do echo '{question}'; done >&3) & echo 1 > $1/ready
        until [ -e $1/read ]; do sleep 0.01; done
        for n in {{1..200}}; do read -r -u 3 line; echo ${{#line}}; done | uniq -c; wait"#
    );
    let (tool, peer) = (talking(&script, &scratch), Peer::new());
    let (outcome, ()) = tokio::join!(run(&tool, &peer, &long, Some(&state)), async {
        scratch.pid("ready").await;
        std::fs::write(scratch.0.join("read"), "").unwrap();
    });
    assert_eq!(text(&outcome).trim(), "200 4049");
}

/// The first block of a language in the documentation.
fn documented(language: &str) -> &'static str {
    let page = include_str!("../docs/talking-back.md");
    let (_, block) = page.split_once(&format!("```{language}\n")).unwrap();
    block.split_once("```").unwrap().0
}

#[tokio::test]
async fn the_scripts_of_the_documentation_ask_and_tell_as_it_says() {
    let scratch = Scratch::new();
    std::fs::write(scratch.0.join("script.py"), format!("def restart(worker): pass\n{}", documented("python")))
        .unwrap();
    let shell = format!("restart-worker() {{ :; }}; {}", documented("bash"));
    for (script, said) in [(shell.as_str(), "Restarted 3 workers.\n"), ("exec python3 $1/script.py", "")] {
        let (outcome, peer) = once(script, &scratch).await;
        let (key, params, state) = asked(outcome);
        assert_eq!((&params["message"], peer.progress().len()), (&json!("Restart the 3 workers?"), 0));
        let yes = answer(&key, &json!({ "action": "accept", "content": { "confirm": true } }));
        let outcome = run(&talking(script, &scratch), &peer, &yes, Some(&state)).await;
        assert_eq!((text(&outcome).as_str(), peer.progress()), (said, vec![1.0, 2.0, 3.0]));
        let no = answer(&key, &json!({ "action": "accept", "content": { "confirm": false } }));
        let outcome = run(&talking(script, &scratch), &peer, &no, Some(&state)).await;
        assert_eq!((text(&outcome).contains("Restarted"), peer.progress().len()), (false, 3));
    }
}

#[tokio::test]
async fn one_key_for_two_questions_is_told_and_neither_is_confused() {
    let scratch = Scratch::new();
    let (outcome, _) = once(OK, &scratch).await;
    let (_, _, state) = asked(outcome);
    let yes = answer("ok", &json!({ "action": "accept", "content": { "confirm": true } }));
    let script = format!(r#"{OK}; echo '{{"ask":"ok","message":"Delete all?"}}' >&3; read -r -u 3 line; echo "$line""#);
    let told = text(&run(&talking(&script, &scratch), &Peer::new(), &yes, Some(&state)).await);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].contains("\"confirm\":true") && lines[1].contains("stood for another question"), "{told}");
    // Asked with other words in the second run, it is a new question.
    let other = OK.replace("Go on?", "Delete all?");
    let (_, params, _) = asked(run(&talking(&other, &scratch), &Peer::new(), &yes, Some(&state)).await);
    assert_eq!(params["message"], "Delete all?");
}

#[tokio::test]
async fn a_caller_that_leaves_ends_a_program_that_talks_without_end() {
    let scratch = Scratch::new();
    for script in [
        r#"echo $$ > $1/a; echo 1 > $1/ready; n=0; while :; do echo "{\"progress\":$((n++))}" >&3; done"#,
        r#"echo $$ > $1/a; echo 1 > $1/ready; yes >&3"#,
        r#"echo $$ > $1/a; echo 1 > $1/ready; read -r -u 3 line"#,
    ] {
        let (tool, peer) = (talking(script, &scratch), Peer::new());
        let (outcome, pids) = tokio::join!(run(&tool, &peer, &[], None), async {
            let pids = scratch.pids(&["a"]).await;
            peer.gone.send_replace(true);
            pids
        });
        assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
        all_vanished(pids).await;
        for file in ["a", "ready"] {
            std::fs::remove_file(scratch.0.join(file)).unwrap();
        }
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_the_program_after_it_has_cleaned_up() {
    let scratch = Scratch::new();
    // Without our end, the line in the trap would end it by SIGPIPE before it is done.
    let script = r#"
        trap 'echo "{\"log\":\"info\",\"message\":\"cleaning\"}" >&3; echo 1 > $1/cleaned; exit' TERM
        echo $$ > $1/a; echo 1 > $1/ready; while :; do sleep 0.01; done"#;
    let (tool, peer) = (talking(script, &scratch), Peer::new());
    let pids = tokio::select! {
        _ = run(&tool, &peer, &[], None) => panic!("nobody ended it"),
        pids = scratch.pids(&["a"]) => pids,
    };
    all_vanished(pids).await;
    assert!(scratch.0.join("cleaned").exists());
}

#[tokio::test]
async fn no_other_child_has_the_descriptor() {
    let scratch = Scratch::new();
    let list = r#"for f in /proc/$$/fd/*; do [ -e $f ] || [ -h $f ] && echo "${f##*/} $(readlink $f)"; done; true"#;
    // One talks, and holds its line; another that does not talk looks at what it has meanwhile.
    let holding = format!(r#"echo 1 > $1/ready; until [ -e $1/seen ]; do sleep 0.01; done; {list}"#);
    let (talks, peer) = (talking(&holding, &scratch), Peer::new());
    let (held, ()) = tokio::join!(run(&talks, &peer, &[], None), async {
        scratch.pid("ready").await;
        let silent = children::to_the_end(children::sh(list, &scratch, &[])).await;
        let seen = String::from_utf8(silent.stdout.head().to_vec()).unwrap();
        assert!(!seen.contains("socket:") && !seen.lines().any(|line| line.starts_with("3 ")), "{seen}");
        let (other, _) = once(list, &scratch).await;
        let sockets = |text: &str| text.lines().filter(|line| line.contains("socket:")).count();
        assert_eq!(sockets(&text(&other)), 1, "another that talks has its own alone: {}", text(&other));
        std::fs::write(scratch.0.join("seen"), "").unwrap();
    });
    let held = text(&held);
    assert!(held.lines().any(|line| line.starts_with("3 socket:")), "{held}");
    assert_eq!(held.matches("socket:").count(), 1, "{held}");
}

#[tokio::test]
async fn a_program_that_is_not_there_is_said_to_be_so() {
    let scratch = Scratch::new();
    let literal = |text: &str| Element::One(Template(vec![Piece::Literal(text.to_owned())]));
    let script = scratch.0.join("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (program, says) in [("no-such-program", "not there"), (script.to_str().unwrap(), "interpreter")] {
        let run = Run {
            argv: vec![literal(program)],
            arguments: Vec::new(),
            root: scratch.0.clone(),
            cwd: scratch.0.clone(),
            env: Vec::new(),
            stdin: None,
            cap: 100,
            exit_codes: vec![0],
            output: Output::Text,
            talk: true,
        };
        let outcome = self::run(&CommandTool::new("t".to_owned(), run), &Peer::new(), &[], None).await;
        let Outcome::Failed(content) = outcome else { panic!("{outcome:?}") };
        assert!(content.plain_text().contains(says), "{}", content.plain_text());
    }
}
