//! The stdio transport in this process, over pipes: rows J11 to J13 and J16 to J18, slow readers,
//! the end of input, and a stop.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may fail by panicking"
)]

mod common;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use twodoor::protocol::{Limits, Offer};
use twodoor::transport::stdio::{self, Streams};

use common::{Backend, MODERN, NEWEST_LEGACY, PATIENCE, Report, Reports};

/// A peer of an engine that is served over two pipes.
struct Peer {
    input: Option<File>,
    output: BufReader<File>,
    backend: Arc<Backend>,
    reports: Reports,
    runtime: tokio::runtime::Runtime,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<()>>,
}

impl Peer {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        Self::over(limits, OFlags::empty())
    }

    /// Over pipes whose ends on the engine's side have these flags, as whoever shares them may have set.
    fn over(limits: Limits, flags: OFlags) -> Self {
        let (engine, backend, reports) = common::engine(limits, Offer::Both);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (their_input, input) = rustix::pipe::pipe().unwrap();
        let (output, their_output) = rustix::pipe::pipe().unwrap();
        rustix::fs::fcntl_setfl(&their_input, flags).unwrap();
        rustix::fs::fcntl_setfl(&their_output, flags | OFlags::WRONLY).unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = runtime.spawn(async move {
            let stop = async { drop(stopped.await) };
            stdio::serve(engine, Streams::new(their_input, their_output), stop).await.unwrap();
        });
        Self {
            input: Some(input.into()),
            output: BufReader::new(output.into()),
            backend,
            reports,
            runtime,
            stop: Some(stop),
            served: Some(served),
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn send(&mut self, message: &str) {
        self.write(format!("{message}\n").as_bytes());
    }

    /// The next line from the engine; `None` at its end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).unwrap();
        (read > 0).then(|| {
            assert!(line.ends_with('\n'), "a line is whole: {line:?}");
            line
        })
    }

    fn message(&mut self) -> Value {
        let line = self.line().expect("a message");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?}"))
    }

    fn ask(&mut self, message: &str) -> Value {
        self.send(message);
        self.message()
    }

    /// The next line that an engine which has ended left behind.
    fn line_of_ended(&mut self) -> Option<String> {
        rustix::io::ioctl_fionbio(self.output.get_ref(), true).unwrap();
        let mut line = String::new();
        match self.output.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(line),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn end_input(&mut self) {
        drop(self.input.take());
    }

    fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until the engine has ended.
    fn wait_ended(&mut self) {
        let served = self.served.take().unwrap();
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, served).await }).expect("ended in time").unwrap();
    }
}

fn act(id: impl Into<Value>, arguments: &Value) -> String {
    common::modern(&id.into(), "tools/call", &common::act(arguments))
}

fn list(id: impl Into<Value>) -> String {
    common::modern(&id.into(), "tools/list", &json!({}))
}

fn ping(id: impl Into<Value>) -> String {
    common::legacy(&id.into(), "ping", &json!({}))
}

fn hold(text: &str) -> Value {
    json!({ "text": text, "hold": true })
}

fn cancel(id: impl Into<Value>) -> String {
    common::notification("notifications/cancelled", &json!({ "requestId": id.into() }))
}

#[test]
fn an_endless_line_is_refused_once_and_the_next_is_answered() {
    let mut peer = Peer::with(Limits { message: 64 * 1024, ..Limits::default() });
    let block = vec![b'x'; 64 * 1024];
    for _ in 0..256 {
        peer.write(&block);
    }
    peer.write(b"\n");
    peer.send(&ping(1));
    let refusal = peer.message();
    assert_eq!((common::code_of(&refusal), refusal.get("id")), (-32600, None));
    assert_eq!(peer.message()["id"], 1);
}

