//! Runs one connection: feeds the machine, carries out its calls, hands its outputs to a sink.
//!
//! Promises: outputs reach the sink in the machine's order; a call is first polled in place and
//! gets a task only if it is not ready; a panic ends its call alone; a call whose caller is gone
//! is dropped after a grace.

mod far_end;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use smallvec::SmallVec;
use tokio::sync::{Notify, OwnedSemaphorePermit};

use self::far_end::{FarEnd, Gone};
use super::hub::{Hears, News};
use super::{Engine, now};
use crate::protocol::few::FewMap;
use crate::protocol::invoke::BoxFuture;
use crate::protocol::{
    Arrival, CallId, Connection, Content, Decoded, Invocation, Message, Mirror, Moment, Outcome, Output, Reply,
    Response, Revision, Session,
};

/// How long a call may take to end once its caller is gone: longer than stopping a child process takes.
const GONE_GRACE: Duration = Duration::from_secs(8);

/// The answer to an arrival.
#[derive(Debug)]
pub(super) enum Answer {
    One(Reply),
    /// A batch's replies, encoded; none if nothing in it is to be answered.
    Many(Vec<Bytes>),
}

impl Answer {
    /// The answer as one message, if there is one.
    pub(super) fn encode(&self) -> Option<Bytes> {
        match self {
            Self::One(reply) => Some(reply.encode()),
            Self::Many(replies) if replies.is_empty() => None,
            Self::Many(replies) => Some([&b"["[..], &replies.join(&b","[..]), b"]"].concat().into()),
        }
    }
}

/// Where a connection's outputs go. Called under the machine's lock: must not block.
pub(super) trait Sink: Send + Sync + 'static {
    /// What tells one arrival's outputs from another's.
    type Route: Send;
    /// Outputs of `arrival` are about to come.
    fn open(&self, arrival: Arrival, route: Self::Route);
    fn answer(&self, arrival: Arrival, answer: Answer);
    fn notify(&self, arrival: Arrival, message: Bytes);
    /// A request of ours in the course of `arrival`.
    fn ask(&self, arrival: Arrival, message: Bytes);
    /// Something that the peer asked to hear of; what is lasting must not give way.
    fn announce(&self, lasting: bool, message: Bytes);
    /// The peer will fetch the answer to `arrival` later: its stream can be closed.
    fn detach(&self, arrival: Arrival);
    /// Nothing will answer `arrival`: its request was cancelled.
    fn silence(&self, arrival: Arrival);
    /// The peer sends nothing but rubbish.
    fn overrun(&self);
}

/// See the module. Cloning shares it.
pub(super) struct Driver<S>(Arc<Inner<S>>);

impl<S> Clone for Driver<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Inner<S> {
    engine: Arc<Engine>,
    machine: Mutex<Machine<S>>,
    sink: S,
    /// Told whenever a call ends, while somebody waits for it.
    ended: Notify,
}

struct Machine<S> {
    connection: Connection,
    /// The far ends of calls that were not ready when they were first polled.
    running: FewMap<CallId, Weak<FarEnd<S>>>,
    /// Calls that are polled for the first time.
    starting: usize,
    /// Somebody waits for calls to end.
    awaited: bool,
    /// A task keeps the deadlines of what the peer is asked.
    timed: bool,
}

impl<S> Machine<S> {
    /// How many calls have not ended, cancelled ones included.
    fn running(&self) -> usize {
        self.running.len() + self.starting
    }
}

struct Started {
    call: CallId,
    invocation: Arc<Invocation>,
    deadline: Instant,
}

impl<S: Sink> Driver<S> {
    pub(super) fn new(engine: Arc<Engine>, connection: Connection, sink: S) -> Self {
        let machine = Machine { connection, running: FewMap::default(), starting: 0, awaited: false, timed: false };
        Self(Arc::new(Inner { engine, machine: Mutex::new(machine), sink, ended: Notify::new() }))
    }

    pub(super) fn sink(&self) -> &S {
        &self.0.sink
    }

