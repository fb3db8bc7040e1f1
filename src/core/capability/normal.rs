//! What a program did, as one JSON object of one shape.
//!
//! Promises: `{ok, data, error, returncode, stderr}`, always all five; what is in it is valid UTF-8, without invisible
//! characters and without a secret; an error that the program stated stays as it stated it. Starts nothing.

use super::words::{Object, beginning};
use crate::core::command::clean;
use crate::core::outgoing::Outgoing;
use crate::core::process::{Exit, Run};
use crate::core::redact::Secrets;
use crate::protocol::Json;
use crate::protocol::json::{JsonError, JsonLimits};

/// Most characters of standard error, its end.
pub const STDERR_CHARACTERS: usize = 2000;
/// Most characters of output that is quoted because it is no JSON.
const QUOTED_CHARACTERS: usize = 800;
/// Most bytes of output without JSON that are given as text.
const WRAPPED_BYTES: usize = 60_000;
/// Most lines that are looked at for one that is JSON.
const LINES_AT_MOST: usize = 10_000;

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Normal {
    /// Whether it did what was asked.
    pub ok: bool,
    /// What it wrote, if that was JSON.
    pub data: Option<Json>,
    /// What went wrong: an object with at least `code` and `message`.
    pub error: Option<Json>,
    /// Its exit code; the negative number of the signal that ended it.
    pub returncode: Option<i32>,
    /// The end of what it wrote to standard error.
    pub stderr: String,
}

impl Normal {
    /// A run that did not come to an end of its own, or was not started.
    pub fn failed(code: &str, message: impl Into<String>) -> Self {
        let error = Object::new().with("code", code).with("message", message.into()).into_json();
        Self { ok: false, data: None, error: Some(error), returncode: None, stderr: String::new() }
    }

    /// What a program that ended came to.
    pub fn of(run: &Run, secrets: &Secrets) -> Self {
        let stderr = told_end(&run.stderr.end(usize::MAX), secrets);
        let returncode = match run.exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(number) => Some(number.saturating_neg()),
            Exit::Unknown => None,
        };
        let output = Outgoing::clean(run.stdout.head(), usize::MAX).text;
        let (data, problem) = match read(&output) {
            Ok(mut value) => {
                if clean(&mut value) {
                    secrets.clean_json(&mut value);
                    (Some(value), None)
                } else {
                    (None, Some("it has invisible characters in a key".to_owned()))
                }
            }
            Err(problem) => (None, problem.map(|problem| problem.to_string())),
        };
        let stated = data.as_ref().and_then(|data| data.get("error")).cloned();
        let is_success = run.exit == Exit::Code(0);
        let (data, error) = match (data, stated) {
            (data, Some(stated)) => (data.and_then(beside_error), Some(with_code(stated))),
            (Some(data), None) if is_success => {
                return Self { ok: true, data: Some(data), error: None, returncode, stderr };
            }
            (Some(data), None) => (Some(data), Some(nonzero_exit(run.exit, &stderr))),
            (None, None) => {
                let text = secrets.clean(&output);
                let wrapped = (is_success && !text.trim().is_empty()).then(|| wrapped(&text));
                (wrapped, Some(no_json(run.exit, &stderr, &text, problem)))
            }
        };
        Self { ok: false, data, error, returncode, stderr }
    }

    /// The error's text, in which a wrong use shows.
    pub fn message(&self) -> Option<&str> {
        self.error.as_ref().and_then(|error| error.get("message")).and_then(Json::as_str)
    }

    /// The word for the error.
    pub fn code(&self) -> Option<&str> {
        self.error.as_ref().and_then(|error| error.get("code")).and_then(Json::as_str)
    }

    /// As an object, to which a hint can be added.
    pub fn into_object(self) -> Object {
        Object::new()
            .with("ok", self.ok)
            .with("data", self.data)
            .with("error", self.error)
            .with("returncode", self.returncode)
            .with("stderr", self.stderr)
    }
}

/// The whole text as JSON, or else its last line that is an object or a list; `Err` says why the text is neither, if
/// it looks as if it were meant to be.
fn read(output: &str) -> Result<Json, Option<JsonError>> {
    let limits = JsonLimits::default();
    let whole = output.trim();
    if whole.is_empty() {
        return Err(None);
    }
    let problem = match Json::parse(whole.as_bytes(), &limits) {
        Ok(value) => return Ok(value),
        Err(problem) => problem,
    };
    let looks_like_json = |line: &str| line.starts_with(['{', '[']);
    let mut lines = whole.lines().rev().take(LINES_AT_MOST).map(str::trim).filter(|line| looks_like_json(line));
    let found = lines.find_map(|line| Json::parse(line.as_bytes(), &limits).ok());
    found.ok_or_else(|| looks_like_json(whole).then_some(problem))
}

