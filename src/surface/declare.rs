//! What is carried out, from a surface file whose paths are resolved.
//!
//! Promises: `None` only where something is missing, which was reported. What is declared stands in
//! the order in which `parts` publishes it.

mod outward;

use std::path::{Path, PathBuf};

use super::arguments::ArgumentEntry;
use super::declaration::{
    Argument, ArgumentKind, CommandSource, DeclaredBackend, DeclaredBuiltin, DeclaredMessage, DeclaredPrompt,
    DeclaredResource, DeclaredTemplate, DeclaredTool, Element, FileSource, FolderSource, Output, Run, Said, Source,
    Target, Template,
};
use super::effect::Policy;
use super::file::{
    BackendEntry, ElementEntry, KindEntry, MessageEntry, PromptEntry, ResourceEntry, SaidEntry, SourceEntry,
    SurfaceFile, TargetEntry, ToolEntry, Want,
};
use super::level::Latitude;
use super::lint::target_effect::manifest_policy;
use super::manifest::CapabilityKind;
use super::resolve::{Resolved, ResolvedBackend};
use super::rules::CallRules;
use super::source::At;
use super::target::{Aim, Project};
use super::watch::Watched;
use super::{address, media, parts, template};
use crate::protocol::{Json, UriTemplate};

/// Most bytes of output in a result where nothing is said: 15,000 to 20,000 tokens.
pub const DEFAULT_CAP: usize = 60_000;

/// Most bytes of a file that are read where nothing is said.
const FILE_CAP: usize = 1024 * 1024;

/// Everything that a file declares.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) version: semver::Version,
    pub(crate) root: PathBuf,
    pub(crate) registry: Option<PathBuf>,
    pub(crate) tools: Vec<DeclaredTool>,
    pub(crate) resources: Vec<DeclaredResource>,
    pub(crate) templates: Vec<DeclaredTemplate>,
    pub(crate) prompts: Vec<DeclaredPrompt>,
    pub(crate) rules: Option<CallRules>,
    pub(crate) latitude: Latitude,
}

/// Everything that a file declares.
pub(crate) fn all(file: &SurfaceFile<'_>, resolved: Resolved) -> Option<Declared> {
    let version = semver::Version::parse(&file.version.as_ref()?.value).ok()?;
    let root = resolved.root.ok()?;
    let surface = &file.name.as_ref()?.value;
    let project = resolved.project.and_then(Result::ok);
    let mut backends = resolved.backends;
    let of_upstreams = backends.split_off(backends.len().checked_sub(file.upstreams.len())?);
    let upstreams = outward::upstreams(file, of_upstreams, &root)?;
    let mut backends = backends.into_iter();
    let declared_tools = file.tools.iter().zip(backends.by_ref().take(file.tools.len())).map(|(tool, paths)| {
        let flag = |flag: &Option<At<bool>>| flag.as_ref().map(|flag| flag.value);
        let mut policy = Policy::of_flags(flag(&tool.read_only), flag(&tool.reversible));
        let backend = match tool.kind.as_ref()? {
            KindEntry::Command => DeclaredBackend::Command(run(&tool.backend, paths, &root)?),
            KindEntry::Http(http) => DeclaredBackend::Http(outward::request(&tool.backend, http.as_ref()?)),
            KindEntry::Upstream(of) => {
                DeclaredBackend::Upstream(outward::upstream_tool(&tool.backend, of.as_ref()?, &upstreams)?)
            }
            KindEntry::Builtin(builtin) => {
                // What one that runs would do is known by its arguments.
                policy = Policy::of_flags(Some(!builtin.runs()), None);
                DeclaredBackend::Builtin(DeclaredBuiltin {
                    builtin: *builtin,
                    timeout: tool.backend.timeout,
                    cap: tool.backend.cap,
                    coerce_arg_names: tool.coerce_arg_names,
                })
            }
            KindEntry::Target(target) => {
                let project = project.as_ref()?;
                let aim = project.aim(target).ok()?;
                policy = Policy { said: policy.said, ..manifest_policy(aim) };
                DeclaredBackend::Target(declare_target(tool, target, (project, aim), &root)?)
            }
        };
        let default = |argument: &ArgumentEntry| {
            argument.default.as_ref().map(|default| (argument.name.value.clone(), default.value.clone()))
        };
        let defaults = tool.backend.input.arguments.iter().filter_map(default).collect();
        let asks_itself = flag(&tool.asks_itself) == Some(true);
        Some(DeclaredTool { name: tool.name.value.clone(), policy, asks_itself, defaults, backend })
    });
    let tools = declared_tools.collect::<Option<_>>()?;
    let mut resources = Vec::new();
    let mut folders = Vec::new();
    for (resource, paths) in file.resources.iter().zip(backends.by_ref().take(file.resources.len())) {
        declare_resource(resource, paths, &root, surface, &mut resources, &mut folders)?;
    }
    let templates = file.templates.iter().zip(backends);
    let templates: Option<Vec<_>> =
        templates.map(|(template, paths)| declare_template(template, paths, &root)).collect();
    let mut templates = templates?;
    templates.append(&mut folders);
    let prompts: Option<_> = file.prompts.iter().map(|prompt| declare_prompt(prompt, &root)).collect();
    let rules = match &file.rules {
        Some(rules) => Some(CallRules::new(rules.iter().map(|entry| entry.rule.clone()).collect::<Option<_>>()?)),
        None => None,
    };
    let registry = project.map(|project| project.root);
    let latitude = file.gate.clone().unwrap_or_default();
    Some(Declared { version, tools, resources, templates, prompts: prompts?, rules, latitude, root, registry })
}

