//! Judges recorded messages by the specification's JSON schemas: `judge SCHEMAS MESSAGES WRONG`.
//!
//! `MESSAGES` is a folder of what `tests/support/record.rs` wrote. `WRONG` holds messages in the same form, most of
//! them wrong on purpose: one that is not reported with its reason fails the run, so a check that finds nothing shows.

#![allow(
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a program of the tests: it prints, and it indexes JSON, which gives null for what is absent"
)]

mod official;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use official::Schema;
use serde_json::Value;
use twodoor::protocol::{Era, Revision};

/// Extensions whose messages are not in the core schema: the first word of their methods, their kind of result.
const EXTENSIONS: [(&str, &str); 2] = [("tasks", "task"), ("skills", "skills")];

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [schemas, messages, wrong] = arguments.as_slice() else {
        anyhow::bail!("usage: judge SCHEMAS MESSAGES WRONG");
    };
    let judge = Judge::read(schemas)?;
    judge.prove(wrong)?;
    let mut tally = Tally::default();
    for line in lines(messages)? {
        tally.count(&judge, &line)?;
    }
    tally.tell()
}

/// What the schema says of a message.
enum Verdict {
    Valid,
    Invalid(Vec<String>),
    /// It belongs to an extension, of which there is no schema here.
    NoSchema(String),
}

struct Judge {
    schemas: BTreeMap<Revision, Schema>,
}

impl Judge {
    fn read(folder: &Path) -> anyhow::Result<Self> {
        let read =
            |revision: Revision| Ok((revision, Schema::read(&folder.join(revision.name()).with_extension("json"))?));
        Ok(Self { schemas: Revision::ALL.into_iter().map(read).collect::<anyhow::Result<_>>()? })
    }

    /// Judges a line of a recording.
    fn judge(&self, line: &Value) -> anyhow::Result<Verdict> {
        let named = line["revision"].as_str().unwrap_or_default();
        let revision = Revision::parse(named).ok().with_context(|| format!("{named:?} is no revision"))?;
        let schema = self.schemas.get(&revision).context("a revision without a schema")?;
        let (message, asked) = (&without_extensions(revision, &line["message"]), &line["asked"]);
        // The schema of the oldest revision knows no arrays, but they are JSON-RPC 2.0, which it builds on.
        if line["batch"] == true && !revision.rules().batches {
            return Ok(Verdict::Invalid(vec!["an array of messages, which this revision does not know".to_owned()]));
        }
        if let Some(method) = message["method"].as_str() {
            return Ok(match schema.message_problems(method, message)? {
                Some(mut problems) => {
                    problems.extend(schema.unknown_metadata(&message["params"]["_meta"]));
                    problems.into()
                }
                None if extension(revision, Some(method), None) => Verdict::NoSchema(method.to_owned()),
                None => Verdict::Invalid(vec![format!("a server of this revision says nothing by {method:?}")]),
            });
        }
        if message.get("error").is_some() {
            return self.error(schema, message);
        }
        let Some(result) = message.get("result") else {
            return Ok(Verdict::Invalid(vec!["neither a request, a notification nor a response".to_owned()]));
        };
        let Some(method) = asked["method"].as_str() else {
            return Ok(Verdict::Invalid(vec!["a result of nothing that was asked".to_owned()]));
        };
        let response = schema.of_response().context("no definition of a response")?;
        let mut problems = schema.published_problems(response, message)?;
        problems.extend(schema.unknown_members(response, message));
        problems.extend(schema.unknown_metadata(&result["_meta"]));
        let kind = result["resultType"].as_str();
        if extension(revision, Some(method).filter(|method| !schema.is_asked(method)), kind) {
            let what = format!("an answer to {method} with resultType {}", result["resultType"]);
            return Ok(if problems.is_empty() { Verdict::NoSchema(what) } else { problems.into() });
        }
        let definition = match kind {
            Some("input_required") if schema.may_ask_back(method) => Some("InputRequiredResult".to_owned()),
            _ if asked["task"] == true && result.get("task").is_some() && schema.has("CreateTaskResult") => {
                Some("CreateTaskResult".to_owned())
            }
            _ => schema.of_result(method),
        };
        let core = |kind: &str| ["complete", "input_required"].contains(&kind);
        problems.extend(kind.filter(|kind| !core(kind)).map(|kind| format!("no core resultType: {kind:?}")));
        match definition {
            Some(definition) => problems.extend(schema.problems(&definition, result)?),
            None => problems.push(format!("a result of {method:?}, a method that this revision does not have")),
        }
        Ok(problems.into())
    }

    fn error(&self, schema: &Schema, message: &Value) -> anyhow::Result<Verdict> {
        let code = message["error"]["code"].as_i64().unwrap_or_default();
        let definition = schema.of_error(code).context("no definition of an error response")?;
        // Before 2025-11-25 the schema demands an id where JSON-RPC has none to give: a message that could not be
        // read. It is left out in every revision, and judged by the first schema that lets it be.
        if message.get("id").is_none() && schema.demands(definition, "id") {
            let schema =
                self.schemas.get(&Revision::NEWEST_LEGACY).context("no schema of the newest legacy revision")?;
            let definition = schema.of_error(code).context("no definition of an error response")?;
            return Ok(schema.problems(definition, message)?.into());
        }
        Ok(schema.problems(definition, message)?.into())
    }

