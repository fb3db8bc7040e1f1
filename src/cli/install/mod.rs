//! `twodoor install`: puts a server into the configuration of a client, and keeps what is there.
//!
//! Promises: an entry of that name that says something else is left alone unless `--replace` is given; everything else in
//! the file stays byte for byte; a file that is broken is refused with its place; nothing is written outside the folders
//! in which the client looks, but by `--path`.

mod claude_code;
mod claude_desktop;
mod client;
mod codex;
mod configuration;
mod cursor;
mod environment;
mod gemini;
mod opencode;
mod toml_text;
mod vscode;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;
use twodoor::protocol::json::visible;
use twodoor::surface::LoadedSurface;
use twodoor::surface::json_text::{Edit, Ordered};

use self::client::{Client, Homes, Reach, Scope};
use self::configuration::Configuration;
use self::environment::Needed;
use super::own_file::{OwnFile, Privacy, Problem};
use super::{DEFAULT_SURFACE, exit, show};

/// Puts a surface into a client's configuration
#[derive(clap::Args)]
#[command(
    after_help = "What is in the file stays as it is: other servers, settings, comments, order, line ends. An entry of the same name \
    that says something else is shown and left alone; --replace takes its place. Done twice it changes nothing.\n\n\
    The entry names this program and the surface file by their absolute paths, so it belongs to this machine: in a \
    project's file, which others read too, it is of use to those whose paths are the same.\n\n\
    opencode has two dialects: version 1 has servers in `mcp`, version 2 in `mcp.servers`. A file is kept in its own; a new \
    one is written in the first, which both versions read.\n\n\
    Exits with 0 if the entry is there (or gone, with --remove), 1 if it is not, 2 if the file or the usage is wrong, \
    3 if the surface is refused.\n\n\
    Examples:\n  twodoor install claude-code hello.yaml --scope project\n  twodoor install codex hello.yaml --dry-run\n  \
    twodoor install vscode hello.yaml --print\n  twodoor install gemini --http http://127.0.0.1:8484/mcp --name hello\n  \
    twodoor install cursor hello.yaml --remove"
)]
pub(crate) struct Install {
    /// The client
    client: Name,
    /// The surface file [default: surface.yaml]; with --name, --http and --remove need none
    #[arg(value_name = "SURFACE")]
    surface: Option<PathBuf>,
    /// The server's name in the client; without it the surface's name
    #[arg(long)]
    name: Option<String>,
    /// For whom: the client's file in your home, or that in the current folder
    #[arg(long, default_value = "user")]
    scope: Scope,
    /// The server runs at this URL, and is not started by the client
    #[arg(long, value_name = "URL")]
    http: Option<String>,
    /// Print the entry and where it belongs, and write nothing
    #[arg(long, conflicts_with_all = ["dry_run", "remove", "replace"])]
    print: bool,
    /// The configuration file, instead of the one in which the client looks
    #[arg(long, value_name = "FILE", conflicts_with = "scope")]
    path: Option<PathBuf>,
    /// Take the entry away
    #[arg(long)]
    remove: bool,
    /// Show what would change, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Also if the entry that is there says something else
    #[arg(long)]
    replace: bool,
    /// opencode's dialect, where the file does not say
    #[arg(long)]
    dialect: Option<Dialect>,
}

/// The clients that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Name {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Vscode,
    Opencode,
    Codex,
    Gemini,
}

/// How opencode's configuration is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Dialect {
    /// `mcp.NAME`
    V1,
    /// `mcp.servers.NAME`
    V2,
}

/// Why nothing was done.
enum Refused {
    /// Told already.
    Told(ExitCode),
    /// The usage or the file is wrong.
    Wrong(Problem),
    /// Something else is there.
    Differs(Problem),
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self::Wrong(problem)
    }
}

impl Install {
    pub(crate) fn run(self) -> ExitCode {
        let (problem, code) = match self.carry_out() {
            Ok(()) => return ExitCode::SUCCESS,
            Err(Refused::Told(code)) => return code,
            Err(Refused::Wrong(problem)) => (problem, exit::usage()),
            Err(Refused::Differs(problem)) => (problem, exit::differs()),
        };
        show::error(&problem.0, &problem.1);
        code
    }

