//! The streams of a session, told and read by hand: no socket, no machine, no runtime.

use std::task::{Context, Poll};

use super::super::body::Source as _;
use super::super::reader::First;
use super::super::session::LegacySession;
use super::super::session::tests::session;
use super::*;
use crate::protocol::json::JsonLimits;
use crate::protocol::limits::{REPLAYED_BYTES, REPLAYED_EVENTS, WAITING_EVENTS};
use crate::protocol::{Decoded, Reply, RequestId};

const PLENTY: usize = 64 * 1024 * 1024;

/// A session whose streams are told things directly, as if its machine had said them.
struct Told(Arc<LegacySession>);

impl Told {
    fn new(polling: bool) -> Self {
        let session = session(PLENTY);
        session.streams().agree(polling);
        Self(session)
    }

    fn streams(&self) -> &Arc<Streams> {
        self.0.streams()
    }

    /// A POST that nothing has answered yet.
    fn post(&self, takes_events: bool) -> (Arrival, Reader) {
        let message = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/any"}"#);
        let decoded = Decoded::read(&message, &JsonLimits::default());
        let arrival = self.0.driver.deliver(decoded, None, Some(Waits { takes_events }));
        (arrival, Reader::of_post(Arc::clone(self.streams()), arrival))
    }

    /// A POST that is an event stream.
    fn stream(&self) -> (Arrival, Reader) {
        let (arrival, reader) = self.post(true);
        self.notify(arrival, "begin");
        assert!(matches!(first(&reader), Some(First::Stream)));
        let mut reader = reader.into_stream(None);
        assert!(read(&mut reader).last().unwrap().ends_with("begin"));
        (arrival, reader)
    }

    fn notify(&self, arrival: Arrival, text: &'static str) {
        self.streams().notify(arrival, text.into());
    }

    fn ask(&self, arrival: Arrival, text: &'static str) {
        self.streams().ask(arrival, text.into());
    }

    fn announce(&self, text: &str) {
        self.streams().announce(false, text.to_owned().into());
    }

    fn answer(&self, arrival: Arrival, result: impl Into<Bytes>) {
        let reply = Reply { id: Some(RequestId::Integer(1)), result: Ok(result.into()) };
        self.streams().answer(arrival, Answer::One(reply));
    }

    fn resume(&self, id: &str) -> Option<Reader> {
        self.streams().resume(id)
    }
}

fn first(reader: &Reader) -> Option<First> {
    let mut cx = Context::from_waker(Waker::noop());
    match std::pin::pin!(reader.first()).poll(&mut cx) {
        Poll::Ready(first) => Some(first),
        Poll::Pending => None,
    }
}

/// What a reader sends now, each event as `id data`, the data shortened; `(end)` if it ends.
fn read(reader: &mut Reader) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        match reader.poll_event(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => return all,
            Poll::Ready(None) => {
                all.push("(end)".to_owned());
                return all;
            }
            Poll::Ready(Some(event)) => {
                let text = String::from_utf8(event.to_vec()).unwrap();
                let field = |name| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
                let id = field("id: ").strip_prefix("000000000000feed-").unwrap();
                let retry = if text.contains("retry: 500") { "retry" } else { "" };
                all.push(format!("{id} {retry}{:.40}", field("data: ")));
            }
        }
    }
}

fn id(event: &str) -> String {
    format!("000000000000feed-{event}")
}

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

#[test]
fn announcements_wait_for_the_stand_alone_stream_and_the_oldest_give_way() {
    let told = Told::new(false);
    for n in 0..WAITING_EVENTS {
        told.announce(&format!("old {n}"));
    }
    told.announce("new");
    let mut reader = told.streams().listen().unwrap();
    assert!(told.streams().listen().is_none(), "one at a time");
    let heard = read(&mut reader);
    assert_eq!((heard.len(), heard[0].as_str(), heard[255].as_str()), (WAITING_EVENTS, "0-0 old 1", "0-255 new"));
    told.announce("live");
    assert_eq!(read(&mut reader), ["0-256 live"]);
    drop(reader);
    told.announce("between");
    assert_eq!(read(&mut told.streams().listen().unwrap()), ["0-257 between"], "nothing is told twice");
}

