//! From the list of an MCP server to a surface file: the server as an upstream, pinned by its digest, and a tool for each of its.
//!
//! Promises: a schema stands as the server sent it, but for what nobody sees in its texts; a hint stands as the server's own
//! claim; a tool that the rules refuse is switched off, with the reason. Nothing is called.

use std::path::Path;

use super::name::{self, Names};
use super::sheet::{Drafted, Head, ImportError, Imported, settle};
use super::text::{DESCRIPTION_BYTES, cleaned, cut, one_line, paragraphs};
use super::yaml::{Line, Yaml};
use crate::client::{Listing, Opening};
use crate::protocol::json::shortened;
use crate::protocol::schema::visit;
use crate::protocol::{Era, Json};
use crate::surface::Problem;

/// How the server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    /// A program and its arguments.
    Program(Vec<String>),
    /// An address.
    Url(String),
}

/// A server and what it lists.
#[derive(Debug, Clone)]
pub struct Upstream<'u> {
    /// How it is reached.
    pub reached: Reached,
    /// What it said when it opened.
    pub opening: &'u Opening,
    /// Its whole list.
    pub listing: &'u Listing,
    /// The name for the surface and the upstream, in the place of its own.
    pub name: Option<&'u str>,
}

#[derive(Debug, Clone)]
struct Tool {
    notes: Vec<String>,
    title: Option<String>,
    description: String,
    hints: Vec<(&'static str, bool)>,
    input: Json,
    output: Option<Json>,
    target: String,
}

/// The surface file of a server; of its tools those that `chosen` takes are offered.
pub fn surface(upstream: &Upstream<'_>, chosen: &dyn Fn(&str) -> bool, folder: &Path) -> Result<Imported, ImportError> {
    let own = upstream.opening.server.as_ref();
    let told = upstream.name.or(own.map(|server| server.name.as_str())).unwrap_or("upstream");
    // A package's scope, and the words that all of them have.
    let bare = told.rsplit('/').next().unwrap_or(told);
    let idle: &[&str] = if upstream.name.is_some() { &[] } else { &["mcp", "server", "servers"] };
    let surface = name::of_surface(if bare.is_empty() { told } else { bare }, idle);
    let digest = upstream.listing.digest;
    let Some(digest) = digest.rfc8785.or(digest.sorted_keys) else {
        let problem = "its list holds a number that no canonical form can write, so it cannot be pinned";
        return Err(ImportError::unreadable(problem, "mend the server's schemas"));
    };
    let mut names = Names::default();
    let mut tools = Vec::new();
    for definition in &upstream.listing.tools {
        let Some(original) = definition.get("name").and_then(Json::as_str).filter(|name| chosen(name)) else {
            continue;
        };
        let (tool, off) = Tool::of(definition, original, &surface);
        let name = if off.is_some() { shown(original) } else { names.take(original) };
        tools.push(Drafted { name, of: tool, off });
    }
    let mut imported = settle(&head(upstream, &surface, &digest.to_string()), tools, folder, Tool::lines, Tool::mend)?;
    imported.remarks.extend(upstream.opening.remarks.iter().chain(&upstream.listing.remarks).cloned());
    Ok(imported)
}

fn shown(name: &str) -> String {
    cut(&one_line(name), 60)
}

fn head(upstream: &Upstream<'_>, surface: &str, digest: &str) -> Head {
    let own = upstream.opening.server.as_ref();
    let called = own.map_or_else(
        || "an MCP server without a name".to_owned(),
        |server| format!("the MCP server \"{}\", version \"{}\"", shown(&server.name), shown(&server.version)),
    );
    let comments = vec![
        format!("Imported from {called}. Review it: every text below is that server's own."),
        "- Keep the tools that are needed, and say better what they do: names and descriptions are yours to change."
            .to_owned(),
        "- The digest pins the server's whole list. When it changes, its tools are withheld until you import again."
            .to_owned(),
        "- Each `decide:` is a question. A tool that is switched off says why.".to_owned(),
    ];
    let mut lines = vec![Line::text("surface", surface), Line::text("version", "0.1.0")];
    let instructions = upstream.opening.instructions.as_deref().map(paragraphs).filter(|text| !text.is_empty());
    if let Some(instructions) = instructions {
        lines.push(Line::Comment(
            "decide: these are the server's own instructions; every client would be told them.".to_owned(),
        ));
        lines.push(Line::off(Line::text("instructions", cut(&instructions, DESCRIPTION_BYTES))));
    }
    lines.push(Line::Blank);
    let mut server = Vec::new();
    match &upstream.reached {
        Reached::Program(words) => {
            let words = words.iter().map(|word| Json::String(word.replace('{', "{{").replace('}', "}}")));
            server.push(Line::value("run", Json::Array(words.collect())));
            server.push(Line::Comment(
                "decide: which of this machine's variables it may see. Many programs want HOME.".to_owned(),
            ));
            server.push(Line::value("env", Json::Array(vec![Json::String("HOME".to_owned())])));
        }
        Reached::Url(url) => {
            server.push(Line::text("url", url.clone()));
            if super::openapi::is_private(url) {
                server.push(Line::Comment("decide: the server is on this machine or a private network.".to_owned()));
                server.push(Line::flag("allow_private", true));
            }
            server.push(Line::Comment("decide: a secret that it wants, by the name of a variable.".to_owned()));
            let header = ("Authorization".to_owned(), Json::String("Bearer ${TOKEN}".to_owned()));
            server.push(Line::off(Line::value("headers", Json::Object(vec![header]))));
        }
    }
    server.push(Line::text("digest", digest));
    let era = upstream.opening.revision.era();
    if era == Era::Legacy {
        server.push(Line::Comment(
            "It has the legacy door alone; clients of either era are served all the same.".to_owned(),
        ));
        server.push(Line::text("era", "legacy"));
    }
    let servers = vec![Line::Entry(surface.to_owned(), Yaml::Map(server))];
    lines.push(Line::Entry("upstreams".to_owned(), Yaml::Map(servers)));
    Head { comments, lines }
}

impl Tool {
    /// The tool, and why it cannot be offered.
    fn of(definition: &Json, original: &str, upstream: &str) -> (Self, Option<String>) {
        let told = |key: &str| definition.get(key).and_then(Json::as_str).unwrap_or_default();
        let mut notes = Vec::new();
        let mut off = None;
        let (description, hidden) = cleaned(told("description"));
        let mut hidden = hidden || cleaned(told("title")).1;
        let description = paragraphs(&description);
        if description.len() > DESCRIPTION_BYTES {
            notes.push(format!("decide: its description was cut; the server's has {} bytes.", description.len()));
        }
        if description.is_empty() {
            notes.push("decide: the server says nothing of it; write what it does, for models.".to_owned());
        }
        let object = || Json::Object(vec![("type".to_owned(), Json::String("object".to_owned()))]);
        let input = definition.get("inputSchema").cloned().unwrap_or_else(object);
        let input = undated(visible_texts(&input, &mut hidden));
        let output = definition.get("outputSchema").map(|schema| undated(visible_texts(schema, &mut hidden)));
        if hidden {
            notes.push(
                "decide: characters that nobody sees were taken out of its texts. Ask why they are there.".to_owned(),
            );
        }
        if original.is_empty() || cleaned(original).1 {
            off = Some(format!("its name \"{}\" is empty or has characters that nobody sees", shortened(original, 60)));
        }
        let description = if description.is_empty() { format!("Calls {original} of {upstream}.") } else { description };
        let tool = Self {
            notes,
            title: Some(one_line(told("title"))).filter(|title| !title.is_empty()),
            description: cut(&description, DESCRIPTION_BYTES),
            hints: hints(definition),
            input,
            output,
            target: format!("{upstream}/{}", cleaned(original).0),
        };
        (tool, off)
    }

    fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = self.notes.iter().cloned().map(Line::Comment).collect();
        lines.extend(self.title.iter().map(|title| Line::text("title", title.clone())));
        lines.push(Line::text("description", self.description.clone()));
        if self.hints.is_empty() {
            lines.push(Line::Comment(
                "decide: the server says nothing of its effects. Uncomment what you know.".to_owned(),
            ));
            lines.push(Line::off(Line::flag("read_only", true)));
            lines.push(Line::off(Line::flag("reversible", false)));
        } else {
            lines.push(Line::Comment("decide: these hints are the server's claims. Are they true?".to_owned()));
            lines.extend(self.hints.iter().map(|(key, value)| Line::flag(key, *value)));
        }
        lines.push(Line::value("inputSchema", self.input.clone()));
        lines.extend(self.output.iter().map(|schema| Line::value("outputSchema", schema.clone())));
        lines.push(Line::text("upstream", self.target.clone()));
        lines
    }

    /// What an output schema breaks ends with it: the result is passed on all the same.
    fn mend(&mut self, problem: &Problem, _: &str) -> bool {
        if problem.message.contains("outputSchema") || problem.rule == "output-schema" {
            let why = format!("Its outputSchema is left out: {} ({}).", problem.message, problem.rule);
            return self.output.take().is_some_and(|_| {
                self.notes.push(why);
                true
            });
        }
        false
    }
}

