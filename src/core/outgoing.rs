//! Text on its way out: valid, visible, bounded.
//!
//! Promises: what leaves here is UTF-8 without control characters other than tab and newline and
//! without tag characters (U+E0000 to U+E007F), which nobody sees and a model reads; what was removed
//! is counted. Used for everything a program, a file or another server wrote.

/// Text that may be sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outgoing {
    /// The cleaned text.
    pub text: String,
    /// Characters that were removed.
    pub removed: usize,
    /// Whether the source went on beyond the text.
    pub cut: bool,
}

impl Outgoing {
    /// Cleans the beginning of `bytes`, up to `most` bytes of text, on a character boundary.
    pub fn clean(bytes: &[u8], most: usize) -> Self {
        let mut out = Self::default();
        for chunk in bytes.utf8_chunks() {
            let mut characters = chunk.valid().chars().peekable();
            while let Some(character) = characters.next() {
                // The first half of a line's end is not a hidden character: dropped, not counted.
                if character == '\r' && characters.peek() == Some(&'\n') {
                    continue;
                }
                if is_hidden(character) {
                    out.removed += 1;
                } else if !out.push(character, most) {
                    return out;
                }
            }
            if !chunk.invalid().is_empty() && !out.push(char::REPLACEMENT_CHARACTER, most) {
                return out;
            }
        }
        out
    }

    /// Cleans the end of `bytes`: what of its last `most` bytes is whole characters.
    pub fn clean_end(bytes: &[u8], most: usize) -> Self {
        let from = bytes.len().saturating_sub(most);
        let end = bytes.get(from..).unwrap_or_default();
        // Up to three bytes may belong to a character that began before the cut.
        let torn = if from == 0 { 0 } else { end.iter().take(3).take_while(|b| **b & 0xc0 == 0x80).count() };
        let mut out = Self::clean(end.get(torn..).unwrap_or_default(), usize::MAX);
        out.cut = from > 0;
        out
    }

    /// The text, and the [`notes`] on it as last lines; `cut_of` is how many bytes there were if it was cut.
    pub(super) fn told(self, cut_of: Option<&str>, how_to_narrow: &str) -> String {
        let Self { mut text, removed, .. } = self;
        for note in notes(removed, cut_of.map(|total| (text.len(), total)), how_to_narrow) {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&note);
            text.push('\n');
        }
        text
    }

    fn push(&mut self, character: char, most: usize) -> bool {
        if self.text.len().saturating_add(character.len_utf8()) > most {
            self.cut = true;
            return false;
        }
        self.text.push(character);
        true
    }
}

/// A line each for what was removed and for what was cut: how much is shown of how many bytes, and what to do.
pub(super) fn notes(removed: usize, cut: Option<(usize, &str)>, how_to_narrow: &str) -> impl Iterator<Item = String> {
    let removed = (removed > 0).then(|| format!("[removed: {removed} invisible characters]"));
    let cut = cut.map(|(shown, total)| format!("[cut: {shown} of {total} bytes shown; {how_to_narrow}]"));
    removed.into_iter().chain(cut)
}

/// `narrow log with path, author or count`
pub(super) fn how_to_narrow(tool: &str, arguments: &[String]) -> String {
    match arguments.split_last() {
        None => format!("{tool} takes no argument that narrows it"),
        Some((only, [])) => format!("narrow {tool} with {only}"),
        Some((last, others)) => format!("narrow {tool} with {} or {last}", others.join(", ")),
    }
}

/// Whether a character of outgoing text is removed.
pub fn is_hidden(character: char) -> bool {
    match character {
        '\t' | '\n' => false,
        '\u{e0000}'..='\u{e007f}' => true,
        other => other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_visible_text_and_what_was_hidden_is_counted() {
        for (bytes, text, removed) in [
            (&b"plain\ttext\n"[..], "plain\ttext\n", 0),
            (b"a\r\nb\r\n", "a\nb\n", 0),
            (b"50%\r100%", "50%100%", 1),
            (b"\x1b[31mred\x1b[0m", "[31mred[0m", 2),
            (b"nul\0bell\x07del\x7f", "nulbelldel", 3),
            (b"bad\xff\xfeutf\xc3", "bad\u{fffd}\u{fffd}utf\u{fffd}", 0),
            ("c1\u{85}tag\u{e0041}\u{e007f}".as_bytes(), "c1tag", 3),
            ("line\u{2028}separator".as_bytes(), "line\u{2028}separator", 0),
        ] {
            assert_eq!(Outgoing::clean(bytes, 1000), Outgoing { text: text.to_owned(), removed, cut: false });
        }
    }

    #[test]
    fn text_is_cut_on_a_character_boundary_one_above_the_limit_only() {
        for (most, text, cut) in [(6, "aé€", false), (5, "aé", true), (3, "aé", true), (2, "a", true), (0, "", true)]
        {
            assert_eq!(Outgoing::clean("aé€".as_bytes(), most), Outgoing { text: text.into(), removed: 0, cut });
        }
    }

    #[test]
    fn the_end_begins_with_a_whole_character() {
        for (most, text, cut) in [(6, "aé€", false), (5, "é€", true), (4, "€", true), (3, "€", true), (2, "", true)]
        {
            assert_eq!(Outgoing::clean_end("aé€".as_bytes(), most), Outgoing { text: text.into(), removed: 0, cut });
        }
    }
}
