//! Doors against scripted servers, and against the engine's own machine.

use bytes::Bytes;
use serde_json::Value;

use super::super::fake::{
    Act, Asked, engine, hasty, is_modern, json_answer, line, listener, lists, opening, program, refusal, response,
};
use super::*;
use crate::protocol::ToolParts;

fn arguments(text: &str) -> Arguments {
    Arguments::new(RawJson::new(Bytes::copy_from_slice(text.as_bytes()), &JsonLimits::default()).unwrap()).unwrap()
}

async fn both(target: &Target) -> [Result<Door, Problem>; 2] {
    [
        Door::open(target, Era::Modern, &Options::default()).await,
        Door::open(target, Era::Legacy, &Options::default()).await,
    ]
}

#[tokio::test]
async fn the_engine_itself_opens_both_doors_lists_and_answers_calls() {
    let target = engine(vec![ToolParts::new("show"), ToolParts::new("log")]);
    for door in both(&target).await {
        let door = door.unwrap();
        assert_eq!(door.opening().server.as_ref().unwrap().name, "engine");
        assert_eq!(door.opening().instructions.as_deref(), Some("Be brief."));
        let listing = door.list_tools().await.unwrap();
        assert_eq!(listing.names(), ["show", "log"]);
        assert_eq!(listing.published[0].value, listing.digest.rfc8785.unwrap().to_string());
        assert_eq!(listing.published[0].value, door.opening().published[0].value);
        let called = door.call_tool("log", &arguments("{}"), Duration::from_secs(10)).await.unwrap();
        assert_eq!(called.ending, Ending::Complete);
        assert!(called.result.as_str().contains(r#""text":"log""#), "{:?}", called.result);
        let unknown = door.call_tool("nope", &arguments("{}"), Duration::from_secs(10)).await.unwrap_err();
        assert!(matches!(unknown, Problem::Refused { code: -32602, .. }), "{unknown}");
        assert_eq!((door.strays(), door.close().await), (None, None));
    }
}

#[tokio::test]
async fn each_door_speaks_its_own_era_alone() {
    let (target, log) = program(|message| match message["method"].as_str() {
        Some("tools/list") => vec![line(message, r#"{"tools":[]}"#)],
        _ => opening(message).map(|result| line(message, &result)).into_iter().collect(),
    });
    for era in [Era::Modern, Era::Legacy] {
        let door = Door::open(&target, era, &Options::default()).await.unwrap();
        door.list_tools().await.unwrap();
        door.close().await;
    }
    let log = log.lock().unwrap();
    let sent: Vec<(&str, bool)> = log.iter().map(|m| (m["method"].as_str().unwrap(), is_modern(m))).collect();
    assert_eq!(
        sent,
        [
            ("server/discover", true),
            ("tools/list", true),
            ("initialize", false),
            ("notifications/initialized", false),
            ("tools/list", false)
        ]
    );
    assert_eq!(log[2]["params"]["protocolVersion"], Revision::NEWEST_LEGACY.name());
    assert!(log[0]["params"]["_meta"][CLAIM_CAPABILITIES].is_object());
}

#[tokio::test]
async fn all_pages_are_asked_for_with_the_cursor_as_it_came() {
    let target = lists(|message| match &message["params"]["cursor"] {
        Value::Null => r#"{"tools":[{"name":"a"}],"nextCursor":"é\"1"}"#.to_owned(),
        cursor if cursor == "é\"1" => r#"{"tools":[{"name":"b"}]}"#.to_owned(),
        other => panic!("{other}"),
    });
    for door in both(&target).await {
        let listing = door.unwrap().list_tools().await.unwrap();
        assert_eq!((listing.names().join(" "), listing.pages), ("a b".to_owned(), 2));
    }
    let round = lists(|_| r#"{"tools":[],"nextCursor":"same"}"#.to_owned());
    for door in both(&round).await {
        assert!(matches!(door.unwrap().list_tools().await, Err(Problem::Shape { .. })));
    }
}

#[tokio::test]
async fn a_list_with_duplicate_keys_cannot_be_told() {
    let target = lists(|_| r#"{"tools":[{"name":"a","name":"b"}]}"#.to_owned());
    for door in both(&target).await {
        let problem = door.unwrap().list_tools().await.unwrap_err();
        assert!(problem.to_string().contains("duplicate key \"name\""), "{problem}");
    }
}

#[tokio::test]
async fn a_server_that_declares_no_tools_is_not_asked_for_them() {
    let (target, log) = program(|message| {
        opening(message).map(|result| line(message, &result.replace(r#"{"tools":{}}"#, "{}"))).into_iter().collect()
    });
    for door in both(&target).await {
        let listing = door.unwrap().list_tools().await.unwrap();
        assert_eq!((listing.text.as_str(), listing.pages), ("[]", 0));
    }
    assert!(log.lock().unwrap().iter().all(|message| message["method"] != "tools/list"));
}

#[tokio::test]
async fn openings_that_promise_another_revision_or_nothing_are_refused() {
    let modern = Revision::MODERN.name();
    let table: [(&'static str, String, &str); 6] = [
        ("server/discover", r#"{"supportedVersions":["1999-01-01"]}"#.to_owned(), "the server serves 1999-01-01"),
        ("server/discover", "{}".to_owned(), "no array of supportedVersions"),
        ("server/discover", "[]".to_owned(), "it is no object"),
        (
            "server/discover",
            format!(r#"{{"resultType":"input_required","supportedVersions":["{modern}"]}}"#),
            "resultType is \"input_required\"",
        ),
        ("initialize", format!(r#"{{"protocolVersion":"{modern}"}}"#), "the server serves 2"),
        ("initialize", r#"{"capabilities":{}}"#.to_owned(), "no protocolVersion"),
    ];
    for (method, result, why) in table {
        let shown = result.clone();
        let (target, _) = program(move |message| vec![line(message, &result)]);
        let era = if method == "initialize" { Era::Legacy } else { Era::Modern };
        let problem = Door::open(&target, era, &Options::default()).await.unwrap_err().to_string();
        assert!(problem.contains(why), "{shown}: {problem}");
    }
}

#[tokio::test]
async fn an_older_revision_that_the_server_answers_with_is_spoken() {
    let oldest = Revision::ALL[0];
    let (target, _) = program(move |message| {
        let other = opening(message).map(|result| result.replace(Revision::NEWEST_LEGACY.name(), oldest.name()));
        other.map(|result| line(message, &result)).into_iter().collect()
    });
    let door = Door::open(&target, Era::Legacy, &Options::default()).await.unwrap();
    assert_eq!(door.opening().revision, oldest);
}

#[tokio::test]
async fn either_door_is_found_on_one_pipe_or_on_a_second_one() {
    // What a server does with a discovery that it does not know.
    type Does = fn(&Value) -> Vec<Act>;
    let table: [(Does, usize); 3] =
        [(|message| vec![refusal(message, -32601)], 1), (|_| Vec::new(), 1), (|_| vec![Act::Close], 2)];
    for (does, _) in table {
        let (target, log) = program(move |message| match message["method"].as_str() {
            Some("server/discover") => does(message),
            _ => opening(message).map(|result| line(message, &result)).into_iter().collect(),
        });
        let door = Door::open_either(&target, &hasty()).await.unwrap();
        assert_eq!(door.opening().revision.era(), Era::Legacy);
        assert_eq!(log.lock().unwrap()[0]["method"], "server/discover");
    }
    let dual = Door::open_either(&engine(vec![ToolParts::new("a")]), &Options::default()).await.unwrap();
    assert_eq!(dual.opening().revision, Revision::MODERN);
}

#[tokio::test]
async fn a_modern_server_that_objects_is_not_taken_for_a_legacy_one() {
    for code in [-32020, -32021, -32022] {
        let (target, log) = program(move |message| vec![refusal(message, code)]);
        assert!(Door::open_either(&target, &Options::default()).await.is_err());
        assert_eq!(log.lock().unwrap().len(), 1, "{code}");
    }
}

#[tokio::test]
async fn how_a_program_ended_explains_why_its_door_did_not_open() {
    let connect: super::super::Connect = Arc::new(|| {
        let (near, far) = tokio::io::duplex(64);
        drop(far);
        let (reader, writer) = tokio::io::split(near);
        let end: super::super::End = Box::new(|| Box::pin(async { Some("exit status 1: no such file".to_owned()) }));
        Box::pin(async move { Ok(super::super::Pipes { end, ..super::super::Pipes::new(reader, writer) }) })
    });
    let target = Target::Program(super::super::Program { shown: "gone".to_owned(), connect });
    let problem = Door::open(&target, Era::Modern, &Options::default()).await.unwrap_err();
    assert!(problem.to_string().ends_with("; exit status 1: no such file"), "{problem}");
}

const ANNOTATED: &str = r#"{"tools":[
    {"name":"é","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}},
    {"name":"bad","inputSchema":{"type":"object","properties":{"r":{"type":"number","x-mcp-header":"R"}}}}]}"#;

fn http(asked: &Asked) -> Vec<u8> {
    match asked.body["method"].as_str() {
        Some("tools/list") => json_answer(asked, &ANNOTATED.replace('\n', "")),
        Some("tools/call") => json_answer(asked, r#"{"content":[],"isError":true}"#),
        Some("notifications/initialized") => response("202 Accepted", "", ""),
        Some(_) => json_answer(asked, &opening(&asked.body).unwrap()),
        None => response("405 Method Not Allowed", "", ""),
    }
}

#[tokio::test]
async fn over_http_a_modern_call_mirrors_its_body_in_headers() {
    let (target, log) = listener(http).await;
    let door = Door::open(&target, Era::Modern, &Options::default()).await.unwrap();
    door.list_tools().await.unwrap();
    let called = door.call_tool("é", &arguments(r#"{"r":" eu"}"#), Duration::from_secs(10)).await.unwrap();
    assert_eq!(called.ending, Ending::Failed);
    let misplaced = door.call_tool("bad", &arguments("{}"), Duration::from_secs(10)).await.unwrap_err();
    assert!(
        misplaced.to_string().contains("\"bad\" cannot be called: inputSchema/properties/r/x-mcp-header"),
        "{misplaced}"
    );
    door.close().await;
    let log = log.lock().unwrap();
    let sent: Vec<_> = log.iter().map(|asked| (asked.verb(), asked.header("mcp-method").unwrap())).collect();
    assert_eq!(sent, [("POST", "server/discover"), ("POST", "tools/list"), ("POST", "tools/call")]);
    assert!(log.iter().all(|asked| asked.header(headers::VERSION) == Some(Revision::MODERN.name())));
    assert_eq!(log[2].header(headers::NAME), Some(headers::encode("é").as_str()));
    assert_eq!(log[2].header("mcp-param-region"), Some(headers::encode(" eu").as_str()));
}

#[tokio::test]
async fn over_http_a_legacy_call_names_its_revision_and_mirrors_nothing() {
    let (target, log) = listener(http).await;
    let door = Door::open(&target, Era::Legacy, &Options::default()).await.unwrap();
    door.list_tools().await.unwrap();
    door.call_tool("é", &arguments(r#"{"r":"eu"}"#), Duration::from_secs(10)).await.unwrap();
    door.close().await;
    let log = log.lock().unwrap();
    assert_eq!(log[0].header(headers::VERSION), None);
    assert!(log[1..].iter().all(|asked| asked.header(headers::VERSION) == Some(Revision::NEWEST_LEGACY.name())));
    assert!(log.iter().all(|asked| !asked.head.contains("mcp-method") && !asked.head.contains("mcp-param")));
}
