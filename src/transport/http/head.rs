//! The raw bytes of requests' heads, looked at before the HTTP library repairs them.
//!
//! Promises: a head that two readers could take for two different requests is found: more than one
//! statement of the body's length, or a line that not everybody ends in the same place (RFC 9112
//! 2.2, 6.3; hyper takes these, dropping a header where two disagree). So is every head behind it
//! on its connection, however the bytes are cut. Used by the socket alone.

use std::collections::VecDeque;

/// Most bytes kept: the library refuses longer heads itself.
const KEPT: usize = 64 * 1024;

/// Most bytes looked at together, so that many small heads in one packet are not copied again and again.
const PIECE: usize = 1024;

/// What a head says of the bytes after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes of a body, then another head.
    Length(u64),
    /// A body whose end only the library finds: nothing may be served after it.
    Chunked,
    /// What can be read in two ways.
    Ambiguous(&'static str),
}

/// The heads of one connection as they arrive.
#[derive(Debug, Default)]
pub(super) struct Heads {
    /// What has arrived of a head.
    bytes: Vec<u8>,
    /// What is left of the body before it.
    body: u64,
    /// Where the next head begins is not known.
    lost: bool,
    /// Heads that have arrived and were not taken.
    whole: VecDeque<Framing>,
}

impl Heads {
    /// Adds bytes that arrived.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.lost {
            let skipped = usize::try_from(self.body).unwrap_or(usize::MAX).min(bytes.len());
            self.body -= skipped as u64;
            let rest = bytes.get(skipped..).unwrap_or_default();
            if self.bytes.is_empty()
                && let Some((framing, used)) = whole(rest)
            {
                self.found(framing);
                bytes = rest.get(used..).unwrap_or_default();
                continue;
            }
            let piece = rest.get(..PIECE.min(rest.len())).unwrap_or_default();
            let used = self.push_to_head(piece);
            bytes = rest.get(used..).unwrap_or_default();
        }
    }

    /// Adds bytes to a head; says how many belong to it.
    fn push_to_head(&mut self, bytes: &[u8]) -> usize {
        // Line ends before a request are passed over (RFC 9112 2.2).
        let skipped = match self.bytes.is_empty() {
            true => bytes.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count(),
            false => 0,
        };
        let before = self.bytes.len();
        let searched = before.saturating_sub(3);
        self.bytes.extend_from_slice(bytes.get(skipped..).unwrap_or_default());
        let new = self.bytes.get(searched..).unwrap_or_default();
        let end = new.windows(4).position(|w| w == b"\r\n\r\n").map(|end| searched + end + 4);
        let head = self.bytes.get(..end.unwrap_or(self.bytes.len())).unwrap_or_default();
        let bare = |w: &[u8]| matches!(w, [before, b'\n'] if *before != b'\r');
        let framing = match end {
            _ if head.get(searched..).unwrap_or_default().windows(2).any(bare) => BARE_END,
            Some(_) => framing(head),
            None if head.len() > KEPT => Framing::Ambiguous("the head is too long"),
            None => return bytes.len(),
        };
        self.found(framing);
        self.bytes.clear();
        end.map_or(bytes.len(), |end| skipped + end - before)
    }

    /// A head has arrived.
    fn found(&mut self, framing: Framing) {
        match framing {
            Framing::Length(length) => self.body = length,
            Framing::Chunked | Framing::Ambiguous(_) => self.lost = true,
        }
        self.whole.push_back(framing);
    }

    /// Takes the oldest head.
    pub(super) fn take(&mut self) -> Framing {
        self.whole.pop_front().unwrap_or(Framing::Ambiguous("no such head has arrived"))
    }

    /// Whether a part of a head has arrived, and not all.
    pub(super) fn has_begun(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Whether a head has arrived that was not taken.
    pub(super) fn has_whole(&self) -> bool {
        !self.whole.is_empty()
    }
}

/// What the first head of some bytes says, and where it ends; `None` unless all of it is there.
fn whole(bytes: &[u8]) -> Option<(Framing, usize)> {
    // Line ends before a request are passed over (RFC 9112 2.2).
    let mut at = bytes.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
    let mut said = Said::default();
    loop {
        let rest = bytes.get(at..)?;
        let end = memchr::memchr(b'\n', rest)?;
        let Some(line) = rest.get(..end).and_then(|line| line.strip_suffix(b"\r")) else {
            return Some((BARE_END, bytes.len()));
        };
        at += end + 1;
        if line.is_empty() {
            return Some((said.framing(), at));
        }
        said.hear(line);
    }
}

const BARE_END: Framing = Framing::Ambiguous("a line of the head ends without CR");

fn framing(head: &[u8]) -> Framing {
    let mut said = Said::default();
    head.split(|b| *b == b'\n').for_each(|line| said.hear(line));
    said.framing()
}

/// What the lines of a head say of the body's length.
#[derive(Default)]
struct Said(Option<Framing>);

