//! What a model is told of a run.
//!
//! Promises: text that is clean and within the tool's cap, with a last line that says what was cut and
//! how to narrow it; a failure names the program and how it ended, then the ends of what it wrote. Adds
//! no path, environment or argument of ours.

use super::blocks;
use crate::core::outgoing::{Outgoing, how_to_narrow, is_hidden};
use crate::core::process::{Exit, Run};
use crate::protocol::json::JsonLimits;
use crate::protocol::{Block, Content, Json, Outcome};

/// Least bytes that a failure may quote, however small the cap for results is.
const FAILURE_BYTES: usize = 1024;
/// Most bytes of standard error in a failure.
const FAILURE_STDERR_BYTES: usize = 16 * 1024;
/// Most bytes of standard output in a failure.
const FAILURE_STDOUT_BYTES: usize = 4 * 1024;

/// What a report needs to know of its tool.
#[derive(Debug, Clone)]
pub(super) struct Reporter {
    /// The tool's name.
    pub(super) tool: String,
    /// The program's name without folders.
    pub(super) program: String,
    /// Arguments whose values decide how much comes out.
    pub(super) narrowing: Vec<String>,
    /// Most bytes of output in a result.
    pub(super) cap: usize,
}

impl Reporter {
    /// Output that is text.
    pub(super) fn text(&self, run: &Run) -> Outcome {
        let shown = Outgoing::clean(run.stdout.head(), self.cap);
        let of = (shown.cut || run.stdout.is_cut()).then(|| format!("{}", run.stdout.total()));
        Outcome::Complete(Content::text(shown.told(of.as_deref(), &self.how_to_narrow())))
    }

    /// Output that is one JSON value. It is never cut: a part of it would be no JSON.
    pub(super) fn json(&self, run: &Run) -> Outcome {
        match self.value(run) {
            Ok((value, text)) => {
                Outcome::Complete(Content { blocks: vec![Block::text(text)], structured: Some(value.to_value()) })
            }
            Err(outcome) => *outcome,
        }
    }

    /// Output that is a whole result, its blocks of any kind.
    pub(super) fn content(&self, run: &Run) -> Outcome {
        let value = match self.value(run) {
            Ok((value, _)) => value,
            Err(outcome) => return *outcome,
        };
        match blocks::read(&value) {
            Ok((content, false)) => Outcome::Complete(content),
            Ok((content, true)) => Outcome::Failed(content),
            Err(problem) => {
                let text = format!("{} should have written a result of content blocks, but {problem}", self.program);
                self.failure(text, run)
            }
        }
    }

    /// The one JSON value that was written, and its text.
    fn value(&self, run: &Run) -> Result<(Json, String), Box<Outcome>> {
        if run.stdout.is_cut() {
            return Err(self.too_long(run.stdout.total()).into());
        }
        let mut value = match Json::parse(run.stdout.head(), &JsonLimits::default()) {
            Ok(value) => value,
            Err(error) => {
                let text = format!("{} should have written one JSON value, but its output is {error}", self.program);
                return Err(self.failure(text, run).into());
            }
        };
        if !clean(&mut value) {
            let text = format!("{} wrote JSON with invisible characters in a key, which is refused", self.program);
            return Err(Outcome::Failed(Content::text(text)).into());
        }
        let text = value.to_text();
        if text.len() > self.cap {
            return Err(self.too_long(u64::try_from(text.len()).unwrap_or(u64::MAX)).into());
        }
        Ok((value, text))
    }

    /// An end that the declaration does not count as success.
    pub(super) fn failed(&self, run: &Run) -> Outcome {
        let how = match run.exit {
            Exit::Code(code) => format!("failed with exit code {code}"),
            Exit::Signal(number) => format!("was ended by signal {number}{}", signal_name(number)),
            Exit::Unknown => "ended in an unknown way".to_owned(),
        };
        self.failure(format!("{} {how}", self.program), run)
    }