/// Adds what is read: a folder makes a list, a file what one resource holds.
pub(crate) fn watch(resources: &[DeclaredResource], templates: &[DeclaredTemplate], watched: &mut Watched) {
    for resource in resources {
        if let Source::File(file) = &resource.source
            && let Some(path) = template::literal(&file.path)
        {
            watched.contents.push((file.root.join(path), resource.uri.clone()));
        }
    }
    let folders = templates.iter().filter_map(|template| match &template.source {
        Source::Folder(folder) => Some(folder.root.join(&folder.path)),
        Source::Text(_) | Source::File(_) | Source::Command(_) => None,
    });
    watched.listing.extend(folders);
}

/// Adds the manifests behind targets, whose changes may be ones of the surface.
pub(crate) fn watch_targets(tools: &[DeclaredTool], watched: &mut Watched) {
    let mut manifests: Vec<PathBuf> = Vec::new();
    for tool in tools {
        if let DeclaredBackend::Target(target) = &tool.backend
            && !manifests.contains(&target.manifest)
        {
            manifests.push(target.manifest.clone());
        }
    }
    watched.listing.extend(manifests);
}

fn declare_target(
    tool: &ToolEntry<'_>,
    target: &TargetEntry,
    (project, aim): (&Project, Aim<'_>),
    root: &Path,
) -> Option<Target> {
    let arguments = &tool.backend.input.arguments;
    let flag = |argument: &ArgumentEntry| Some((argument.name.value.clone(), aim.arg(argument)?.name.clone()));
    let default =
        |argument: &ArgumentEntry| Some((argument.name.value.clone(), argument.default.as_ref()?.value.clone()));
    let file = match aim.manifest.kind {
        CapabilityKind::Agent => "agent.yaml",
        CapabilityKind::Tool | CapabilityKind::Skill => "tool.yaml",
    };
    Some(Target {
        registry: project.root.clone(),
        manifest: aim.manifest.folder.join(file),
        kind: aim.manifest.kind,
        name: aim.manifest.name.clone(),
        action: aim.action.map(|action| action.name.clone()),
        flags: arguments.iter().map(flag).collect::<Option<_>>()?,
        root: root.to_path_buf(),
        paths: arguments.iter().filter(|a| a.kind == ArgumentKind::Path).map(|a| a.name.value.clone()).collect(),
        defaults: arguments.iter().filter_map(default).collect(),
        narrow_by: target.narrow_by.iter().map(|name| name.value.clone()).collect(),
        timeout: tool.backend.timeout,
        cap: tool.backend.cap.unwrap_or(DEFAULT_CAP),
    })
}

/// What a command's output is where nothing is said.
pub(crate) fn mime_type_of_output(backend: &BackendEntry<'_>) -> &'static str {
    match backend.output.as_ref().map(|output| output.value) {
        Some(Output::Json | Output::Content) => "application/json",
        Some(Output::Text) | None => "text/plain",
    }
}

fn declare_resource(
    resource: &ResourceEntry<'_>,
    paths: ResolvedBackend,
    root: &Path,
    surface: &str,
    resources: &mut Vec<DeclaredResource>,
    folders: &mut Vec<DeclaredTemplate>,
) -> Option<()> {
    let uri = parts::uri(resource, surface);
    let backend = &resource.backend;
    let mut mime_type = resource.mime_type.clone();
    let source = match resource.source.as_ref()? {
        SourceEntry::Text(text) => Source::Text(text.clone()),
        SourceEntry::File(path) => Source::File(file_source(backend, path, Vec::new(), root)),
        SourceEntry::Command => {
            mime_type = mime_type.or_else(|| Some(mime_type_of_output(backend).to_owned()));
            Source::Command(command(backend, paths, root)?)
        }
        SourceEntry::Folder => {
            let folder = backend.paths.first()?;
            let Want::Folder(matching) = &folder.want else { return None };
            let path = PathBuf::from(&folder.path.value);
            let cap = backend.cap.unwrap_or(FILE_CAP);
            for file in parts::listing(&paths.paths) {
                let path = Template::literal(path.join(file).to_str()?);
                resources.push(DeclaredResource {
                    uri: address::of_file(&uri, file),
                    mime_type: mime_type.clone().or_else(|| media::type_of(file)),
                    source: Source::File(FileSource { root: root.to_owned(), path, deep: Vec::new(), cap }),
                });
            }
            let source = FolderSource { root: root.to_owned(), path, matching: matching.clone(), cap };
            folders.push(DeclaredTemplate {
                uri_template: address::of_folder(&uri),
                mime_type,
                schema: Json::Object(Vec::new()),
                source: Source::Folder(source),
            });
            return Some(());
        }
    };
    resources.push(DeclaredResource { uri, mime_type, source });
    Some(())
}

fn declare_template(template: &ResourceEntry<'_>, paths: ResolvedBackend, root: &Path) -> Option<DeclaredTemplate> {
    let uri_template = template.uri.as_ref()?.value.clone();
    let backend = &template.backend;
    let mut mime_type = template.mime_type.clone();
    let source = match template.source.as_ref()? {
        SourceEntry::Text(text) => Source::Text(text.clone()),
        SourceEntry::File(path) => {
            let deep = UriTemplate::parse(&uri_template).ok()?;
            let is_deep = |name: &&String| uri_template.contains(&format!("{{+{name}}}"));
            let deep = deep.variables().iter().filter(is_deep).cloned().collect();
            Source::File(file_source(backend, path, deep, root))
        }
        SourceEntry::Command => {
            mime_type = mime_type.or_else(|| Some(mime_type_of_output(backend).to_owned()));
            Source::Command(command(backend, paths, root)?)
        }
        SourceEntry::Folder => return None,
    };
    Some(DeclaredTemplate { uri_template, mime_type, schema: backend.input.schema.clone()?, source })
}

fn file_source(backend: &BackendEntry<'_>, path: &Template, deep: Vec<String>, root: &Path) -> FileSource {
    FileSource { root: root.to_owned(), path: path.clone(), deep, cap: backend.cap.unwrap_or(FILE_CAP) }
}

fn command(backend: &BackendEntry<'_>, paths: ResolvedBackend, root: &Path) -> Option<CommandSource> {
    let mut run = run(backend, paths, root)?;
    if run.output == Output::Content {
        // What is read is a text: that of the result.
        run.output = Output::Json;
    }
    Some(CommandSource {
        name: backend.name.value.clone(),
        run,
        timeout: backend.timeout,
        missing_codes: backend.missing_codes.clone(),
    })
}

fn declare_prompt(prompt: &PromptEntry<'_>, root: &Path) -> Option<DeclaredPrompt> {
    let input = &prompt.backend.input;
    let default = |argument: &ArgumentEntry| {
        let value = argument.default.as_ref()?.value.as_str()?.to_owned();
        Some((argument.name.value.clone(), value))
    };
    let said = |said: &SaidEntry| match said {
        SaidEntry::Text(text) => Said::Text(text.clone()),
        SaidEntry::File(path) => Said::File(path.into()),
        SaidEntry::Resource(uri) => Said::Resource(uri.value.clone()),
        SaidEntry::Link(uri) => Said::Link(uri.value.clone()),
        SaidEntry::Image(path) => Said::Image(PathBuf::from(&path.value)),
        SaidEntry::Audio(path) => Said::Audio(PathBuf::from(&path.value)),
    };
    let message = |entry: &MessageEntry| DeclaredMessage { role: entry.role, said: said(&entry.said) };
    Some(DeclaredPrompt {
        name: prompt.name.value.clone(),
        description: prompt.described.description(),
        schema: input.schema.clone().unwrap_or(Json::Object(Vec::new())),
        defaults: input.arguments.iter().filter_map(default).collect(),
        root: root.to_owned(),
        messages: prompt.messages.as_ref()?.iter().map(message).collect(),
    })
}

fn run(backend: &BackendEntry<'_>, paths: ResolvedBackend, root: &Path) -> Option<Run> {
    let program = paths.program?.ok()?.into_os_string().into_string().ok()?;
    let cwd = match paths.cwd {
        Some(cwd) => cwd.ok()?,
        None => root.to_owned(),
    };
    let program = Element::One(Template::literal(program));
    let rest = backend.run.iter().skip(1).map(|element| match element {
        ElementEntry::One(template) => Element::One(template.value.clone()),
        ElementEntry::Group(templates) => Element::Group(templates.iter().map(|t| t.value.clone()).collect()),
    });
    Some(Run {
        argv: std::iter::once(program).chain(rest).collect(),
        arguments: backend.input.arguments.iter().map(declare_argument).collect(),
        root: root.to_owned(),
        cwd,
        env: backend.env.iter().map(|variable| variable.value.clone()).collect(),
        stdin: backend.stdin.as_ref().map(|feed| feed.value.clone()),
        cap: backend.cap.unwrap_or(DEFAULT_CAP),
        exit_codes: backend.exit_codes.clone().unwrap_or_else(|| vec![0]),
        output: backend.output.as_ref().map_or(Output::Text, |output| output.value),
        talk: backend.talk,
    })
}

fn declare_argument(argument: &ArgumentEntry) -> Argument {
    Argument {
        name: argument.name.value.clone(),
        kind: argument.kind,
        default: argument.default.as_ref().map(|default| default.value.clone()),
    }
}
