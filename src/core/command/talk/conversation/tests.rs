//! Lines and what comes of them: what is told, asked, answered and refused, and how a conversation is bounded.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::protocol::{CatalogParts, InputKind, LogLevel, ResourceParts, ToolParts};

fn conversation(answers: &[(&str, Value)], state: Option<&Value>) -> Conversation {
    let resources = vec![ResourceParts { uri: "file:///notes".into(), name: "notes".into(), ..Default::default() }];
    let tools = vec![ToolParts::new("t")];
    let catalog = Catalog::build(CatalogParts { tools, resources, ..CatalogParts::new("test", "1.0.0") }).unwrap();
    let answers: Vec<_> = answers.iter().map(|(key, value)| ((*key).into(), RawJson::encode(value))).collect();
    Conversation::new("t", Arc::new(catalog), &answers, state)
}

fn say(conversation: &mut Conversation, line: impl AsRef<[u8]>) -> Reaction {
    conversation.hear(&Line::Whole(Bytes::copy_from_slice(line.as_ref())))
}

fn error(reaction: Reaction) -> String {
    let (Reaction::Reply(line) | Reaction::Close(line)) = reaction else { panic!("{reaction:?}") };
    let line: Value = serde_json::from_str(&line).unwrap();
    line["error"].as_str().unwrap_or_else(|| panic!("{line}")).to_owned()
}

fn asked(reaction: Reaction) -> (InputRequest, Value) {
    let Reaction::Stop(outcome) = reaction else { panic!("{reaction:?}") };
    let Outcome::InputRequired(Ask { mut requests, state }) = *outcome else { panic!("{outcome:?}") };
    (requests.pop().unwrap(), state.unwrap())
}

fn answer(reaction: Reaction) -> Value {
    let Reaction::Reply(line) = reaction else { panic!("{reaction:?}") };
    assert!(!line.contains('\n'));
    let line: Value = serde_json::from_str(&line).unwrap();
    line.get("answer").unwrap_or_else(|| panic!("{line}")).clone()
}

const OK: &str = r#"{"ask":"ok","message":"Delete 3 files?"}"#;

fn yes() -> Value {
    json!({ "action": "accept", "content": { "confirm": true } })
}