    fn failure(&self, mut text: String, run: &Run) -> Outcome {
        let most = self.cap.max(FAILURE_BYTES);
        let streams = [("stderr", &run.stderr, FAILURE_STDERR_BYTES), ("stdout", &run.stdout, FAILURE_STDOUT_BYTES)];
        let mut wrote = false;
        for (name, capture, longest) in streams {
            let longest = longest.min(most.saturating_sub(text.len()));
            let end = Outgoing::clean_end(&capture.end(longest.saturating_add(1)), longest);
            if end.text.trim().is_empty() {
                continue;
            }
            wrote = true;
            let part = if end.cut { ", its end" } else { "" };
            text.push_str(&format!("\n{name}{part}:\n{}", end.text.trim_end()));
        }
        if !wrote {
            text.push_str(" and wrote nothing");
        }
        Outcome::Failed(Content::text(text))
    }

    fn too_long(&self, bytes: u64) -> Outcome {
        let (program, cap, narrow) = (&self.program, self.cap, self.how_to_narrow());
        let text =
            format!("{program} wrote {bytes} bytes of JSON, more than the {cap} that fit into a result: {narrow}");
        Outcome::Failed(Content::text(text))
    }

    /// `narrow log with path, author or count`
    fn how_to_narrow(&self) -> String {
        how_to_narrow(&self.tool, &self.narrowing)
    }
}

/// Removes hidden characters from all strings; `false` if a key holds one, as two keys might become one.
pub(in crate::core) fn clean(value: &mut Json) -> bool {
    match value {
        Json::String(text) => {
            text.retain(|character| !is_hidden(character));
            true
        }
        Json::Array(items) => items.iter_mut().all(clean),
        Json::Object(members) => members.iter_mut().all(|(key, value)| !key.contains(is_hidden) && clean(value)),
        Json::Null | Json::Bool(_) | Json::Number(_) => true,
    }
}

