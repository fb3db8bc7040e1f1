//! The raw bytes of a request's head, looked at before the HTTP library repairs them.
//!
//! Promises: a head that two readers could take for two different requests is found: more than one
//! statement of the body's length, or a line that not everybody ends in the same place (RFC 9112
//! 2.2, 6.3; hyper takes these, dropping a header where two disagree). Used by the socket alone.

/// Most bytes kept: the library refuses longer heads itself.
const KEPT: usize = 64 * 1024;

/// A head as it arrives.
#[derive(Debug, Default)]
pub(super) struct Head {
    bytes: Vec<u8>,
    whole: bool,
    ambiguity: Option<&'static str>,
}

impl Head {
    /// Adds bytes that arrived; those after the head are not looked at.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.whole || self.bytes.len() > KEPT {
            return;
        }
        // Line ends before a request are passed over (RFC 9112 2.2).
        let skipped = match self.bytes.is_empty() {
            true => bytes.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count(),
            false => 0,
        };
        let searched = self.bytes.len().saturating_sub(3);
        self.bytes.extend_from_slice(bytes.get(skipped..).unwrap_or_default());
        let new = self.bytes.get(searched..).unwrap_or_default();
        let end = new.windows(4).position(|w| w == b"\r\n\r\n").map(|end| searched + end + 4);
        let head = self.bytes.get(searched..end.unwrap_or(self.bytes.len())).unwrap_or_default();
        if head.windows(2).any(|w| matches!(w, [before, b'\n'] if *before != b'\r')) {
            self.ambiguity = Some("a line of the head ends without CR");
        }
        if let Some(end) = end {
            self.bytes.truncate(end);
            self.whole = true;
            self.ambiguity = self.ambiguity.or_else(|| ambiguous_length(&self.bytes));
        }
    }

    /// Forgets it: another is awaited.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.whole = false;
        self.ambiguity = None;
    }

    /// Whether any of it has arrived.
    pub(super) fn has_begun(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Whether all of it has arrived.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// What could be read in two ways, of what has arrived.
    pub(super) fn ambiguity(&self) -> Option<&'static str> {
        self.ambiguity
    }
}

fn ambiguous_length(head: &[u8]) -> Option<&'static str> {
    let mut statements = 0;
    for line in head.split(|b| *b == b'\n') {
        let Some(colon) = line.iter().position(|b| *b == b':') else { continue };
        let (name, value) = line.split_at(colon);
        let coding = name.eq_ignore_ascii_case(b"transfer-encoding");
        if coding && !value.get(1..).unwrap_or_default().trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Some("the only transfer coding is chunked");
        }
        statements += usize::from(coding || name.eq_ignore_ascii_case(b"content-length"));
    }
    (statements > 1).then_some("the body's length is said twice")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Head {
        let mut head = Head::default();
        pieces.iter().for_each(|piece| head.push(piece));
        head
    }

    #[test]
    fn the_end_is_found_however_a_head_is_cut() {
        let text = b"\r\nPOST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n{";
        for cut in 0..text.len() {
            let (a, b) = text.split_at(cut);
            let head = read(&[a, b]);
            assert!(head.is_whole(), "{cut}");
            assert_eq!(head.ambiguity(), None, "{cut}");
        }
        let mut head = read(&[]);
        assert!(!head.has_begun());
        for byte in text.get(..text.len() - 3).unwrap() {
            head.push(&[*byte]);
            assert!(!head.is_whole());
        }
        assert!(head.has_begun());
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_found() {
        let of = |headers: &str| read(&[format!("POST / HTTP/1.1\r\n{headers}\r\n\r\n").as_bytes()]).ambiguity();
        for good in
            ["Content-Length: 5", "transfer-encoding:\tChunked ", "Host: x", "X-Content-Length: 5\r\nContent-Length: 5"]
        {
            assert_eq!(of(good), None, "{good}");
        }
        for bad in [
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nHost: x\r\ncontent-length: 5",
            "Content-Length: 5\r\nContent-Length: 5",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: identity",
            "Transfer-Encoding:",
            "Host: x\nContent-Length: 5",
        ] {
            assert!(of(bad).is_some(), "{bad}");
        }
        assert!(read(&[b"GET / HTTP/1.1\n"]).ambiguity().is_some());
    }

    #[test]
    fn bytes_after_the_head_are_not_looked_at() {
        let head = read(&[b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nContent-Length: 5\n", b"Content-Length: 5\n"]);
        assert_eq!(head.ambiguity(), None);
    }
}
