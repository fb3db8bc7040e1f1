//! An event stream as a client reads it, bounded (HTML, Server-sent events, Interpreting an event stream).
//!
//! Promises: any cut of the bytes gives the same events; a line or an event over the limit ends
//! the stream; only `message` events with data come out. Ids and retry times are read over.

use bytes::{Buf as _, Bytes, BytesMut};

/// A line or the data of one event is over the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventTooLong;

/// Cuts a stream of bytes into the data of its events.
#[derive(Debug)]
pub(super) struct Events {
    limit: usize,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
    /// Whether the last line ended in `\r`, so that a `\n` at the start of what follows belongs to it.
    after_return: bool,
    /// Whether no line was read yet, so that a byte order mark may come.
    at_start: bool,
    data: BytesMut,
    has_data: bool,
    other_type: bool,
}

impl Events {
    /// Events whose data has at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: BytesMut::new(),
            searched: 0,
            after_return: false,
            at_start: true,
            data: BytesMut::new(),
            has_data: false,
            other_type: false,
        }
    }

    /// Adds bytes that arrived.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The data of the next whole event, joined by line ends; what is left at the end of the stream is no event.
    pub(super) fn poll_event(&mut self) -> Option<Result<Bytes, EventTooLong>> {
        loop {
            let line = match self.poll_line()? {
                Ok(line) => line,
                Err(error) => return Some(Err(error)),
            };
            if line.is_empty() {
                let data = self.data.split().freeze();
                let wanted = !std::mem::take(&mut self.other_type) && std::mem::take(&mut self.has_data);
                self.has_data = false;
                if wanted && !data.is_empty() {
                    return Some(Ok(data));
                }
            } else if let Err(error) = self.take_field(&line) {
                return Some(Err(error));
            }
        }
    }

    fn take_field(&mut self, line: &[u8]) -> Result<(), EventTooLong> {
        let end = memchr::memchr(b':', line).unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        let value = rest.strip_prefix(b":").unwrap_or(rest);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.has_data {
                    self.data.extend_from_slice(b"\n");
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
                if self.data.len() > self.limit {
                    return Err(EventTooLong);
                }
            }
            b"event" => self.other_type = !value.is_empty() && value != b"message",
            // A comment has an empty name; `id` and `retry` serve resuming, which is not done here.
            _ => {}
        }
        Ok(())
    }

    fn poll_line(&mut self) -> Option<Result<Bytes, EventTooLong>> {
        if self.after_return && !self.buffer.is_empty() {
            self.after_return = false;
            if self.buffer.first() == Some(&b'\n') {
                self.buffer.advance(1);
            }
        }
        let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
        let Some(found) = memchr::memchr2(b'\n', b'\r', unsearched) else {
            self.searched = self.buffer.len();
            // The name, the colon and the space before the data do not count.
            return (self.buffer.len() > self.limit.saturating_add(16)).then_some(Err(EventTooLong));
        };
        let mut line = self.buffer.split_to(self.searched + found).freeze();
        self.searched = 0;
        self.after_return = self.buffer.first() == Some(&b'\r');
        self.buffer.advance(1);
        if std::mem::take(&mut self.at_start) && line.starts_with(b"\xef\xbb\xbf") {
            line.advance(3);
        }
        Some(Ok(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(input: &[u8], pieces: &[usize], limit: usize) -> Vec<Result<String, EventTooLong>> {
        let mut events = Events::new(limit);
        let mut out = Vec::new();
        let mut rest = input;
        for piece in pieces.iter().copied().chain([input.len()]) {
            let (now, later) = rest.split_at(piece.min(rest.len()));
            events.push(now);
            while let Some(event) = events.poll_event() {
                let failed = event.is_err();
                out.push(event.map(|data| String::from_utf8(data.to_vec()).unwrap()));
                if failed {
                    return out;
                }
            }
            rest = later;
        }
        out
    }

    #[test]
    fn every_cut_of_a_stream_yields_the_same_events_whatever_its_line_ends() {
        let unix = "\u{feff}: hello\n\nid: 1\ndata:\n\nevent: message\ndata: {\"a\":\ndata:  1}\nid: 2\nretry: 5\n\n\
            data: x\nevent: ping\n\nunknown: y\ndata\ndata:z\n\n:\ndata: unfinished\n";
        for end in ["\n", "\r\n", "\r"] {
            let input = unix.replace('\n', end).into_bytes();
            let expected = cut(&input, &[], 100);
            assert_eq!(expected, [Ok("{\"a\":\n 1}".to_owned()), Ok("\nz".to_owned())]);
            for a in 0..input.len() {
                for b in 0..8 {
                    assert_eq!(cut(&input, &[a, b], 100), expected, "{a} {b} {end:?}");
                }
            }
            assert_eq!(cut(&input, &vec![1; input.len()], 100), expected);
        }
    }

    #[test]
    fn a_line_or_an_event_over_the_limit_ends_the_stream_and_is_not_held() {
        assert_eq!(cut(b"data: 12345678\n\n", &[], 8), [Ok("12345678".to_owned())]);
        assert_eq!(cut(b"data: 123456789\n\n", &[], 8), [Err(EventTooLong)]);
        assert_eq!(cut(b"data: 12345\ndata: 678\n\n", &[], 8), [Err(EventTooLong)]);
        let mut events = Events::new(8);
        events.push(&[b'x'; 100]);
        assert_eq!(events.poll_event(), Some(Err(EventTooLong)));
    }
}