#[test]
fn what_concerns_a_request_goes_on_its_stream_alone() {
    let told = Told::new(false);
    let mut alone = told.streams().listen().unwrap();
    let (one, mut first_stream) = told.stream();
    let (other, mut second_stream) = told.stream();
    told.notify(one, "a");
    told.ask(other, "b");
    told.announce("c");
    told.answer(other, "{}");
    assert_eq!(read(&mut first_stream), ["1-1 a"]);
    assert_eq!(read(&mut second_stream), ["2-1 b".to_owned(), format!("2-2 {ANSWER}"), "(end)".to_owned()]);
    assert_eq!(read(&mut alone), ["0-0 c"]);
}

#[test]
fn a_question_goes_elsewhere_where_its_own_stream_cannot_take_it() {
    let told = Told::new(true);
    let (json_only, waiting) = told.post(false);
    let (gone, reader) = told.post(true);
    drop(reader);
    let (was_asked, reader) = told.post(true);
    told.ask(was_asked, "asked in vain");
    drop(reader);
    for arrival in [json_only, gone] {
        told.notify(arrival, "progress");
        told.ask(arrival, "question");
    }
    assert!(first(&waiting).is_none(), "it hears its answer alone");
    let mut alone = told.streams().listen().unwrap();
    assert_eq!(read(&mut alone), ["0-0 ", "0-1 asked in vain", "0-2 question", "0-3 question"]);
    told.answer(json_only, "{}");
    told.answer(gone, "{}");
    assert!(matches!(first(&waiting), Some(First::Answer(_))));
    assert!(read(&mut alone).is_empty(), "never an answer");
}

#[test]
fn a_question_that_nobody_heard_is_taken_back_with_its_call() {
    let told = Told::new(false);
    let (answered, reader) = told.post(true);
    drop(reader);
    let (silenced, _waiting) = told.post(false);
    let (open, reader) = told.post(true);
    drop(reader);
    for (arrival, text) in [(answered, "in vain"), (silenced, "in vain too"), (open, "still asked")] {
        told.ask(arrival, text);
    }
    told.announce("told");
    told.notify(answered, "not to be answered");
    told.answer(answered, "{}");
    told.streams().silence(silenced);
    assert_eq!(read(&mut told.streams().listen().unwrap()), ["0-0 still asked", "0-1 told"]);
}

#[test]
fn a_question_is_withdrawn_where_it_was_asked() {
    let told = Told::new(false);
    let mut alone = told.streams().listen().unwrap();
    let (json_only, _waiting) = told.post(false);
    told.notify(json_only, "progress");
    told.ask(json_only, "question");
    assert_eq!(read(&mut alone), ["0-0 question"]);
    told.notify(json_only, "not to be answered");
    told.answer(json_only, "{}");
    assert_eq!(read(&mut alone), ["0-1 not to be answered"]);
    let (own, mut reader) = told.stream();
    told.ask(own, "question");
    told.notify(own, "not to be answered");
    assert_eq!(read(&mut reader), ["1-1 question", "1-2 not to be answered"]);
    assert!(read(&mut alone).is_empty());
}

#[test]
fn a_question_for_a_lost_client_goes_where_it_listens_unless_it_said_that_it_comes_back() {
    let told = Told::new(true);
    let (lost, reader) = told.stream();
    drop(reader);
    told.ask(lost, "nobody listens");
    let mut alone = told.streams().listen().unwrap();
    told.ask(lost, "somebody listens");
    assert_eq!(read(&mut alone), ["0-0 ", "0-1 somebody listens"]);
    assert_eq!(read(&mut told.resume(&id("1-1")).unwrap()), ["1-2 nobody listens"]);
    let (polls, mut reader) = told.stream();
    told.streams().detach(polls);
    assert_eq!(read(&mut reader), ["2-2 retry", "(end)"]);
    drop(reader);
    told.ask(polls, "later");
    assert!(read(&mut alone).is_empty());
    assert_eq!(read(&mut told.resume(&id("2-2")).unwrap()), ["2-3 later"]);
}

