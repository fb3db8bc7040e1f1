//! Plays through the machine itself: no runtime, no thread, no clock that matters.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use twodoor::protocol::invoke::BoxFuture;
use twodoor::protocol::{
    CallId, Caller, Connection, Decoded, Invoke as _, Limits, Moment, Notice, Outcome, Output, Principal,
};

use super::play::Player;
use super::transcript::{Act, Client, Legacy, Said, Transcript};
use super::world::World;

pub(crate) struct Memory {
    connection: Connection,
    world: Arc<World>,
    limits: Limits,
    running: Vec<Running>,
    /// Callers of calls that are over, which may still talk.
    late: Vec<(CallId, Arc<FarEnd>)>,
    said: VecDeque<String>,
    /// Seconds that passed since the transcript began, beyond those that did.
    later: u64,
}

struct Running {
    call: CallId,
    future: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    far_end: Arc<FarEnd>,
}

#[derive(Default)]
struct FarEnd {
    gone: AtomicBool,
    notices: Mutex<VecDeque<Notice>>,
}

impl Caller for FarEnd {
    fn notify(&self, notice: Notice) {
        self.notices.lock().unwrap().push_back(notice);
    }
    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
    fn gone(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::poll_fn(|_| if self.is_gone() { Poll::Ready(()) } else { Poll::Pending }))
    }
}

impl Memory {
    pub(crate) fn open(transcript: &Transcript, legacy: Legacy) -> Self {
        let limits = Limits::default();
        let world = World::new(legacy, transcript.shows);
        Self {
            connection: Connection::new(world.dispatcher(), Principal::LOCAL, &limits).sharing_its_stream(),
            world,
            limits,
            running: Vec::new(),
            late: Vec::new(),
            said: VecDeque::new(),
            later: 0,
        }
    }

    fn now(&self) -> Moment {
        Moment { instant: Instant::now() + Duration::from_secs(self.later), unix: 1_800_000_000 + self.later }
    }

    /// Tells the connection what a call tells; whoever else subscribed is told by the transports' hub.
    fn tell(&mut self, call: CallId, notice: Notice) {
        match notice {
            Notice::Updated { uri } => self.connection.handle_updated(&uri),
            notice => self.connection.handle_notice(self.now().instant, call, notice),
        }
    }

    /// Carries outputs and polls calls until nothing moves any more.
    fn settle(&mut self) {
        loop {
            let mut moved = self.carry();
            for index in 0..self.late.len() {
                let (call, far_end) = &self.late[index];
                let (call, notices) = (*call, std::mem::take(&mut *far_end.notices.lock().unwrap()));
                notices.into_iter().for_each(|notice| self.tell(call, notice));
            }
            for index in (0..self.running.len()).rev() {
                let Running { call, future, far_end } = &mut self.running[index];
                let call = *call;
                let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                let notices = std::mem::take(&mut *far_end.notices.lock().unwrap());
                moved |= !notices.is_empty();
                notices.into_iter().for_each(|notice| self.tell(call, notice));
                if let Poll::Ready(outcome) = polled {
                    moved = true;
                    let over = self.running.remove(index);
                    self.late.push((call, over.far_end));
                    self.connection.handle_outcome(self.now(), call, outcome);
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn carry(&mut self) -> bool {
        let mut moved = false;
        while let Some(output) = self.connection.poll_output() {
            moved = true;
            match output {
                Output::Reply { reply, .. } => self.say(&reply.encode()),
                Output::Notify { message, .. } | Output::Ask { message, .. } | Output::Announce { message, .. } => {
                    self.say(&message);
                }
                // There is no stream to close, and nothing is published here.
                Output::Detach { .. } | Output::Silence { .. } | Output::Hear => {}
                Output::Batch { replies, .. } if replies.is_empty() => {}
                Output::Batch { replies, .. } => self.say(&[&b"["[..], &replies.join(&b","[..]), b"]"].concat()),
                Output::Cancel { call, .. } => {
                    // A call whose client is being asked does not run meanwhile.
                    if let Some(running) = self.running.iter().find(|running| running.call == call) {
                        running.far_end.gone.store(true, Ordering::Release);
                    }
                }
                Output::Invoke { call, invocation, .. } => {
                    let far_end = Arc::new(FarEnd::default());
                    let (world, caller) = (Arc::clone(&self.world), Arc::clone(&far_end));
                    let future = Box::pin(async move { world.invoke(invocation, caller).await });
                    self.running.push(Running { call, future, far_end });
                }
                Output::Overrun => panic!("overrun"),
            }
        }
        moved
    }

    fn say(&mut self, message: &[u8]) {
        self.said.push_back(String::from_utf8(message.to_vec()).expect("UTF-8"));
    }
}

impl Player for Memory {
    fn play(&mut self, client: &Client) -> Result<(), String> {
        match client {
            Client::Send(text) => {
                let decoded = Decoded::read(&Bytes::copy_from_slice(text.as_bytes()), &self.limits.json);
                self.connection.handle_message(self.now(), decoded, None);
                self.settle();
                Ok(())
            }
            Client::Act(Act::Publish(lists)) => {
                let changed = self.world.publish(lists);
                self.connection.handle_published(changed);
                self.settle();
                Ok(())
            }
            Client::Act(Act::Update(uri)) => {
                self.connection.handle_updated(uri);
                self.settle();
                Ok(())
            }
            Client::Act(Act::Tell(task)) => {
                let task = self.world.task(task).ok_or("no such task")?;
                self.connection.handle_task(&task, &self.world.catalog());
                self.settle();
                Ok(())
            }
            Client::Act(Act::Stop) => {
                self.connection.handle_draining();
                self.settle();
                Ok(())
            }
            Client::Act(Act::Later(seconds)) => {
                self.later += seconds;
                self.connection.handle_timeout(self.now().instant);
                self.settle();
                Ok(())
            }
            Client::Act(act) => {
                // Polled by hand, a waiting call is where it will be; a blocked wait would wait for ever.
                let came = self.world.act(act);
                self.settle();
                let release = matches!(act, Act::Release | Act::Late);
                if came || release { Ok(()) } else { Err(format!("{act:?} did not come about")) }
            }
            other => Err(format!("{other:?} has no meaning in memory")),
        }
    }

    fn listen(&mut self, _: Duration) -> Said {
        self.said.pop_front().map_or(Said::Nothing, Said::Message)
    }

    fn finish(&mut self) -> Result<Vec<Said>, String> {
        self.connection.handle_closed();
        self.settle();
        if !self.running.is_empty() {
            return Err("a call goes on after the connection was closed".to_owned());
        }
        Ok(self.said.drain(..).map(Said::Message).collect())
    }
}