/// What was written beside an error.
fn beside_error(data: Json) -> Option<Json> {
    let Json::Object(mut members) = data else { return None };
    members.retain(|(key, _)| key != "error");
    (!members.is_empty()).then_some(Json::Object(members))
}

/// An error as stated; one that is no object, as the message of one.
fn with_code(stated: Json) -> Json {
    match stated {
        Json::Object(_) => stated,
        Json::String(message) => Object::new().with("code", "error").with("message", message).into_json(),
        other => Object::new().with("code", "error").with("message", other.to_text()).into_json(),
    }
}

fn nonzero_exit(exit: Exit, stderr: &str) -> Json {
    let message = match stderr.trim() {
        "" => how(exit),
        stderr => format!("{}: {}", how(exit), end(stderr, QUOTED_CHARACTERS)),
    };
    Object::new().with("code", "nonzero_exit").with("message", message).into_json()
}

fn no_json(exit: Exit, stderr: &str, output: &str, problem: Option<String>) -> Json {
    let quoted = match (stderr.trim(), output.trim()) {
        ("", "") => format!("the capability wrote nothing and {}", how(exit)),
        ("", output) => beginning(output, QUOTED_CHARACTERS).to_owned(),
        (stderr, _) => end(stderr, QUOTED_CHARACTERS).to_owned(),
    };
    let error = Object::new().with("code", "no_json").with("message", quoted);
    error.with_some("problem", problem).into_json()
}

fn how(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("ended with exit code {code}"),
        Exit::Signal(number) => format!("was ended by signal {number}"),
        Exit::Unknown => "ended in an unknown way".to_owned(),
    }
}

fn wrapped(output: &str) -> Json {
    let shown = Outgoing::clean(output.as_bytes(), WRAPPED_BYTES);
    let text = Object::new().with("text", shown.text);
    if shown.cut { text.with("truncated", true).with("bytes", output.len()) } else { text }.into_json()
}

/// The end of a stream, visible, without secrets: cut last, so that no part of a secret is left.
fn told_end(bytes: &[u8], secrets: &Secrets) -> String {
    let text = secrets.clean(&Outgoing::clean(bytes, usize::MAX).text);
    end(text.trim_end(), STDERR_CHARACTERS).to_owned()
}

