//! A surface file's text, and how it is read.
//!
//! Promises: only a regular file of bounded size is read, one that nobody else can write, and
//! reading never blocks on what only looks like a file. A place in the text is a range of bytes;
//! lines and columns are computed from it.

use std::fs::{self, File};
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::problem::{Findings, Rule};

/// Largest surface file: 40 times the largest known tool list, small enough to check in a moment.
pub(crate) const FILE_BYTES: u64 = 1024 * 1024;

/// Not a file that can be read.
pub(crate) const UNREADABLE: Rule = Rule::error("file-unreadable", "a surface file can be read");
/// Not a regular file.
pub(crate) const KIND: Rule = Rule::error("file-kind", "a surface file is a regular file");
/// Too large.
pub(crate) const SIZE: Rule = Rule::error("file-size", "a surface file has at most 1 MiB");
/// Others may write it.
pub(crate) const MODE: Rule =
    Rule::error("file-mode", "neither a surface file nor its folder can be written by everyone");
/// A link that leads out of its folder.
pub(crate) const LINK: Rule = Rule::error("file-link", "a surface file that is a link leads to its own folder");
/// Not UTF-8.
pub(crate) const UTF8: Rule = Rule::error("file-utf8", "a surface file is UTF-8");

/// A range of bytes of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    /// The start of the file, for what concerns all of it.
    pub(crate) const START: Self = Self { start: 0, end: 0 };
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct At<T> {
    pub(crate) span: Span,
    pub(crate) value: T,
}

/// Where a span is, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) end_column: usize,
    pub(crate) bytes: Range<usize>,
}

/// A file's text with its lines found; cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    file: Arc<Path>,
    text: Arc<str>,
    /// Where each line starts.
    lines: Arc<[usize]>,
}

impl Source {
    pub(crate) fn new(file: PathBuf, text: String) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(index, _)| index + 1);
        let lines = std::iter::once(0).chain(starts).collect();
        Self { file: file.into(), text: text.into(), lines }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text of a span; empty if it is none of this source.
    pub(crate) fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or_default()
    }

    /// The part of a span where a text stands as written, or all of it.
    pub(crate) fn narrow(&self, span: Span, part: &str) -> Span {
        match self.slice(span).find(part) {
            Some(offset) if !part.is_empty() => {
                Span { start: span.start + offset, end: span.start + offset + part.len() }
            }
            _ => span,
        }
    }

    /// The line that holds a byte: its number from 1, where it starts, and its text without the break.
    pub(crate) fn line(&self, byte: usize) -> (usize, usize, &str) {
        let number = self.lines.partition_point(|start| *start <= byte);
        let start = number.checked_sub(1).and_then(|index| self.lines.get(index)).copied().unwrap_or(0);
        let end = self.lines.get(number).copied().unwrap_or(self.text.len());
        (number, start, self.slice(Span { start, end }).trim_end_matches(['\n', '\r']))
    }

    /// Where a span is; of one that runs over several lines, the part on the first.
    pub(crate) fn place(&self, span: Span) -> Place {
        let (line, line_start, line_text) = self.line(span.start.min(self.text.len()));
        let from = span.start.saturating_sub(line_start).min(line_text.len());
        let to = span.end.saturating_sub(line_start).clamp(from, line_text.len());
        let before = line_text.get(..from).unwrap_or_default();
        let marked = line_text.get(from..to).unwrap_or_default().trim_end();
        let rest = line_text.get(from..).unwrap_or_default();
        let marked = match (marked.is_empty(), rest.chars().next()) {
            (true, Some(first)) => rest.get(..first.len_utf8()).unwrap_or_default(),
            _ => marked,
        };
        let column = before.chars().count() + 1;
        let start = line_start + from;
        Place { line, column, end_column: column + marked.chars().count(), bytes: start..start + marked.len() }
    }
}

