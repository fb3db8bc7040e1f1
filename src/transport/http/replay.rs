//! What was sent on the streams of a session, kept so that a client which lost its connection can resume.
//!
//! Promises: bounded by events and bytes for a session and by bytes for all; the oldest gives way.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use crate::protocol::limits::{REPLAYED_BYTES, REPLAYED_EVENTS};

/// The room that all sessions share. Cloning shares it.
#[derive(Debug, Clone)]
pub(super) struct Room(Arc<AtomicUsize>);

impl Room {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    fn take(&self, bytes: usize) -> bool {
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(bytes)).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::AcqRel);
    }
}

/// An event, by its stream's number in the session and its own on the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) event: u64,
}

/// The kept events of one session.
#[derive(Debug)]
pub(super) struct Kept {
    events: VecDeque<(EventId, Bytes)>,
    bytes: usize,
    room: Room,
}

impl Kept {
    pub(super) fn new(room: Room) -> Self {
        Self { events: VecDeque::new(), bytes: 0, room }
    }

    /// Keeps an event; tells which ones can no longer be replayed, this one perhaps among them.
    pub(super) fn keep(&mut self, id: EventId, event: Bytes, mut lost: impl FnMut(EventId)) {
        let size = event.len();
        if size > REPLAYED_BYTES {
            lost(id);
            return;
        }
        while self.events.len() >= REPLAYED_EVENTS || self.bytes + size > REPLAYED_BYTES {
            self.drop_oldest(&mut lost);
        }
        while !self.room.take(size) {
            if self.events.is_empty() {
                lost(id);
                return;
            }
            self.drop_oldest(&mut lost);
        }
        self.bytes += size;
        self.events.push_back((id, event));
    }

    fn drop_oldest(&mut self, lost: &mut impl FnMut(EventId)) {
        if let Some((id, event)) = self.events.pop_front() {
            self.bytes -= event.len();
            self.room.give_back(event.len());
            lost(id);
        }
    }

    /// The first event of a stream from a number on.
    pub(super) fn first_from(&self, from: EventId) -> Option<(u64, &Bytes)> {
        let found = self.events.iter().find(|(id, _)| id.stream == from.stream && id.event >= from.event);
        found.map(|(id, event)| (id.event, event))
    }

    /// Whether it has any event of a stream.
    pub(super) fn has(&self, stream: u64) -> bool {
        self.events.iter().any(|(id, _)| id.stream == stream)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.room.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(kept: &mut Kept, stream: u64, event: u64, size: usize) -> Vec<(u64, u64)> {
        let mut lost = Vec::new();
        kept.keep(EventId { stream, event }, vec![b'x'; size].into(), |id| lost.push((id.stream, id.event)));
        lost
    }

    #[test]
    fn a_session_keeps_so_many_events_and_the_oldest_gives_way() {
        let mut kept = Kept::new(Room::new(usize::MAX));
        for event in 0..REPLAYED_EVENTS as u64 {
            assert!(keep(&mut kept, event % 2, event, 1).is_empty(), "{event}");
        }
        assert_eq!(keep(&mut kept, 9, 0, 1), [(0, 0)]);
        assert_eq!(kept.first_from(EventId { stream: 0, event: 0 }).map(|(event, _)| event), Some(2));
        assert_eq!(kept.first_from(EventId { stream: 1, event: 2 }).map(|(event, _)| event), Some(3));
        assert!(kept.has(9) && !kept.has(10));
    }

    #[test]
    fn a_session_keeps_so_many_bytes() {
        let mut kept = Kept::new(Room::new(usize::MAX));
        assert!(keep(&mut kept, 0, 0, 1).is_empty());
        assert!(keep(&mut kept, 0, 1, REPLAYED_BYTES - 1).is_empty(), "exactly full");
        assert_eq!(keep(&mut kept, 0, 2, 1), [(0, 0)]);
        assert_eq!(keep(&mut kept, 0, 3, REPLAYED_BYTES), [(0, 1), (0, 2)]);
        assert_eq!(keep(&mut kept, 0, 4, REPLAYED_BYTES + 1), [(0, 4)], "never, and nothing else gives way");
        assert!(kept.has(0));
    }

    #[test]
    fn all_sessions_share_the_room_and_give_it_back() {
        let room = Room::new(100);
        let mut one = Kept::new(room.clone());
        let mut other = Kept::new(room.clone());
        assert!(keep(&mut one, 0, 0, 60).is_empty());
        assert!(keep(&mut other, 0, 0, 40).is_empty(), "exactly full");
        assert_eq!(keep(&mut other, 0, 1, 50), [(0, 0), (0, 1)], "another's events never give way");
        assert!(one.has(0));
        drop(one);
        assert!(keep(&mut other, 0, 2, 100).is_empty());
        assert_eq!(keep(&mut Kept::new(Room::new(0)), 0, 0, 1), [(0, 0)], "none are kept where there is no room");
    }
}
