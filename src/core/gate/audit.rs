//! The audit log: what was decided of each call and what came of it, one JSON object a line.
//!
//! Promises: lines are only ever added; each is whole, whatever stands in a name; none has a value of an
//! argument or a secret. The file is opened for each line, so that whoever moves it away goes on with a new
//! one; it is never shortened and never moved by us. Several processes may share it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{Mode, OFlags};
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::bound::Bound;
use super::writer::Writer;
use crate::core::store::StoreError;
use crate::surface::effect::Judged;

/// The name of the file in a state folder.
pub(super) const NAME: &str = "audit.jsonl";

/// Longest text of a name in a line, characters: names are short, and a line is to be written in one piece.
const NAME_CHARACTERS: usize = 200;

/// Where lines are added.
#[derive(Debug)]
pub(super) struct Audit {
    writer: Writer,
}

/// The file.
#[derive(Debug)]
struct Log {
    path: PathBuf,
}

/// A line.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Line {
    time: String,
    event: &'static str,
    call: String,
    principal: String,
    surface: String,
    version: String,
    tool: String,
    tool_digest: String,
    /// What a tool that does many things was to do.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    does: BTreeMap<&'static str, String>,
    arguments_digest: String,
    effect: &'static str,
    verb: Option<&'static str>,
    blast_class: Option<&'static str>,
    rule: Option<usize>,
    verdict: &'static str,
    reason: Option<&'static str>,
    approval: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
}

/// What was called.
#[derive(Debug)]
pub(super) struct Called {
    /// The tool.
    pub(super) tool: String,
    /// The digest of its definition.
    pub(super) digest: String,
    /// What it was to do, by the words that answers have for it, where it does many things.
    pub(super) does: Vec<(&'static str, String)>,
}

fn short(text: &str) -> String {
    text.chars().take(NAME_CHARACTERS).collect()
}

fn time_now() -> String {
    OffsetDateTime::from(SystemTime::now()).format(&Rfc3339).unwrap_or_default()
}

impl Line {
    /// What was decided of a call.
    pub(super) fn decided(
        call: String,
        called: &Called,
        bound: &Bound,
        judged: &Judged,
        verdict: &'static str,
    ) -> Self {
        Self {
            time: time_now(),
            event: "decision",
            call,
            principal: short(&bound.principal),
            surface: short(&bound.surface),
            version: short(&bound.version),
            tool: short(&called.tool),
            tool_digest: called.digest.clone(),
            does: called.does.iter().map(|(word, name)| (*word, short(name))).collect(),
            arguments_digest: bound.arguments.to_string(),
            effect: judged.effect.name(),
            verb: judged.verb,
            blast_class: judged.blast_class.map(|class| class.name()),
            rule: None,
            verdict,
            reason: None,
            approval: None,
            outcome: None,
            duration_ms: None,
        }
    }

    /// Which rule decided, why it does not run, and which approval it is about.
    pub(super) fn because(
        mut self,
        rule: Option<usize>,
        reason: Option<&'static str>,
        approval: Option<String>,
    ) -> Self {
        (self.rule, self.reason, self.approval) = (rule, reason, approval);
        self
    }

    /// What came of the call that was decided so.
    pub(super) fn ended(mut self, outcome: &'static str, duration_ms: u64) -> Self {
        self.time = time_now();
        self.event = "outcome";
        (self.outcome, self.duration_ms) = (Some(outcome), Some(duration_ms));
        self
    }
}

impl Audit {
    /// A log in a file, which is made if need be; what cannot be added to is refused now.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let log = Log { path: path.to_owned() };
        let opened = log.file().and_then(|_| Writer::start(move |line, durable| log.add(line, durable)));
        match opened {
            Ok(writer) => Ok(Self { writer }),
            Err(source) => Err(StoreError::Io { doing: "add to the audit log", path: path.to_owned(), source }),
        }
    }

    /// Adds a line. Once this returns, whoever reads the file sees it; `Durable` survives a loss of power too.
    pub(super) async fn add(&self, line: Line, durable: Durable) -> io::Result<()> {
        self.writer.add(line, durable).await
    }

    /// Hands a line over, which is added after all that came before it; a failure is logged.
    pub(super) fn hand_over(&self, line: Line) {
        self.writer.hand_over(line);
    }

    /// Waits until all that was handed over is in the file, at most so long. Whether it is.
    pub(super) fn settle(&self, limit: Duration) -> bool {
        self.writer.settle(limit)
    }
}