/// A file that was read: its text and the folder it lies in, links resolved.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) findings: Findings,
    pub(crate) folder: PathBuf,
}

/// Reads a surface file; what is wrong with it stands in the findings, which hold the text.
pub(crate) fn open(path: &Path) -> Result<Opened, Findings> {
    open_as(path, "name a surface file; `twodoor call` takes it as `--surface FILE`")
}

/// The same of another file that is as much the operator's; `remedy` says what to do if there is none.
pub(crate) fn open_as(path: &Path, remedy: &str) -> Result<Opened, Findings> {
    let refuse = |rule: &Rule, message: String, remedy: &str| {
        let mut findings = Findings::new(Source::new(path.to_owned(), String::new()));
        findings.report(rule, Span::START, message, remedy);
        findings
    };
    let unreadable = |error: std::io::Error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            let bare = path.parent().is_none_or(|folder| folder.as_os_str().is_empty());
            let place = if bare { " here" } else { "" };
            let message = format!("there is no {}{place}", path.display());
            return refuse(&UNREADABLE, message, remedy);
        }
        refuse(&UNREADABLE, format!("it cannot be read: {error}"), "name a file that you can read")
    };
    // Asked by name first: opening a FIFO or a device would block or have an effect.
    let named = fs::metadata(path).map_err(unreadable)?;
    if !named.is_file() {
        let kind = if named.is_dir() { "a folder" } else { "a FIFO, a socket or a device" };
        return Err(refuse(&KIND, format!("it is {kind}"), "name a regular file, such as surface.yaml"));
    }
    let resolved = fs::canonicalize(path).map_err(unreadable)?;
    let beside = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = fs::canonicalize(beside).map_err(unreadable)?;
    if !resolved.starts_with(&folder) {
        let message = format!("it is a link to {}, outside its folder", resolved.display());
        return Err(refuse(&LINK, message, "name the file itself: relative paths in it would be ambiguous"));
    }
    let file = File::open(&resolved).map_err(unreadable)?;
    let opened = file.metadata().map_err(unreadable)?;
    if !opened.is_file() {
        return Err(refuse(&KIND, "it was replaced while it was opened".to_owned(), "try again"));
    }
    check_modes(&opened, &folder).map_err(|(message, remedy)| refuse(&MODE, message, &remedy))?;
    let too_large = || refuse(&SIZE, format!("it is larger than {FILE_BYTES} bytes"), "split it into several surfaces");
    if opened.len() > FILE_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(too_large());
    }
    decode(path, bytes).map(|source| Opened { findings: Findings::new(source), folder })
}

/// The text of a file's bytes, without a byte order mark.
pub(crate) fn decode(path: &Path, bytes: Vec<u8>) -> Result<Source, Findings> {
    const BYTE_ORDER_MARK: &str = "\u{feff}";
    let wide = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    match String::from_utf8(bytes) {
        Ok(text) => {
            let text = text.strip_prefix(BYTE_ORDER_MARK).map(str::to_owned).unwrap_or(text);
            Ok(Source::new(path.to_owned(), text))
        }
        Err(error) => {
            let start = error.utf8_error().valid_up_to();
            let message = match error.as_bytes().get(start) {
                Some(byte) => format!("it is not UTF-8: byte 0x{byte:02x} at offset {start}"),
                None => "it is not UTF-8".to_owned(),
            };
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let mut findings = Findings::new(Source::new(path.to_owned(), text));
            let remedy = if wide { "it looks like UTF-16: save it as UTF-8" } else { "save it as UTF-8" };
            findings.report(&UTF8, Span { start, end: start }, message, remedy);
            Err(findings)
        }
    }
}

