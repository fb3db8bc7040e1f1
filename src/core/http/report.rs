//! What a model is told of an answer.
//!
//! Promises: text that is clean, without a secret that was sent, and within the tool's cap, with a last line that says what was cut and how
//! to narrow it; a failure names the server and the status, then the beginning of what it said; a
//! redirect names no more than an origin.

use bytes::Bytes;
use hyper::Uri;

use crate::core::command::report::clean;
use crate::core::outgoing::how_to_narrow;
use crate::core::redact::Secrets;
use crate::protocol::json::JsonLimits;
use crate::protocol::{Block, Content, Json, Outcome};
use crate::surface::declaration::Output;

/// Most bytes of what a server says of its failure.
const FAILURE_BYTES: usize = 4 * 1024;

/// An answer as far as it was read.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The reason that the status usually has.
    pub(super) reason: &'static str,
    /// Without its parameters, in lower case; empty if there is none.
    pub(super) media_type: String,
    pub(super) location: Option<String>,
    /// Whether it is compressed, which was not asked for.
    pub(super) encoded: bool,
    pub(super) body: Bytes,
    /// Whether there was more.
    pub(super) cut: bool,
}

/// What a report needs to know of its tool.
#[derive(Debug)]
pub(super) struct Reporter {
    pub(super) tool: String,
    /// The server, by its host.
    pub(super) host: String,
    pub(super) narrowing: Vec<String>,
    pub(super) cap: usize,
    pub(super) output: Output,
}

impl Reporter {
    pub(super) fn report(&self, answer: &Answer, secrets: &Secrets) -> Outcome {
        let host = &self.host;
        if answer.encoded {
            return failed(format!("{host} answered compressed, which was not asked for and is not read"));
        }
        match answer.status {
            200..=299 if self.output == Output::Text => self.text(answer, secrets),
            200..=299 => self.json(answer, secrets),
            300..=399 => failed(self.redirected(answer, secrets)),
            _ => failed(self.failure(answer, secrets)),
        }
    }

    fn status(&self, answer: &Answer) -> String {
        format!("{} answered with HTTP {} {}", self.host, answer.status, answer.reason).trim_end().to_owned()
    }

    fn redirected(&self, answer: &Answer, secrets: &Secrets) -> String {
        let to = answer.location.as_ref().and_then(|to| to.parse::<Uri>().ok());
        let to = match to.as_ref().map(|to| (to.scheme_str(), to.authority())) {
            Some((Some(scheme), Some(authority))) => {
                let host = secrets.outgoing(authority.host().as_bytes(), 253).text;
                format!(" to {scheme}://{host}")
            }
            Some(_) => " to another path of its own".to_owned(),
            None => String::new(),
        };
        format!("{}: a redirect{to}, which is not followed; the operator may declare that address", self.status(answer))
    }

    fn failure(&self, answer: &Answer, secrets: &Secrets) -> String {
        let said = secrets.outgoing(&answer.body, FAILURE_BYTES.min(self.cap.max(1024)));
        let said_text = said.text.trim();
        if said_text.is_empty() || is_binary(answer) {
            return self.status(answer);
        }
        let part = if said.cut || answer.cut { ", which begins" } else { "" };
        format!("{}; what it said{part}:\n{said_text}", self.status(answer))
    }

    fn text(&self, answer: &Answer, secrets: &Secrets) -> Outcome {
        if answer.body.is_empty() {
            return Outcome::Complete(Content::text(format!("{}, without content", self.status(answer))));
        }
        if is_binary(answer) {
            let media_type = secrets.outgoing(answer.media_type.as_bytes(), 64).text;
            return failed(format!("{} answered with {media_type}, which is no text", self.host));
        }
        let shown = secrets.outgoing(&answer.body, self.cap);
        let of = match (answer.cut, shown.cut) {
            (true, _) => Some(format!("more than {}", answer.body.len())),
            (false, true) => Some(answer.body.len().to_string()),
            (false, false) => None,
        };
        Outcome::Complete(Content::text(shown.told(of.as_deref(), &how_to_narrow(&self.tool, &self.narrowing))))
    }

    /// One JSON value. It is never cut: a part of it would be no JSON.
    fn json(&self, answer: &Answer, secrets: &Secrets) -> Outcome {
        let host = &self.host;
        if answer.cut {
            return self.too_long(format!("more than {}", answer.body.len()));
        }
        if answer.body.is_empty() {
            return failed(format!("{}, without the JSON value that was expected", self.status(answer)));
        }
        let mut value = match Json::parse(&answer.body, &JsonLimits::default()) {
            Ok(value) => value,
            Err(error) => {
                let error = secrets.clean(&error.to_string());
                return failed(format!("{host} should have answered with one JSON value, but it is {error}"));
            }
        };
        if !clean(&mut value) {
            return failed(format!(
                "{host} answered with JSON that has invisible characters in a key, which is refused"
            ));
        }
        secrets.clean_json(&mut value);
        let text = value.to_text();
        if text.len() > self.cap {
            return self.too_long(text.len().to_string());
        }
        Outcome::Complete(Content { blocks: vec![Block::text(text)], structured: Some(value.to_value()) })
    }

    fn too_long(&self, bytes: String) -> Outcome {
        let narrow = how_to_narrow(&self.tool, &self.narrowing);
        let (host, cap) = (&self.host, self.cap);
        failed(format!(
            "{host} answered with {bytes} bytes of JSON, more than the {cap} that fit into a result: {narrow}"
        ))
    }
}

