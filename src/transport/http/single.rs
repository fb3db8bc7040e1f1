//! Connections that live as long as one POST, and what becomes of their calls when its client goes away.

use bytes::Bytes;
use tokio::sync::watch;

use super::super::driver::{Answer, Driver, Sink};
use super::body::Held;
use super::outbox::{Next, Outbox};
use crate::protocol::Arrival;

/// Everything belongs to the one POST.
#[derive(Default)]
pub(super) struct Single(Outbox);

impl Sink for Single {
    type Route = ();
    fn open(&self, _: Arrival, (): ()) {}
    fn answer(&self, _: Arrival, answer: Answer) {
        self.0.end(Next::Answer(answer));
    }
    fn notify(&self, _: Arrival, message: Bytes) {
        self.0.notify(message);
    }
    /// A response could not find its way back to one request without a session.
    fn ask(&self, _: Arrival, _: Bytes) {}
    fn announce(&self, lasting: bool, message: Bytes) {
        self.0.announce(lasting, message);
    }
    fn detach(&self, _: Arrival) {}
    fn silence(&self, _: Arrival) {
        self.0.end(Next::Silence);
    }
    fn overrun(&self) {}
}

/// A modern client that goes away cancels its request (2026-07-28 basic/patterns/cancellation).
pub(super) struct CancelOnDrop(pub(super) Driver<Single>);

impl Held for CancelOnDrop {
    fn outbox(&self) -> &Outbox {
        &self.0.sink().0
    }
}

impl Held for CancelAtTheEnd {
    fn outbox(&self) -> &Outbox {
        &self.driver.sink().0
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A legacy client without a session that goes away does not, unless the server stops.
pub(super) struct CancelAtTheEnd {
    pub(super) driver: Driver<Single>,
    pub(super) ending: watch::Receiver<bool>,
}

impl Drop for CancelAtTheEnd {
    fn drop(&mut self) {
        if *self.ending.borrow() {
            self.driver.close();
            return;
        }
        if self.driver.running() == 0 {
            return;
        }
        // Nothing else knows of it any more, and a stop must find it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (driver, mut ending) = (self.driver.clone(), self.ending.clone());
        runtime.spawn(async move {
            tokio::select! {
                biased;
                () = driver.idle() => {}
                _ = ending.wait_for(|ending| *ending) => driver.close(),
            }
        });
    }
}