impl Said {
    fn hear(&mut self, line: &[u8]) {
        let Some(said) = statement(line) else { return };
        self.0 = Some(match self.0 {
            Some(Framing::Ambiguous(why)) => Framing::Ambiguous(why),
            Some(_) if !matches!(said, Framing::Ambiguous(_)) => Framing::Ambiguous("the body's length is said twice"),
            _ => said,
        });
    }

    fn framing(self) -> Framing {
        self.0.unwrap_or(Framing::Length(0))
    }
}

/// What one line says of the body's length, if anything.
fn statement(line: &[u8]) -> Option<Framing> {
    // No other name begins like these two that are looked at.
    if !matches!(line.first(), Some(b'c' | b'C' | b't' | b'T')) {
        return None;
    }
    let colon = memchr::memchr(b':', line)?;
    let (name, value) = line.split_at(colon);
    let value = value.get(1..).unwrap_or_default().trim_ascii();
    if name.eq_ignore_ascii_case(b"transfer-encoding") {
        return Some(match value.eq_ignore_ascii_case(b"chunked") {
            true => Framing::Chunked,
            false => Framing::Ambiguous("the only transfer coding is chunked"),
        });
    }
    name.eq_ignore_ascii_case(b"content-length").then(|| {
        let digits = std::str::from_utf8(value).ok().filter(|v| v.bytes().all(|b| b.is_ascii_digit()));
        let length = digits.and_then(|digits| digits.parse().ok());
        length.map_or(Framing::Ambiguous("the body's length is no number"), Framing::Length)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<Framing> {
        let mut heads = Heads::default();
        pieces.iter().for_each(|piece| heads.push(piece));
        heads.whole.into()
    }

    #[test]
    fn every_head_is_found_however_the_bytes_are_cut() {
        let text = b"\r\nPOST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n{}\n\
            GET / HTTP/1.1\r\n\r\n\r\nPOST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n\
            GET / HTTP/1.1\r\n\r\n";
        let whole = read(&[text]);
        let twice = Framing::Ambiguous("the body's length is said twice");
        assert_eq!(whole, [Framing::Length(3), Framing::Length(0), twice]);
        for cut in 0..text.len() {
            let (a, b) = text.split_at(cut);
            assert_eq!(read(&[a, b]), whole, "{cut}");
        }
        assert_eq!(read(&text.chunks(1).collect::<Vec<_>>()), whole);
    }

    #[test]
    fn a_head_has_begun_until_it_is_whole() {
        let mut heads = Heads::default();
        heads.push(b"\r\n");
        assert!(!heads.has_begun());
        heads.push(b"GET / HTTP/1.1\r\n\r");
        assert!(heads.has_begun() && !heads.has_whole());
        heads.push(b"\nPO");
        assert!(heads.has_begun() && heads.has_whole());
        assert_eq!(heads.take(), Framing::Length(0));
        assert!(!heads.has_whole());
        assert!(matches!(heads.take(), Framing::Ambiguous(_)));
    }

    #[test]
    fn long_heads_and_bodies_are_passed_over() {
        let long = format!("POST / HTTP/1.1\r\nX: {}\r\nContent-Length: 70000\r\n\r\n", "x".repeat(5000));
        let body = "\n".repeat(70_000);
        let many = format!("{long}{body}GET / HTTP/1.1\r\n\r\n").repeat(3);
        let found = [Framing::Length(70_000), Framing::Length(0)].repeat(3);
        assert_eq!(read(&[many.as_bytes()]), found);
        assert_eq!(read(&many.as_bytes().chunks(999).collect::<Vec<_>>()), found);
        assert!(matches!(read(&[&[b'x'; KEPT + PIECE]])[..], [Framing::Ambiguous(_)]));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_found() {
        let of = |headers: &str| read(&[format!("POST / HTTP/1.1\r\n{headers}\r\n\r\n").as_bytes()]);
        for (good, framing) in [
            ("Content-Length: 5", Framing::Length(5)),
            ("transfer-encoding:\tChunked ", Framing::Chunked),
            ("Host: x", Framing::Length(0)),
            ("X-Content-Length: 5\r\nContent-Length: 6", Framing::Length(6)),
        ] {
            assert_eq!(of(good), [framing], "{good}");
        }
        for bad in [
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: chunked\r\nHost: x\r\ncontent-length: 5",
            "Content-Length: 5\r\nContent-Length: 5",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            "Transfer-Encoding: gzip, chunked",
            "Transfer-Encoding: identity",
            "Transfer-Encoding:",
            "Content-Length: +5",
            "Content-Length: 99999999999999999999999",
            "Host: x\nContent-Length: 5",
        ] {
            assert!(matches!(of(bad)[..], [Framing::Ambiguous(_)]), "{bad}");
        }
        assert!(matches!(read(&[b"GET / HTTP/1.1\n"])[..], [Framing::Ambiguous(_)]));
    }
}