#[test]
fn a_lost_client_resumes_after_any_event_and_hears_the_rest_and_the_answer() {
    let told = Told::new(false);
    let (arrival, mut reader) = told.stream();
    told.notify(arrival, "a");
    told.notify(arrival, "b");
    assert_eq!(read(&mut reader), ["1-1 a", "1-2 b"]);
    told.notify(arrival, "written to nobody");
    drop(reader);
    told.notify(arrival, "c");
    let rest = ["1-1 a", "1-2 b", "1-3 written to nobody", "1-4 c"];
    for after in 0..4 {
        assert_eq!(read(&mut told.resume(&id(&format!("1-{after}"))).unwrap()), rest[after..]);
    }
    let mut resumed = told.resume(&id("1-4")).unwrap();
    assert!(read(&mut resumed).is_empty());
    told.notify(arrival, "live");
    told.answer(arrival, "{}");
    let end = ["1-5 live".to_owned(), format!("1-6 {ANSWER}"), "(end)".to_owned()];
    assert_eq!(read(&mut resumed), end);
    drop(resumed);
    assert_eq!(read(&mut told.resume(&id("1-4")).unwrap()), end, "the answer can be lost as well");
}

#[test]
fn an_answer_to_a_lost_client_is_kept_for_it() {
    let told = Told::new(true);
    let (arrival, reader) = told.stream();
    drop(reader);
    told.answer(arrival, "{}");
    assert_eq!(read(&mut told.resume(&id("1-1")).unwrap()), [format!("1-2 {ANSWER}"), "(end)".to_owned()]);
    let (arrival, reader) = told.stream();
    told.answer(arrival, "{}");
    drop(reader);
    assert_eq!(read(&mut told.resume(&id("2-1")).unwrap()), [format!("2-2 {ANSWER}"), "(end)".to_owned()]);
}

#[test]
fn whoever_resumes_a_stream_takes_it_over() {
    let told = Told::new(false);
    let (arrival, mut old) = told.stream();
    let mut new = told.resume(&id("1-0")).unwrap();
    told.notify(arrival, "a");
    assert_eq!(read(&mut old), ["(end)"]);
    drop(old);
    assert_eq!(read(&mut new), ["1-1 a"], "and keeps it when the other ends");
    let mut listening = told.streams().listen().unwrap();
    told.announce("b");
    assert_eq!(read(&mut listening), ["0-0 b"]);
    let mut again = told.resume(&id("0-0")).unwrap();
    assert_eq!(read(&mut listening), ["(end)"]);
    drop(listening);
    assert!(told.streams().listen().is_none(), "it is read");
    told.announce("c");
    assert_eq!(read(&mut again), ["0-1 c"]);
}

#[test]
fn only_an_event_that_was_sent_and_after_which_nothing_is_missing_can_be_resumed_after() {
    let told = Told::new(false);
    let (arrival, reader) = told.stream();
    drop(reader);
    for unknown in ["1-1", "2-0", "0-0", "01-0", "1-00", "+1-0", "1", "1-0-0", "1--1", "-1-0", "", "x-0"] {
        assert!(told.resume(&id(unknown)).is_none(), "{unknown:?}");
    }
    for foreign in ["000000000000beef-1-0", "feed-1-0", "1-0", "", "000000000000FEED-1-0", " 000000000000feed-1-0"] {
        assert!(told.resume(foreign).is_none(), "{foreign:?}");
    }
    assert!(told.resume(&id("1-18446744073709551615")).is_none());
    assert!(told.resume(&id("1-0")).is_some());
    // The event itself may be forgotten, what followed may not.
    for _ in 0..REPLAYED_EVENTS {
        told.notify(arrival, "more");
    }
    assert!(told.resume(&id("1-0")).is_some());
    told.notify(arrival, "one too many");
    assert!(told.resume(&id("1-0")).is_none());
    assert!(told.resume(&id("1-1")).is_some());
}

