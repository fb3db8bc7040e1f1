//! Who hears what is published, across all connections.
//!
//! Promises: a connection that is gone is forgotten; one that is told is never waited for by
//! another; nothing here knows who publishes.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::protocol::{Changed, Principal, TaskView};

/// What is to be told.
#[derive(Debug)]
pub(super) enum News {
    /// Another catalog is published.
    Published(Changed),
    /// A resource is not what it was.
    Updated(String),
    /// The server is about to stop.
    Draining,
    /// A task is not as far as it was.
    Task { principal: Principal, task: Box<TaskView> },
}

/// A connection that hears of news.
pub(super) trait Hears: Send + Sync {
    fn hear(self: Arc<Self>, news: &News);
}

/// See the module. Cloning shares it.
#[derive(Clone, Default)]
pub struct Hub(Arc<Mutex<Vec<Weak<dyn Hears>>>>);

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hub")
    }
}

impl Hub {
    /// A hub that nobody listens to yet. An engine is given one by [`super::Engine::with_hub`].
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on `hearer` is told, for as long as it lives. Registering twice is once.
    pub(super) fn register(&self, hearer: &Arc<dyn Hears>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let hearer = Arc::downgrade(hearer);
        if all.iter().any(|known| known.ptr_eq(&hearer)) {
            return;
        }
        // Swept when it would grow, so that the dead never outnumber the living for long.
        if all.len() == all.capacity() {
            all.retain(|known| known.strong_count() > 0);
        }
        all.push(hearer);
    }

    fn tell(&self, news: &News) {
        let all: Vec<_> =
            self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect();
        all.into_iter().for_each(|hearer| hearer.hear(news));
    }

    /// Another catalog is published, which differs in this.
    pub fn published(&self, changed: Changed) {
        if !changed.is_none() {
            self.tell(&News::Published(changed));
        }
    }

    /// A resource is not what it was.
    pub fn updated(&self, uri: &str) {
        self.tell(&News::Updated(uri.to_owned()));
    }

    /// The server is about to stop: every subscription is told so, and ends.
    pub(super) fn draining(&self) {
        self.tell(&News::Draining);
    }

    /// A task of a principal is not as far as it was.
    pub fn task(&self, principal: &Principal, task: TaskView) {
        self.tell(&News::Task { principal: principal.clone(), task: Box::new(task) });
    }
}
