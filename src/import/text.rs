//! Texts of others made fit for a surface file: nothing hidden in them, and no longer than clients read.

use crate::protocol::json::is_invisible;

/// Longest description that a widespread client reads whole.
pub(crate) const DESCRIPTION_BYTES: usize = 2048;

/// Without what nobody sees: control characters but line ends, and invisible ones. Says whether any was there.
pub(crate) fn cleaned(text: &str) -> (String, bool) {
    let mut hidden = false;
    let mut out = String::with_capacity(text.len());
    for character in text.replace("\r\n", "\n").chars() {
        match character {
            '\n' => out.push('\n'),
            '\t' => out.push(' '),
            c if c.is_control() || is_invisible(c) => hidden = true,
            c => out.push(c),
        }
    }
    (out, hidden)
}

/// The text on one line, each run of spaces one space.
pub(crate) fn one_line(text: &str) -> String {
    cleaned(text).0.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text in paragraphs: lines trimmed at their end, at most one empty line between.
pub(crate) fn paragraphs(text: &str) -> String {
    let cleaned = cleaned(text).0;
    let mut lines: Vec<&str> = Vec::new();
    for line in cleaned.lines().map(str::trim_end) {
        if !(line.is_empty() && lines.last().is_none_or(|last| last.is_empty())) {
            lines.push(line);
        }
    }
    lines.join("\n").trim().to_owned()
}

/// At most so many bytes: cut behind a sentence if that leaves half, else behind a word.
pub(crate) fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let head = text.get(..text.floor_char_boundary(bytes.saturating_sub('…'.len_utf8()))).unwrap_or_default();
    let sentence = head.rfind(". ").map(|end| end + 1).filter(|end| *end >= bytes / 2);
    let end = sentence.or_else(|| head.rfind(char::is_whitespace)).unwrap_or(head.len());
    format!("{}…", head.get(..end).unwrap_or_default().trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_taken_out() {
        assert_eq!(cleaned("a\u{202e}b\x1b[1mc\r\nd\te"), ("ab[1mc\nd e".to_owned(), true));
        assert_eq!(cleaned("Größe, 大きさ"), ("Größe, 大きさ".to_owned(), false));
        assert_eq!(one_line(" a\n\tb  c\r\n"), "a b c");
        assert_eq!(paragraphs("\n\na  \n\n\n  b\n"), "a\n\n  b");
    }

    #[test]
    fn a_text_is_cut_behind_a_sentence_or_a_word() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("One two. Three four five", 16), "One two.…");
        assert_eq!(cut("One two three four", 12), "One two…");
        assert_eq!(cut("ééééé", 7), "éé…");
        for bytes in 3..40 {
            assert!(cut("Größe der Dinge. Und mehr davon, viel mehr", bytes).len() <= bytes);
        }
    }
}