/// The last characters of a text.
fn end(text: &str, most: usize) -> &str {
    let skipped = text.chars().count().saturating_sub(most);
    text.char_indices().nth(skipped).and_then(|(from, _)| text.get(from..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::process::Capture;

    fn ran(exit: Exit, stdout: &[u8], stderr: &[u8]) -> String {
        let mut run = Run { exit, stdout: Capture::new(5_000_000, 0), stderr: Capture::new(0, 100_000) };
        run.stdout.push(stdout);
        run.stderr.push(stderr);
        Normal::of(&run, &Secrets::new(["topsecret"])).into_object().into_json().to_text()
    }

    const DONE: Exit = Exit::Code(0);

    #[test]
    fn one_json_object_and_exit_zero_is_a_success() {
        let expected = r#"{"ok":true,"data":{"b":1.50,"a":[]},"error":null,"returncode":0,"stderr":""}"#;
        assert_eq!(ran(DONE, b" {\"b\": 1.50,\n \"a\": []}\n", b""), expected);
        assert!(ran(DONE, b"3", b"").contains(r#""ok":true,"data":3,"#));
        assert!(ran(DONE, b"null", b"").contains(r#""ok":true,"data":null,"#));
    }

    #[test]
    fn the_last_line_that_is_json_counts_after_noise() {
        assert!(ran(DONE, b"loading...\n{\"a\":1}\n", b"").contains(r#""ok":true,"data":{"a":1}"#));
        assert!(ran(DONE, b"{\"a\":1}\n{\"a\":2}\n", b"").contains(r#""ok":true,"data":{"a":2}"#));
        assert!(ran(DONE, b"{\"a\":1}\ndone {}\n{broken\n", b"").contains(r#""ok":true,"data":{"a":1}"#));
        assert!(ran(DONE, b"noise\n42\n", b"").contains(r#""code":"no_json""#), "a number is no line of JSON");
    }

    #[test]
    fn an_error_with_exit_zero_is_a_failure_and_stays_as_it_was_stated() {
        let stated = r#"{"code":"not_found","message":"no such file","details":{"path":"x"}}"#;
        let text = ran(DONE, format!("{{\"error\":{stated}}}").as_bytes(), b"");
        assert_eq!(text, format!(r#"{{"ok":false,"data":null,"error":{stated},"returncode":0,"stderr":""}}"#));
        let text = ran(Exit::Code(2), br#"{"error":"boom"}"#, b"");
        assert!(text.contains(r#""error":{"code":"error","message":"boom"},"returncode":2"#), "{text}");
        assert!(ran(Exit::Code(1), br#"{"error":null}"#, b"").contains(r#""ok":false"#));
        let text = ran(Exit::Code(1), br#"{"done":2,"error":"boom","rest":[]}"#, b"");
        assert!(text.contains(r#""data":{"done":2,"rest":[]},"error":{"code":"error","message":"boom"}"#), "{text}");
    }

    #[test]
    fn output_that_is_no_json_is_wrapped_and_quoted() {
        let text = ran(DONE, b"plain words\n", b"");
        assert_eq!(
            text,
            r#"{"ok":false,"data":{"text":"plain words\n"},"error":{"code":"no_json","message":"plain words"},"returncode":0,"stderr":""}"#
        );
        assert!(ran(DONE, b"", b"").contains("wrote nothing and ended with exit code 0"));
        assert!(
            ran(Exit::Code(3), b"out", b"err\n")
                .contains(r#""data":null,"error":{"code":"no_json","message":"err"},"returncode":3"#)
        );
        let long = ran(DONE, "é".repeat(100_000).as_bytes(), b"");
        assert!(
            long.contains(&format!("\"{}\"", "é".repeat(800))) && long.contains(r#""truncated":true,"bytes":200000"#)
        );
    }

    #[test]
    fn json_and_a_nonzero_exit_is_a_failure_that_keeps_the_data() {
        let text = ran(Exit::Code(1), br#"{"partial":true}"#, b"went wrong");
        assert!(text.contains(r#""data":{"partial":true},"error":{"code":"nonzero_exit","message":"ended with exit code 1: went wrong"}"#), "{text}");
        assert!(ran(Exit::Signal(9), b"{}", b"").contains(r#""message":"was ended by signal 9"},"returncode":-9"#));
        assert!(ran(Exit::Unknown, b"{}", b"").contains(r#""returncode":null"#));
    }

    #[test]
    fn bytes_that_are_no_text_and_characters_that_nobody_sees_do_not_get_through() {
        assert!(ran(DONE, b"{\"a\":\"\xff\xfe\"}", b"").contains("{\"a\":\"\u{fffd}\u{fffd}\"}"));
        assert!(ran(DONE, b"{\"a\":\"x\\u001b[31m\\u0000\"}", b"").contains(r#"{"a":"x[31m"}"#));
        assert!(ran(DONE, b"\x1b[0m{\"a\":1}", b"").contains(r#""code":"no_json""#));
        assert!(ran(DONE, b"{\"a\\u0007\":1}", b"").contains("invisible characters in a key"));
        assert!(ran(DONE, b"{}", b"a\x00b\xff").contains("\"stderr\":\"ab\u{fffd}\""));
    }

    #[test]
    fn json_that_two_readers_would_read_differently_is_refused_with_the_reason() {
        assert!(ran(DONE, br#"{"a":1,"a":2}"#, b"").contains(r#""problem":"duplicate key \"a\"""#));
        let deep = "[".repeat(100_000);
        assert!(ran(DONE, deep.as_bytes(), b"").contains("nested deeper than 64"));
    }

    #[test]
    fn standard_error_is_told_by_its_last_two_thousand_characters() {
        let text = ran(DONE, b"{}", ("x".repeat(5000) + &"é".repeat(1999) + "!").as_bytes());
        assert!(text.contains(&format!(r#""stderr":"{}!""#, "é".repeat(1999))));
    }

    #[test]
    fn a_secret_is_nowhere_even_where_invisible_characters_part_it_or_a_cut_would() {
        for (stdout, stderr) in [
            (&br#"{"a":"topsecret"}"#[..], &b"topsecret"[..]),
            (br#"{"a":"top\u0000secret","topsecret":[{"b":"dG9wc2VjcmV0"}]}"#, b"top\x00secret"),
            (b"text topsecret", b""),
            (b"{\"error\":{\"code\":\"x\",\"message\":\"key topsecret is wrong\"}}", b""),
            (b"", b"topsecret"),
        ] {
            let text = ran(Exit::Code(1), stdout, stderr);
            assert!(!text.contains("topsecret") && text.contains("[redacted]"), "{text}");
        }
        let at_the_cut = format!("topsecret{}", "x".repeat(STDERR_CHARACTERS - 4));
        assert!(!ran(DONE, b"{}", at_the_cut.as_bytes()).contains("cret"));
        let parted = "{\"a\":1}\n".to_owned() + &"top\u{e0041}secret".repeat(3);
        assert!(!ran(Exit::Code(1), parted.as_bytes(), b"").contains("secret"));
    }

    #[test]
    fn a_flood_of_lines_is_looked_at_from_its_end() {
        let flood = "{\n".repeat(1_000_000) + "{\"a\":1}";
        assert!(ran(DONE, flood.as_bytes(), b"").contains(r#""data":{"a":1}"#));
    }
}