/// The name of a signal that programs are commonly ended by.
fn signal_name(number: i32) -> &'static str {
    match number {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        14 => " (SIGALRM)",
        15 => " (SIGTERM)",
        24 => " (SIGXCPU)",
        25 => " (SIGXFSZ)",
        31 => " (SIGSYS)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::process::Capture;

    fn reporter(cap: usize, narrowing: &[&str]) -> Reporter {
        let narrowing = narrowing.iter().map(|name| (*name).to_owned()).collect();
        Reporter { tool: "log".to_owned(), program: "git".to_owned(), narrowing, cap }
    }

    fn run(exit: Exit, stdout: &[u8], stderr: &[u8]) -> Run {
        let mut run = Run { exit, stdout: Capture::new(100_000, 10), stderr: Capture::new(0, 100_000) };
        run.stdout.push(stdout);
        run.stderr.push(stderr);
        run
    }

    fn text(outcome: Outcome) -> String {
        let (Outcome::Complete(content) | Outcome::Failed(content)) = outcome else { panic!("{outcome:?}") };
        content.plain_text()
    }

    #[test]
    fn text_is_cut_at_the_cap_with_a_hint_that_names_the_arguments() {
        for (cap, arguments, output, expected) in [
            (8, &["path", "author", "count"][..], "12345678", "12345678"),
            (
                8,
                &["path", "author", "count"],
                "123456789",
                "12345678\n[cut: 8 of 9 bytes shown; narrow log with path, author or count]\n",
            ),
            (
                8,
                &["path", "author"],
                "1234567\n9",
                "1234567\n[cut: 8 of 9 bytes shown; narrow log with path or author]\n",
            ),
            (8, &["path"], "1234567é", "1234567\n[cut: 7 of 9 bytes shown; narrow log with path]\n"),
            (8, &[], "123456789", "12345678\n[cut: 8 of 9 bytes shown; log takes no argument that narrows it]\n"),
            (8, &[], "a\x1bb\u{e0041}", "ab\n[removed: 2 invisible characters]\n"),
            (8, &[], "", ""),
        ] {
            assert_eq!(text(reporter(cap, arguments).text(&run(Exit::Code(0), output.as_bytes(), b""))), expected);
        }
    }

    #[test]
    fn output_beyond_the_capture_is_marked_though_the_cap_is_larger() {
        let mut cut = Run { exit: Exit::Code(0), stdout: Capture::new(4, 2), stderr: Capture::new(0, 0) };
        cut.stdout.push(b"0123456789");
        let hint = "0123\n[cut: 4 of 10 bytes shown; narrow log with count]\n";
        assert_eq!(text(reporter(100, &["count"]).text(&cut)), hint);
        assert!(text(reporter(100, &["count"]).json(&cut)).contains("10 bytes of JSON"));
    }

    #[test]
    fn a_failure_says_how_it_ended_and_what_was_written() {
        let report = reporter(60_000, &[]);
        for (exit, stdout, stderr, expected) in [
            (Exit::Code(1), "", "", "git failed with exit code 1 and wrote nothing"),
            (Exit::Code(128), "", "fatal: no\n", "git failed with exit code 128\nstderr:\nfatal: no"),
            (Exit::Code(2), "out\n", "", "git failed with exit code 2\nstdout:\nout"),
            (Exit::Code(255), "o", "e\x07", "git failed with exit code 255\nstderr:\ne\nstdout:\no"),
            (Exit::Signal(11), "", "\n", "git was ended by signal 11 (SIGSEGV) and wrote nothing"),
            (Exit::Signal(63), "", "", "git was ended by signal 63 and wrote nothing"),
        ] {
            assert_eq!(text(report.failed(&run(exit, stdout.as_bytes(), stderr.as_bytes()))), expected);
        }
    }

    #[test]
    fn a_failure_quotes_the_ends_and_stays_within_its_bounds() {
        let long = "x".repeat(50_000) + "last words";
        let told = text(reporter(60_000, &[]).failed(&run(Exit::Code(1), long.as_bytes(), long.as_bytes())));
        assert!(told.starts_with("git failed with exit code 1\nstderr, its end:\nxxx"));
        assert!(told.contains("last words\nstdout, its end:\nxxx") && told.ends_with("xlast words"));
        assert!(told.len() < FAILURE_STDERR_BYTES + FAILURE_STDOUT_BYTES + 100, "{}", told.len());
        let small = text(reporter(10, &[]).failed(&run(Exit::Code(1), long.as_bytes(), long.as_bytes())));
        assert!(small.len() <= FAILURE_BYTES + 100, "{}", small.len());
    }

    #[test]
    fn json_is_given_whole_as_text_and_as_a_value_or_refused() {
        let report = reporter(40, &["count"]);
        let Outcome::Complete(content) =
            report.json(&run(Exit::Code(0), b" {\"b\": 1.50, \"a\": [\"x\\u001b\"]}\n", b""))
        else {
            panic!("not complete")
        };
        assert_eq!(content.blocks, [Block::text(r#"{"b":1.50,"a":["x"]}"#)]);
        assert_eq!(content.structured, Some(serde_json::json!({ "b": 1.5, "a": ["x"] })));
        for (output, expected) in [
            ("", "git should have written one JSON value, but its output is not valid JSON: it ends too early at line"),
            ("{} {}", "git should have written one JSON value, but its output is not valid JSON"),
            (r#"{"a":1,"a":2}"#, "git should have written one JSON value, but its output is duplicate key \"a\""),
            ("\u{feff}{}", "git should have written one JSON value"),
            (r#"{"a\u0007":1}"#, "git wrote JSON with invisible characters in a key"),
            (
                r#""0123456789012345678901234567890123456789""#,
                "git wrote 42 bytes of JSON, more than the 40 that fit into a result: narrow log with count",
            ),
        ] {
            let outcome = report.json(&run(Exit::Code(0), output.as_bytes(), b""));
            assert!(matches!(outcome, Outcome::Failed(_)), "{output}");
            let told = text(outcome);
            assert!(told.starts_with(expected), "{told}");
        }
    }
}