#[test]
fn a_message_of_the_limit_is_taken_and_one_byte_more_is_not() {
    let limit = 64 * 1024;
    let mut peer = Peer::with(Limits { message: limit, ..Limits::default() });
    for (length, taken) in [(limit - 1, true), (limit, true), (limit + 1, false)] {
        let text = ping(length);
        let answer = peer.ask(&format!("{text}{}", " ".repeat(length - text.len())));
        match taken {
            true => assert_eq!(answer["id"], length),
            false => assert_eq!((common::code_of(&answer), answer.get("id")), (-32600, None)),
        }
    }
}

#[test]
fn lines_may_come_in_any_pieces_with_any_ends() {
    let mut peer = Peer::new();
    for byte in format!("{}\n", ping(1)).bytes() {
        peer.write(&[byte]);
    }
    assert_eq!(peer.message()["id"], 1);
    peer.write(format!("{}\n{}\n", ping(2), ping(3)).as_bytes());
    assert_eq!((peer.message()["id"].clone(), peer.message()["id"].clone()), (2.into(), 3.into()));
    peer.write(format!("{}\r\n\r\n\n   \n\u{feff}{}\n", ping(4), ping(5)).as_bytes());
    assert_eq!((peer.message()["id"].clone(), peer.message()["id"].clone()), (4.into(), 5.into()));
    let call = act(6, &json!({ "text": "a\nb\u{2028}c\0d" }));
    let answer = peer.ask(&call);
    assert!(common::text_of(&answer).starts_with("a\nb"), "one line on the wire: {answer}");
}

