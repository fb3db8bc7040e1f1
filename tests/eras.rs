//! A legacy and a modern client on one connection, in thousands of random orders: each hears exactly what it would
//! hear on a connection of its own, so nothing that is kept for one reaches the other.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestCaseResult;
use serde_json::{Value, json};
use twodoor::protocol::json::JsonLimits;
use twodoor::protocol::{
    Arrival, Ask, CallId, Catalog, CatalogParts, Changed, Completes, Completion, Connection, Content, Decoded,
    Dispatcher, Era, InputKind, InputRequest, Limits, LogLevel, Moment, Notice, Operation, Outcome, Output, Principal,
    PromptArgument, PromptMessage, PromptParts, Prompted, ResourceContents, ResourceParts, ToolParts,
};

/// Whose message or call it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Legacy,
    Modern,
}

use Who::{Legacy, Modern};

/// One thing that happens.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// A client sends one of its messages.
    Says(Who, usize),
    /// The legacy client answers one of the questions that it was asked, be it an old one.
    Answers(usize, bool),
    /// One of the calls of a client ends, whether or not anyone still waits for it.
    Ends(Who, usize, Ending),
    /// One of the calls of a client tells something.
    Tells(Who, usize, u8),
    /// Another catalog is published, which differs in these lists.
    Published(u8),
    /// A resource is not what it was.
    Updated(usize),
    /// Time passes.
    Later(u16),
}

#[derive(Debug, Clone, Copy)]
enum Ending {
    Well,
    Badly,
    /// It asks so many things.
    Asking(u8),
}

const URIS: [&str; 3] = ["notes:a", "notes:all/", "notes:all/b"];

/// Seconds that may pass at once: less and more than calls, questions and sealed states have.
const PAUSES: [u16; 4] = [1, 61, 601, 601];

fn message(id: Option<&str>, method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    if let Some(id) = id {
        message["id"] = id.into();
    }
    message
}

fn decoded(message: &Value) -> Decoded {
    Decoded::read(&Bytes::from(message.to_string()), &JsonLimits::default())
}

/// What a client asks for in either era: three ids, so that they are in flight twice at times.
fn requests(who: Who, id: &str, token: Option<&str>) -> Vec<Value> {
    let uri = |uri: &str| json!({ "uri": uri });
    let mut all = vec![
        message(Some(id), "tools/call", json!({ "name": "t" })),
        message(Some(id), "tools/call", json!({ "name": "u" })),
        message(Some(id), "tools/list", json!({})),
        message(Some(id), "resources/read", uri("notes:a")),
        message(Some(id), "prompts/get", json!({ "name": "p", "arguments": { "a": "b" } })),
        message(
            Some(id),
            "completion/complete",
            json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "" } }),
        ),
        message(Some(id), "ping", json!({})),
        message(Some(id), "logging/setLevel", json!({ "level": "debug" })),
        message(Some(id), "logging/setLevel", json!({ "level": "emergency" })),
        message(Some(id), "resources/subscribe", uri("notes:a")),
        message(Some(id), "resources/subscribe", uri("notes:all/")),
        message(Some(id), "resources/unsubscribe", uri("notes:a")),
        message(Some(id), "server/discover", json!({})),
        message(
            Some(id),
            "subscriptions/listen",
            json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["notes:a"] } }),
        ),
        message(
            Some(id),
            "subscriptions/listen",
            json!({ "notifications": { "promptsListChanged": true, "resourceSubscriptions": ["notes:all/"] } }),
        ),
        message(None, "notifications/cancelled", json!({ "requestId": id })),
        message(None, "notifications/initialized", json!({})),
    ];
    if who == Legacy {
        for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
            for capabilities in [json!({}), json!({ "elicitation": {}, "roots": {} })] {
                let client = json!({ "name": "t", "version": "1" });
                let params = json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": client });
                all.push(message(Some(id), "initialize", params));
            }
        }
    }
    if let Some(token) = token {
        all.iter_mut().for_each(|message| message["params"]["_meta"] = json!({ "progressToken": token }));
    }
    all
}

fn claimed(mut message: Value, capabilities: Value, level: Option<&str>) -> Value {
    let mut meta = message["params"]["_meta"].as_object().cloned().unwrap_or_default();
    meta.insert("io.modelcontextprotocol/protocolVersion".to_owned(), "2026-07-28".into());
    meta.insert("io.modelcontextprotocol/clientCapabilities".to_owned(), capabilities);
    if let Some(level) = level {
        meta.insert("io.modelcontextprotocol/logLevel".to_owned(), level.into());
    }
    message["params"]["_meta"] = Value::Object(meta);
    message
}

