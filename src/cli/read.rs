//! `twodoor read` and `twodoor prompt`: a resource or a prompt from the shell, as a client would receive it.

use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use twodoor::core::Router;
use twodoor::protocol::{Body, Catalog, Limits, Operation, Outcome, Piece, PromptMessage, ResourceContents};

use super::{carry, exit, show};

/// Reads one resource of a surface
#[derive(clap::Args)]
#[command(after_help = "Bytes that are no text are written as they are, but not to a terminal.\n\n\
    Examples:\n  twodoor read notes:///welcome --surface examples/notes.yaml\n  \
    twodoor read notes:all/welcome.md --surface examples/notes.yaml --json\n\n\
    Exits with 1 if there is nothing to read.")]
pub(crate) struct Read {
    /// The resource's address
    uri: String,
    /// The surface file
    #[arg(long, short, value_name = "SURFACE", default_value = super::DEFAULT_SURFACE)]
    surface: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Shows what one prompt of a surface comes to
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  twodoor prompt plan --surface examples/notes.yaml --json\n\n\
    Exits with 1 if the prompt does not come about.")]
pub(crate) struct Prompt {
    /// The prompt
    prompt: String,
    /// Its arguments
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,
    /// The surface file
    #[arg(long, short, value_name = "SURFACE", default_value = super::DEFAULT_SURFACE)]
    surface: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A surface that is read from: its catalog, and what stands behind it.
fn open(path: &std::path::Path) -> Result<(Arc<Catalog>, Router), ExitCode> {
    let loaded = show::load(path)?;
    let router = Router::of(&loaded);
    Ok((Arc::new(Catalog::build(loaded.parts).map_err(|_| exit::surface())?), router))
}

impl Read {
    pub(crate) fn run(self) -> ExitCode {
        self.read().unwrap_or_else(|code| code)
    }

    fn read(&self) -> Result<ExitCode, ExitCode> {
        let (catalog, router) = open(&self.surface)?;
        if let Some(contents) = catalog.skill_file(&self.uri) {
            return Ok(self.print(std::slice::from_ref(contents)));
        }
        let Some(found) = catalog.find(&self.uri) else {
            let names = catalog.resources().iter().map(|resource| resource.uri.clone());
            let templates = catalog.templates().map(|template| template.uri_template.clone());
            let skills = catalog.skills().map(str::to_owned);
            let all: Vec<String> = names.chain(templates).chain(skills).take(20).collect();
            let problem = format!("the surface has no resource {:?}", self.uri);
            show::error(&problem, &show::meant(&self.uri, &all, "its resources are"));
            return Err(exit::usage());
        };
        let operation = Operation::Read { uri: self.uri.clone().into(), found };
        match carry::out(&router, &catalog, operation, Limits::default().deadline, false)? {
            Some(Outcome::Read(contents)) => Ok(self.print(&contents)),
            outcome => Err(carry::failed(outcome)),
        }
    }

    fn print(&self, contents: &[ResourceContents]) -> ExitCode {
        if self.json {
            let contents: Vec<Value> = contents.iter().map(contents_json).collect();
            show::out(&format!("{:#}\n", json!({ "contents": contents })));
            return ExitCode::SUCCESS;
        }
        for part in contents {
            match &part.body {
                Body::Text(text) => show::out(&show::ended(text)),
                Body::Blob(bytes) if std::io::stdout().is_terminal() => {
                    show::error(
                        &format!("{} bytes that are no text", bytes.len()),
                        "write them to a file: add `> FILE`",
                    );
                    return exit::differs();
                }
                Body::Blob(bytes) => {
                    let mut stdout = std::io::stdout().lock();
                    if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
                        return exit::differs();
                    }
                }
            }
        }
        ExitCode::SUCCESS
    }
}

impl Prompt {
    pub(crate) fn run(self) -> ExitCode {
        self.say().unwrap_or_else(|code| code)
    }

    fn say(&self) -> Result<ExitCode, ExitCode> {
        let (catalog, router) = open(&self.surface)?;
        let Some(prompt) = catalog.prompt(&self.prompt) else {
            let names: Vec<String> = catalog.prompts().iter().map(|prompt| prompt.name.clone()).collect();
            let problem = format!("the surface has no prompt {:?}", self.prompt);
            show::error(&problem, &show::meant(&self.prompt, &names, "its prompts are"));
            return Err(exit::usage());
        };
        let known: Vec<String> = prompt.arguments.iter().map(|argument| argument.name.clone()).collect();
        let mut arguments: Vec<(Box<str>, String)> = Vec::new();
        for pair in &self.arguments {
            let (problem, remedy) = match pair.split_once('=') {
                None => (format!("{pair:?} is no argument"), "write key=value".to_owned()),
                Some((key, _)) if !known.iter().any(|name| name == key) => {
                    let remedy = show::meant(key, &known, "its arguments are");
                    (format!("{} has no argument {key:?}", self.prompt), remedy)
                }
                Some((key, _)) if arguments.iter().any(|(name, _)| &**name == key) => {
                    (format!("{key} is given twice"), "give each argument once".to_owned())
                }
                Some((key, value)) => {
                    arguments.push((key.into(), value.to_owned()));
                    continue;
                }
            };
            show::error(&problem, &remedy);
            return Err(exit::usage());
        }
        let given = |name: &str| arguments.iter().any(|(key, _)| &**key == name);
        if let Some(missing) = prompt.arguments.iter().find(|argument| argument.required && !given(&argument.name)) {
            show::error(&format!("{} needs {}", self.prompt, missing.name), &format!("write {}=VALUE", missing.name));
            return Err(exit::usage());
        }
        let operation = Operation::Prompt { name: self.prompt.clone().into(), arguments };
        match carry::out(&router, &catalog, operation, Limits::default().deadline, false)? {
            Some(Outcome::Prompted(prompted)) => {
                if self.json {
                    let messages: Vec<Value> = prompted.messages.iter().map(message_json).collect();
                    let said = json!({ "description": prompted.description, "messages": messages });
                    show::out(&format!("{said:#}\n"));
                } else {
                    let said: Vec<String> = prompted.messages.iter().map(message_text).collect();
                    show::out(&said.join("\n"));
                }
                Ok(ExitCode::SUCCESS)
            }
            outcome => Err(carry::failed(outcome)),
        }
    }
}

fn contents_json(contents: &ResourceContents) -> Value {
    let ResourceContents { uri, mime_type, body, .. } = contents;
    match body {
        Body::Text(text) => json!({ "uri": uri, "mimeType": mime_type, "text": text }),
        Body::Blob(bytes) => json!({ "uri": uri, "mimeType": mime_type, "bytes": bytes.len() }),
    }
}

fn message_json(PromptMessage { role, block }: &PromptMessage) -> Value {
    let said = match &block.piece {
        Piece::Text(text) => json!({ "type": "text", "text": text }),
        Piece::Image { data, mime_type } => json!({ "type": "image", "mimeType": mime_type, "bytes": data.len() }),
        Piece::Audio { data, mime_type } => json!({ "type": "audio", "mimeType": mime_type, "bytes": data.len() }),
        Piece::Resource(contents) => json!({ "type": "resource", "resource": contents_json(contents) }),
        Piece::Link(link) => json!({ "type": "resource_link", "uri": link.uri, "name": link.name }),
    };
    json!({ "role": role.name(), "content": said })
}

fn message_text(PromptMessage { role, block }: &PromptMessage) -> String {
    format!("{}:\n{}", role.name(), show::ended(&show::block(block)))
}
