//! Orders of events on one connection: all short ones, and random long ones.
//!
//! Each event is applied to the machine and to a model that says what must come out: nothing
//! else may. What the machine promises is also checked on its own, without the model.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::protocol::catalog::{Catalog, CatalogParts, ToolParts};
use crate::protocol::json::JsonLimits;
use crate::protocol::revision::{Era, Revision};

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// A call under this id arrives.
    Call(i64),
    /// A batch of two calls, under the ids 1 and 2, arrives.
    Batch,
    /// The backend of the oldest call that has not ended yet ends, whether or not anyone still waits for it.
    OldestEnds,
    /// The same for the newest.
    NewestEnds,
    /// The backend of the newest call tells progress, even if it has ended.
    Notice,
    /// The peer cancels the request of this id.
    Cancel(i64),
    /// The next deadline passes; a spurious call if there is none.
    Timeout,
    /// The peer is gone.
    Close,
}

/// What must come out, calls and arrivals numbered from 0 in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Reply { arrival: usize, text: Text },
    Batch { arrival: usize, texts: Vec<Text> },
    Notify { arrival: usize },
    Invoke { arrival: usize, call: usize },
    Cancel { arrival: usize, call: usize, silent: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    /// The outcome of that call, and of no other.
    OutcomeOf(usize),
    Overdue,
    IdInFlight,
}

#[derive(Clone)]
struct Call {
    name: CallId,
    arrival: usize,
    id: i64,
    deadline: Instant,
    /// Whether an answer is still owed.
    open: bool,
    /// Whether its backend still runs.
    running: bool,
}

#[derive(Clone)]
struct Asked {
    name: Arrival,
    batch: bool,
    open: usize,
    texts: Vec<Text>,
}

/// What was promised about an arrival, noted from the outputs alone.
#[derive(Clone, Default)]
struct Fate {
    answered: bool,
    silenced: bool,
}

#[derive(Clone)]
struct World {
    connection: Connection,
    now: Instant,
    /// The progress that was told last, of any call.
    told: f64,
    closed: bool,
    calls: Vec<Call>,
    asked: Vec<Asked>,
    fates: Vec<Fate>,
    cancelled: Vec<CallId>,
}

/// What is the same for all worlds.
struct Fixture {
    world: World,
    calls: [Decoded; 2],
    cancels: [Decoded; 2],
    batch: Decoded,
}

const STEP: Duration = Duration::from_millis(100);

fn decoded(text: &str) -> Decoded {
    Decoded::read(&Bytes::copy_from_slice(text.as_bytes()), &JsonLimits::default())
}

impl Fixture {
    fn new(era: Era) -> Self {
        let parts = CatalogParts { tools: vec![ToolParts::new("t")], ..CatalogParts::new("orders", "1.0.0") };
        let catalog = Arc::new(Catalog::build(parts).unwrap());
        let dispatcher = Arc::new(Dispatcher::new(Arc::new(catalog), [7; 32]));
        let mut connection = Connection::new(dispatcher, Principal::LOCAL, &Limits::default());
        let mut meta = serde_json::json!({ "progressToken": "p" });
        match era {
            Era::Legacy => connection = connection.with_session(Session::assumed(Revision::ASSUMED_OVER_HTTP)),
            Era::Modern => {
                meta["io.modelcontextprotocol/protocolVersion"] = Revision::MODERN.name().into();
                meta["io.modelcontextprotocol/clientCapabilities"] = serde_json::json!({});
            }
        }
        let call = |id: i64| {
            let params = serde_json::json!({ "name": "t", "_meta": meta });
            serde_json::json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
        };
        let cancel = |id: i64| {
            let params = serde_json::json!({ "requestId": id });
            serde_json::json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string()
        };
        Self {
            world: World {
                connection,
                now: Instant::now(),
                told: 0.0,
                closed: false,
                calls: Vec::new(),
                asked: Vec::new(),
                fates: Vec::new(),
                cancelled: Vec::new(),
            },
            calls: [decoded(&call(1)), decoded(&call(2))],
            cancels: [decoded(&cancel(1)), decoded(&cancel(2))],
            batch: decoded(&format!("[{},{}]", call(1), call(2))),
        }
    }
}

fn of(messages: &[Decoded; 2], id: i64) -> Decoded {
    messages[usize::from(id == 2)].clone()
}