    fn client(&self) -> &'static dyn Client {
        match self.client {
            Name::ClaudeCode => &claude_code::ClaudeCode,
            Name::ClaudeDesktop => &claude_desktop::ClaudeDesktop,
            Name::Cursor => &cursor::Cursor,
            Name::Vscode => &vscode::VsCode,
            Name::Opencode => &opencode::Opencode,
            Name::Codex => &codex::Codex,
            Name::Gemini => &gemini::Gemini,
        }
    }

    fn carry_out(&self) -> Result<(), Refused> {
        let client = self.client();
        if self.dialect.is_some() && self.client != Name::Opencode {
            let problem = format!("{} has one dialect", client.title());
            return Err((problem, "leave --dialect out: it is opencode's".to_owned()).into());
        }
        let by_name = self.name.is_some() && (self.remove || self.http.is_some());
        let loaded = if by_name && self.surface.is_none() { None } else { Some(self.surface()?) };
        let Some(name) = self.name.clone().or(loaded.as_ref().map(|loaded| loaded.name.clone())) else {
            return Err(("there is no name".to_owned(), "say --name".to_owned()).into());
        };
        if self.remove {
            return self.remove(client, &name);
        }
        check_name(client, &name)?;
        let reach = self.reach(client)?;
        let tools: Vec<String> = loaded.iter().flat_map(|loaded| &loaded.tools).map(|tool| tool.name.clone()).collect();
        let mut notes = check_tools(client, &name, &tools)?;
        if let (Reach::Command { .. }, Some(loaded)) = (&reach, &loaded) {
            notes.extend(Needed::of(loaded).note(client.environment()));
        }
        notes.extend(client.notes(&name, &reach, self.scope));
        if self.print {
            let file = self.file(client)?;
            let found = OwnFile::read(&file.0, file.1.as_deref()).ok();
            let found =
                found.and_then(|own| Configuration::read(client.format(), own.bytes().unwrap_or_default()).ok());
            let keys = client.keys(&found.map_or(Value::Null, |found| found.value()), self.dialect)?;
            let entry = client.entry(&reach, keys)?;
            show::out(&Configuration::alone(client.format(), keys, &name, &entry));
            show::err(&format!("this belongs into {}\n", visible(file.0.to_string_lossy().chars())));
            tell(&notes);
            return Ok(());
        }
        self.add(client, &name, &reach, &notes)
    }

    fn add(&self, client: &dyn Client, name: &str, reach: &Reach, notes: &[String]) -> Result<(), Refused> {
        let (own, mut configuration) = self.open(client)?;
        let keys = client.keys(&configuration.value(), self.dialect)?;
        let entry = client.entry(reach, keys)?;
        let label = format!("{}, {}: {}.{name}", client.title(), own.path().display(), keys.join("."));
        if let Some(found) = configuration.entry(keys, name) {
            let place =
                configuration.place(keys, name).map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
            if agrees(&found, &entry) {
                let more = found.as_object().into_iter().flatten().map(|(key, _)| key);
                let more: Vec<_> = more.filter(|key| !entry.iter().any(|(ours, _)| ours == *key)).cloned().collect();
                let kept = if more.is_empty() { String::new() } else { format!(", with its own {}", more.join(", ")) };
                show::out(&format!("unchanged: {}{kept}\n", show::lines(&label)));
                tell(notes);
                return Ok(());
            }
            if !self.replace {
                let problem = format!(
                    "{}{place} has another entry {name:?}:\n{}\nit would become:\n{}",
                    own.path().display(),
                    marked('-', &Configuration::shown(&found)),
                    marked('+', &Configuration::shown(&Ordered::Map(entry).value())),
                );
                return Err(Refused::Differs((problem, "say --replace, or another --name".to_owned())));
            }
        }
        let flawed = |flaw| at(own.path(), &flaw);
        let edit = configuration.set(keys, name, &entry).map_err(flawed)?;
        self.finish(client, &own, &configuration, &label, &edit)?;
        if !self.dry_run {
            show::out(&format!("next: {}\n", client.then(self.scope)));
        }
        tell(notes);
        Ok(())
    }

    fn remove(&self, client: &dyn Client, name: &str) -> Result<(), Refused> {
        let (own, mut configuration) = self.open(client)?;
        let keys = client.keys(&configuration.value(), self.dialect)?;
        let label = format!("{}, {}: {}.{name}", client.title(), own.path().display(), keys.join("."));
        let Some(found) = configuration.entry(keys, name) else {
            show::out(&format!("unchanged: {} is not there\n", show::lines(&label)));
            return Ok(());
        };
        let ours = self.reach(client).and_then(|reach| Ok(client.entry(&reach, keys)?));
        let is_ours = ours.is_ok_and(|entry| agrees(&found, &entry)) || starts_us(&found);
        if !is_ours && !self.replace {
            let problem = format!(
                "the entry {name:?} of {} is not one that this command wrote:\n{}",
                own.path().display(),
                marked('-', &Configuration::shown(&found)),
            );
            return Err(Refused::Differs((problem, "say --replace to take it away all the same".to_owned())));
        }
        let edit = configuration.remove(keys, name).map_err(|flaw| at(own.path(), &flaw))?;
        self.finish(client, &own, &configuration, &label, &edit)
    }

    /// Shows what changed, and writes it.
    fn finish(
        &self,
        client: &dyn Client,
        own: &OwnFile,
        configuration: &Configuration,
        label: &str,
        edit: &Edit,
    ) -> Result<(), Refused> {
        let mut text = format!("{}\n", show::lines(label));
        for (mark, part) in [('-', &edit.removed), ('+', &edit.added)] {
            if !part.is_empty() {
                let _ = writeln!(text, "{}", show::lines(&marked(mark, part)));
            }
        }
        show::out(&text);
        if let Some(flaw) = configuration.beyond_plain(client.format()) {
            let (problem, _) = at(own.path(), &flaw);
            show::err(&format!("warning: {}, which {} does not read\n", show::lines(&problem), client.title()));
        }
        if self.dry_run {
            show::out("nothing was written\n");
            return Ok(());
        }
        // What is in a home may hold secrets; what is in a project is for its users.
        let privacy = if self.path.is_none() && self.scope == Scope::User { Privacy::Owner } else { Privacy::Open };
        own.replace(&configuration.bytes(), privacy).map_err(Refused::Differs)
    }

    fn open(&self, client: &dyn Client) -> Result<(OwnFile, Configuration), Refused> {
        let (file, beneath) = self.file(client)?;
        let own = OwnFile::read(&file, beneath.as_deref())?;
        let configuration = Configuration::read(client.format(), own.bytes().unwrap_or_default());
        let configuration = configuration.map_err(|flaw| {
            let (problem, _) = at(own.path(), &flaw);
            (problem, "mend the file first: it is left as it is".to_owned())
        })?;
        Ok((own, configuration))
    }

    /// The file, and the folder that it does not leave.
    fn file(&self, client: &dyn Client) -> Result<(PathBuf, Option<PathBuf>), Problem> {
        if let Some(path) = &self.path {
            return Ok((path.clone(), None));
        }
        let project = std::env::current_dir();
        let project =
            project.map_err(|error| (format!("there is no current folder: {error}"), "go into one".to_owned()))?;
        let place = client.place(self.scope, &Homes::of_this_process(project))?;
        let there: Vec<_> = place.files.iter().filter(|file| file.symlink_metadata().is_ok()).collect();
        match (there.as_slice(), place.files.first()) {
            ([one], _) => Ok(((*one).clone(), Some(place.beneath))),
            ([], Some(first)) => Ok((first.clone(), Some(place.beneath))),
            (several, _) => {
                let files: Vec<_> = several.iter().map(|file| file.display().to_string()).collect();
                let problem = format!("{} reads several files: {}", client.title(), files.join(", "));
                Err((problem, "name one with --path".to_owned()))
            }
        }
    }

    fn surface_path(&self) -> &Path {
        self.surface.as_deref().unwrap_or(Path::new(DEFAULT_SURFACE))
    }

    fn surface(&self) -> Result<LoadedSurface, Refused> {
        show::load(self.surface_path()).map_err(Refused::Told)
    }

    fn reach(&self, client: &dyn Client) -> Result<Reach, Refused> {
        if let Some(url) = &self.http {
            check_url(url)?;
            check_value(client, url)?;
            return Ok(Reach::Url(url.clone()));
        }
        let program = std::env::current_exe().map_err(|error| {
            (format!("the path of this program is not known: {error}"), "name it by its absolute path".to_owned())
        })?;
        let surface = absolute(self.surface_path())?;
        let [program, surface] = [program, surface].map(|path| {
            path.into_os_string().into_string().map_err(|path| {
                let problem = format!("{} is no UTF-8, which a configuration is", path.display());
                (problem, "move the file to a path of plain letters".to_owned())
            })
        });
        let (program, surface) = (program?, surface?);
        for path in [&program, &surface] {
            check_value(client, path)?;
        }
        Ok(Reach::Command { program, args: vec!["serve".to_owned(), surface] })
    }
}