    /// Shows that what is wrong is reported: every line of a file has a text that a reason for it must contain,
    /// or `null` if it is valid, or `false` if there is no schema for it.
    fn prove(&self, file: &Path) -> anyhow::Result<()> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let mut reported = 0;
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
            let told = match (self.judge(&line)?, &line["reason"]) {
                (Verdict::Valid, Value::Null) | (Verdict::NoSchema(_), Value::Bool(false)) => continue,
                (Verdict::Invalid(problems), Value::String(reason)) if problems.iter().any(|p| p.contains(reason)) => {
                    reported += 1;
                    continue;
                }
                (Verdict::Valid, _) => "it is taken for valid".to_owned(),
                (Verdict::Invalid(problems), _) => problems.join("\n"),
                (Verdict::NoSchema(why), _) => format!("no schema: {why}"),
            };
            anyhow::bail!("this check does not check: expected {} of\n{line}\nbut {told}", line["reason"]);
        }
        anyhow::ensure!(reported > 0, "{} holds nothing that is wrong", file.display());
        println!("{reported} messages that are wrong on purpose are reported");
        Ok(())
    }
}

impl From<Vec<String>> for Verdict {
    fn from(problems: Vec<String>) -> Self {
        if problems.is_empty() { Self::Valid } else { Self::Invalid(problems) }
    }
}

/// Whether a method, or a kind of result, is an extension's. Extensions are of the modern era.
fn extension(revision: Revision, method: Option<&str>, kind: Option<&str>) -> bool {
    let bare = method.map(|method| method.strip_prefix("notifications/").unwrap_or(method));
    let of = |(methods, result): &(&str, &str)| {
        bare.and_then(|bare| bare.split('/').next()) == Some(*methods) || kind == Some(*result)
    };
    let folder = method == Some("resources/directory/read");
    revision.era() == Era::Modern && (folder || EXTENSIONS.iter().any(of))
}

/// A message without what an extension adds to one of the core: the tasks that a subscription was granted.
fn without_extensions(revision: Revision, message: &Value) -> Value {
    let mut message = message.clone();
    if revision.era() == Era::Modern && message["method"] == "notifications/subscriptions/acknowledged" {
        let granted = message.pointer_mut("/params/notifications").and_then(Value::as_object_mut);
        if let Some(granted) = granted.filter(|granted| granted.get("taskIds").is_some_and(Value::is_array)) {
            granted.remove("taskIds");
        }
    }
    message
}

/// Every line of every file of a folder.
fn lines(folder: &Path) -> anyhow::Result<Vec<Value>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(|| folder.display().to_string())?
        .map(|entry| Ok(entry?.path()))
        .collect::<anyhow::Result<_>>()?;
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        for line in text.lines() {
            all.push(serde_json::from_str(line).with_context(|| file.display().to_string())?);
        }
    }
    Ok(all)
}

#[derive(Default)]
struct Tally {
    valid: BTreeMap<String, usize>,
    /// What was said, and where: the same in several ways of playing is told once.
    invalid: BTreeMap<String, BTreeSet<String>>,
    invalid_messages: usize,
    no_schema: BTreeMap<String, usize>,
}

impl Tally {
    fn count(&mut self, judge: &Judge, line: &Value) -> anyhow::Result<()> {
        let revision = line["revision"].as_str().unwrap_or_default();
        match judge.judge(line)? {
            Verdict::Valid => *self.valid.entry(revision.to_owned()).or_default() += 1,
            Verdict::NoSchema(why) => *self.no_schema.entry(format!("{revision}: {why}")).or_default() += 1,
            Verdict::Invalid(problems) => {
                self.invalid_messages += 1;
                let message: String = line["message"].to_string().chars().take(1000).collect();
                let reasons = problems.join("\n    ");
                let report = format!("as {revision}, asked {}\n    {message}\n    {reasons}", line["asked"]["method"]);
                let place = |member: &str| line[member].as_str().unwrap_or_default().to_owned();
                self.invalid.entry(format!("{} {report}", place("transcript"))).or_default().insert(place("way"));
            }
        }
        Ok(())
    }

    fn tell(&self) -> anyhow::Result<ExitCode> {
        for (report, ways) in &self.invalid {
            let ways: Vec<_> = ways.iter().map(String::as_str).collect();
            println!("INVALID over {}: {report}", ways.join(", "));
        }
        for (what, count) in &self.no_schema {
            println!("no schema: {count} of {what}");
        }
        for revision in Revision::ALL {
            let name = revision.name();
            let count = self.valid.get(name).copied().unwrap_or_default();
            // A recording of some transcripts need not hold every revision; one of all that does not is broken.
            anyhow::ensure!(
                count > 0 || self.invalid_messages > 0 || std::env::var_os("ONLY").is_some(),
                "no message of {name} was recorded"
            );
            println!("  {name}: {count} valid");
        }
        let valid: usize = self.valid.values().sum();
        let unknown: usize = self.no_schema.values().sum();
        println!("{valid} messages valid, {} invalid, {unknown} without a schema", self.invalid_messages);
        Ok(if self.invalid_messages == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