impl World {
    /// Applies an event to the machine and to the model, and compares.
    fn apply(&mut self, fixture: &Fixture, event: Event) -> Result<(), String> {
        self.now += STEP;
        let expected = match event {
            Event::Call(id) => self.arrives(of(&fixture.calls, id), &[id], false),
            Event::Batch => self.arrives(fixture.batch.clone(), &[1, 2], true),
            Event::OldestEnds => self.ends(self.calls.iter().position(|c| c.running)),
            Event::NewestEnds => self.ends(self.calls.iter().rposition(|c| c.running)),
            Event::Notice => self.tells(),
            Event::Cancel(id) => {
                let arrival = self.connection.handle_message(self.moment(), of(&fixture.cancels, id), None);
                self.remember(arrival, false);
                self.cancels(id)
            }
            Event::Timeout => self.times_out(),
            Event::Close => {
                self.connection.handle_closed();
                self.closes()
            }
        };
        let mut seen = Vec::new();
        while let Some(output) = self.connection.poll_output() {
            seen.push(self.read(output)?);
        }
        if seen != expected {
            return Err(format!("expected {expected:?}\n     got {seen:?}"));
        }
        let open = self.calls.iter().filter(|c| c.open).count();
        let (machines_open, machines_next) = (self.connection.calls_in_flight(), self.connection.poll_timeout());
        if machines_open != open || machines_next != self.next_deadline() {
            return Err(format!(
                "{open} calls are in flight, the next deadline is {:?}; the machine says {machines_open}, {machines_next:?}",
                self.next_deadline()
            ));
        }
        Ok(())
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.calls.iter().filter(|c| c.open).map(|c| c.deadline).min()
    }

    fn moment(&self) -> Moment {
        Moment { instant: self.now, unix: 1_800_000_000 }
    }

    fn remember(&mut self, name: Arrival, batch: bool) -> usize {
        self.asked.push(Asked { name, batch, open: 0, texts: Vec::new() });
        self.fates.push(Fate::default());
        self.asked.len() - 1
    }

    fn arrives(&mut self, message: Decoded, ids: &[i64], batch: bool) -> Vec<Seen> {
        let name = self.connection.handle_message(self.moment(), message, None);
        let arrival = self.remember(name, batch);
        let mut expected = Vec::new();
        if self.closed {
            return expected;
        }
        for id in ids {
            if self.calls.iter().any(|c| c.open && c.id == *id) {
                expected.extend(self.tell_peer(arrival, Text::IdInFlight, true));
            } else {
                let call = self.calls.len();
                // The machine's own number is noted when it comes out.
                let deadline = self.now + Limits::default().deadline;
                self.calls.push(Call { name: CallId(0), arrival, id: *id, deadline, open: true, running: true });
                self.asked[arrival].open += 1;
                expected.push(Seen::Invoke { arrival, call });
            }
        }
        expected.extend(self.batch_done(arrival));
        expected
    }

    /// A text for an arrival: at once, or with the rest of its batch.
    fn tell_peer(&mut self, arrival: usize, text: Text, still_read: bool) -> Option<Seen> {
        if !self.asked[arrival].batch {
            return Some(Seen::Reply { arrival, text });
        }
        self.asked[arrival].texts.push(text);
        if still_read { None } else { self.batch_done(arrival) }
    }

    fn batch_done(&mut self, arrival: usize) -> Option<Seen> {
        let asked = &mut self.asked[arrival];
        let done = asked.batch && asked.open == 0;
        done.then(|| Seen::Batch { arrival, texts: std::mem::take(&mut asked.texts) })
    }

    fn shut(&mut self, call: usize) -> usize {
        let arrival = self.calls[call].arrival;
        self.calls[call].open = false;
        self.asked[arrival].open -= 1;
        arrival
    }

    fn ends(&mut self, call: Option<usize>) -> Vec<Seen> {
        let Some(call) = call else { return Vec::new() };
        self.calls[call].running = false;
        let content = Content::text(format!("outcome of call {call}."));
        self.connection.handle_outcome(self.moment(), self.calls[call].name, Outcome::Complete(content));
        if !self.calls[call].open {
            return Vec::new();
        }
        let arrival = self.shut(call);
        self.tell_peer(arrival, Text::OutcomeOf(call), false).into_iter().collect()
    }

    fn tells(&mut self) -> Vec<Seen> {
        let Some(call) = self.calls.last() else { return Vec::new() };
        self.told += 1.0;
        let progress = self.told;
        let notice = Notice::Progress { progress, total: None, message: None };
        self.connection.handle_notice(self.now, call.name, notice);
        if call.open { vec![Seen::Notify { arrival: call.arrival }] } else { Vec::new() }
    }