    /// Feeds one line or body. Whatever is known at once is in the sink when this returns.
    pub(super) fn deliver(&self, decoded: Decoded, mirror: Option<&Mirror>, route: S::Route) -> Arrival {
        let now = now();
        let mut machine = self.lock();
        let arrival = machine.connection.handle_message(now, decoded, mirror);
        self.0.sink.open(arrival, route);
        if machine.connection.is_deaf() {
            self.0.sink.silence(arrival);
        }
        self.carry(machine, now);
        arrival
    }

    /// Feeds a response if a request of ours waits for it; false if none does.
    pub(super) fn deliver_response(&self, response: Response) -> bool {
        let mut machine = self.lock();
        if !response.id.as_ref().is_some_and(|id| machine.connection.awaits(id)) {
            return false;
        }
        let now = now();
        machine.connection.handle_message(now, Decoded::One(Ok(Message::Response(response))), None);
        self.carry(machine, now);
        true
    }

    /// The peer is gone: calls are cancelled, nothing more reaches the sink.
    pub(super) fn close(&self) {
        let mut machine = self.lock();
        machine.connection.handle_closed();
        self.carry(machine, now());
    }

    /// Ends every subscription, as the server is about to stop.
    pub(super) fn drain(&self) {
        let mut machine = self.lock();
        machine.connection.handle_draining();
        self.carry(machine, now());
    }

    /// Whether anything that was asked for is not answered yet.
    pub(super) fn is_busy(&self) -> bool {
        let machine = self.lock();
        machine.running() > 0 || machine.connection.calls_in_flight() > 0
    }

    /// How many calls have not ended, cancelled ones included.
    pub(super) fn running(&self) -> usize {
        self.lock().running()
    }

    /// What `initialize` agreed on, if it did.
    pub(super) fn session_revision(&self) -> Option<Revision> {
        self.lock().connection.session().map(Session::revision)
    }