impl Log {
    fn add(&self, line: &Line, durable: Durable) -> io::Result<()> {
        let mut file = self.file()?;
        file.lock()?;
        let mut bytes = Vec::with_capacity(768);
        if file.seek(SeekFrom::End(0))? > 0 {
            // Whoever wrote last may have found no room for the end of its line.
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                bytes.push(b'\n');
            }
        }
        serde_json::to_writer(&mut bytes, line)?;
        bytes.push(b'\n');
        file.write_all(&bytes)?;
        match durable {
            Durable::Yes => file.sync_data(),
            Durable::No => Ok(()),
        }
    }

    fn file(&self) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(&self.path, flags, Mode::RUSR | Mode::WUSR)?);
        let about = file.metadata()?;
        let problem = if !about.is_file() {
            "it is no plain file"
        } else if about.uid() != rustix::process::geteuid().as_raw() {
            "it belongs to another user"
        } else if about.mode() & 0o077 != 0 {
            "other users can read or write it (chmod 600)"
        } else {
            return Ok(file);
        };
        Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
    }
}

/// Whether a line has to survive a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durable {
    Yes,
    No,
}

/// Lines for tests.
#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::protocol::digest;
    use crate::surface::effect::{Policy, classify};

    fn bound(name: &str) -> Bound {
        let digest = digest::of_bytes(name.as_bytes());
        Bound {
            principal: name.to_owned(),
            surface: "s".to_owned(),
            version: "1.0.0".to_owned(),
            tool: "wipe".to_owned(),
            tool_digest: digest,
            arguments: digest,
            rules: digest,
            definition: digest,
        }
    }

    pub(in super::super) fn line(name: &str) -> Line {
        let called = Called { tool: name.to_owned(), digest: String::new(), does: Vec::new() };
        Line::decided("c".to_owned(), &called, &bound(name), &classify(["wipe"], Policy::default()), "deny")
    }

    impl Line {
        pub(in super::super) fn tool(&self) -> &str {
            &self.tool
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::testing::line;
    use super::*;

    fn log(path: &Path) -> Log {
        Log { path: path.to_owned() }
    }

    fn lines(path: &Path) -> Vec<serde_json::Value> {
        fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_line_is_whole_whatever_stands_in_a_name_and_the_file_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let audit = log(&path);
        let hostile = "x\n{\"event\":\"forged\"}\r\u{1b}[2J\"}\u{2028}";
        audit.add(&line(hostile), Durable::Yes).unwrap();
        audit.add(&line(&"y".repeat(10_000)).ended("complete", 3), Durable::No).unwrap();
        let lines = lines(&path);
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0]["event"].as_str(), lines[0]["principal"].as_str()), (Some("decision"), Some(hostile)));
        assert_eq!((lines[1]["event"].as_str(), lines[1]["duration_ms"].as_u64()), (Some("outcome"), Some(3)));
        assert_eq!(lines[1]["principal"].as_str().unwrap().len(), NAME_CHARACTERS);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_torn_line_spoils_no_other_and_a_file_that_is_moved_away_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let audit = log(&path);
        audit.add(&line("a"), Durable::No).unwrap();
        let mut torn = fs::read(&path).unwrap();
        torn.extend(b"{\"time\":\"20");
        fs::write(&path, torn).unwrap();
        audit.add(&line("b"), Durable::No).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let whole = text.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok());
        assert_eq!((whole.count(), text.lines().count()), (2, 3));
        fs::rename(&path, folder.path().join("audit.jsonl.1")).unwrap();
        audit.add(&line("c"), Durable::No).unwrap();
        assert_eq!(lines(&path).len(), 1);
    }

    #[test]
    fn what_is_no_file_of_ones_own_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("open"), "").unwrap();
        fs::set_permissions(path("open"), fs::Permissions::from_mode(0o644)).unwrap();
        fs::create_dir(path("folder")).unwrap();
        symlink(path("elsewhere"), path("link")).unwrap();
        for name in ["open", "folder", "link", "missing/audit.jsonl"] {
            assert!(Audit::open(&path(name)).is_err(), "{name}");
        }
        assert!(Audit::open(Path::new("/dev/null")).is_err());
        assert!(!path("elsewhere").exists());
    }

    #[test]
    fn lines_of_many_at_once_do_not_mix() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        std::thread::scope(|scope| {
            for n in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    let audit = log(path);
                    for _ in 0..25 {
                        audit.add(&line(&"z".repeat(n * 30)), Durable::No).unwrap();
                    }
                });
            }
        });
        assert_eq!(lines(&path).len(), 200);
    }
}