/// What the annotations claim, in the words of a surface file.
fn hints(definition: &Json) -> Vec<(&'static str, bool)> {
    let claimed = |key: &str| match definition.get("annotations").and_then(|annotations| annotations.get(key)) {
        Some(Json::Bool(value)) => Some(*value),
        _ => None,
    };
    let destructive = claimed("destructiveHint");
    let mut hints = Vec::new();
    match (claimed("readOnlyHint"), destructive) {
        // The two contradict each other: the cautious one stands.
        (Some(true), Some(true)) => hints.push(("reversible", false)),
        (Some(true), _) => hints.push(("read_only", true)),
        (_, Some(destructive)) => hints.push(("reversible", !destructive)),
        _ => {}
    }
    hints.extend(claimed("idempotentHint").map(|value| ("idempotent", value)));
    hints.extend(claimed("openWorldHint").map(|value| ("open_world", value)));
    hints
}

/// A schema without the dialect that it names, where it means the same in the one that is understood: some clients refuse
/// older ones.
fn undated(schema: Json) -> Json {
    const KNOWN: [&str; 3] = [
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/schema",
    ];
    let dialect = schema.get("$schema").and_then(Json::as_str).map(|dialect| dialect.trim_end_matches('#'));
    if !dialect.is_some_and(|dialect| KNOWN.contains(&dialect)) || means_otherwise(&schema) {
        return schema;
    }
    match schema {
        Json::Object(members) => Json::Object(members.into_iter().filter(|(key, _)| key != "$schema").collect()),
        other => other,
    }
}

/// Whether a schema has what draft-07 and 2020-12 read differently: lists of `items`, `dependencies`, words beside `$ref`.
fn means_otherwise(schema: &Json) -> bool {
    let mut found = false;
    visit(schema, "", 0, &mut |_, _, _, schema| {
        let lists = matches!(schema.get("items"), Some(Json::Array(_)));
        let beside = schema.get("$ref").is_some() && schema.as_object().is_some_and(|members| members.len() > 1);
        found |= lists || beside || schema.get("dependencies").is_some() || schema.get("$id").is_some();
        !found
    });
    found
}

/// A value with what nobody sees taken out of its texts; its keys stay as they are.
fn visible_texts(value: &Json, hidden: &mut bool) -> Json {
    match value {
        Json::String(text) => {
            let (text, found) = cleaned(text);
            *hidden |= found;
            Json::String(text)
        }
        Json::Array(items) => Json::Array(items.iter().map(|item| visible_texts(item, hidden)).collect()),
        Json::Object(members) => {
            let members = members.iter().map(|(key, member)| (key.clone(), visible_texts(member, hidden)));
            Json::Object(members.collect())
        }
        other => other.clone(),
    }
}