    /// Ends when no call is running.
    pub(super) async fn idle(&self) {
        loop {
            let mut ended = std::pin::pin!(self.0.ended.notified());
            ended.as_mut().enable();
            {
                let mut machine = self.lock();
                machine.awaited = true;
                if machine.running() == 0 {
                    return;
                }
            }
            ended.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Machine<S>> {
        // A panic while the lock was held is a bug of ours in one event; the machine's maps stay consistent.
        self.0.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what the machine wants done. `now` is when what happened to it did.
    fn carry(&self, mut machine: MutexGuard<'_, Machine<S>>, now: Moment) {
        let mut started: SmallVec<[Started; 1]> = SmallVec::new();
        while let Some(output) = machine.connection.poll_output() {
            match output {
                Output::Reply { arrival, reply } => self.0.sink.answer(arrival, Answer::One(reply)),
                Output::Batch { arrival, replies } => self.0.sink.answer(arrival, Answer::Many(replies)),
                Output::Notify { arrival, message } => self.0.sink.notify(arrival, message),
                Output::Ask { arrival, message } => self.0.sink.ask(arrival, message),
                Output::Announce { lasting, message, .. } => self.0.sink.announce(lasting, message),
                Output::Detach { arrival } => self.0.sink.detach(arrival),
                Output::Silence { arrival } => self.0.sink.silence(arrival),
                Output::Hear => {
                    let hearer: Arc<dyn Hears> = Arc::clone(&self.0) as _;
                    self.0.engine.hub.register(&hearer);
                }
                Output::Cancel { call, arrival, silent } => {
                    // One that is polled for the first time is told when that is over.
                    if let Some(far_end) = machine.running.get_mut(&call).and_then(|far_end| far_end.upgrade()) {
                        far_end.gone.set();
                    }
                    if silent {
                        self.0.sink.silence(arrival);
                    }
                }
                Output::Overrun => self.0.sink.overrun(),
                Output::Invoke { call, invocation, deadline } => {
                    machine.starting += 1;
                    started.push(Started { call, invocation, deadline });
                }
            }
        }
        if machine.connection.is_asking() && !machine.timed {
            machine.timed = true;
            tokio::spawn(Inner::keep_time(Arc::downgrade(&self.0)));
        }
        drop(machine);
        started.into_iter().for_each(|started| self.start(started, now));
    }

    fn start(&self, started: Started, now: Moment) {
        let Started { call, invocation, deadline } = started;
        let Ok(permit) = Arc::clone(&self.0.engine.calls).try_acquire_owned() else {
            let most = self.0.engine.limits.calls;
            let text = format!("this server is at its limit of {most} calls in flight: try again in a moment");
            self.finish_first(call, Outcome::Failed(Content::text(text)), now);
            return;
        };
        let far_end = Arc::new(FarEnd { driver: self.clone(), call, gone: Gone::default() });
        let (invoke, caller) = (Arc::clone(&self.0.engine.invoke), Arc::clone(&far_end));
        let mut running: BoxFuture<'static, Outcome> = Box::pin(async move { invoke.invoke(invocation, caller).await });
        match poll_caught(running.as_mut(), &mut Context::from_waker(Waker::noop())) {
            Poll::Ready(outcome) => self.finish_first(call, outcome, now),
            Poll::Pending => {
                let mut machine = self.lock();
                machine.starting -= 1;
                machine.running.add(call, Arc::downgrade(&far_end));
                if !machine.connection.is_in_flight(call) {
                    far_end.gone.set();
                }
                drop(machine);
                tokio::spawn(self.clone().run(running, deadline, far_end, permit));
            }
        }
    }

    /// A call was ready when it was first polled.
    fn finish_first(&self, call: CallId, outcome: Outcome, now: Moment) {
        let mut machine = self.lock();
        machine.starting -= 1;
        machine.connection.handle_outcome(now, call, outcome);
        self.tell_ended(&machine);
        self.carry(machine, now);
    }

    fn tell_ended(&self, machine: &Machine<S>) {
        if machine.awaited {
            self.0.ended.notify_waiters();
        }
    }

    async fn run(
        self,
        mut running: BoxFuture<'static, Outcome>,
        deadline: Instant,
        far_end: Arc<FarEnd<S>>,
        permit: OwnedSemaphorePermit,
    ) {
        let (call, gone) = (far_end.call, &far_end.gone);
        let mut outcome = std::pin::pin!(std::future::poll_fn(move |cx| poll_caught(running.as_mut(), cx)));
        let in_time = tokio::select! {
            biased;
            outcome = &mut outcome => Some(outcome),
            () = gone.wait() => None,
            () = tokio::time::sleep_until(deadline.into()) => {
                let mut machine = self.lock();
                let now = now();
                machine.connection.handle_timeout(now.instant.max(deadline));
                self.carry(machine, now);
                None
            }
        };
        match in_time {
            Some(outcome) => self.finish(call, outcome),
            None => {
                if tokio::time::timeout(GONE_GRACE, outcome).await.is_err() {
                    tracing::warn!("a call did not end after it was stopped; it is dropped");
                }
                self.ended(call);
            }
        }
        drop(permit);
    }

    fn finish(&self, call: CallId, outcome: Outcome) {
        let now = now();
        let mut machine = self.lock();
        machine.running.remove(&call);
        machine.connection.handle_outcome(now, call, outcome);
        self.tell_ended(&machine);
        self.carry(machine, now);
    }

    fn ended(&self, call: CallId) {
        let mut machine = self.lock();
        machine.running.remove(&call);
        self.tell_ended(&machine);
    }
}

impl<S: Sink> Inner<S> {
    /// Gives up what the peer does not answer in time; ends when it is asked nothing more, or is gone.
    async fn keep_time(this: Weak<Self>) {
        loop {
            let Some(driver) = this.upgrade().map(Driver) else { return };
            let next = {
                let mut machine = driver.lock();
                machine.timed = machine.connection.is_asking();
                machine.connection.poll_timeout().filter(|_| machine.timed)
            };
            drop(driver);
            let Some(next) = next else { return };
            tokio::time::sleep_until(next.into()).await;
            let Some(driver) = this.upgrade().map(Driver) else { return };
            let mut machine = driver.lock();
            let now = now();
            machine.connection.handle_timeout(now.instant.max(next));
            driver.carry(machine, now);
        }
    }
}

/// A connection that hears what is published. Told from outside, never under another connection's lock.
impl<S: Sink> Hears for Inner<S> {
    fn hear(self: Arc<Self>, news: &News) {
        let driver = Driver(self);
        let mut machine = driver.lock();
        match news {
            News::Published(changed) => machine.connection.handle_published(*changed),
            News::Draining => machine.connection.handle_draining(),
            News::Updated(uri) => machine.connection.handle_updated(uri),
            News::Task { principal, task } => {
                if machine.connection.principal() == principal {
                    let catalog = driver.0.engine.dispatcher.catalog();
                    machine.connection.handle_task(task, &catalog);
                }
            }
        }
        driver.carry(machine, now());
    }
}

/// Polls a call; a panic in it becomes a defect with a number, under which the log has it.
fn poll_caught(running: Pin<&mut (dyn Future<Output = Outcome> + Send)>, cx: &mut Context<'_>) -> Poll<Outcome> {
    std::panic::catch_unwind(AssertUnwindSafe(|| running.poll(cx)))
        .unwrap_or_else(|_| Poll::Ready(defect("a backend panicked")))
}

/// Logs a defect under a new number, which is all that the peer is told.
pub(crate) fn defect(problem: &str) -> Outcome {
    // Without randomness the number is 0: the log line still stands beside the answer in time.
    let incident = getrandom::u64().unwrap_or(0);
    tracing::error!(incident = format!("{incident:016x}"), "{problem}");
    Outcome::Defect { incident }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::json::JsonLimits;
    use crate::protocol::{
        Ask, Caller, Catalog, CatalogParts, Dispatcher, InputKind, InputRequest, Invoke, Limits, Principal, ToolParts,
    };

    /// A backend that cannot go on without an answer.
    struct Asks;

    impl Invoke for Asks {
        fn invoke(&self, _: Arc<Invocation>, _: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
            let params = json!({ "message": "?", "requestedSchema": { "type": "object", "properties": {} } });
            let request = InputRequest { key: "a".to_owned(), kind: InputKind::ElicitForm, params };
            let ask = Ask { requests: vec![request], state: None };
            Box::pin(std::future::ready(Outcome::InputRequired(ask)))
        }
    }

    /// All that was said, in order.
    #[derive(Default)]
    struct Said(Mutex<Vec<String>>, Notify);

    impl Said {
        fn push(&self, message: &Bytes) {
            self.0.lock().unwrap().push(String::from_utf8(message.to_vec()).unwrap());
            self.1.notify_one();
        }
    }

    impl Sink for Said {
        type Route = ();
        fn open(&self, _: Arrival, (): ()) {}
        fn answer(&self, _: Arrival, answer: Answer) {
            self.push(&answer.encode().unwrap());
        }
        fn notify(&self, _: Arrival, message: Bytes) {
            self.push(&message);
        }
        fn ask(&self, _: Arrival, message: Bytes) {
            self.push(&message);
        }
        fn announce(&self, _: bool, _: Bytes) {}
        fn detach(&self, _: Arrival) {}
        fn silence(&self, _: Arrival) {}
        fn overrun(&self) {}
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_nobody_answers_ends_its_call_in_time() {
        let parts = CatalogParts { tools: vec![ToolParts::new("asks")], ..CatalogParts::new("test", "1.0.0") };
        let catalog = Arc::new(Catalog::build(parts).unwrap());
        let dispatcher = Arc::new(Dispatcher::new(Arc::new(catalog), [0; 32]));
        let engine = Engine::new(dispatcher, Arc::new(Asks), Limits::default());
        let connection = engine.open(Principal::LOCAL);
        let driver = Driver::new(Arc::new(engine), connection, Said::default());
        let deliver = |text: &'static str| {
            let decoded = Decoded::read(&Bytes::from_static(text.as_bytes()), &JsonLimits::default());
            driver.deliver(decoded, None, ());
        };
        deliver(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}"#,
        );
        deliver(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"asks"}}"#);
        let said = driver.sink();
        assert!(said.0.lock().unwrap()[1].contains("elicitation/create"));
        assert!(driver.is_busy() && driver.running() == 0);
        while said.0.lock().unwrap().len() < 4 {
            said.1.notified().await;
        }
        let said = said.0.lock().unwrap().clone();
        assert!(said[2].contains("notifications/cancelled"), "{said:?}");
        assert!(said[3].contains("\"id\":1") && said[3].contains("\"isError\":true"), "{said:?}");
        assert!(!driver.is_busy());
        tokio::task::yield_now().await;
        assert!(!driver.lock().timed, "nobody keeps the time of nothing");
    }
}
