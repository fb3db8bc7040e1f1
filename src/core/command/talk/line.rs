//! One line of a program, read.
//!
//! Promises: strict JSON, one object, the members of its kind and no others; text is clean; a question shows
//! what it is about. A refusal says what was wrong and what was expected, and repeats next to nothing of the line.

use serde_json::{Map, Value, json};

use crate::core::command::report::clean;
use crate::core::form::Form;
use crate::core::outgoing::Outgoing;
use crate::protocol::json::{JsonLimits, is_invisible, shortened};
use crate::protocol::{Catalog, InputKind, Json, LogLevel, Notice, digest};

/// Most bytes of a progress message.
const MESSAGE_BYTES: usize = 1000;
/// Most bytes of a question's text. A longer one is refused: cut, it might ask something else.
const QUESTION_BYTES: usize = 4096;
/// Most bytes of a key, and of a logger's name.
const NAME_BYTES: usize = 64;
/// Most bytes of an address that a person is sent to.
const URL_BYTES: usize = 2048;

const KINDS: &str = "a line has one of the members progress, log, changed, ask";

/// What a program says.
#[derive(Debug)]
pub(super) enum Said {
    /// Something for whoever listens.
    Tell(Notice),
    /// Something that it waits for.
    Ask(Question),
}

/// A question of a program.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) key: String,
    pub(super) kind: InputKind,
    pub(super) params: Value,
    form: Option<Form>,
}

impl Question {
    /// What tells this question from any other: an answer counts for the question that it was given to alone.
    pub(super) fn digest(&self) -> String {
        let whole = json!([self.kind.method(), self.kind.needs(), self.params]);
        digest::of(&Json::from(&whole)).to_string()
    }

    /// The answer as the program reads it. The text says why it is none.
    pub(super) fn answer(&self, given: &Value) -> Result<Value, String> {
        match self.kind {
            InputKind::ElicitForm | InputKind::ElicitUrl => match given.get("action").and_then(Value::as_str) {
                Some("accept") => match &self.form {
                    Some(form) => Ok(json!({ "action": "accept", "content": form.content(given.get("content"))? })),
                    None => Ok(json!({ "action": "accept" })),
                },
                Some(action @ ("decline" | "cancel")) => Ok(json!({ "action": action })),
                _ => Err("its action is none of accept, decline, cancel".to_owned()),
            },
            InputKind::Sample | InputKind::SampleWithTools => {
                let text = |key| given.get(key).is_some_and(Value::is_string);
                let content = given.get("content").is_some_and(|content| content.is_object() || content.is_array());
                match text("role") && content {
                    true => Ok(without_meta(given)),
                    false => Err("it has no role or no content".to_owned()),
                }
            }
            InputKind::Roots => {
                let file = |root: &Value| {
                    root.get("uri").and_then(Value::as_str).is_some_and(|uri| uri.starts_with("file://"))
                };
                match given.get("roots").and_then(Value::as_array).is_some_and(|roots| roots.iter().all(file)) {
                    true => Ok(without_meta(given)),
                    false => Err("its roots are no list of file: addresses".to_owned()),
                }
            }
        }
    }
}

fn without_meta(given: &Value) -> Value {
    let members = given.as_object().into_iter().flatten().filter(|(key, _)| *key != "_meta");
    Value::Object(members.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Reads a line.
pub(super) fn read(line: &[u8], catalog: &Catalog) -> Result<Said, String> {
    let mut value = Json::parse(line, &JsonLimits::default()).map_err(|error| format!("the line is {error}"))?;
    if !clean(&mut value) {
        return Err("a key has invisible characters".to_owned());
    }
    let value = value.to_value();
    let members = value.as_object().ok_or_else(|| format!("the line is not an object: {KINDS}"))?;
    let kinds: Vec<&str> =
        ["progress", "log", "changed", "ask"].into_iter().filter(|kind| members.contains_key(*kind)).collect();
    match kinds[..] {
        ["progress"] => progress(members).map(Said::Tell),
        ["log"] => log(members).map(Said::Tell),
        ["changed"] => changed(members, catalog).map(Said::Tell),
        ["ask"] => ask(members).map(Said::Ask),
        [] => Err(format!("nothing is said: {KINDS}")),
        _ => Err(format!("{} stand together: {KINDS}", kinds.join(" and "))),
    }
}

/// Refuses what a kind of line does not have.
fn only(members: &Map<String, Value>, kind: &str, known: &[&str]) -> Result<(), String> {
    match members.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(format!("{kind} has no member {:?}: it has {}", shortened(key, 64), known.join(", "))),
    }
}

fn text<'m>(members: &'m Map<String, Value>, key: &str) -> Result<Option<&'m str>, String> {
    members.get(key).map(|value| value.as_str().ok_or_else(|| format!("{key} is not a text"))).transpose()
}

fn progress(members: &Map<String, Value>) -> Result<Notice, String> {
    only(members, "progress", &["progress", "total", "message"])?;
    let number =
        |key: &str| members.get(key).map(|v| v.as_f64().ok_or_else(|| format!("{key} is not a number"))).transpose();
    let progress = number("progress")?.ok_or("progress is not a number")?;
    let message = text(members, "message")?.map(|message| Outgoing::clean(message.as_bytes(), MESSAGE_BYTES).text);
    Ok(Notice::Progress { progress, total: number("total")?, message })
}

