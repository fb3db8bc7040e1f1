//! Bytes to lines, bounded; messages to events of a stream.

use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};

/// One line of input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A whole line without its end, and without a byte order mark at its start.
    Whole(Bytes),
    /// A line over the limit; its bytes were not kept.
    TooLong,
}

/// Cuts a stream of bytes into lines; holds at most the limit and one push.
#[derive(Debug)]
pub struct Lines {
    limit: usize,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
    /// Whether the rest of a line over the limit is being skipped.
    skipping: bool,
}

impl Lines {
    /// Lines of at most `limit` bytes, their ends not counted.
    pub fn new(limit: usize) -> Self {
        Self { limit, buffer: BytesMut::new(), searched: 0, skipping: false }
    }

    /// Adds bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.put_slice(bytes);
    }

    /// The next whole line; blank lines are passed over.
    pub fn poll_line(&mut self) -> Option<Line> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            let Some(end) = memchr::memchr(b'\n', unsearched) else {
                self.searched = self.buffer.len();
                return self.overrun();
            };
            let line = self.buffer.split_to(self.searched + end + 1).freeze();
            self.searched = 0;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if let Some(line) = self.finish(line.slice(..line.len().saturating_sub(1))) {
                return Some(line);
            }
        }
    }

    /// What is left at the end of input: a last line without its end counts.
    pub fn finish_input(&mut self) -> Option<Line> {
        let rest = self.buffer.split().freeze();
        self.searched = 0;
        if std::mem::take(&mut self.skipping) { None } else { self.finish(rest) }
    }

    /// Drops what is held of a line that has grown over the limit (its `\r` may still come) and reports it once.
    fn overrun(&mut self) -> Option<Line> {
        if !self.skipping && self.buffer.len() <= self.limit + 1 {
            return None;
        }
        self.buffer.clear();
        self.searched = 0;
        (!std::mem::replace(&mut self.skipping, true)).then_some(Line::TooLong)
    }

    fn finish(&self, line: Bytes) -> Option<Line> {
        let line = if line.ends_with(b"\r") { line.slice(..line.len() - 1) } else { line };
        if line.len() > self.limit {
            return Some(Line::TooLong);
        }
        let line = if line.starts_with(b"\xef\xbb\xbf") { line.slice(3..) } else { line };
        (!line.trim_ascii().is_empty()).then_some(Line::Whole(line))
    }
}

/// A message as one event of a stream (2026-07-28 transports/streamable-http; HTML, Server-sent events).
pub fn event(message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(message.len() + 24);
    out.put_slice(b"event: message\ndata: ");
    out.put_slice(message);
    out.put_slice(b"\n\n");
    out.freeze()
}

/// The same with an id, by which its stream can be resumed after it (2025-11-25 basic/transports, Resumability and Redelivery).
pub fn numbered_event(id: &str, message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(id.len() + message.len() + 32);
    out.put_slice(b"id: ");
    out.put_slice(id.as_bytes());
    out.put_slice(b"\nevent: message\ndata: ");
    out.put_slice(message);
    out.put_slice(b"\n\n");
    out.freeze()
}

/// An id without a message: the first event of a stream that can be resumed from its very beginning.
pub fn priming_event(id: &str) -> Bytes {
    format!("id: {id}\ndata: \n\n").into()
}

/// The last event of a stream that is closed before its answer: when to come back, and for what.
pub fn retry_event(id: &str, pause: Duration) -> Bytes {
    format!("id: {id}\nretry: {}\ndata: \n\n", pause.as_millis()).into()
}

/// The first event of the oldest transport: where messages are posted to (2024-11-05 basic/transports, HTTP with SSE).
pub fn endpoint_event(target: &str) -> Bytes {
    format!("event: endpoint\ndata: {target}\n\n").into()
}

/// A comment that keeps an idle stream open and finds out whether its reader is still there.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(input: &[u8], pieces: &[usize], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(limit);
        let mut out = Vec::new();
        let mut rest = input;
        for piece in pieces {
            let (now, later) = rest.split_at((*piece).min(rest.len()));
            lines.push(now);
            out.extend(std::iter::from_fn(|| lines.poll_line()));
            rest = later;
        }
        lines.push(rest);
        out.extend(std::iter::from_fn(|| lines.poll_line()));
        out.extend(lines.finish_input());
        out
    }

    #[test]
    fn every_cut_of_a_stream_yields_the_same_lines() {
        let input = b"one\r\n\n  \ntwo\n\xef\xbb\xbfthree\nmuch too long\nfour";
        let expected = cut(input, &[], 8);
        assert_eq!(
            expected,
            [
                Line::Whole("one".into()),
                Line::Whole("two".into()),
                Line::Whole("three".into()),
                Line::TooLong,
                Line::Whole("four".into()),
            ]
        );
        for a in 0..input.len() {
            for b in 0..input.len() {
                assert_eq!(cut(input, &[a, b], 8), expected, "{a} {b}");
            }
        }
        assert_eq!(cut(input, &vec![1; input.len()], 8), expected);
    }

    #[test]
    fn the_limit_is_exact() {
        for (length, end, whole) in [
            (7, "\n", true),
            (8, "\n", true),
            (9, "\n", false),
            (8, "\r\n", true),
            (9, "\r\n", false),
            (8, "", true),
            (9, "", false),
        ] {
            let input = "x".repeat(length) + end;
            let line = cut(input.as_bytes(), &vec![1; input.len()], 8);
            assert_eq!(line.len(), 1);
            assert_eq!(matches!(line[0], Line::Whole(_)), whole, "{length} {end:?}");
        }
    }

    #[test]
    fn an_endless_line_is_reported_once_and_not_held() {
        let mut lines = Lines::new(64);
        let mut reported = 0;
        for _ in 0..1000 {
            lines.push(&[b'x'; 4096]);
            reported += usize::from(lines.poll_line().is_some());
            assert!(lines.buffer.len() <= 64 + 1);
        }
        assert_eq!(reported, 1);
        lines.push(b"\nnext\n");
        assert_eq!(lines.poll_line(), Some(Line::Whole("next".into())));
    }

    #[test]
    fn events_are_fields_and_a_blank_line() {
        let table = [
            (event(b"{}"), "event: message\ndata: {}\n\n"),
            (numbered_event("a-1", b"{}"), "id: a-1\nevent: message\ndata: {}\n\n"),
            (priming_event("a-1"), "id: a-1\ndata: \n\n"),
            (retry_event("a-1", Duration::from_millis(500)), "id: a-1\nretry: 500\ndata: \n\n"),
            (endpoint_event("/x?y=z"), "event: endpoint\ndata: /x?y=z\n\n"),
        ];
        for (event, expected) in table {
            assert_eq!(event, expected);
        }
    }
}