/// The path of a file, its folder's links resolved and its own kept, so that it may lead to another later.
fn absolute(path: &Path) -> Result<PathBuf, Problem> {
    let absolute = std::path::absolute(path);
    let known = absolute.and_then(|path| match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok(folder.canonicalize()?.join(name)),
        _ => path.canonicalize(),
    });
    known.map_err(|error| (format!("{} cannot be found: {error}", path.display()), "name a surface file".to_owned()))
}

fn at(path: &Path, flaw: &twodoor::surface::json_text::Flaw) -> Problem {
    let problem = format!("{}:{}:{}: {}", path.display(), flaw.line, flaw.column, flaw.problem);
    (problem, "change the file by hand: --print shows what belongs there".to_owned())
}

fn marked(mark: char, text: &str) -> String {
    let lines: Vec<_> = text.trim_end().lines().map(|line| format!("{mark} {line}")).collect();
    lines.join("\n")
}

fn tell(notes: &[String]) {
    for note in notes {
        show::err(&format!("note: {}\n", show::lines(note)));
    }
}

/// Whether an entry says what ours does. What it says beyond that, such as an environment, is its owner's.
fn agrees(found: &Value, ours: &[(String, Ordered)]) -> bool {
    const REACHES: [&str; 7] = ["command", "args", "url", "httpUrl", "serverUrl", "type", "cwd"];
    let same = ours.iter().all(|(key, value)| found.get(key) == Some(&value.value()));
    same && !REACHES.iter().any(|key| found.get(key).is_some() && !ours.iter().any(|(ours, _)| ours == key))
}

