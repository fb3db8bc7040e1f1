//! What a modern upstream asks while it serves a call, passed on to our own caller.
//!
//! Promises: forms alone are passed on, checked, cleaned and in the name of the upstream; an answer holds what was asked
//! and nothing else, and goes to the very call that asked; what the upstream wants to be told again never leaves this
//! process. Memory is bounded by what waits and how long.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use crate::client::Answers;
use crate::core::command::report::clean;
use crate::core::form::Form;
use crate::core::redact::Secrets;
use crate::protocol::json::{JsonLimits, shortened};
use crate::protocol::limits::SEALED_STATE_LIFE;
use crate::protocol::{Ask, InputKind, InputRequest, Json, RawJson};

/// Calls of one upstream that wait for an answer; the oldest gives way.
const WAITING: usize = 64;
/// Most bytes of what is asked at once.
const ASKED_BYTES: usize = 64 * 1024;
/// Most questions at once.
const QUESTIONS: usize = 8;
/// Most bytes of a question's text.
const MESSAGE_BYTES: usize = 2000;

/// A call that waits for its answers.
struct Waiting {
    number: String,
    since: Instant,
    /// What the upstream wants to be told again.
    state: Option<String>,
    /// Its keys, and the forms under them.
    forms: Vec<(String, Form)>,
}

/// The calls of one upstream that wait for answers.
#[derive(Default)]
pub(super) struct Questions(Mutex<Vec<Waiting>>);

impl Questions {
    /// Keeps what a call asks; gives what to ask our caller. An error is a text for the model.
    pub(super) fn ask(&self, upstream: &str, result: &RawJson, secrets: &Secrets) -> Result<Ask, String> {
        let (requests, waiting) = read(upstream, result, secrets)
            .map_err(|why| format!("{upstream} asks something that is not passed on: {why}"))?;
        let state = json!({ "upstream": waiting.number });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|waiting| waiting.since.elapsed() < SEALED_STATE_LIFE);
        if all.len() >= WAITING {
            all.remove(0);
        }
        all.push(waiting);
        Ok(Ask { requests, state: Some(state) })
    }

    /// What to tell the upstream of our caller's answers; `None` where nothing that it asked is known any more, so that
    /// the call begins anew. An error is a text for the model.
    pub(super) fn answered(
        &self,
        state: Option<&Value>,
        answers: &[(Box<str>, RawJson)],
    ) -> Result<Option<Answers>, String> {
        let Some(number) = state.and_then(|state| state.get("upstream")?.as_str()) else { return Ok(None) };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = all.iter().position(|waiting| waiting.number == number) else { return Ok(None) };
        let Waiting { state, forms, .. } = all.remove(at);
        drop(all);
        let mut responses = BTreeMap::new();
        for (number, (theirs, form)) in forms.into_iter().enumerate() {
            let ours = key(number);
            let answer = answers.iter().find(|(key, _)| **key == *ours).and_then(|(_, raw)| raw.parse::<Value>().ok());
            // What was not answered is asked again.
            let Some(answer) = answer else { continue };
            let response = match answer.get("action").and_then(Value::as_str) {
                Some("accept") => {
                    let content = form.content(answer.get("content"));
                    let content = content.map_err(|why| format!("the answer {ours:?} does not fit its form: {why}"))?;
                    json!({ "action": "accept", "content": content })
                }
                Some("decline") => json!({ "action": "decline" }),
                _ => json!({ "action": "cancel" }),
            };
            responses.insert(theirs, response);
        }
        Ok(Some(Answers { responses: RawJson::encode(&responses), state: state.map(|state| RawJson::encode(&state)) }))
    }
}

/// Ours: what the upstream calls its questions is nobody's business.
fn key(number: usize) -> String {
    format!("question-{}", number.saturating_add(1))
}

fn read(upstream: &str, result: &RawJson, secrets: &Secrets) -> Result<(Vec<InputRequest>, Waiting), String> {
    if result.as_bytes().len() > ASKED_BYTES {
        return Err(format!("it is more than {ASKED_BYTES} bytes"));
    }
    let unreadable = |error| secrets.clean(&format!("it cannot be read strictly: {error}"));
    let value = Json::parse(result.as_bytes(), &JsonLimits::default()).map_err(unreadable)?;
    let asked = match value.get("inputRequests") {
        Some(Json::Object(asked)) if (1..=QUESTIONS).contains(&asked.len()) => asked,
        _ => return Err(format!("from 1 to {QUESTIONS} questions are")),
    };
    let state = match value.get("requestState") {
        None => None,
        Some(Json::String(state)) => Some(state.clone()),
        Some(_) => return Err("its requestState is no text".to_owned()),
    };
    let mut requests = Vec::new();
    let mut forms = Vec::new();
    for (number, (theirs, question)) in asked.iter().enumerate() {
        let (params, form) = form(upstream, question, secrets)?;
        requests.push(InputRequest { key: key(number), kind: InputKind::ElicitForm, params });
        forms.push((theirs.clone(), form));
    }
    // Nobody else's number leads to it, and none leads to it twice.
    let number = getrandom::u64().map_err(|_| "this machine gives no randomness".to_owned())?;
    Ok((requests, Waiting { number: format!("{number:016x}"), since: Instant::now(), state, forms }))
}

