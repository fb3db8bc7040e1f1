//! What a program writes, kept within bounds while it runs.
//!
//! Promises: memory stays within the two limits of a [`Capture`] whatever is written; everything is
//! read to its end, so that a program is never blocked by us and its exit code stays the truth.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::oneshot;

/// Most bytes of standard output that are kept from its beginning.
pub const STDOUT_BYTES: usize = 4 * 1024 * 1024;
/// Bytes kept from the end of standard output where it is longer than [`STDOUT_BYTES`].
pub const STDOUT_TAIL_BYTES: usize = 16 * 1024;
/// Bytes kept from the end of standard error.
pub const STDERR_BYTES: usize = 64 * 1024;

const READ_BYTES: usize = 32 * 1024;

/// The beginning and the end of one stream.
#[derive(Debug, Default)]
pub struct Capture {
    head: Vec<u8>,
    head_most: usize,
    tail: VecDeque<u8>,
    tail_most: usize,
    total: u64,
    overflows: Option<oneshot::Sender<()>>,
}

impl Capture {
    /// Keeps the first `head` bytes, and the last `tail` of those beyond.
    pub fn new(head: usize, tail: usize) -> Self {
        Self { head_most: head, tail_most: tail, ..Self::default() }
    }

    /// Tells when the beginning is not all there is.
    pub(super) fn telling(mut self, overflows: Option<oneshot::Sender<()>>) -> Self {
        self.overflows = overflows;
        self
    }

    /// Takes what was written next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let room = self.head_most.saturating_sub(self.head.len()).min(bytes.len());
        let (head, beyond) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        if !beyond.is_empty() {
            let _ = self.overflows.take().map(|overflows| overflows.send(()));
        }
        let beyond = beyond.get(beyond.len().saturating_sub(self.tail_most)..).unwrap_or_default();
        let excess = (self.tail.len() + beyond.len()).saturating_sub(self.tail_most);
        self.tail.drain(..excess);
        self.tail.extend(beyond);
    }

    /// The beginning.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// All bytes that were written.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether the beginning is not all there was.
    pub fn is_cut(&self) -> bool {
        self.total > u64::try_from(self.head.len()).unwrap_or(u64::MAX)
    }

    /// The last bytes that were kept, at most `most`.
    pub fn end(&self, most: usize) -> Vec<u8> {
        let from_tail = self.tail.len().min(most);
        // Between beginning and end there may be a gap; only an unbroken end is an end.
        let unbroken = self.total == u64::try_from(self.head.len() + self.tail.len()).unwrap_or(u64::MAX);
        let from_head = if unbroken { (most - from_tail).min(self.head.len()) } else { 0 };
        let mut end = self.head.get(self.head.len() - from_head..).unwrap_or_default().to_vec();
        end.extend(self.tail.iter().skip(self.tail.len() - from_tail));
        end
    }

    /// Reads a stream to its end; a read that fails is its end.
    pub async fn fill(&mut self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match stream.read(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(length) => self.push(buffer.get(..length).unwrap_or_default()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept_and_all_is_counted() {
        for (writes, head, end, total, cut) in [
            (&["abc"][..], "abc", "abc", 3, false),
            (&["abcd"], "abcd", "abcd", 4, false),
            (&["abcde"], "abcd", "abcde", 5, true),
            (&["ab", "cdefg"], "abcd", "abcdefg", 7, true),
            (&["abcdefgh"], "abcd", "fgh", 8, true),
            (&["a", "b", "c", "d", "e", "f", "g", "h", "i"], "abcd", "ghi", 9, true),
        ] {
            let mut capture = Capture::new(4, 3);
            writes.iter().for_each(|w| capture.push(w.as_bytes()));
            let got = (capture.head().to_vec(), capture.end(10), capture.total(), capture.is_cut());
            assert_eq!(got, (head.as_bytes().to_vec(), end.as_bytes().to_vec(), total, cut), "{writes:?}");
        }
    }

    #[test]
    fn an_end_alone_holds_no_more_than_its_limit() {
        let mut capture = Capture::new(0, 5);
        for _ in 0..1000 {
            capture.push(b"0123456789");
        }
        assert_eq!((capture.end(3), capture.end(99), capture.total()), (b"789".to_vec(), b"56789".to_vec(), 10_000));
    }
}