#[test]
fn progress_logs_and_changes_are_told() {
    let mut talk = conversation(&[], None);
    let Reaction::Tell(Notice::Progress { progress, total, message }) =
        say(&mut talk, r#"{"progress": 3, "total": 10.5, "message": "a\u001b[1mb"}"#)
    else {
        panic!()
    };
    assert_eq!((progress, total, message.as_deref()), (3.0, Some(10.5), Some("a[1mb")));
    let Reaction::Tell(Notice::Log { level, logger, data }) =
        say(&mut talk, r#"{"log":"warning","data":{"a":["\u0007b"]},"logger":"l"}"#)
    else {
        panic!()
    };
    assert_eq!((level, logger.as_deref(), data), (LogLevel::Warning, Some("l"), json!({ "a": ["b"] })));
    assert!(matches!(
        say(&mut talk, r#"{"log":"info","message":"m"}"#),
        Reaction::Tell(Notice::Log { data, .. }) if data == "m"
    ));
    assert!(matches!(
        say(&mut talk, r#"{"changed":"file:///notes"}"#),
        Reaction::Tell(Notice::Updated { uri }) if uri == "file:///notes"
    ));
}

#[test]
fn a_line_that_is_none_is_told_what_was_expected() {
    let mut talk = conversation(&[], None);
    for (line, says) in [
        (&b"hello"[..], "the line is not valid JSON"),
        (b"{\"progress\": 3", "the line is not valid JSON"),
        (b"\xff{}", "the line is not valid"),
        (b"[]", "not an object"),
        (b"{}", "nothing is said"),
        (b"{\"progres\":1}", "one of the members progress, log, changed, ask"),
        (br#"{"progress":1,"progress":2}"#, "duplicate key"),
        (br#"{"progress":1,"log":"info","message":"m"}"#, "progress and log stand together"),
        (br#"{"progress":"1"}"#, "progress is not a number"),
        (br#"{"progress":1,"total":null}"#, "total is not a number"),
        (br#"{"progress":1,"message":2}"#, "message is not a text"),
        (br#"{"progress":1,"of":2}"#, "progress has no member \"of\""),
        (br#"{"log":"loud","message":"m"}"#, "log is no level: use one of debug, info"),
        (br#"{"log":"info"}"#, "both message and data, or neither"),
        (br#"{"log":"info","message":"m","data":1}"#, "both message and data, or neither"),
        (br#"{"changed":"file:///other"}"#, "no resource of this surface"),
        (br#"{"changed":1}"#, "changed is not a text"),
        (br#"{"ask":""}"#, "ask is no key"),
        (br#"{"ask":"a b","message":"m"}"#, "ask is no key"),
        (br#"{"ask":"ok"}"#, "message is missing"),
        (br#"{"ask":"ok","message":"  "}"#, "message is missing"),
        ("{\"ask\":\"ok\",\"message\":\"a\u{202e}b\"}".as_bytes(), "invisible characters"),
        (br#"{"ask":"ok","message":"m","schema":{"type":"object"}}"#, "name at least one field"),
        (br#"{"ask":"ok","message":"m","url":"http://example.com/"}"#, "url is no https: address"),
        (br#"{"ask":"ok","message":"m","url":"https://u:p@example.com/"}"#, "user's name"),
        (br#"{"ask":"ok","message":"m","url":"https://example.com/a b"}"#, "blanks"),
        (br#"{"ask":"ok","message":"m","url":"http://localhost.evil/"}"#, "url is no https: address"),
        (br#"{"ask":"ok","message":"m","url":"https:///x"}"#, "url is no https: address"),
        (br#"{"ask":"ok","message":"m","url":"https://a/","roots":true}"#, "url and roots stand together"),
        (br#"{"ask":"ok","sample":{"maxTokens":5}}"#, "sample needs messages"),
        (br#"{"ask":"ok","sample":{"messages":[{"role":"user","content":{}}]}}"#, "maxTokens"),
        (br#"{"ask":"ok","roots":false}"#, "roots is not true"),
    ] {
        let problem = error(say(&mut talk, line));
        assert!(problem.contains(says), "{}: {problem}", String::from_utf8_lossy(line));
    }
    let long = format!(r#"{{"ask":"ok","message":"{}"}}"#, "x".repeat(5000));
    assert!(error(say(&mut talk, long)).contains("longer than 4096 bytes"));
    assert!(error(talk.hear(&Line::TooLong)).contains("longer than 65536 bytes"));
    assert!(matches!(say(&mut talk, r#"{"progress":1}"#), Reaction::Tell(_)), "it goes on after all that");
}

#[test]
fn each_way_to_ask_becomes_what_the_client_is_asked() {
    for (line, kind, params) in [
        (
            OK,
            InputKind::ElicitForm,
            json!({ "message": "Delete 3 files?", "requestedSchema": {
                "type": "object",
                "properties": { "confirm": { "type": "boolean", "title": "Yes" } },
                "required": ["confirm"],
            } }),
        ),
        (
            r#"{"ask":"w","message":"Who?","schema":{"type":"object","properties":{"n":{"type":"string"}}}}"#,
            InputKind::ElicitForm,
            json!({ "message": "Who?", "requestedSchema": {
                "type": "object", "properties": { "n": { "type": "string" } } } }),
        ),
        (
            r#"{"ask":"pay","message":"Pay","url":"https://example.com/pay?id=1"}"#,
            InputKind::ElicitUrl,
            json!({ "message": "Pay", "url": "https://example.com/pay?id=1" }),
        ),
        (
            r#"{"ask":"dev","message":"Look","url":"http://localhost:8080/x"}"#,
            InputKind::ElicitUrl,
            json!({ "message": "Look", "url": "http://localhost:8080/x" }),
        ),
        (
            r#"{"ask":"s","sample":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":9}}"#,
            InputKind::Sample,
            json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "hi" } }], "maxTokens": 9 }),
        ),
        (
            r#"{"ask":"s","sample":{"messages":[{"role":"user","content":[]}],"maxTokens":9,"tools":[]}}"#,
            InputKind::SampleWithTools,
            json!({ "messages": [{ "role": "user", "content": [] }], "maxTokens": 9, "tools": [] }),
        ),
        (r#"{"ask":"r","roots":true}"#, InputKind::Roots, json!({})),
    ] {
        let (request, _) = asked(say(&mut conversation(&[], None), line));
        assert_eq!((request.kind, &request.params), (kind, &params), "{line}");
    }
}

#[test]
fn the_second_run_hears_the_answer_and_later_runs_hear_all_of_them() {
    let (request, state) = asked(say(&mut conversation(&[], None), OK));
    assert_eq!(request.key, "ok");
    let mut second = conversation(&[("ok", yes())], Some(&state));
    assert_eq!(answer(say(&mut second, OK)), yes());
    assert_eq!(answer(say(&mut second, OK)), yes(), "as often as it asks");
    let (request, state) = asked(say(&mut second, r#"{"ask":"r","roots":true}"#));
    assert_eq!(request.key, "r");
    let roots = json!({ "roots": [{ "uri": "file:///home/a" }], "_meta": { "x": 1 } });
    let mut third = conversation(&[("r", roots)], Some(&state));
    assert_eq!(answer(say(&mut third, OK)), yes());
    let heard = answer(say(&mut third, r#"{"ask":"r","roots":true}"#));
    assert_eq!(heard, json!({ "roots": [{ "uri": "file:///home/a" }] }));
}

#[test]
fn no_and_nothing_are_answers_too() {
    let (_, state) = asked(say(&mut conversation(&[], None), OK));
    for action in ["decline", "cancel"] {
        let given = json!({ "action": action, "content": { "confirm": true } });
        let mut second = conversation(&[("ok", given)], Some(&state));
        assert_eq!(answer(say(&mut second, OK)), json!({ "action": action }));
    }
    let url = r#"{"ask":"u","message":"m","url":"https://example.com/"}"#;
    let (_, state) = asked(say(&mut conversation(&[], None), url));
    let mut second = conversation(&[("u", json!({ "action": "accept" }))], Some(&state));
    assert_eq!(answer(say(&mut second, url)), json!({ "action": "accept" }));
}

#[test]
fn an_answer_that_does_not_fit_is_asked_for_again() {
    let (_, state) = asked(say(&mut conversation(&[], None), OK));
    for bad in [
        json!({}),
        json!({ "action": "yes" }),
        json!({ "action": "accept" }),
        json!({ "action": "accept", "content": { "confirm": "true" } }),
        json!({ "action": "accept", "content": [] }),
    ] {
        let (request, again) = asked(say(&mut conversation(&[("ok", bad)], Some(&state)), OK));
        assert_eq!((request.key.as_str(), &again), ("ok", &state));
    }
    let sample = r#"{"ask":"s","sample":{"messages":[{"role":"user","content":{}}],"maxTokens":1}}"#;
    let (_, state) = asked(say(&mut conversation(&[], None), sample));
    asked(say(&mut conversation(&[("s", json!({ "role": "assistant" }))], Some(&state)), sample));
    let roots = r#"{"ask":"s","roots":true}"#;
    let (_, state) = asked(say(&mut conversation(&[], None), roots));
    asked(say(&mut conversation(&[("s", json!({ "roots": [{ "uri": "http://x" }] }))], Some(&state)), roots));
}

#[test]
fn an_answer_counts_for_the_question_that_was_shown_alone() {
    let other = r#"{"ask":"ok","message":"Delete 4 files?"}"#;
    let (_, state) = asked(say(&mut conversation(&[], None), OK));
    let (request, _) = asked(say(&mut conversation(&[("ok", yes())], Some(&state)), other));
    assert_eq!(request.params["message"], "Delete 4 files?");
    // Nobody was shown a question yet.
    asked(say(&mut conversation(&[("ok", yes())], None), OK));
    asked(say(&mut conversation(&[("ok", yes())], Some(&json!({ "asked": {} }))), OK));
    asked(say(&mut conversation(&[("ok", yes())], Some(&json!("rubbish"))), OK));
}

#[test]
fn one_key_stands_for_one_question_within_a_run() {
    let (_, state) = asked(say(&mut conversation(&[], None), OK));
    let mut second = conversation(&[("ok", yes())], Some(&state));
    assert_eq!(answer(say(&mut second, OK)), yes());
    let problem = error(say(&mut second, r#"{"ask":"ok","message":"Delete 4 files?"}"#));
    assert!(problem.contains("stood for another question"), "{problem}");
}

#[test]
fn earlier_answers_that_cannot_be_kept_fail_the_call_with_their_size() {
    let question = r#"{"ask":"t","message":"m","schema":{"type":"object","properties":{"t":{"type":"string"}}}}"#;
    let (_, state) = asked(say(&mut conversation(&[], None), question));
    for (length, fits) in [(4500, true), (5200, false)] {
        let long = json!({ "action": "accept", "content": { "t": "x".repeat(length) } });
        let mut second = conversation(&[("t", long)], Some(&state));
        answer(say(&mut second, question));
        let Reaction::Stop(outcome) = say(&mut second, OK) else { panic!() };
        match *outcome {
            Outcome::InputRequired(_) => assert!(fits),
            Outcome::Failed(content) => {
                assert!(!fits && content.plain_text().contains("more than the 5120 that can be kept"));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn changes_are_told_up_to_a_bound() {
    let mut talk = conversation(&[], None);
    for _ in 0..CHANGES_AT_MOST {
        assert!(matches!(say(&mut talk, r#"{"changed":"file:///notes"}"#), Reaction::Tell(_)));
    }
    assert!(error(say(&mut talk, r#"{"changed":"file:///notes"}"#)).contains("more than 256 changes"));
    assert!(matches!(say(&mut talk, r#"{"progress":1}"#), Reaction::Tell(_)));
}

proptest! {
    #[test]
    fn no_bytes_and_no_json_end_the_conversation_in_any_other_way(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        members in prop::collection::btree_map(
            prop::sample::select(vec![
                "progress", "total", "message", "log", "data", "logger", "changed", "ask", "schema", "url", "sample",
                "roots", "other",
            ]),
            prop::sample::select(vec![
                json!(1), json!(-0.5), json!(true), json!(null), json!("info"), json!("https://a.b/"), json!("k"),
                json!({}), json!([]), json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
                json!({ "messages": [{ "role": "user", "content": [] }], "maxTokens": 1 }),
            ]),
            0..4,
        ),
    ) {
        let mut talk = conversation(&[], None);
        for line in [bytes, json!(members).to_string().into_bytes()] {
            match say(&mut talk, line) {
                Reaction::Tell(_) => {}
                Reaction::Reply(line) => {
                    let is_error = line.starts_with(r#"{"error":""#) && !line.contains('\n');
                    prop_assert!(is_error, "{line}");
                }
                Reaction::Stop(outcome) => {
                    let asks = matches!(*outcome, Outcome::InputRequired(_));
                    prop_assert!(asks, "{outcome:?}");
                }
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }
}

#[test]
fn a_program_that_floods_is_told_once_and_not_listened_to_any_more() {
    let mut talk = conversation(&[], None);
    for n in 0..LINES_AT_MOST {
        assert!(matches!(say(&mut talk, format!("{{\"progress\":{n}}}")), Reaction::Tell(_)));
    }
    assert!(error(say(&mut talk, OK)).contains("more than 10000 lines"));
    assert!(matches!(say(&mut talk, OK), Reaction::Nothing));
    let mut talk = conversation(&[], None);
    for _ in 0..BAD_LINES_AT_MOST {
        assert!(matches!(say(&mut talk, "rubbish"), Reaction::Reply(_)));
    }
    let last = say(&mut talk, "rubbish");
    assert!(matches!(&last, Reaction::Close(_)) && error(last).contains("more than 100 lines"));
    assert!(matches!(say(&mut talk, OK), Reaction::Nothing));
}