/// A file or folder that everyone can write is not the operator's alone.
#[cfg(unix)]
pub(crate) fn check_modes(file: &fs::Metadata, folder: &Path) -> Result<(), (String, String)> {
    use std::os::unix::fs::PermissionsExt as _;
    const OTHERS_WRITE: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let mode = file.permissions().mode();
    if mode & OTHERS_WRITE != 0 {
        let message = format!("everyone on this machine can write it (mode {:04o})", mode & 0o7777);
        return Err((message, "run `chmod o-w` on it, after reading what it says now".to_owned()));
    }
    let mode = fs::metadata(folder).map_or(0, |m| m.permissions().mode());
    if mode & OTHERS_WRITE != 0 && mode & STICKY == 0 {
        let message = format!("everyone on this machine can replace it: its folder has mode {:04o}", mode & 0o7777);
        return Err((message, format!("run `chmod o-w {}`", folder.display())));
    }
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn check_modes(_: &fs::Metadata, _: &Path) -> Result<(), (String, String)> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_and_stay_on_the_first_line() {
        let source = Source::new("f".into(), "é: ü x\r\nb: |\n  c\n".to_owned());
        let place = |start, end| source.place(Span { start, end });
        assert_eq!(place(4, 6), Place { line: 1, column: 4, end_column: 5, bytes: 4..6 });
        assert_eq!(place(4, 30), Place { line: 1, column: 4, end_column: 7, bytes: 4..8 });
        assert_eq!(place(10, 10).line, 2);
        assert_eq!(place(10, 10).end_column, 2);
        assert_eq!(place(9999, 9999).line, 4);
        assert_eq!(Source::new("f".into(), String::new()).place(Span::START).line, 1);
    }

    #[test]
    fn what_is_not_utf8_is_refused_at_its_byte_and_a_byte_order_mark_is_dropped() {
        let findings = decode(Path::new("f"), b"a: 1\nb: \xff\n".to_vec()).unwrap_err().into_problems();
        let problem = &findings.list()[0];
        assert_eq!((problem.rule, problem.line, problem.column), ("file-utf8", 2, 4));
        let findings = decode(Path::new("f"), b"\xff\xfea\0".to_vec()).unwrap_err().into_problems();
        assert!(findings.list()[0].remedy.contains("UTF-16"));
        assert_eq!(decode(Path::new("f"), b"\xef\xbb\xbfa: 1".to_vec()).unwrap().text(), "a: 1");
    }

    #[cfg(unix)]
    #[test]
    fn only_a_small_regular_file_of_the_operators_own_is_read() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("twodoor-source-{}", std::process::id()));
        let inner = folder.join("inner");
        fs::create_dir_all(&inner).unwrap();
        let rule_of = |path: &Path| match open(path) {
            Ok(_) => "ok",
            Err(findings) => findings.into_problems().list()[0].rule,
        };
        let file = |name: &str, text: &str, mode| {
            let path = inner.join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let good = file("good.yaml", "a: 1", 0o644);
        assert_eq!(rule_of(&good), "ok");
        assert_eq!(rule_of(&file("open.yaml", "a: 1", 0o666)), "file-mode");
        assert_eq!(rule_of(&file("large.yaml", &"a".repeat(1024 * 1024 + 1), 0o600)), "file-size");
        assert_eq!(rule_of(&file("full.yaml", &"a".repeat(1024 * 1024), 0o600)), "ok");
        assert_eq!(rule_of(&inner), "file-kind");
        assert_eq!(rule_of(Path::new("/dev/zero")), "file-kind");
        assert_eq!(rule_of(&inner.join("none")), "file-unreadable");
        std::os::unix::fs::symlink("good.yaml", inner.join("near.yaml")).unwrap();
        assert_eq!(rule_of(&inner.join("near.yaml")), "ok");
        fs::write(folder.join("far.yaml"), "a: 1").unwrap();
        std::os::unix::fs::symlink("../far.yaml", inner.join("far.yaml")).unwrap();
        assert_eq!(rule_of(&inner.join("far.yaml")), "file-link");
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o777)).unwrap();
        assert_eq!(rule_of(&good), "file-mode");
        fs::remove_dir_all(&folder).unwrap();
    }
}