static LEGACY: LazyLock<Vec<Decoded>> = LazyLock::new(|| {
    let mut all: Vec<Value> = Vec::new();
    for id in ["l1", "l2"] {
        all.extend(requests(Legacy, id, None));
    }
    all.extend(requests(Legacy, "l4", Some("told")).into_iter().take(6));
    let pair = |first: usize, second: usize| json!([all[first], all[17 + 10 + second]]);
    let arrays = [pair(0, 1), pair(2, 15), pair(3, 0)];
    all.iter().chain(&arrays).map(decoded).collect()
});

static MODERN: LazyLock<Vec<Decoded>> = LazyLock::new(|| {
    let asked = json!({ "elicitation": {}, "roots": {} });
    let mut all: Vec<Value> = Vec::new();
    for (id, capabilities, level) in [("m1", json!({}), None), ("m2", asked.clone(), Some("debug"))] {
        let requests = requests(Modern, id, None);
        // Calls, subscriptions and their ends more often than the rest.
        let often = [0, 1, 3, 4, 13, 14, 15, 15].map(|index: usize| requests[index].clone());
        let all_of_it = requests.into_iter().chain(often);
        all.extend(all_of_it.map(|m| claimed(m, capabilities.clone(), level)));
    }
    all.extend(requests(Modern, "m4", Some("told")).into_iter().take(6).map(|m| claimed(m, asked.clone(), None)));
    all.iter().map(decoded).collect()
});

fn catalog() -> Arc<Catalog> {
    let resource = |uri: &str| ResourceParts { uri: uri.to_owned(), name: "r".to_owned(), ..ResourceParts::default() };
    let argument = PromptArgument { name: "a".to_owned(), completes: Completes::Backend, ..PromptArgument::default() };
    let parts = CatalogParts {
        logging: true,
        tools: vec![ToolParts::new("t"), ToolParts::new("u")],
        resources: URIS.map(resource).to_vec(),
        prompts: vec![PromptParts { name: "p".to_owned(), arguments: vec![argument], ..PromptParts::default() }],
        ..CatalogParts::new("eras", "1.0.0")
    };
    Arc::new(Catalog::build(parts).unwrap())
}

static DISPATCHER: LazyLock<Arc<Dispatcher>> =
    LazyLock::new(|| Arc::new(Dispatcher::new(Arc::new(catalog()), [7; 32])));

/// What a call is, as far as its ending depends on it.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Call,
    Prompt,
    Read,
    Complete,
}

/// A connection, and what came out of it by client.
struct Side {
    connection: Connection,
    now: Moment,
    owners: HashMap<Arrival, (Who, usize)>,
    arrivals: [usize; 2],
    calls: [Vec<(CallId, Kind)>; 2],
    /// The ids of the questions that the legacy client was asked.
    questions: Vec<Value>,
    heard: [Vec<String>; 2],
}

fn at(who: Who) -> usize {
    usize::from(who == Modern)
}

