//! The check of every answer.

use anyhow::{Context, Result, ensure};
use memchr::memmem;
use serde_json::Value;
use twodoor_benches::PROGRESS_NOTICES;

use crate::wire::{Ask, Era, FIRST_ID, ID_DIGITS, LEGACY, MODERN, Question};

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Json,
    Events,
}

/// Checks answers. One is parsed and judged in full; those after it are equal to it in every byte
/// but the id, or are judged in full too. So the check is complete and costs little.
pub struct Checker {
    question: Question,
    judged: Option<(Form, Vec<u8>, usize)>,
}

impl Checker {
    pub fn new(question: Question) -> Self {
        Self { question, judged: None }
    }

    /// The id of a right answer.
    pub fn check(&mut self, form: Form, answer: &[u8]) -> Result<u64> {
        if let Some(id) = self.same_but_id(form, answer) {
            return Ok(id);
        }
        let id = self
            .judge(form, answer)
            .with_context(|| format!("wrong answer: {}", String::from_utf8_lossy(&answer[..answer.len().min(400)])))?;
        self.judged = memmem::find(answer, id.to_string().as_bytes()).map(|at| (form, answer.to_vec(), at));
        Ok(id)
    }

    fn same_but_id(&self, form: Form, answer: &[u8]) -> Option<u64> {
        let (judged_form, judged, at) = self.judged.as_ref()?;
        let end = at + ID_DIGITS;
        let same = form == *judged_form
            && answer.len() == judged.len()
            && answer[..*at] == judged[..*at]
            && answer[end..] == judged[end..];
        if !same {
            return None;
        }
        answer[*at..end].iter().try_fold(0, |id, d| d.is_ascii_digit().then(|| id * 10 + u64::from(d - b'0')))
    }

    fn judge(&self, form: Form, answer: &[u8]) -> Result<u64> {
        let mut messages = match form {
            Form::Json => vec![serde_json::from_slice(answer)?],
            Form::Events => events(answer)?,
        };
        let response = messages.pop().context("no message")?;
        if self.question.ask == Ask::Progress {
            ensure!(messages.len() == PROGRESS_NOTICES, "{} notices", messages.len());
            for (notice, step) in messages.iter().zip(1_u32..) {
                ensure!(notice["method"] == "notifications/progress", "a notice of something else: {notice}");
                let params = &notice["params"];
                ensure!(params["progressToken"] == 1, "progress under another token: {notice}");
                ensure!(params["progress"].as_f64() == Some(step.into()), "progress is not {step}: {notice}");
            }
        } else {
            ensure!(messages.is_empty(), "messages before the answer");
        }
        self.judge_response(&response)
    }

    fn judge_response(&self, answer: &Value) -> Result<u64> {
        ensure!(answer["jsonrpc"] == "2.0", "jsonrpc is not 2.0");
        ensure!(answer.get("error").is_none(), "it is an error");
        let result = &answer["result"];
        ensure!(result.is_object(), "it has no result");
        if self.question.era == Era::Modern {
            ensure!(result["resultType"] == "complete", "resultType is not complete");
        }
        match self.question.ask {
            Ask::Echo | Ask::Progress | Ask::Slow => {
                ensure!(result["isError"] != true, "isError");
                let content = result["content"].as_array().context("no content")?;
                ensure!(content.len() == 1 && content[0]["type"] == "text", "the content is not one text");
                ensure!(content[0]["text"] == self.question.text, "the text differs");
            }
            Ask::List => {
                let tools = result["tools"].as_array().context("no tools")?;
                ensure!(tools.len() == self.question.tools, "{} tools", tools.len());
                let whole = |t: &Value| t["name"].is_string() && t["inputSchema"]["properties"].is_object();
                ensure!(tools.iter().all(whole), "a tool lacks its name or its schema");
                ensure!(tools.iter().any(|t| t["name"] == "echo"), "no echo");
                ensure!(result.get("nextCursor").is_none_or(Value::is_null), "a page instead of the whole");
            }
            Ask::Discover => {
                let versions = result["supportedVersions"].as_array().context("no supportedVersions")?;
                ensure!(versions.iter().any(|v| v == MODERN), "supportedVersions lacks {MODERN}");
            }
            Ask::Initialize => ensure!(result["protocolVersion"] == LEGACY, "protocolVersion is not {LEGACY}"),
            Ask::Listen => {}
        }
        answer["id"].as_u64().filter(|id| *id >= FIRST_ID).context("the id is none of ours")
    }
}