    fn cancels(&mut self, id: i64) -> Vec<Seen> {
        let Some(call) = self.calls.iter().position(|c| c.open && c.id == id) else { return Vec::new() };
        let arrival = self.shut(call);
        let silent = !self.asked[arrival].batch;
        let mut expected = vec![Seen::Cancel { arrival, call, silent }];
        expected.extend(self.batch_done(arrival));
        expected
    }

    fn times_out(&mut self) -> Vec<Seen> {
        self.now = self.next_deadline().unwrap_or(self.now).max(self.now);
        self.connection.handle_timeout(self.now);
        let mut expected = Vec::new();
        for call in 0..self.calls.len() {
            if self.calls[call].open && self.calls[call].deadline <= self.now {
                let arrival = self.shut(call);
                expected.push(Seen::Cancel { arrival, call, silent: false });
                expected.extend(self.tell_peer(arrival, Text::Overdue, false));
            }
        }
        expected
    }

    fn closes(&mut self) -> Vec<Seen> {
        self.closed = true;
        let open: Vec<usize> = (0..self.calls.len()).filter(|i| self.calls[*i].open).collect();
        let cancel = |call: usize| {
            let arrival = self.shut(call);
            Seen::Cancel { arrival, call, silent: true }
        };
        open.into_iter().map(cancel).collect()
    }

    /// Reads an output, and checks what is promised whatever the model says.
    fn read(&mut self, output: Output) -> Result<Seen, String> {
        Ok(match output {
            Output::Reply { arrival, reply } => {
                let arrival = self.answer(arrival)?;
                Seen::Reply { arrival, text: text_of(&reply.encode())? }
            }
            Output::Batch { arrival, replies } => {
                let arrival = self.answer(arrival)?;
                Seen::Batch { arrival, texts: replies.iter().map(|r| text_of(r)).collect::<Result<_, _>>()? }
            }
            Output::Notify { arrival, .. } => {
                let arrival = self.find(arrival)?;
                if self.fates[arrival].answered || self.fates[arrival].silenced || self.closed {
                    return Err(format!("a notification about {arrival}, which is over"));
                }
                Seen::Notify { arrival }
            }
            Output::Invoke { call: name, .. } => {
                if self.calls.iter().any(|c| c.name == name) {
                    return Err("a call is invoked twice".to_owned());
                }
                let new = self.calls.iter().position(|c| c.name == CallId(0));
                let call = new.ok_or("a call is invoked that nobody asked for")?;
                self.calls[call].name = name;
                Seen::Invoke { arrival: self.calls[call].arrival, call }
            }
            Output::Cancel { call: name, arrival, silent } => {
                if self.cancelled.contains(&name) {
                    return Err("a call is cancelled twice".to_owned());
                }
                self.cancelled.push(name);
                let arrival = self.find(arrival)?;
                self.fates[arrival].silenced |= silent;
                let call = self.calls.iter().position(|c| c.name == name).ok_or("an unknown call is cancelled")?;
                Seen::Cancel { arrival, call, silent }
            }
            Output::Overrun => return Err("an overrun".to_owned()),
            Output::Ask { .. } | Output::Announce { .. } | Output::Detach { .. } | Output::Silence { .. } => {
                return Err("more than was asked for".to_owned());
            }
            Output::Hear => return Err("a wish to hear".to_owned()),
        })
    }

    fn find(&self, name: Arrival) -> Result<usize, String> {
        self.asked.iter().position(|a| a.name == name).ok_or_else(|| "an unknown arrival".to_owned())
    }

    fn answer(&mut self, name: Arrival) -> Result<usize, String> {
        let arrival = self.find(name)?;
        let fate = &mut self.fates[arrival];
        if fate.answered || fate.silenced || self.closed {
            return Err(format!("an answer to {arrival}, which was answered, cancelled or closed"));
        }
        fate.answered = true;
        Ok(arrival)
    }
}

fn text_of(message: &[u8]) -> Result<Text, String> {
    let text = std::str::from_utf8(message).unwrap();
    if let Some((_, rest)) = text.split_once("outcome of call ") {
        let number = rest.split_once('.').unwrap().0;
        return Ok(Text::OutcomeOf(number.parse().unwrap()));
    }
    match text {
        _ if text.contains("did not end within 60 s") => Ok(Text::Overdue),
        _ if text.contains("-32600") && text.contains("is in flight") => Ok(Text::IdInFlight),
        _ => Err(format!("an answer that is none of the expected: {text}")),
    }
}