impl Side {
    fn new(begun: Instant) -> Self {
        let connection = Connection::new(Arc::clone(&DISPATCHER), Principal::LOCAL, &Limits::default());
        Self {
            connection: connection.sharing_its_stream(),
            now: Moment { instant: begun, unix: 1_800_000_000 },
            owners: HashMap::new(),
            arrivals: [0; 2],
            calls: [Vec::new(), Vec::new()],
            questions: Vec::new(),
            heard: [Vec::new(), Vec::new()],
        }
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Says(who, index) => {
                let all = if who == Legacy { &*LEGACY } else { &*MODERN };
                self.says(who, all[index % all.len()].clone());
            }
            Event::Answers(index, accepts) => {
                if self.questions.is_empty() {
                    return;
                }
                let id = &self.questions[index % self.questions.len()];
                let response = match accepts {
                    true => json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "accept" } }),
                    false => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -1, "message": "no" } }),
                };
                self.says(Legacy, decoded(&response));
            }
            Event::Ends(who, index, ending) => {
                let calls = &self.calls[at(who)];
                if calls.is_empty() {
                    return;
                }
                let number = index % calls.len();
                let (call, kind) = calls[number];
                self.connection.handle_outcome(self.now, call, outcome(kind, ending, number));
            }
            Event::Tells(who, index, how) => {
                let calls = &self.calls[at(who)];
                if calls.is_empty() {
                    return;
                }
                let (call, _) = calls[index % calls.len()];
                let notice = match how % 3 {
                    0 => Notice::Progress { progress: f64::from(how), total: None, message: Some("m".to_owned()) },
                    1 => Notice::Log { level: LogLevel::Info, logger: None, data: json!(how) },
                    _ => Notice::Log { level: LogLevel::Alert, logger: None, data: json!(how) },
                };
                self.connection.handle_notice(self.now.instant, call, notice);
            }
            Event::Published(lists) => {
                let changed = Changed { tools: lists & 1 != 0, resources: lists & 2 != 0, prompts: lists & 4 != 0 };
                self.connection.handle_published(changed);
            }
            Event::Updated(index) => self.connection.handle_updated(URIS[index % URIS.len()]),
            Event::Later(seconds) => {
                self.now.instant += Duration::from_secs(seconds.into());
                self.now.unix += u64::from(seconds);
                self.connection.handle_timeout(self.now.instant);
            }
        }
        self.drain();
    }

    fn says(&mut self, who: Who, message: Decoded) {
        let arrival = self.connection.handle_message(self.now, message, None);
        self.owners.insert(arrival, (who, self.arrivals[at(who)]));
        self.arrivals[at(who)] += 1;
    }

    fn drain(&mut self) {
        while let Some(output) = self.connection.poll_output() {
            let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
            let (who, heard) = match output {
                Output::Reply { arrival, reply } => self.about(arrival, &format!("reply {}", text(&reply.encode()))),
                Output::Batch { arrival, replies } => {
                    let replies: Vec<_> = replies.iter().map(text).collect();
                    self.about(arrival, &format!("batch {replies:?}"))
                }
                Output::Notify { arrival, message } => self.about(arrival, &format!("notify {}", text(&message))),
                Output::Ask { arrival, message } => {
                    let asked: Value = serde_json::from_slice(&message).unwrap();
                    self.questions.push(asked["id"].clone());
                    self.about(arrival, &format!("ask {}", text(&message)))
                }
                Output::Announce { arrival: Some(arrival), message, .. } => {
                    self.about(arrival, &format!("notify {}", text(&message)))
                }
                Output::Announce { arrival: None, message, .. } => (Legacy, format!("announce {}", text(&message))),
                Output::Silence { arrival } => self.about(arrival, "silence"),
                Output::Cancel { call, arrival, silent } => {
                    let (who, _) = self.owners[&arrival];
                    // A call that is being asked for has a number that was never invoked.
                    let number = self.calls[at(who)].iter().position(|(known, _)| *known == call);
                    self.about(arrival, &format!("cancel {number:?} {silent}"))
                }
                Output::Invoke { call, invocation, .. } => {
                    let who = if invocation.revision.era() == Era::Modern { Modern } else { Legacy };
                    let kind = match invocation.operation {
                        Operation::Call { .. } => Kind::Call,
                        Operation::Prompt { .. } => Kind::Prompt,
                        Operation::Read { .. } => Kind::Read,
                        Operation::Complete(_) => Kind::Complete,
                        Operation::Task(_) => panic!("nobody asked for a task"),
                    };
                    self.calls[at(who)].push((call, kind));
                    let given = (&invocation.answers, &invocation.state, invocation.revision, invocation.client);
                    (who, format!("invoke {kind:?} {given:?}"))
                }
                // Either may want to hear; that the connection hears is shared.
                Output::Hear => continue,
                other @ (Output::Detach { .. } | Output::Overrun) => panic!("{other:?}"),
            };
            self.heard[at(who)].push(heard);
        }
    }

    fn about(&self, arrival: Arrival, what: &str) -> (Who, String) {
        let (who, number) = self.owners[&arrival];
        (who, format!("{number}: {what}"))
    }
}

fn outcome(kind: Kind, ending: Ending, number: usize) -> Outcome {
    let text = format!("the end of {number}");
    match (ending, kind) {
        (Ending::Badly, _) => Outcome::Failed(Content::text(text)),
        (Ending::Asking(count), Kind::Call | Kind::Prompt | Kind::Read) => {
            let form = InputRequest {
                key: "form".to_owned(),
                kind: InputKind::ElicitForm,
                params: json!({ "message": text, "requestedSchema": { "type": "object" } }),
            };
            let roots = InputRequest { key: "roots".to_owned(), kind: InputKind::Roots, params: json!({}) };
            let requests = [form, roots].into_iter().take(count.into()).collect();
            Outcome::InputRequired(Ask { requests, state: Some(json!(number)) })
        }
        (_, Kind::Call) => Outcome::Complete(Content::text(text)),
        (_, Kind::Prompt) => Outcome::Prompted(Prompted {
            description: None,
            messages: vec![PromptMessage::user(twodoor::protocol::Block::text(text))],
        }),
        (_, Kind::Read) => Outcome::Read(vec![ResourceContents::text("notes:a", None, text)]),
        (_, Kind::Complete) => Outcome::Completed(Completion { values: vec![text], ..Completion::default() }),
    }
}