#[test]
fn both_eras_are_served_on_one_stream_and_leave_each_other_alone() {
    let mut peer = Peer::new();
    let unopened = peer.ask(&common::legacy(&1.into(), "tools/list", &json!({})));
    assert_eq!(common::code_of(&unopened), -32602);
    assert!(unopened["error"]["data"]["supported"].is_array());
    let discovered = peer.ask(&common::modern(&2.into(), "server/discover", &json!({})));
    assert_eq!(discovered["result"]["resultType"], "complete");
    let opened = peer.ask(&common::initialize(&3.into(), "2025-06-18"));
    assert_eq!(opened["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(common::code_of(&peer.ask(&common::initialize(&4.into(), NEWEST_LEGACY))), -32600);
    let modern = peer.ask(&list(5));
    assert_eq!(modern["result"]["resultType"], "complete");
    let legacy = peer.ask(&common::legacy(&6.into(), "tools/list", &json!({})));
    assert!(legacy["result"].get("resultType").is_none());
    assert_eq!(modern["result"]["tools"], legacy["result"]["tools"]);
    let wrong = common::legacy(
        &7.into(),
        "tools/list",
        &json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": MODERN } }),
    );
    assert_eq!(common::code_of(&peer.ask(&wrong)), -32602);
}

#[test]
fn ten_thousand_garbage_lines_get_a_hundred_answers_and_then_the_end() {
    let mut peer = Peer::new();
    let mut garbage = b"not json\n".repeat(10_000);
    garbage.extend(format!("{}\n", ping(1)).into_bytes());
    // The engine may end before it has read all of it.
    let mut input = peer.input.take().unwrap();
    let writer = std::thread::spawn(move || drop(input.write_all(&garbage)));
    let began = Instant::now();
    peer.wait_ended();
    let mut answers = 0;
    while let Some(line) = peer.line_of_ended() {
        assert!(line.contains("-32700") && !line.contains("\"id\""), "{line}");
        answers += 1;
    }
    // Ten a second beyond the first hundred, for as long as it took.
    let most = 100 + 10 * (began.elapsed().as_secs() + 1);
    assert!((100..=most).contains(&answers), "{answers}");
    drop(peer);
    drop(writer);
}

#[test]
fn a_good_line_among_bad_ones_begins_the_count_again() {
    let mut peer = Peer::new();
    for round in 0..3 {
        let bad = "garbage\n".repeat(99);
        peer.write(format!("{bad}{}\n", ping(round)).as_bytes());
        for _ in 0..99 {
            assert_eq!(common::code_of(&peer.message()), -32700);
        }
        assert_eq!(peer.message()["id"], round);
    }
}

#[test]
fn nothing_after_the_overrun_is_served_and_calls_in_flight_are_answered() {
    let mut peer = Peer::new();
    peer.send(&act(1, &hold("call")));
    peer.reports.began("call");
    let mut lines = "x\n".repeat(1000);
    lines.push_str(&format!("{}\n", act(2, &json!({ "text": "after" }))));
    peer.write(lines.as_bytes());
    for _ in 0..100 {
        assert_eq!(common::code_of(&peer.message()), -32700);
    }
    peer.backend.release("call");
    peer.wait_ended();
    let rest: Vec<String> = std::iter::from_fn(|| peer.line_of_ended()).collect();
    let answers: Vec<&String> = rest.iter().filter(|l| !l.contains("-32700")).collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(common::text_of(&serde_json::from_str(answers[0]).unwrap()), "call");
    assert!(peer.reports.so_far().is_empty(), "the call after the overrun did not begin");
}

#[test]
fn a_last_line_without_its_end_counts() {
    for (last, code) in
        [(ping(7), None), ("garbage".to_owned(), Some(-32700)), ("{\"jsonrpc\":".to_owned(), Some(-32700))]
    {
        let mut peer = Peer::new();
        peer.write(last.as_bytes());
        peer.end_input();
        let answer = peer.message();
        match code {
            None => assert_eq!(answer["id"], 7),
            Some(code) => assert_eq!((common::code_of(&answer), answer.get("id")), (code, None)),
        }
        peer.wait_ended();
        assert_eq!(peer.line_of_ended(), None);
    }
}

#[test]
fn at_the_end_of_input_calls_in_flight_are_answered() {
    let mut peer = Peer::with(Limits { drain: Duration::from_secs(60), ..Limits::default() });
    for text in ["a", "b"] {
        peer.send(&act(text, &json!({ "text": text, "hold": true, "later": 1 })));
        peer.reports.began(text);
    }
    peer.end_input();
    let mut seen = HashMap::new();
    for text in ["b", "a"] {
        peer.backend.release(text);
        assert_eq!(peer.message()["method"], "notifications/progress");
        let answer = peer.message();
        seen.insert(answer["id"].as_str().unwrap().to_owned(), common::text_of(&answer).to_owned());
    }
    assert_eq!(seen, HashMap::from([("a".into(), "a".into()), ("b".into(), "b".into())]));
    peer.wait_ended();
    assert_eq!(peer.line_of_ended(), None);
}

#[test]
fn calls_that_outlive_the_drain_are_cancelled_without_an_answer() {
    let mut peer = Peer::with(Limits { drain: Duration::from_millis(100), ..Limits::default() });
    peer.send(&act(1, &hold("call")));
    peer.reports.began("call");
    peer.end_input();
    peer.reports.gone("call");
    peer.wait_ended();
    assert_eq!(peer.line_of_ended(), None);
}

#[test]
fn a_stop_drains_like_the_end_of_input() {
    let mut peer = Peer::with(Limits { drain: Duration::from_secs(60), ..Limits::default() });
    peer.send(&act(1, &hold("call")));
    peer.reports.began("call");
    peer.begin_stop();
    peer.backend.release("call");
    assert_eq!(common::text_of(&peer.message()), "call");
    peer.wait_ended();
    let mut peer = Peer::with(Limits { drain: Duration::from_millis(100), ..Limits::default() });
    peer.send(&act(1, &hold("call")));
    peer.reports.began("call");
    peer.begin_stop();
    peer.reports.gone("call");
    peer.wait_ended();
    let mut idle = Peer::with(Limits { drain: Duration::from_secs(60), ..Limits::default() });
    assert_eq!(idle.ask(&ping(1))["id"], 1);
    idle.begin_stop();
    idle.wait_ended();
}

#[test]
fn a_stop_after_the_end_of_input_does_not_wait_for_the_drain() {
    let mut peer = Peer::with(Limits { drain: Duration::from_secs(60), ..Limits::default() });
    peer.send(&act(1, &hold("call")));
    peer.reports.began("call");
    peer.end_input();
    peer.begin_stop();
    peer.reports.gone("call");
    peer.wait_ended();
}

#[test]
fn streams_that_do_not_block_are_waited_for_and_no_line_is_torn() {
    let mut peer = Peer::over(Limits::default(), OFlags::NONBLOCK);
    let call = json!({ "text": "x", "size": 200_000 });
    for id in 0..20 {
        peer.send(&act(id, &call));
    }
    for id in 0..20 {
        let answer = peer.message();
        assert_eq!((answer["id"].clone(), common::text_of(&answer).len()), (id.into(), 200_000));
    }
    assert_eq!(peer.ask(&ping("last"))["id"], "last");
}

#[test]
fn our_own_output_sent_back_is_not_answered() {
    let mut peer = Peer::new();
    peer.write(b"garbage\n");
    let error = peer.line().unwrap();
    let answer = {
        peer.send(&ping(1));
        peer.line().unwrap()
    };
    let foreign = json!({ "jsonrpc": "2.0", "id": 99, "error": { "code": 1, "message": "m" } }).to_string();
    for _ in 0..2000 {
        peer.write(error.as_bytes());
        peer.write(answer.as_bytes());
        peer.send(&foreign);
    }
    assert_eq!(peer.ask(&ping(2))["id"], 2, "no answer to any of them came first");
}

#[test]
fn a_cancelled_call_is_neither_answered_nor_told_of_any_more() {
    let mut peer = Peer::new();
    peer.send(&act(1, &json!({ "text": "call", "hold": true, "notices": 1 })));
    peer.reports.began("call");
    assert_eq!(peer.message()["method"], "notifications/progress");
    for other in [cancel("1"), cancel(2), cancel(Value::Null)] {
        peer.send(&other);
    }
    let duplicate = peer.ask(&act(1, &json!({ "text": "duplicate" })));
    assert_eq!((common::code_of(&duplicate), duplicate["id"].clone()), (-32600, 1.into()));
    peer.send(&cancel(1));
    peer.reports.gone("call");
    assert_eq!(common::text_of(&peer.ask(&act(1, &json!({ "text": "again" })))), "again");
    peer.end_input();
    peer.wait_ended();
    assert_eq!(peer.line_of_ended(), None);
}

#[test]
fn a_cancel_that_races_the_outcome_leaves_at_most_one_answer() {
    let mut peer = Peer::new();
    let mut answered = 0;
    for round in 0..1000 {
        let text = format!("round {round}");
        peer.send(&act(round, &hold(&text)));
        // What the round before reported late comes first.
        while peer.reports.next() != Report::Began(text.clone()) {}
        if round % 2 == 0 {
            peer.backend.release(&text);
            peer.send(&cancel(round));
        } else {
            peer.send(&cancel(round));
            peer.backend.release(&text);
        }
        peer.send(&ping("barrier"));
        let mut answers = 0;
        loop {
            let message = peer.message();
            if message["id"] == "barrier" {
                break;
            }
            assert_eq!((message["id"].clone(), common::text_of(&message)), (round.into(), text.as_str()));
            answers += 1;
        }
        // An answer after the barrier would be one after the cancellation was read: the next round would see it.
        assert!(answers <= 1, "round {round}");
        answered += answers;
    }
    assert!(answered < 1000, "no cancel ever came first");
}

#[test]
fn a_peer_that_does_not_read_is_not_read_from_and_loses_nothing() {
    let mut peer = Peer::new();
    // An answer larger than the pipe is on its way, from a call that took its time, before the others come.
    peer.send(&act("first", &json!({ "text": "first", "hold": true, "size": 1024 * 1024 })));
    peer.reports.began("first");
    peer.backend.release("first");
    assert!(!peer.output.fill_buf().unwrap().is_empty());
    let most = 30_000;
    let sent = Arc::new(AtomicU64::new(0));
    let (mut input, counted) = (peer.input.take().unwrap(), Arc::clone(&sent));
    let writer = std::thread::spawn(move || {
        for id in 0..most {
            input.write_all(format!("{}\n", list(id)).as_bytes()).unwrap();
            counted.store(id + 1, Ordering::Relaxed);
        }
    });
    // It is stuck when it has not moved for a while.
    let mut before = u64::MAX;
    while std::mem::replace(&mut before, sent.load(Ordering::Relaxed)) != sent.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(500));
    }
    assert!(sent.load(Ordering::Relaxed) < most, "all was taken while no answer was read");
    assert_eq!(peer.message()["id"], "first");
    for id in 0..most {
        assert_eq!(peer.message()["id"], id);
    }
    writer.join().unwrap();
    peer.wait_ended();
}