/// Plays every order of `length` events; counts the orders.
fn play_all(fixture: &Fixture, world: &World, alphabet: &[Event], length: u32, played: &mut Vec<Event>) -> u64 {
    if length == 0 {
        return 1;
    }
    let mut orders = 0;
    for event in alphabet {
        let mut next = world.clone();
        played.push(*event);
        if let Err(problem) = next.apply(fixture, *event) {
            panic!("{problem}\n   after {played:?}");
        }
        orders += play_all(fixture, &next, alphabet, length - 1, played);
        played.pop();
    }
    orders
}

/// Short orders first, so that a failure is shown by a short one.
fn all_orders(era: Era, alphabet: [Event; 6], length: u32) {
    let fixture = Fixture::new(era);
    play_all(&fixture, &fixture.world, &alphabet, 4, &mut Vec::new());
    let orders: u64 = std::thread::scope(|scope| {
        let starts = alphabet.map(|first| {
            let (fixture, alphabet) = (&fixture, &alphabet);
            scope.spawn(move || {
                let mut world = fixture.world.clone();
                world.apply(fixture, first).unwrap();
                play_all(fixture, &world, alphabet, length - 1, &mut vec![first])
            })
        });
        starts.map(|start| start.join().unwrap()).iter().sum()
    });
    assert_eq!(orders, 6u64.pow(length));
}

/// A request may come again under the id of one that is in flight, over, or cancelled.
const ONE_ID: [Event; 6] =
    [Event::Call(1), Event::OldestEnds, Event::Notice, Event::Cancel(1), Event::Timeout, Event::Close];

/// Two ids at once; outcomes come late and crosswise.
const TWO_IDS: [Event; 6] =
    [Event::Call(1), Event::Call(2), Event::OldestEnds, Event::NewestEnds, Event::Cancel(1), Event::Timeout];

/// Batches and calls share the ids.
const BATCHES: [Event; 6] =
    [Event::Batch, Event::Call(1), Event::OldestEnds, Event::NewestEnds, Event::Cancel(2), Event::Timeout];

#[test]
fn in_every_order_of_8_events_a_request_gets_at_most_one_answer_and_its_own() {
    all_orders(Era::Legacy, ONE_ID, 8);
    all_orders(Era::Modern, ONE_ID, 5);
}

#[test]
fn in_every_order_of_6_events_two_requests_get_their_own_answers() {
    all_orders(Era::Modern, TWO_IDS, 6);
    all_orders(Era::Legacy, TWO_IDS, 6);
}

#[test]
fn in_every_order_of_6_events_a_batch_is_answered_once_and_whole() {
    all_orders(Era::Legacy, BATCHES, 6);
}

#[test]
#[ignore = "long: 60,466,176 orders and more"]
fn in_every_order_of_10_events_a_request_gets_at_most_one_answer_and_its_own() {
    all_orders(Era::Modern, ONE_ID, 10);
    all_orders(Era::Modern, TWO_IDS, 9);
    all_orders(Era::Legacy, BATCHES, 9);
}

fn events(most: usize) -> impl Strategy<Value = Vec<Event>> {
    let id = || 1i64..=2;
    // A close ends everything, so it is rare.
    let event = prop_oneof![
        8 => id().prop_map(Event::Call),
        4 => Just(Event::Batch),
        8 => Just(Event::OldestEnds),
        4 => Just(Event::NewestEnds),
        6 => Just(Event::Notice),
        6 => id().prop_map(Event::Cancel),
        3 => Just(Event::Timeout),
        1 => Just(Event::Close),
    ];
    prop::collection::vec(event, 0..most)
}

fn play(era: Era, order: &[Event]) -> Result<(), String> {
    static FIXTURES: LazyLock<[Fixture; 2]> = LazyLock::new(|| [Era::Legacy, Era::Modern].map(Fixture::new));
    let fixture = &FIXTURES[usize::from(era == Era::Modern)];
    let mut world = fixture.world.clone();
    let batches = era == Era::Legacy;
    order.iter().filter(|e| batches || **e != Event::Batch).try_for_each(|event| world.apply(fixture, *event))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn in_long_random_orders_the_same_holds(order in events(80), modern in any::<bool>()) {
        let era = if modern { Era::Modern } else { Era::Legacy };
        prop_assert_eq!(play(era, &order), Ok(()));
    }
}

#[test]
#[ignore = "long: two million events in random orders"]
fn in_very_many_random_orders_the_same_holds() {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let outcome = runner.run(&(events(200), any::<bool>()), |(order, modern)| {
        prop_assert_eq!(play(if modern { Era::Modern } else { Era::Legacy }, &order), Ok(()));
        Ok(())
    });
    outcome.unwrap();
}
