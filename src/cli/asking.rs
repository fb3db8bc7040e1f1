//! Questions of a tool, put to the person at the terminal.
//!
//! Promises: an answer fits the form that was asked; the end of input is a cancel; what is asked cannot command the
//! terminal. Asks nobody where no terminal is.

use std::io::{BufRead, IsTerminal as _, Write};

use serde_json::{Map, Value, json};
use twodoor::protocol::json::visible;
use twodoor::protocol::schema::{Schema, explain};
use twodoor::protocol::{InputKind, InputRequest, Json};

use super::show;

/// Asks on standard error and reads standard input; may block for ever. The error says why it cannot.
pub(crate) fn on_terminal(request: &InputRequest) -> Result<Value, String> {
    let what = match request.kind {
        InputKind::ElicitForm | InputKind::ElicitUrl => None,
        InputKind::Sample | InputKind::SampleWithTools => Some("a model's answer (sampling)"),
        InputKind::Roots => Some("the client's folders (roots)"),
    };
    if let Some(what) = what {
        return Err(format!("the tool asks for {what}, which a terminal does not have"));
    }
    if !is_possible() {
        let message = shown(request.params.get("message"));
        return Err(format!("the tool asks a question, and there is no terminal to answer on:\n{message}"));
    }
    let mut screen = Screen { input: std::io::stdin().lock(), output: std::io::stderr().lock() };
    screen.ask(request).map_err(|error| format!("the terminal cannot be used: {error}"))
}

/// Whether a person sits at a terminal.
pub(crate) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// A text of the tool's, line by line.
fn shown(text: Option<&Value>) -> String {
    show::lines(text.and_then(Value::as_str).unwrap_or_default())
}

struct Screen<R, W> {
    input: R,
    output: W,
}

/// What a person typed for a field.
enum Typed {
    Value(Value),
    /// Nothing, where nothing is needed.
    Left,
    /// The end of input.
    End,
}

impl<R: BufRead, W: Write> Screen<R, W> {
    fn ask(&mut self, request: &InputRequest) -> std::io::Result<Value> {
        let params = &request.params;
        writeln!(self.output, "{}", shown(params.get("message")))?;
        if request.kind == InputKind::ElicitUrl {
            writeln!(self.output, "  {}", shown(params.get("url")))?;
            return Ok(match self.field("Opened and done", &json!({ "type": "boolean" }), true)? {
                Typed::Value(Value::Bool(true)) => json!({ "action": "accept" }),
                Typed::End => json!({ "action": "cancel" }),
                Typed::Value(_) | Typed::Left => json!({ "action": "decline" }),
            });
        }
        let schema = params.get("requestedSchema").cloned().unwrap_or_default();
        let compiled = Schema::compile(&Json::from(&schema)).ok();
        let empty = Map::new();
        let fields = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required: Vec<&str> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        loop {
            let mut content = Map::new();
            for (name, field) in fields {
                let title = field.get("title").and_then(Value::as_str).unwrap_or(name);
                match self.field(title, field, required.contains(&name.as_str()))? {
                    Typed::Value(value) => drop(content.insert(name.clone(), value)),
                    Typed::Left => {}
                    Typed::End => return Ok(json!({ "action": "cancel" })),
                }
            }
            let content = Value::Object(content);
            let violations = compiled.as_ref().map(|schema| schema.violations(&content)).unwrap_or_default();
            if violations.is_empty() {
                return Ok(json!({ "action": "accept", "content": content }));
            }
            writeln!(self.output, "{}", explain("the answer", &violations))?;
        }
    }

    /// One field, asked for until it can be read.
    fn field(&mut self, title: &str, field: &Value, required: bool) -> std::io::Result<Typed> {
        let kind = field.get("type").and_then(Value::as_str).unwrap_or_default();
        let choices = choices(field);
        if let Some(description) = field.get("description") {
            writeln!(self.output, "{}", shown(Some(description)))?;
        }
        for (number, (_, label)) in choices.iter().enumerate() {
            writeln!(self.output, "  {} {}", number + 1, visible(label.chars()))?;
        }
        let default = field.get("default");
        let hint = match (kind, choices.is_empty()) {
            ("boolean", _) => " [y/n]".to_owned(),
            ("array", _) => " (numbers, with commas)".to_owned(),
            (_, false) => " (a number)".to_owned(),
            ("integer" | "number", _) => format!(" ({kind})"),
            _ => String::new(),
        };
        let otherwise = match (default, required) {
            (Some(default), _) => format!(", empty for {}", visible(default.to_string().chars())),
            (None, false) => ", may be left empty".to_owned(),
            (None, true) => String::new(),
        };
        loop {
            write!(self.output, "{}{hint}{otherwise}: ", visible(title.chars()))?;
            self.output.flush()?;
            let mut line = String::new();
            if self.input.read_line(&mut line)? == 0 {
                writeln!(self.output)?;
                return Ok(Typed::End);
            }
            let typed = line.trim();
            match (typed.is_empty(), default) {
                (true, Some(default)) => return Ok(Typed::Value(default.clone())),
                (true, None) if !required => return Ok(Typed::Left),
                (true, None) => continue,
                (false, _) => {}
            }
            match read(typed, kind, &choices) {
                Some(value) => return Ok(Typed::Value(value)),
                None => writeln!(self.output, "that is no answer here")?,
            }
        }
    }
}

