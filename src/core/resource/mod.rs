//! What a surface's resources and templates are read from.
//!
//! Promises: what is read is a regular file beneath the declared root, a declared text, or what a
//! declared command writes, each bounded; a template's values choose among what is there and nothing
//! else; what is not there, or may not be known of, is not found. No path of ours is told to a peer,
//! and no read holds up the runtime. Used by the router, and by prompts that show a resource.

mod file;
mod suggest;
mod variables;

use std::collections::HashMap;
use std::path::Path;

use bytes::Bytes;

pub(super) use self::file::{Unreadable, open_and_read};
use self::variables::Variables;
use super::backend::defect;
use super::command::{CommandTool, Refusal};
use super::fill;
use super::outgoing::Outgoing;
use super::process::Exit;
use crate::protocol::{
    Arguments, Caller, Catalog, Completing, Completion, Content, Found, Outcome, RawJson, Reference, ResourceContents,
};
use crate::surface::declaration::{
    self, CommandSource, DeclaredResource, DeclaredTemplate, FileSource, FolderSource, PROMPT_BYTES, Source,
    is_in_sight,
};

/// Longest path that values make, bytes: no system takes a longer one.
const PATH_BYTES: usize = 4096;

/// What is behind the resources and templates of one surface.
#[derive(Debug, Default)]
pub struct Resources {
    by_uri: HashMap<String, Entry>,
    by_template: HashMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    mime_type: Option<String>,
    variables: Variables,
    behind: Behind,
}

#[derive(Debug)]
enum Behind {
    Text(declaration::Template),
    File(FileSource),
    Folder(FolderSource),
    Command(Box<(CommandTool, CommandSource)>),
}

impl From<Source> for Behind {
    fn from(source: Source) -> Self {
        match source {
            Source::Text(text) => Self::Text(text),
            Source::File(file) => Self::File(file),
            Source::Folder(folder) => Self::Folder(folder),
            Source::Command(command) => {
                let tool = CommandTool::new(command.name.clone(), command.run.clone());
                Self::Command(Box::new((tool, command)))
            }
        }
    }
}

impl Resources {
    /// Takes what was declared.
    pub fn new(resources: Vec<DeclaredResource>, templates: Vec<DeclaredTemplate>) -> Self {
        let by_uri = resources.into_iter().map(|declared| {
            let DeclaredResource { uri, mime_type, source } = declared;
            (uri, Entry { mime_type, variables: Variables::none(), behind: source.into() })
        });
        let by_template = templates.into_iter().map(|declared| {
            let DeclaredTemplate { uri_template, mime_type, schema, source } = declared;
            (uri_template, Entry { mime_type, variables: Variables::new(&schema), behind: source.into() })
        });
        Self { by_uri: by_uri.collect(), by_template: by_template.collect() }
    }

    /// Reads what a URI names.
    pub async fn read(&self, uri: &str, found: &Found, catalog: &Catalog, caller: &dyn Caller) -> Outcome {
        let (entry, values) = match found {
            Found::Resource(index) => {
                let published = catalog.resources().get(*index);
                (published.and_then(|published| self.by_uri.get(&published.uri)), &[][..])
            }
            Found::Template { index, variables } => {
                let published = catalog.templates().nth(*index);
                (published.and_then(|p| self.by_template.get(&p.uri_template)), variables.as_slice())
            }
        };
        match entry {
            Some(entry) => entry.read(uri, values, caller).await,
            None => defect(&format!("the resource {uri} is published but has no backend")),
        }
    }

    /// Values for a variable that is being typed.
    pub async fn complete(&self, completing: &Completing) -> Outcome {
        let Reference::Template(template) = &completing.of else { return Outcome::Completed(Completion::default()) };
        let Some(entry) = self.by_template.get(&**template) else {
            return defect(&format!("the template {template} is published but has no backend"));
        };
        let typed = completing.typed.clone();
        let completion = match &entry.behind {
            Behind::Folder(folder) => {
                let folder = folder.clone();
                blocking(move || suggest::files(&folder, &typed)).await
            }
            Behind::File(file) => {
                let (file, variables) = (file.clone(), entry.variables.clone());
                blocking(move || suggest::values(&file, &typed, |value| variables.takes_one(value))).await
            }
            Behind::Text(_) | Behind::Command(_) => Some(Completion::default()),
        };
        completion.map_or_else(|| defect("a folder could not be looked at"), Outcome::Completed)
    }
}

/// Does on a thread of its own what may wait for a disk; `None` if it panicked.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

