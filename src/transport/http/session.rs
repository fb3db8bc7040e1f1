//! Legacy sessions over HTTP: found by principal and id together, never by the id alone.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::super::driver::Driver;
use super::streams::Streams;
use crate::protocol::Principal;

/// The name of a session on the wire: 128 bits from the system, in hex.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionId(Box<str>);

impl SessionId {
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes.iter().map(|b| format!("{b:02x}")).collect::<String>().into()))
    }

    /// Reads what a client sent: visible ASCII of a length that we could have given out.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        let fits = (1..=128).contains(&text.len()) && text.iter().all(u8::is_ascii_graphic);
        std::str::from_utf8(text).ok().filter(|_| fits).map(|t| Self(t.into()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// One legacy session.
pub(super) struct LegacySession {
    pub(super) driver: Driver<Arc<Streams>>,
    /// When it was last found in use, in milliseconds since the table was made.
    used: AtomicU64,
}

impl LegacySession {
    pub(super) fn new(driver: Driver<Arc<Streams>>) -> Self {
        Self { driver, used: AtomicU64::new(0) }
    }

    pub(super) fn streams(&self) -> &Arc<Streams> {
        self.driver.sink()
    }

    fn is_idle(&self) -> bool {
        !self.streams().is_read() && !self.driver.is_busy()
    }

    /// Cancels what runs and ends every stream.
    fn end(&self) {
        self.driver.close();
        self.streams().end_all();
    }
}

/// How many sessions there may be, whatever transport they are of. Cloning shares it.
#[derive(Clone)]
pub(super) struct Places(Arc<Semaphore>);

/// One session's place, free again when this is dropped.
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Places {
    pub(super) fn new(at_most: usize) -> Self {
        Self(Arc::new(Semaphore::new(at_most.min(Semaphore::MAX_PERMITS))))
    }

    pub(super) fn take(&self) -> Option<Place> {
        Arc::clone(&self.0).try_acquire_owned().ok().map(|permit| Place { _permit: permit })
    }
}

struct Held {
    session: Arc<LegacySession>,
    _place: Place,
}

/// All legacy sessions of a surface.
pub(super) struct Sessions {
    table: Mutex<HashMap<(Principal, SessionId), Held>>,
    idle: Duration,
    since: Instant,
}

impl Sessions {
    pub(super) fn new(idle: Duration) -> Self {
        Self { table: Mutex::default(), idle, since: Instant::now() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(Principal, SessionId), Held>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Finds a session and counts this as a use of it.
    pub(super) fn get(&self, principal: &Principal, id: &SessionId) -> Option<Arc<LegacySession>> {
        let table = self.lock();
        let found = &table.get(&(principal.clone(), id.clone()))?.session;
        // While the table is locked, so that it does not expire in between.
        found.used.store(self.now(), Ordering::Relaxed);
        Some(Arc::clone(found))
    }

    pub(super) fn insert(&self, principal: Principal, id: SessionId, session: Arc<LegacySession>, place: Place) {
        session.used.store(self.now(), Ordering::Relaxed);
        self.lock().insert((principal, id), Held { session, _place: place });
    }

    /// Ends a session for good.
    pub(super) fn remove(&self, principal: &Principal, id: &SessionId) -> bool {
        let removed = self.lock().remove(&(principal.clone(), id.clone()));
        removed.inspect(|held| held.session.end()).is_some()
    }

    /// Ends the sessions that nobody used for too long.
    pub(super) fn sweep(&self) {
        self.sweep_at(self.now());
    }

    /// A call or a stream is a use as long as it lasts, so the idle time begins when it ends.
    fn sweep_at(&self, now: u64) {
        let idle = u64::try_from(self.idle.as_millis()).unwrap_or(u64::MAX);
        let is_old = |session: &LegacySession| session.used.load(Ordering::Relaxed) < now.saturating_sub(idle);
        // Judged outside the lock, since a session may be held up by a message of its own.
        let all: Vec<_> = self.lock().values().map(|held| Arc::clone(&held.session)).collect();
        let mut doubtful = false;
        for session in all {
            if session.is_idle() {
                doubtful |= is_old(&session);
            } else {
                session.used.store(now, Ordering::Relaxed);
            }
        }
        if !doubtful {
            return;
        }
        // One that was used since was given a new time by that.
        let expired: Vec<_> = self.lock().extract_if(|_, held| is_old(&held.session)).map(|(_, held)| held).collect();
        expired.iter().for_each(|held| held.session.end());
    }

    /// Ends the stand-alone streams, which would otherwise hold up a stop; the calls go on.
    pub(super) fn end_streams(&self) {
        self.lock().values().for_each(|held| held.session.streams().end_alone());
    }

    /// Ends all sessions.
    pub(super) fn end_all(&self) {
        let all: Vec<_> = self.lock().drain().map(|(_, held)| held).collect();
        all.iter().for_each(|held| held.session.end());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use bytes::Bytes;

    use super::super::reader::{First, Reader};
    use super::super::replay::Room;
    use super::super::streams::Waits;
    use super::*;

    use crate::protocol::invoke::BoxFuture;
    use crate::protocol::json::JsonLimits;
    use crate::protocol::{
        Caller, Catalog, CatalogParts, Content, Decoded, Dispatcher, Invocation, Invoke, Limits, Outcome,
    };
    use crate::transport::Engine;

    struct Nothing;

    impl Invoke for Nothing {
        fn invoke(&self, _: Arc<Invocation>, _: Arc<dyn Caller>) -> BoxFuture<'_, Outcome> {
            Box::pin(std::future::ready(Outcome::Complete(Content::default())))
        }
    }

    pub(in super::super) fn session(replay: usize) -> Arc<LegacySession> {
        let parts = CatalogParts::new("test", "1.0.0");
        let catalog = Arc::new(Catalog::build(parts).unwrap());
        let dispatcher = Arc::new(Dispatcher::new(Arc::new(catalog), [0; 32]));
        let engine = Engine::new(dispatcher, Arc::new(Nothing), Limits::default());
        let connection = engine.open(Principal::LOCAL);
        Arc::new(LegacySession::new(Driver::new(Arc::new(engine), connection, Streams::new(0xfeed, Room::new(replay)))))
    }

    #[tokio::test]
    async fn a_post_that_comes_as_its_session_ends_is_not_left_waiting() {
        let sessions = Sessions::new(Duration::from_secs(60));
        let id = SessionId::random().unwrap();
        sessions.insert(Principal::LOCAL, id.clone(), session(0), Places::new(1).take().unwrap());
        let found = sessions.get(&Principal::LOCAL, &id).unwrap();
        assert!(sessions.remove(&Principal::LOCAL, &id));
        let ping = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        let waits = Some(Waits { takes_events: true });
        let arrival = found.driver.deliver(Decoded::read(&ping, &JsonLimits::default()), None, waits);
        let reader = Reader::of_post(Arc::clone(found.streams()), arrival);
        assert!(matches!(reader.first().await, First::Silence));
    }

    #[test]
    fn session_ids_are_visible_ascii_of_a_length_that_could_be_ours() {
        for good in [&b"a"[..], b"0123456789abcdef", &[b'x'; 128]] {
            assert!(SessionId::read(good).is_some());
        }
        for bad in [&b""[..], b"a b", b"a\x7f", b"\xc3\xa9", &[b'x'; 129]] {
            assert!(SessionId::read(bad).is_none());
        }
        assert_ne!(SessionId::random().unwrap(), SessionId::random().unwrap());
    }

    #[test]
    fn the_idle_time_begins_when_the_last_stream_ends() {
        let sessions = Sessions::new(Duration::from_secs(10));
        let id = SessionId::random().unwrap();
        sessions.insert(Principal::LOCAL, id.clone(), session(0), Places::new(1).take().unwrap());
        let held = sessions.get(&Principal::LOCAL, &id).unwrap();
        let slot = held.streams().listen().unwrap();
        for now in [9_000, 20_000, 3_600_000] {
            sessions.sweep_at(now);
            assert!(sessions.lock().len() == 1, "{now}");
        }
        drop(slot);
        sessions.sweep_at(3_610_000);
        assert_eq!(sessions.lock().len(), 1, "ten seconds are not over");
        sessions.sweep_at(3_610_001);
        assert_eq!(sessions.lock().len(), 0);
    }
}