/// Whether an entry starts this program.
fn starts_us(found: &Value) -> bool {
    let command = match found.get("command") {
        Some(Value::Array(command)) => command.clone(),
        Some(program) => {
            let args = found.get("args").and_then(Value::as_array).cloned().unwrap_or_default();
            [program.clone()].into_iter().chain(args).collect()
        }
        None => return false,
    };
    let us = std::env::current_exe().ok().and_then(|path| Some(path.file_name()?.to_owned()));
    match command.as_slice() {
        [Value::String(program), Value::String(serve), ..] => {
            let name = Path::new(program).file_name();
            serve == "serve" && name.is_some() && (name == us.as_deref() || name == Some("twodoor".as_ref()))
        }
        _ => false,
    }
}

fn check_name(client: &dyn Client, name: &str) -> Result<(), Problem> {
    // What the strictest clients take: ^[A-Za-z0-9_-]+$, and not what an object of theirs has already.
    let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let begins = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    if !letters || !begins || name.len() > 64 {
        let meant: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
        let meant: String = meant.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).chars().take(32).collect();
        let example = if meant.is_empty() { "tools".to_owned() } else { meant };
        let problem =
            format!("{name:?} is no name for a server: use 1 to 64 of A-Z a-z 0-9 _ -, beginning with a letter");
        return Err((problem, format!("say another, such as --name {example}")));
    }
    let own = ["constructor", "prototype"];
    if client.reserved().iter().chain(&own).any(|reserved| reserved.eq_ignore_ascii_case(name)) {
        let problem = format!("{} keeps the name {name:?} for itself", client.title());
        return Err((problem, format!("say another, such as --name {name}_tools")));
    }
    Ok(())
}

/// Tools whose names become too long. Where a shorter name of the server helps, that is asked for.
fn check_tools(client: &dyn Client, name: &str, tools: &[String]) -> Result<Vec<String>, Problem> {
    let limit = client.names();
    let long: Vec<_> = tools.iter().filter(|tool| (limit.shown)(name, tool).chars().count() > limit.longest).collect();
    let Some(longest) = long.iter().max_by_key(|tool| tool.len()) else { return Ok(Vec::new()) };
    let without = (limit.shown)("", longest).chars().count();
    let names: Vec<_> = long.iter().map(|tool| tool.as_str()).collect();
    let problem = format!(
        "{} shows a tool as {}, and {} with more than {} characters: {}",
        client.title(),
        (limit.shown)("SERVER", "TOOL"),
        limit.beyond,
        limit.longest,
        names.join(", ")
    );
    match limit.longest.checked_sub(without) {
        Some(room) if room > 0 => Err((problem, format!("say a --name of at most {room} characters"))),
        _ => Ok(vec![format!("{problem}; no name of the server is short enough")]),
    }
}

fn check_url(url: &str) -> Result<(), Problem> {
    let remedy = || "say it as http://127.0.0.1:8484/mcp".to_owned();
    let uri: hyper::Uri =
        url.parse().map_err(|error| (format!("\"{}\" is no URL: {error}", show::lines(url)), remedy()))?;
    let web = uri.scheme().is_some_and(|scheme| scheme.as_str() == "http" || scheme.as_str() == "https");
    if !web || uri.host().is_none_or(str::is_empty) || url.contains('#') {
        return Err((format!("\"{}\" is no http or https URL", show::lines(url)), remedy()));
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        let problem = "the URL has a password in it, which would stand in the file for all to read".to_owned();
        return Err((
            problem,
            "leave it out, and give the client its token in the way that it has for that".to_owned(),
        ));
    }
    Ok(())
}

/// A value that the client would read as something else.
fn check_value(client: &dyn Client, value: &str) -> Result<(), Problem> {
    let Some(sign) = client.expands().iter().find(|sign| value.contains(**sign)) else { return Ok(()) };
    let problem = format!("{value:?} has {sign:?}, which {} takes for a variable", client.title());
    Err((problem, "move the file to a path without it".to_owned()))
}