#[test]
fn answers_larger_than_a_pipe_come_whole_and_in_order() {
    let mut peer = Peer::new();
    let call = json!({ "text": "x", "size": 200_000 });
    for id in 0..50 {
        peer.send(&act(id, &call));
    }
    for id in 0..50 {
        let answer = peer.message();
        assert_eq!((answer["id"].clone(), common::text_of(&answer).len()), (id.into(), 200_000));
    }
}

#[test]
fn a_peer_that_closes_our_output_ends_the_engine() {
    let mut peer = Peer::with(Limits { drain: Duration::from_millis(100), ..Limits::default() });
    peer.send(&act(1, &hold("call")));
    peer.reports.began("call");
    let (nothing, _) = rustix::pipe::pipe().unwrap();
    drop(std::mem::replace(&mut peer.output, BufReader::new(nothing.into())));
    peer.send(&ping(2));
    peer.reports.gone("call");
    peer.wait_ended();
}

#[test]
fn a_panic_and_a_deadline_end_their_call_alone() {
    let mut peer = Peer::new();
    peer.send(&act("held", &hold("held")));
    peer.reports.began("held");
    let defect = peer.ask(&act(1, &json!({ "panic": true })));
    assert_eq!((common::code_of(&defect), defect["id"].clone()), (-32603, 1.into()));
    assert!(!defect.to_string().contains("secret"), "{defect}");
    let late = json!({ "name": "hasty", "arguments": { "text": "late", "hold": true } });
    let overdue = peer.ask(&common::modern(&2.into(), "tools/call", &late));
    assert_eq!((overdue["id"].clone(), overdue["result"]["isError"].clone()), (2.into(), true.into()));
    peer.backend.release("held");
    assert_eq!(common::text_of(&peer.message()), "held");
    peer.reports.began("");
    peer.reports.began("late");
    peer.reports.gone("late");
}

#[test]
fn a_batch_of_the_two_revisions_that_have_them_is_answered_as_one_line() {
    let mut peer = Peer::new();
    assert_eq!(common::code_of(&peer.ask(&format!("[{}]", ping(1)))), -32600);
    peer.ask(&common::initialize(&0.into(), "2025-03-26"));
    let call = |id: i64, text: &str| common::legacy(&id.into(), "tools/call", &common::act(&hold(text)));
    peer.send(&format!("[{},{},{},{}]", ping(1), call(2, "two"), call(3, "three"), cancel(9)));
    peer.reports.began("two");
    peer.reports.began("three");
    peer.send(&cancel(2));
    peer.reports.gone("two");
    peer.backend.release("three");
    let answers = peer.message();
    let ids: Vec<Value> = answers.as_array().unwrap().iter().map(|a| a["id"].clone()).collect();
    assert_eq!(ids, [1, 3]);
    peer.send(&format!("[{},{}]", cancel(7), cancel(8)));
    assert_eq!(peer.ask(&ping(4))["id"], 4, "a batch of notifications is not answered");
}