fn form(upstream: &str, question: &Json, secrets: &Secrets) -> Result<(Value, Form), String> {
    let text = |of: &Json, key: &str| of.get(key).and_then(Json::as_str).map(str::to_owned);
    let method = text(question, "method").unwrap_or_default();
    if method != InputKind::ElicitForm.method() {
        return Err(format!("{:?} is not, a form is", shortened(&method, 64)));
    }
    let params = question.get("params").unwrap_or(&Json::Null);
    if text(params, "mode").is_some_and(|mode| mode != "form") {
        return Err("an address is not, a form is".to_owned());
    }
    let mut schema = params.get("requestedSchema").cloned().unwrap_or(Json::Null);
    if !clean(&mut schema) {
        return Err("its form has invisible characters in a key".to_owned());
    }
    secrets.clean_json(&mut schema);
    let form = Form::read(&schema.to_value())?;
    let message = text(params, "message").unwrap_or_default();
    let message = secrets.outgoing(message.as_bytes(), MESSAGE_BYTES).text;
    // A person has to know who asks (2026-07-28 client/elicitation, User Interaction Model).
    let message = format!("The server \"{}\" asks: {message}", shortened(upstream, 128));
    Ok((json!({ "message": message, "requestedSchema": form.schema }), form))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: &Value) -> RawJson {
        RawJson::encode(value)
    }

    fn asking(question: &Value) -> RawJson {
        raw(
            &json!({ "resultType": "input_required", "inputRequests": { "theirs": question }, "requestState": "inner" }),
        )
    }

    fn form(message: &str) -> Value {
        let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
        json!({ "method": "elicitation/create", "params": { "mode": "form", "message": message, "requestedSchema": schema } })
    }

    fn asked(questions: &Questions, question: &Value) -> Result<Ask, String> {
        questions.ask("up", &asking(question), &Secrets::new(["t0psecret"]))
    }

    fn answers(answer: &Value) -> Vec<(Box<str>, RawJson)> {
        vec![("question-1".into(), raw(answer)), ("other".into(), raw(&json!({ "action": "accept" })))]
    }

    #[test]
    fn a_form_goes_on_in_the_name_of_the_upstream_and_its_state_stays_here() {
        let questions = Questions::default();
        let ask = asked(&questions, &form("who\u{1b} are you, t0psecret?")).unwrap();
        assert_eq!(ask.requests[0].key, "question-1");
        assert_eq!(ask.requests[0].params["message"], "The server \"up\" asks: who are you, [redacted]?");
        assert!(!format!("{ask:?}").contains("inner"), "{ask:?}");
    }

    #[test]
    fn an_answer_goes_back_once_under_their_key_with_what_was_asked_alone() {
        let questions = Questions::default();
        for (answer, expected) in [
            (
                json!({ "action": "accept", "content": { "name": "n", "more": 1 }, "_meta": {} }),
                json!({ "theirs": { "action": "accept", "content": { "name": "n" } } }),
            ),
            (json!({ "action": "decline", "content": { "name": "n" } }), json!({ "theirs": { "action": "decline" } })),
            (json!({}), json!({ "theirs": { "action": "cancel" } })),
        ] {
            let state = asked(&questions, &form("m")).unwrap().state;
            let told = questions.answered(state.as_ref(), &answers(&answer)).unwrap().unwrap();
            assert_eq!(told.responses.parse::<Value>().unwrap(), expected);
            assert_eq!(told.state.unwrap().as_str(), "\"inner\"");
            assert!(questions.answered(state.as_ref(), &answers(&answer)).unwrap().is_none(), "twice");
        }
        let state = asked(&questions, &form("m")).unwrap().state;
        let misfit = questions.answered(state.as_ref(), &answers(&json!({ "action": "accept", "content": {} })));
        assert!(misfit.unwrap_err().contains("does not fit its form"));
        let state = asked(&questions, &form("m")).unwrap().state;
        let nothing = questions.answered(state.as_ref(), &[]).unwrap().unwrap();
        assert_eq!(nothing.responses.as_str(), "{}");
    }

    #[test]
    fn what_is_no_form_or_asks_for_a_secret_is_not_passed_on() {
        let questions = Questions::default();
        let secret = json!({ "type": "object", "properties": { "password": { "type": "string" } } });
        for (question, why) in [
            (json!({ "method": "sampling/createMessage", "params": {} }), "sampling/createMessage"),
            (json!({ "method": "elicitation/create", "params": { "mode": "url", "url": "https://x" } }), "an address"),
            (json!({ "method": "elicitation/create", "params": { "requestedSchema": secret } }), "asks for a secret"),
            (json!({ "method": "elicitation/create" }), "schema is not an object"),
            (json!(7), "a form is"),
        ] {
            let refused = asked(&questions, &question).unwrap_err();
            assert!(refused.starts_with("up asks something that is not passed on: "), "{refused}");
            assert!(refused.contains(why), "{refused}");
        }
        for (result, why) in [
            (json!({ "requestState": "s" }), "from 1 to 8 questions"),
            (json!({ "inputRequests": {} }), "from 1 to 8 questions"),
            (json!({ "inputRequests": { "a": form("m") }, "requestState": 7 }), "no text"),
            (json!({ "inputRequests": { "a": form(&"m".repeat(ASKED_BYTES)) } }), "more than 65536 bytes"),
        ] {
            let refused = questions.ask("up", &raw(&result), &Secrets::default()).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        assert_eq!(questions.0.lock().unwrap().len(), 0);
    }

    #[test]
    fn the_oldest_of_too_many_that_wait_gives_way_and_its_call_begins_anew() {
        let questions = Questions::default();
        let first = asked(&questions, &form("m")).unwrap().state;
        let last = (0..WAITING).map(|_| asked(&questions, &form("m")).unwrap().state).last().unwrap();
        assert_eq!(questions.0.lock().unwrap().len(), WAITING);
        assert!(questions.answered(first.as_ref(), &[]).unwrap().is_none());
        assert!(questions.answered(last.as_ref(), &[]).unwrap().is_some());
        for forged in [json!({}), json!({ "upstream": 7 }), json!({ "upstream": "0" }), json!(null)] {
            assert!(questions.answered(Some(&forged), &[]).unwrap().is_none());
        }
    }
}