#[test]
fn an_answer_over_the_limit_reaches_a_client_that_is_there_and_cannot_be_fetched() {
    let told = Told::new(false);
    let big = format!("\"{}\"", "x".repeat(REPLAYED_BYTES));
    let (arrival, mut reader) = told.stream();
    told.answer(arrival, big.clone());
    let heard = read(&mut reader);
    assert!(heard[0].starts_with("1-1 {") && heard[1] == "(end)", "{heard:?}");
    drop(reader);
    assert!(told.resume(&id("1-0")).is_none());
    let (arrival, reader) = told.stream();
    drop(reader);
    told.answer(arrival, big);
    assert!(told.resume(&id("2-0")).is_none());
}

#[test]
fn a_reader_that_falls_behind_what_is_kept_is_ended_rather_than_cheated() {
    let told = Told::new(false);
    let (arrival, reader) = told.stream();
    drop(reader);
    told.notify(arrival, "a");
    told.notify(arrival, "b");
    let mut slow = told.resume(&id("1-0")).unwrap();
    let (_, mut other) = told.stream();
    let (busy, mut busy_reader) = told.stream();
    for _ in 0..REPLAYED_EVENTS {
        told.notify(busy, "flood");
        read(&mut busy_reader);
    }
    assert_eq!(read(&mut slow), ["(end)"]);
    assert!(read(&mut other).is_empty(), "who has heard all is not concerned");
}

#[test]
fn what_is_over_and_forgotten_costs_nothing() {
    let told = Told::new(true);
    for _ in 0..3 * REPLAYED_EVENTS {
        let (arrival, mut reader) = told.stream();
        told.answer(arrival, "{}");
        read(&mut reader);
        drop(reader);
        let (silent, reader) = told.stream();
        drop(reader);
        told.streams().silence(silent);
        let (plain, reader) = told.post(true);
        told.answer(plain, "{}");
        assert!(matches!(first(&reader), Some(First::Answer(_))));
    }
    let inner = told.streams().lock();
    assert!(inner.posts.len() <= REPLAYED_EVENTS, "{}", inner.posts.len());
}

#[test]
fn streams_are_primed_and_detached_only_where_the_revision_has_it() {
    let told = Told::new(true);
    let (arrival, reader) = told.post(true);
    told.streams().detach(arrival);
    assert!(matches!(first(&reader), Some(First::Stream)), "a stream is needed to be closed");
    let mut reader = reader.into_stream(None);
    assert_eq!(read(&mut reader), ["1-0 ", "1-1 retry", "(end)"]);
    drop(reader);
    told.notify(arrival, "a");
    let mut resumed = told.resume(&id("1-0")).unwrap();
    assert_eq!(read(&mut resumed), ["1-2 a"]);
    told.streams().detach(arrival);
    assert_eq!(read(&mut resumed), ["1-3 retry", "(end)"], "as often as it likes");
    told.answer(arrival, "{}");
    assert_eq!(read(&mut told.resume(&id("1-3")).unwrap()), [format!("1-4 {ANSWER}"), "(end)".to_owned()]);
    assert_eq!(read(&mut told.streams().listen().unwrap()), ["0-0 "]);

    let old = Told::new(false);
    let (arrival, reader) = old.post(true);
    old.streams().detach(arrival);
    assert!(first(&reader).is_none());
    old.answer(arrival, "{}");
    assert!(matches!(first(&reader), Some(First::Answer(_))));
    let mut alone = old.streams().listen().unwrap();
    assert!(read(&mut alone).is_empty());
    let (json_only, reader) = told.post(false);
    told.streams().detach(json_only);
    assert!(first(&reader).is_none(), "it cannot come back");
}

#[test]
fn the_end_of_a_session_ends_every_stream() {
    let told = Told::new(false);
    let (_, mut stream) = told.stream();
    let (_, waiting) = told.post(true);
    let mut alone = told.streams().listen().unwrap();
    assert!(told.streams().is_read());
    told.streams().end_all();
    assert_eq!(read(&mut stream), ["(end)"]);
    assert_eq!(read(&mut alone), ["(end)"]);
    assert!(matches!(first(&waiting), Some(First::Silence)));
    drop((stream, waiting, alone));
    assert!(!told.streams().is_read());
    assert_eq!(read(&mut told.streams().listen().unwrap()), ["(end)"]);
}
