//! What a running call knows of whoever asked for it.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use super::{Driver, Sink};
use crate::protocol::invoke::BoxFuture;
use crate::protocol::{CallId, Caller, Notice};
use crate::transport::now;

/// The far end, as a running call sees it.
pub(super) struct FarEnd<S> {
    pub(super) driver: Driver<S>,
    pub(super) call: CallId,
    pub(super) gone: Gone,
}

impl<S: Sink> Caller for FarEnd<S> {
    fn notify(&self, notice: Notice) {
        if let Notice::Updated { uri } = &notice {
            self.driver.0.engine.hub.updated(uri);
            return;
        }
        let now = now();
        let mut machine = self.driver.lock();
        machine.connection.handle_notice(now.instant, self.call, notice);
        self.driver.carry(machine, now);
    }

    fn is_gone(&self) -> bool {
        self.gone.flag.load(Ordering::Acquire)
    }

    fn gone(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.gone.wait())
    }
}

/// Whether a call's caller is gone.
#[derive(Default)]
pub(super) struct Gone {
    flag: AtomicBool,
    told: Notify,
}

impl Gone {
    pub(super) fn set(&self) {
        self.flag.store(true, Ordering::Release);
        self.told.notify_waiters();
    }

    pub(super) async fn wait(&self) {
        let mut told = std::pin::pin!(self.told.notified());
        // Registered before the flag is read, so that a call in between is not missed.
        told.as_mut().enable();
        if !self.flag.load(Ordering::Acquire) {
            told.await;
        }
    }
}