/// The messages of an event stream; events without data are none.
fn events(stream: &[u8]) -> Result<Vec<Value>> {
    let text = std::str::from_utf8(stream)?.replace("\r\n", "\n");
    let data = |event: &str| {
        let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    };
    let data = text.split("\n\n").map(data).filter(|data| !data.is_empty());
    Ok(data.map(|data| serde_json::from_str(&data)).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use twodoor_benches::Fixed;

    fn question(ask: Ask) -> Question {
        Question { era: Era::Modern, ask, text: "a \"text\"".to_owned(), tools: 100 }
    }

    fn answer(ask: Ask) -> (Form, Vec<u8>) {
        let mut request = question(ask).line();
        let answer = Fixed::new(100).answer(request.with_id(FIRST_ID + 7)).unwrap().unwrap();
        let response = [&answer.head[..], &answer.tail].concat();
        if answer.events.is_empty() {
            return (Form::Json, response);
        }
        (Form::Events, [answer.events.concat(), b"data: ".to_vec(), response, b"\n\n".to_vec()].concat())
    }

    fn replaced(answer: &[u8], old: &str, new: &str) -> Vec<u8> {
        let text = String::from_utf8(answer.to_vec()).unwrap();
        assert!(text.contains(old));
        text.replacen(old, new, 1).into_bytes()
    }

    #[test]
    fn bare_answers_are_right() {
        for ask in [Ask::Echo, Ask::Progress, Ask::List, Ask::Discover] {
            let mut checker = Checker::new(question(ask));
            let (form, answer) = answer(ask);
            for _ in 0..2 {
                assert_eq!(checker.check(form, &answer).unwrap(), FIRST_ID + 7);
            }
        }
    }

    #[test]
    fn wrong_answers_are_found_first_and_later() {
        let cases = [
            (Ask::Echo, "text\\\"", "test\\\""),
            (Ask::Echo, "100000007", "\"10000007\""),
            (Ask::Echo, "\"isError\":false", "\"isError\":true "),
            (Ask::Echo, "\"complete\"", "\"accepted\""),
            (Ask::Progress, "\"progress\":4", "\"progress\":5"),
            (Ask::Progress, "\"progressToken\":1", "\"progressToken\":2"),
            (Ask::Progress, "notifications/progress", "notifications/message"),
            (Ask::List, "\"name\":\"tool_0099\"", "\"mane\":\"tool_0099\""),
            (Ask::Discover, "2026-07-28", "2026-07-29"),
            (Ask::Discover, "\"result\":", "\"error\":1,\"result\":"),
        ];
        for (ask, old, new) in cases {
            let (form, right) = answer(ask);
            let wrong = replaced(&right, old, new);
            let mut checker = Checker::new(question(ask));
            assert!(checker.check(form, &wrong).is_err(), "{new} first");
            checker.check(form, &right).unwrap();
            assert!(checker.check(form, &wrong).is_err(), "{new} later");
        }
    }

    #[test]
    fn a_stream_without_a_notice_is_found() {
        let (form, right) = answer(Ask::Progress);
        let text = String::from_utf8(right).unwrap();
        let wrong = text.split_once("\n\n").unwrap().1;
        assert!(Checker::new(question(Ask::Progress)).check(form, wrong.as_bytes()).is_err());
    }
}