fn log(members: &Map<String, Value>) -> Result<Notice, String> {
    only(members, "log", &["log", "message", "data", "logger"])?;
    let level = text(members, "log")?.and_then(LogLevel::parse);
    let level = level.ok_or_else(|| format!("log is no level: use one of {}", LogLevel::names()))?;
    let data = match (text(members, "message")?, members.get("data")) {
        (Some(message), None) => Value::from(message),
        (None, Some(data)) => data.clone(),
        _ => return Err("log has both message and data, or neither: give one of them".to_owned()),
    };
    let logger = text(members, "logger")?.map(|logger| shortened(logger, NAME_BYTES));
    Ok(Notice::Log { level, logger, data })
}

fn changed(members: &Map<String, Value>, catalog: &Catalog) -> Result<Notice, String> {
    only(members, "changed", &["changed"])?;
    let uri = text(members, "changed")?.unwrap_or_default();
    match catalog.find(uri) {
        Some(_) => Ok(Notice::Updated { uri: uri.to_owned() }),
        None => Err("changed names no resource of this surface: write its URI as it is listed".to_owned()),
    }
}

fn ask(members: &Map<String, Value>) -> Result<Question, String> {
    let key = text(members, "ask")?.unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if key.is_empty() || key.len() > NAME_BYTES || !key.chars().all(plain) {
        return Err(format!("ask is no key: use 1 to {NAME_BYTES} of A-Z a-z 0-9 _ . -"));
    }
    let ways: Vec<&str> =
        ["schema", "url", "sample", "roots"].into_iter().filter(|way| members.contains_key(*way)).collect();
    let (kind, params, form) = match ways[..] {
        [] | ["schema"] => {
            only(members, "ask by form", &["ask", "message", "schema"])?;
            let message = question(members)?;
            let form = members.get("schema").map_or_else(Form::confirm, Form::read)?;
            if form.schema.to_string().contains(is_invisible) {
                return Err("the schema has invisible characters: the person sees another form than you ask".to_owned());
            }
            (InputKind::ElicitForm, json!({ "message": message, "requestedSchema": form.schema }), Some(form))
        }
        ["url"] => {
            only(members, "ask by url", &["ask", "message", "url"])?;
            (InputKind::ElicitUrl, json!({ "message": question(members)?, "url": url(members)? }), None)
        }
        ["sample"] => {
            only(members, "ask for a sample", &["ask", "sample"])?;
            let (kind, params) = sample(members)?;
            (kind, params, None)
        }
        ["roots"] => {
            only(members, "ask for roots", &["ask", "roots"])?;
            if members.get("roots") != Some(&Value::Bool(true)) {
                return Err("roots is not true".to_owned());
            }
            (InputKind::Roots, json!({}), None)
        }
        _ => return Err(format!("{} stand together: one question asks one thing", ways.join(" and "))),
    };
    Ok(Question { key: key.to_owned(), kind, params, form })
}

/// What a person is asked: whole, and nothing in it that they do not see.
fn question(members: &Map<String, Value>) -> Result<&str, String> {
    let message = text(members, "message")?.filter(|message| !message.trim().is_empty());
    let message = message.ok_or("message is missing: say what is asked")?;
    if message.len() > QUESTION_BYTES {
        return Err(format!("message is longer than {QUESTION_BYTES} bytes: ask shorter"));
    }
    match message.contains(is_invisible) {
        true => Err("message has invisible characters: the person sees another question than you ask".to_owned()),
        false => Ok(message),
    }
}

/// An address that a person may be sent to (2026-07-28 client/elicitation, Safe URL Handling).
fn url(members: &Map<String, Value>) -> Result<&str, String> {
    let url = text(members, "url")?.unwrap_or_default();
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let here = ["localhost", "127.0.0.1", "[::1]"];
    let is_here = here.iter().any(|host| {
        let port = authority.strip_prefix(host).map(|port| port.strip_prefix(':').unwrap_or(port));
        port.is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
    });
    if !(scheme == "https" || (scheme == "http" && is_here)) || authority.is_empty() {
        return Err("url is no https: address".to_owned());
    }
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'\\' | b'`');
    if url.len() > URL_BYTES || authority.contains('@') || !url.bytes().all(plain) {
        return Err(format!("url has a user's name, blanks or other raw characters, or more than {URL_BYTES} bytes"));
    }
    Ok(url)
}

/// The parameters of `sampling/createMessage` (2026-07-28 client/sampling).
fn sample(members: &Map<String, Value>) -> Result<(InputKind, Value), String> {
    let params = members.get("sample").and_then(Value::as_object).ok_or("sample is not an object")?;
    let messages = params.get("messages").and_then(Value::as_array).is_some_and(|messages| {
        let role = |message: &Value| matches!(message.get("role").and_then(Value::as_str), Some("user" | "assistant"));
        !messages.is_empty() && messages.iter().all(|m| role(m) && m.get("content").is_some())
    });
    if !messages || params.get("maxTokens").and_then(Value::as_u64).is_none_or(|most| most == 0) {
        let problem = "sample needs messages, each with role and content, and maxTokens, a whole number above 0";
        return Err(problem.to_owned());
    }
    if params.get("includeContext").is_some_and(|context| context != "none") {
        return Err("sample.includeContext is deprecated and only \"none\" passes: write the context out".to_owned());
    }
    let with_tools = params.contains_key("tools") || params.contains_key("toolChoice");
    let kind = if with_tools { InputKind::SampleWithTools } else { InputKind::Sample };
    Ok((kind, Value::Object(params.clone())))
}