impl Entry {
    async fn read(&self, uri: &str, values: &[(String, String)], caller: &dyn Caller) -> Outcome {
        let Some(arguments) = self.variables.fit(values) else { return Outcome::NotFound };
        match &self.behind {
            Behind::Text(text) => match fill::fill(text, PROMPT_BYTES, |name| fill::among(values, name)) {
                Ok(text) => self.text(uri, text.as_bytes()),
                Err(fill::TooLong) => Outcome::NotFound,
            },
            Behind::File(file) => match file_path(file, values) {
                Some(path) => self.file(uri, &file.root, path, file.cap).await,
                None => Outcome::NotFound,
            },
            Behind::Folder(folder) => match folder_path(folder, values) {
                Some(path) => self.file(uri, &folder.root, path, folder.cap).await,
                None => Outcome::NotFound,
            },
            Behind::Command(command) => self.command(uri, command, &arguments, caller).await,
        }
    }

    async fn file(&self, uri: &str, root: &Path, path: String, cap: usize) -> Outcome {
        let (name, root) = (path.clone(), root.to_owned());
        match blocking(move || open_and_read(&root, &path, cap)).await {
            Some(Ok(bytes)) => Outcome::Read(vec![contents(uri, self.mime_type.as_deref(), &name, bytes)]),
            Some(Err(why)) => why.outcome(&name),
            None => defect("a file could not be looked at"),
        }
    }

    async fn command(
        &self,
        uri: &str,
        (tool, source): &(CommandTool, CommandSource),
        arguments: &Arguments,
        caller: &dyn Caller,
    ) -> Outcome {
        let prepared = match tool.prepare(arguments) {
            Ok(prepared) => prepared,
            // Whatever the value is, it names nothing here.
            Err(Refusal::Argv(_) | Refusal::Path { .. }) => return Outcome::NotFound,
            Err(refusal) => return tool.refused(&refusal),
        };
        let running = tool.execute(prepared, None, caller);
        let ended = match source.timeout {
            None => running.await,
            Some(time) => match tokio::time::timeout(time, running).await {
                Ok(ended) => ended,
                Err(_) => {
                    let seconds = time.as_secs_f64();
                    let text =
                        format!("{} did not end within {seconds} s and was stopped: try again later", source.name);
                    return Outcome::Failed(Content::text(text));
                }
            },
        };
        let run = match ended {
            Ok(run) => run,
            Err(outcome) => return outcome,
        };
        if matches!(run.exit, Exit::Code(code) if source.missing_codes.contains(&code)) {
            return Outcome::NotFound;
        }
        match tool.report(&run) {
            Outcome::Complete(content) => self.text(uri, content.plain_text().as_bytes()),
            outcome => outcome,
        }
    }

    fn text(&self, uri: &str, text: &[u8]) -> Outcome {
        let mime_type = self.mime_type.as_deref().unwrap_or("text/plain");
        let text = Outgoing::clean(text, usize::MAX).text;
        Outcome::Read(vec![ResourceContents::text(uri, Some(mime_type), text)])
    }
}

/// A file's contents: text if it is UTF-8 without a NUL, else bytes.
pub(super) fn contents(uri: &str, mime_type: Option<&str>, path: &str, bytes: Bytes) -> ResourceContents {
    let told = mime_type.map(str::to_owned).or_else(|| declaration::type_of(path));
    if std::str::from_utf8(&bytes).is_ok() && !bytes.contains(&0) {
        let mime_type = told.unwrap_or_else(|| "text/plain".to_owned());
        return ResourceContents::text(uri, Some(&mime_type), Outgoing::clean(&bytes, usize::MAX).text);
    }
    let mime_type = told.unwrap_or_else(|| "application/octet-stream".to_owned());
    ResourceContents::blob(uri, Some(&mime_type), bytes)
}

/// The path that values make of a template's; `None` if it may not be known of.
fn file_path(file: &FileSource, values: &[(String, String)]) -> Option<String> {
    // A variable of one segment stays one, though a slash can be written %2F; and what was put out of sight by a dot
    // is named by whoever declares it, never by a peer.
    let one_name =
        |(name, value): &(String, String)| is_in_sight(value) && (file.deep.contains(name) || !value.contains('/'));
    if !values.iter().all(one_name) {
        return None;
    }
    fill::fill(&file.path, PATH_BYTES, |name| fill::among(values, name)).ok()
}

fn folder_path(folder: &FolderSource, values: &[(String, String)]) -> Option<String> {
    let path = fill::among(values, "path").filter(|path| folder.matching.takes(path))?;
    let within = folder.path.to_str()?;
    (path.len() <= PATH_BYTES && !path.starts_with('/')).then(|| format!("{within}/{path}"))
}

/// No arguments.
fn no_arguments() -> Option<Arguments> {
    Arguments::new(RawJson::empty_object())
}
