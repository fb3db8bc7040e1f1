//! What a server tells without being asked.
//!
//! Promises: a listener is told at once and misses nothing, so it must not wait; a server that floods
//! is cut off, and whoever waits for it is told why.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::protocol::Notification;

/// Most notifications of one server in a second.
const A_SECOND: u32 = 5000;

/// Hears notifications.
#[derive(Clone)]
pub struct Hear(Arc<dyn Fn(Notification) + Send + Sync>);

impl fmt::Debug for Hear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hear")
    }
}

impl Hear {
    /// A listener, which must not wait: answers come behind it.
    pub fn new(listener: impl Fn(Notification) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    pub(super) fn tell(&self, notification: Notification) {
        (self.0)(notification);
    }
}

/// Counts notifications.
#[derive(Debug, Default)]
pub(super) struct Flood {
    since: Option<Instant>,
    count: u32,
}

impl Flood {
    /// What is said of it.
    pub(super) const WHY: &'static str = "it sends more notifications than anybody reads";

    /// Counts one more; whether that is too much.
    pub(super) fn is_over(&mut self) -> bool {
        let now = Instant::now();
        if self.since.is_none_or(|since| now.duration_since(since) >= Duration::from_secs(1)) {
            (self.since, self.count) = (Some(now), 0);
        }
        self.count = self.count.saturating_add(1);
        self.count > A_SECOND
    }
}