/// What can be chosen, and how it is called.
fn choices(field: &Value) -> Vec<(Value, String)> {
    let of = field.get("items").unwrap_or(field);
    let list = |key: &str| of.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names = list("enumNames");
    let plain = list("enum").into_iter().enumerate();
    let plain = plain.map(|(index, value)| (value.clone(), text(names.get(index).unwrap_or(&value))));
    let titled = list("oneOf").into_iter().chain(list("anyOf"));
    let titled = titled.filter_map(|one| Some((one.get("const")?.clone(), text(one.get("title")?))));
    plain.chain(titled).collect()
}

/// The value that was typed; `None` if it is of another kind.
fn read(typed: &str, kind: &str, choices: &[(Value, String)]) -> Option<Value> {
    let chosen = |typed: &str| {
        let numbered = typed.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
        numbered.or_else(|| choices.iter().find(|(value, _)| value == typed)).map(|(value, _)| value.clone())
    };
    match kind {
        "boolean" => match typed.to_ascii_lowercase().as_str() {
            "y" | "yes" | "true" => Some(true.into()),
            "n" | "no" | "false" => Some(false.into()),
            _ => None,
        },
        "integer" => typed.parse::<i64>().ok().map(Value::from),
        "number" => typed.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from),
        "array" => typed.split(',').map(|one| chosen(one.trim())).collect::<Option<Vec<_>>>().map(Value::from),
        _ if choices.is_empty() => Some(typed.into()),
        _ => chosen(typed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(kind: InputKind, params: Value, typed: &str) -> (Value, String) {
        let mut screen = Screen { input: typed.as_bytes(), output: Vec::new() };
        let answer = screen.ask(&InputRequest { key: "k".to_owned(), kind, params }).unwrap();
        (answer, String::from_utf8(screen.output).unwrap())
    }

    fn form(properties: Value, required: &[&str], typed: &str) -> (Value, String) {
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        ask(InputKind::ElicitForm, json!({ "message": "Delete\n3 \u{1b}files?", "requestedSchema": schema }), typed)
    }

    #[test]
    fn yes_and_no_are_read_until_one_is_typed_and_the_end_cancels() {
        let confirm = || json!({ "confirm": { "type": "boolean", "title": "Yes" } });
        for (typed, answer) in [
            ("y\n", json!({ "action": "accept", "content": { "confirm": true } })),
            ("\nmaybe\nNO\n", json!({ "action": "accept", "content": { "confirm": false } })),
            ("", json!({ "action": "cancel" })),
        ] {
            let (given, screen) = form(confirm(), &["confirm"], typed);
            assert_eq!(given, answer, "{typed:?}");
            assert!(screen.starts_with("Delete\n3 \\u{1b}files?\nYes [y/n]: "), "{screen}");
        }
    }

    #[test]
    fn every_kind_of_field_is_read_as_what_it_is() {
        let fields = json!({
            "a": { "type": "string" },
            "b": { "type": "integer", "default": 7 },
            "c": { "type": "number" },
            "d": { "type": "string", "enum": ["x", "y"], "enumNames": ["Ex", "Why"] },
            "e": { "type": "string", "oneOf": [{ "const": "p", "title": "Pe" }] },
            "f": { "type": "array", "items": { "type": "string", "enum": ["m", "n"] } },
            "g": { "type": "string" },
        });
        let (given, screen) = form(fields, &["a", "d"], "text\n\n1.5\n2\np\n2, m\n\n");
        let content = json!({ "a": "text", "b": 7, "c": 1.5, "d": "y", "e": "p", "f": ["n", "m"] });
        assert_eq!(given, json!({ "action": "accept", "content": content }), "{screen}");
        assert!(screen.contains("  1 Ex\n  2 Why\nd (a number): ") && screen.contains("g, may be left empty: "));
    }

    #[test]
    fn what_does_not_fit_is_explained_and_asked_again() {
        let (given, screen) = form(json!({ "n": { "type": "integer", "maximum": 3 } }), &["n"], "x\n5\n2\n");
        assert_eq!(given["content"], json!({ "n": 2 }));
        assert!(screen.contains("no answer here") && screen.contains("/n: 5 is greater than"), "{screen}");
    }

    #[test]
    fn an_address_is_shown_and_nothing_is_opened() {
        let params = || json!({ "message": "Pay", "url": "https://example.com/pay" });
        for (typed, action) in [("y\n", "accept"), ("n\n", "decline"), ("", "cancel")] {
            let (given, screen) = ask(InputKind::ElicitUrl, params(), typed);
            assert_eq!(given, json!({ "action": action }));
            assert!(screen.starts_with("Pay\n  https://example.com/pay\n"), "{screen}");
        }
    }
}