/// Whether an answer is bytes that no model reads as text.
fn is_binary(answer: &Answer) -> bool {
    let textual = answer.media_type.is_empty() || answer.media_type.starts_with("text/");
    !textual && std::str::from_utf8(&answer.body).is_err_and(|error| error.error_len().is_some() || !answer.cut)
}

pub(super) fn failed(text: String) -> Outcome {
    Outcome::Failed(Content::text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, media_type: &str, body: &str) -> Answer {
        let body = Bytes::copy_from_slice(body.as_bytes());
        let media_type = media_type.to_owned();
        Answer { status, reason: "Reason", media_type, location: None, encoded: false, body, cut: false }
    }

    fn told(output: Output, answer: &Answer) -> (bool, String) {
        let narrowing = vec!["city".to_owned()];
        let reporter = Reporter { tool: "weather".to_owned(), host: "h".to_owned(), narrowing, cap: 20, output };
        match reporter.report(answer, &Secrets::new(["t0p/secret"])) {
            Outcome::Complete(content) => (true, content.plain_text()),
            Outcome::Failed(content) => (false, content.plain_text()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn text_is_cleaned_and_cut_with_a_hint() {
        let text = |body: &str| told(Output::Text, &answer(200, "text/plain", body));
        assert_eq!(text("fine"), (true, "fine".to_owned()));
        assert_eq!(text("a\x1b[2Jb"), (true, "a[2Jb\n[removed: 1 invisible characters]\n".to_owned()));
        let long = text(&"x".repeat(21)).1;
        assert_eq!(long, format!("{}\n[cut: 20 of 21 bytes shown; narrow weather with city]\n", "x".repeat(20)));
        assert_eq!(text("").1, "h answered with HTTP 200 Reason, without content");
        let more = Answer { cut: true, ..answer(200, "text/plain", "abc") };
        assert!(told(Output::Text, &more).1.contains("[cut: 3 of more than 3 bytes shown"));
    }

    #[test]
    fn bytes_are_no_text() {
        let mut image = answer(200, "image/png", "");
        image.body = Bytes::from_static(b"\x89PNG\xff\xfe");
        assert_eq!(told(Output::Text, &image), (false, "h answered with image/png, which is no text".to_owned()));
        image.status = 500;
        assert_eq!(told(Output::Text, &image).1, "h answered with HTTP 500 Reason");
    }

    #[test]
    fn json_is_given_whole_or_not_at_all() {
        let json = |body: &str| told(Output::Json, &answer(200, "application/json", body));
        assert_eq!(json(r#"{"b": 1.50}"#), (true, r#"{"b":1.50}"#.to_owned()));
        for (body, why) in [
            ("<html>", "should have answered with one JSON value"),
            (r#"{"a":1,"a":2}"#, "duplicate key"),
            ("", "without the JSON value"),
            (r#"["aaaaaaaaaaaaaaaaaaaaa"]"#, "more than the 20 that fit"),
        ] {
            let (done, text) = json(body);
            assert!(!done && text.contains(why), "{text}");
        }
    }

    #[test]
    fn a_secret_that_was_sent_back_in_whatever_form_is_not_passed_on() {
        for (output, status, body) in [
            (Output::Text, 200, "t0p/secret"),
            (Output::Text, 200, "t0p%2Fsecret"),
            (Output::Text, 200, "dDBwL3NlY3JldA"),
            // Of the cap of 20 bytes, a part of it would be left.
            (Output::Text, 200, "0123456789t0p/secret0123456789"),
            (Output::Json, 200, r#"{"t0p\/secret":1}"#),
            (Output::Json, 200, r#"["t0\u0070/secret"]"#),
            (Output::Json, 200, r#"{"t0p/secret":1,"t0p/secret":2}"#),
            (Output::Text, 500, "you sent t0p/secret"),
        ] {
            let text = told(output, &answer(status, "text/plain", body)).1;
            assert!(text.contains("[redacted"), "{body} became {text}");
            assert!(!text.contains("t0p") && !text.contains("dDBw"), "{body} became {text}");
        }
    }

    #[test]
    fn a_redirect_is_not_followed_and_names_an_origin_alone() {
        for (location, shown) in [
            (Some("https://evil.example:8443/path?token=secret"), "to https://evil.example,"),
            (Some("http://user:pw@169.254.169.254/"), "to http://169.254.169.254,"),
            (Some("/login?x"), "to another path of its own,"),
            (None, "a redirect, which"),
        ] {
            let answer = Answer { location: location.map(str::to_owned), ..answer(302, "", "body") };
            let (done, text) = told(Output::Text, &answer);
            assert!(!done && text.contains(shown), "{text}");
            assert!(!text.contains("secret") && !text.contains("pw") && !text.contains("body"), "{text}");
        }
    }

    #[test]
    fn a_failure_says_the_status_and_the_beginning_of_what_was_said() {
        let (done, text) = told(Output::Json, &answer(404, "text/html", "  no \u{e0041}such city\n"));
        assert_eq!((done, text.as_str()), (false, "h answered with HTTP 404 Reason; what it said:\nno such city"));
        let long = told(Output::Text, &answer(500, "text/plain", &"x".repeat(9000))).1;
        assert!(long.contains("what it said, which begins:") && long.len() < 1200, "{}", long.len());
        let encoded = Answer { encoded: true, ..answer(200, "text/plain", "x") };
        assert!(told(Output::Text, &encoded).1.contains("compressed"));
    }
}