/// Whether an event reaches a client's connection where it has one of its own.
fn concerns(event: Event, client: Who) -> bool {
    match event {
        Event::Says(who, _) | Event::Ends(who, ..) | Event::Tells(who, ..) => who == client,
        Event::Answers(..) => client == Legacy,
        Event::Published(_) | Event::Updated(_) | Event::Later(_) => true,
    }
}

fn holds(events: &[Event]) -> TestCaseResult {
    let begun = Instant::now();
    let mut shared = Side::new(begun);
    let mut alone = [Side::new(begun), Side::new(begun)];
    for event in events {
        shared.apply(*event);
        for client in [Legacy, Modern] {
            let own = &mut alone[at(client)];
            if concerns(*event, client) {
                own.apply(*event);
            }
            prop_assert_eq!(&shared.heard[at(client)], &own.heard[at(client)], "{:?} after {:?}", client, event);
            let stray: usize = own.heard.iter().map(Vec::len).sum();
            prop_assert_eq!(stray, own.heard[at(client)].len());
        }
        let [legacy, modern] = &alone;
        prop_assert_eq!(
            shared.connection.calls_in_flight(),
            legacy.connection.calls_in_flight() + modern.connection.calls_in_flight()
        );
        let next = [&legacy.connection, &modern.connection].iter().filter_map(|c| c.poll_timeout()).min();
        prop_assert_eq!(shared.connection.poll_timeout(), next);
        let session = |side: &Side| side.connection.session().map(twodoor::protocol::Session::revision);
        prop_assert_eq!(session(&shared), session(legacy));
        prop_assert!(modern.connection.session().is_none());
        shared.heard.iter_mut().for_each(Vec::clear);
        alone.iter_mut().for_each(|side| side.heard.iter_mut().for_each(Vec::clear));
    }
    Ok(())
}

fn event() -> impl Strategy<Value = Event> {
    let who = || prop_oneof![Just(Legacy), Just(Modern)];
    let ending =
        || prop_oneof![3 => Just(Ending::Well), 1 => Just(Ending::Badly), 4 => (1u8..3).prop_map(Ending::Asking)];
    let index = || 0usize..1000;
    prop_oneof![
        14 => (who(), index()).prop_map(|(who, index)| Event::Says(who, index)),
        3 => (index(), prop::bool::weighted(0.8)).prop_map(|(index, accepts)| Event::Answers(index, accepts)),
        4 => (who(), index(), ending()).prop_map(|(who, index, ending)| Event::Ends(who, index, ending)),
        3 => (who(), index(), 1u8..100).prop_map(|(who, index, how)| Event::Tells(who, index, how)),
        2 => (1u8..8).prop_map(Event::Published),
        2 => index().prop_map(Event::Updated),
        2 => prop::sample::select(&PAUSES[..]).prop_map(Event::Later),
    ]
}

/// The orders begin with a handshake more often than chance would have it.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let opening = prop_oneof![1 => Just(None), 5 => (17usize..27).prop_map(Some)];
    (opening, prop::collection::vec(event(), 1..30)).prop_map(|(opening, mut events)| {
        events.splice(0..0, opening.map(|index| Event::Says(Legacy, index)));
        events
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_clients_of_different_eras_on_one_connection_hear_what_each_would_hear_alone(events in events()) {
        holds(&events)?;
    }
}

#[test]
fn the_orders_reach_what_they_are_about() {
    // An order that never asks, tells or subscribes would hold whatever the machine did.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for _ in 0..500 {
        let events = events().new_tree(&mut runner).unwrap().current();
        let mut side = Side::new(Instant::now());
        events.into_iter().for_each(|event| side.apply(event));
        let all = side.heard.iter().flatten();
        for heard in all {
            for what in [
                "announce",
                "ask",
                "batch [\"",
                "cancel",
                "silence",
                "input_required",
                "notifications/message",
                "notifications/progress",
                "subscriptions/acknowledged",
                "resources/updated",
                "is in flight",
                "did not answer",
            ] {
                *seen.entry(what).or_default() += usize::from(heard.contains(what));
            }
        }
    }
    assert!(seen.len() == 12 && seen.values().all(|count| *count > 0), "{seen:?}");
}
