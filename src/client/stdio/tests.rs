//! Answers over pipes, good and bad, from scripted programs.

use serde_json::{Value, json};

use super::super::fake::{Act, Log, hasty, line, program, refusal};
use super::super::peer::Peer;
use super::*;

async fn open(script: impl Fn(&Value) -> Vec<Act> + Send + Sync + 'static, options: &Options) -> (Peer, Log) {
    let (target, log) = program(script);
    (Peer::connect(&target, options).await.unwrap(), log)
}

async fn ask(peer: &Peer, method: &str, options: &Options) -> Result<RawJson, Problem> {
    peer.request(&Ask { method, params: Vec::new(), headers: Vec::new() }, options.answer).await
}

#[tokio::test]
async fn an_answer_is_found_among_rubbish_other_ids_and_second_answers() {
    let (peer, _) = open(
        |message| {
            let other = json!({ "id": 999 });
            let quoted = json!({ "id": message["id"].to_string() });
            vec![
                Act::Write("Server running on stdio\n{\"level\":\"info\"}\n\n".to_owned()),
                line(&other, "{}"),
                line(&quoted, "{}"),
                line(message, r#"{"n":1.50}"#),
                line(message, r#"{"n":2}"#),
            ]
        },
        &Options::default(),
    )
    .await;
    for _ in 0..2 {
        assert_eq!(ask(&peer, "x", &Options::default()).await.unwrap().as_str(), r#"{"n":1.50}"#);
    }
    let strays = peer.strays().unwrap();
    assert!(strays.contains("things that answer nothing, first a line that is no message: Server running"), "{strays}");
}

#[tokio::test]
async fn answers_out_of_order_reach_who_asked() {
    let held = Mutex::new(None);
    let (peer, _) = open(
        move |message| match held.lock().unwrap().replace(message.clone()) {
            None => Vec::new(),
            Some(first) => vec![line(message, r#""second""#), line(&first, r#""first""#)],
        },
        &Options::default(),
    )
    .await;
    let options = Options::default();
    let (first, second) = tokio::join!(ask(&peer, "a", &options), ask(&peer, "b", &options));
    assert_eq!((first.unwrap().as_str(), second.unwrap().as_str()), ("\"first\"", "\"second\""));
}

#[tokio::test]
async fn silence_ends_in_time_names_what_came_instead_and_cancels_at_the_server() {
    let (peer, log) = open(|_| vec![Act::Write("npm warn\n".to_owned())], &hasty()).await;
    let problem = ask(&peer, "tools/list", &hasty()).await.unwrap_err();
    assert!(matches!(problem, Problem::Time { .. }));
    assert_eq!(problem.in_full(), "no answer to tools/list within 60ms: it wrote a line that is no message: npm warn");
    peer.close(Vec::new()).await;
    let log = log.lock().unwrap();
    assert_eq!(log[1], json!({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}));
}

#[tokio::test]
async fn a_handshake_is_never_cancelled() {
    let (peer, log) = open(|_| Vec::new(), &hasty()).await;
    assert!(ask(&peer, "initialize", &hasty()).await.is_err());
    peer.close(Vec::new()).await;
    assert_eq!(log.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_endless_line_and_a_broken_answer_fail_the_one_request_that_waits() {
    let small = Options { answer_bytes: 1000, ..Options::default() };
    let (peer, _) = open(|_| vec![Act::Write("x".repeat(5000))], &small).await;
    let problem = ask(&peer, "x", &small).await.unwrap_err();
    assert!(matches!(problem, Problem::TooLong { limit: 1000, .. }), "{problem}");
    for broken in [r#"{"jsonrpc":"2.0","id":1,"result":"#, r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#] {
        let (peer, _) = open(move |_| vec![Act::Write(format!("{broken}\n"))], &small).await;
        let problem = ask(&peer, "x", &small).await.unwrap_err();
        assert!(matches!(problem, Problem::NotStrict { .. }), "{broken}: {problem}");
    }
}

#[tokio::test]
async fn an_error_without_an_id_answers_the_one_request_that_waits() {
    let text = format!("{}\n", json!({"jsonrpc":"2.0","error":{"code":-32700,"message":"?"}}));
    let (peer, _) = open(move |_| vec![Act::Write(text.clone())], &Options::default()).await;
    assert!(matches!(ask(&peer, "x", &Options::default()).await, Err(Problem::Refused { code: -32700, .. })));
    let (peer, _) = open(|message| vec![refusal(message, -32601)], &Options::default()).await;
    assert!(matches!(ask(&peer, "x", &Options::default()).await, Err(Problem::Refused { code: -32601, .. })));
}

#[tokio::test]
async fn a_closed_pipe_fails_what_waits_and_what_comes_after_and_says_what_came_before() {
    let (peer, _) = open(|_| vec![Act::Write("Traceback".to_owned()), Act::Close], &Options::default()).await;
    for _ in 0..2 {
        let problem = ask(&peer, "x", &Options::default()).await.unwrap_err();
        assert_eq!(
            problem.in_full(),
            "no answer to x: the connection ended: it closed its output; before that it wrote a line that is no message: Traceback"
        );
    }
}

#[tokio::test]
async fn a_last_answer_without_a_line_end_counts() {
    let (peer, _) =
        open(|message| vec![Act::Write(super::super::fake::answer(message, "{}")), Act::Close], &Options::default())
            .await;
    assert!(ask(&peer, "x", &Options::default()).await.is_ok());
}

#[tokio::test]
async fn a_servers_requests_are_answered_and_its_notifications_handed_on() {
    let (sender, mut receiver) = mpsc::channel(4);
    let hear = Some(Hear::new(move |told| sender.try_send(told).unwrap()));
    let options = Options { hear, ..Options::default() };
    let asked = Mutex::new(None);
    let (peer, _) = open(
        move |message| match message["method"].as_str() {
            Some("x") => {
                *asked.lock().unwrap() = Some(message.clone());
                vec![
                    Act::Write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n".to_owned()),
                    Act::Write("{\"jsonrpc\":\"2.0\",\"id\":\"r\",\"method\":\"roots/list\"}\n".to_owned()),
                ]
            }
            // The server answers only once its own question was answered.
            _ => vec![line(asked.lock().unwrap().as_ref().unwrap(), &message.to_string())],
        },
        &options,
    )
    .await;
    let seen: Value = ask(&peer, "x", &options).await.unwrap().parse().unwrap();
    assert_eq!((&seen["id"], &seen["error"]["code"]), (&json!("r"), &json!(-32601)));
    assert_eq!(&*receiver.recv().await.unwrap().method, "notifications/message");
}

#[tokio::test]
async fn a_flood_of_rubbish_ends_the_connection() {
    let (peer, _) = open(|_| vec![Act::Write("?\n".repeat(1001))], &Options::default()).await;
    let problem = ask(&peer, "x", &Options::default()).await.unwrap_err();
    assert!(problem.to_string().contains("it writes too much that answers nothing"), "{problem}");
}

#[tokio::test]
async fn how_the_server_ended_is_said_at_the_end() {
    let (near, _far) = tokio::io::duplex(64);
    let (reader, writer) = tokio::io::split(near);
    let end: End = Box::new(|| Box::pin(async { Some("exit status 3".to_owned()) }));
    let pipes = Pipes { end, ..Pipes::new(reader, writer) };
    let peer = StdioPeer::new(pipes, &Options::default());
    assert_eq!(peer.close().await.as_deref(), Some("exit status 3"));
}
