//! What a client must say of itself so that a server can be put into its configuration.

use std::path::{Path, PathBuf};

use serde_json::Value;
use twodoor::surface::json_text::Ordered;

use super::Dialect;
use crate::cli::own_file::Problem;

/// For whom a server is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scope {
    /// You, in every project
    User,
    /// Whoever opens the current folder as a project
    Project,
}

/// How a configuration is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON, by a reader that takes nothing else.
    Json,
    /// JSON with comments.
    Jsonc,
    /// TOML.
    Toml,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reach {
    /// The client starts it.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// It runs already.
    Url(String),
}

/// The system whose folders are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    /// Linux, and what keeps its files as Linux does.
    Linux,
    /// macOS
    Mac,
    /// Windows
    Windows,
}

/// The folders that configurations stand in.
#[derive(Debug, Clone)]
pub(super) struct Homes {
    system: System,
    home: Option<PathBuf>,
    config: Option<PathBuf>,
    roaming: Option<PathBuf>,
    /// The folder of the project.
    pub(super) project: PathBuf,
    variable: fn(&str) -> Option<PathBuf>,
}

impl Homes {
    pub(super) fn of_this_process(project: PathBuf) -> Self {
        let system = match std::env::consts::OS {
            "macos" => System::Mac,
            "windows" => System::Windows,
            _ => System::Linux,
        };
        Self::new(system, project, |name| std::env::var_os(name).map(PathBuf::from))
    }

    fn new(system: System, project: PathBuf, variable: fn(&str) -> Option<PathBuf>) -> Self {
        // What is relative is nobody's home (XDG Base Directory Specification).
        let folder = |name| variable(name).filter(|path| path.is_absolute());
        let home = folder("HOME").or_else(|| folder("USERPROFILE").filter(|_| system == System::Windows));
        let config = folder("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
        let roaming = folder("APPDATA");
        Self { system, home, config, roaming, project, variable }
    }

    /// The user's home folder.
    pub(super) fn home(&self) -> Result<PathBuf, Problem> {
        self.home.clone().ok_or_else(|| unset("HOME"))
    }

    /// The folder of configurations by the XDG specification, on every system.
    pub(super) fn config(&self) -> Result<PathBuf, Problem> {
        self.config.clone().ok_or_else(|| unset("HOME"))
    }

    /// The folder in which desktop programs keep theirs.
    pub(super) fn desktop(&self) -> Result<PathBuf, Problem> {
        match self.system {
            System::Linux => self.config(),
            System::Mac => Ok(self.home()?.join("Library/Application Support")),
            System::Windows => self.roaming.clone().ok_or_else(|| unset("APPDATA")),
        }
    }

    /// A client that is told by a variable to keep its file elsewhere does not read this one.
    pub(super) fn unless_moved(&self, name: &str, file: &str, usual: PathBuf) -> Result<PathBuf, Problem> {
        match (self.variable)(name).filter(|folder| !folder.as_os_str().is_empty()) {
            Some(folder) if usual != folder.join(file) => {
                let (elsewhere, usual) = (folder.join(file), usual.display());
                let problem = format!("{name} is set: the client reads {}, not {usual}", elsewhere.display());
                Err((problem, format!("say --path {}", elsewhere.display())))
            }
            _ => Ok(usual),
        }
    }
}

fn unset(name: &str) -> Problem {
    (
        format!("{name} is not set to an absolute path, so there is no folder of yours"),
        "name the file with --path".to_owned(),
    )
}

/// Where a client looks for servers.
#[derive(Debug)]
pub(super) struct Place {
    /// The file; where it looks for several, those, the one that is made first.
    pub(super) files: Vec<PathBuf>,
    /// The folder that the file does not leave.
    pub(super) beneath: PathBuf,
}

impl Place {
    pub(super) fn new(beneath: &Path, file: &str) -> Self {
        Self { files: vec![beneath.join(file)], beneath: beneath.to_owned() }
    }
}

/// A client's limit on names.
pub(super) struct Names {
    /// The name under which a model is shown a server's tool.
    pub(super) shown: fn(&str, &str) -> String,
    /// Most characters of it.
    pub(super) longest: usize,
    /// What becomes of a longer one.
    pub(super) beyond: &'static str,
}

/// A program that reads a configuration of MCP servers.
pub(super) trait Client: Sync {
    /// Its name, for people.
    fn title(&self) -> &'static str;

    /// How its file is written.
    fn format(&self) -> Format {
        Format::Json
    }

    /// Where it looks.
    fn place(&self, scope: Scope, homes: &Homes) -> Result<Place, Problem>;

    /// The keys beneath which its servers stand, as far as what is in the file says.
    fn keys(&self, _found: &Value, _dialect: Option<Dialect>) -> Result<&'static [&'static str], Problem> {
        Ok(&["mcpServers"])
    }

    /// The entry of a server beneath these keys.
    fn entry(&self, reach: &Reach, keys: &[&str]) -> Result<Vec<(String, Ordered)>, Problem>;

    /// How long names may be.
    fn names(&self) -> Names;

    /// Names of servers that it keeps for itself.
    fn reserved(&self) -> &'static [&'static str] {
        &[]
    }

    /// What it takes for something else within a value.
    fn expands(&self) -> &'static [&'static str] {
        &[]
    }

    /// What is to be known of this entry.
    fn notes(&self, _name: &str, _reach: &Reach, _scope: Scope) -> Vec<String> {
        Vec::new()
    }

    /// Where an entry has variables for its server.
    fn environment(&self) -> &'static str {
        "`env`"
    }

    /// How the server gets to be seen.
    fn then(&self, _scope: Scope) -> &'static str;
}

/// `command` and `args`, or a URL under a key; with a `type` where the client has one.
pub(super) fn plain(reach: &Reach, kinds: Option<[&str; 2]>, url: &str) -> Vec<(String, Ordered)> {
    let mut members = Vec::new();
    let [local, remote] = kinds.map_or([None, None], |[local, remote]| [Some(local), Some(remote)]);
    let mut add = |key: &str, value: Ordered| members.push((key.to_owned(), value));
    match reach {
        Reach::Command { program, args } => {
            if let Some(kind) = local {
                add("type", kind.into());
            }
            add("command", program.as_str().into());
            add("args", Ordered::List(args.iter().map(|arg| arg.as_str().into()).collect()));
        }
        Reach::Url(address) => {
            if let Some(kind) = remote {
                add("type", kind.into());
            }
            add(url, address.as_str().into());
        }
    }
    members
}

/// `mcp__SERVER__TOOL`
pub(super) fn double(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

    use super::super::{claude_code, claude_desktop, codex, cursor, gemini, opencode, vscode};
    use super::*;

    fn variables(name: &str) -> Option<PathBuf> {
        [("HOME", "/h"), ("APPDATA", "/roaming")].iter().find(|(n, _)| *n == name).map(|(_, value)| value.into())
    }

    fn file(client: &dyn Client, system: System, scope: Scope) -> Result<String, Problem> {
        let homes = Homes::new(system, "/p".into(), variables);
        client.place(scope, &homes).map(|place| place.files.first().unwrap().display().to_string())
    }

    #[test]
    fn each_client_has_its_file_in_the_place_that_it_reads() {
        let all: [(&dyn Client, [&str; 4]); 7] = [
            (&claude_code::ClaudeCode, ["/h/.claude.json", "/h/.claude.json", "/h/.claude.json", "/p/.mcp.json"]),
            (
                &claude_desktop::ClaudeDesktop,
                [
                    "/h/.config/Claude/claude_desktop_config.json",
                    "/h/Library/Application Support/Claude/claude_desktop_config.json",
                    "/roaming/Claude/claude_desktop_config.json",
                    "",
                ],
            ),
            (
                &cursor::Cursor,
                ["/h/.cursor/mcp.json", "/h/.cursor/mcp.json", "/h/.cursor/mcp.json", "/p/.cursor/mcp.json"],
            ),
            (
                &vscode::VsCode,
                [
                    "/h/.config/Code/User/mcp.json",
                    "/h/Library/Application Support/Code/User/mcp.json",
                    "/roaming/Code/User/mcp.json",
                    "/p/.vscode/mcp.json",
                ],
            ),
            (
                &opencode::Opencode,
                [
                    "/h/.config/opencode/opencode.json",
                    "/h/.config/opencode/opencode.json",
                    "/h/.config/opencode/opencode.json",
                    "/p/opencode.json",
                ],
            ),
            (
                &codex::Codex,
                ["/h/.codex/config.toml", "/h/.codex/config.toml", "/h/.codex/config.toml", "/p/.codex/config.toml"],
            ),
            (
                &gemini::Gemini,
                [
                    "/h/.gemini/settings.json",
                    "/h/.gemini/settings.json",
                    "/h/.gemini/settings.json",
                    "/p/.gemini/settings.json",
                ],
            ),
        ];
        for (client, [linux, mac, windows, project]) in all {
            for (system, expected) in [(System::Linux, linux), (System::Mac, mac), (System::Windows, windows)] {
                assert_eq!(file(client, system, Scope::User).unwrap(), expected);
            }
            match file(client, System::Linux, Scope::Project) {
                Ok(found) => assert_eq!(found, project),
                Err(_) => assert_eq!(project, "", "{}", client.title()),
            }
        }
    }

    #[test]
    fn without_a_home_there_is_no_place() {
        let homes = Homes::new(System::Linux, "/p".into(), |name| (name == "HOME").then(|| "relative".into()));
        assert!(cursor::Cursor.place(Scope::User, &homes).unwrap_err().0.contains("HOME"));
        assert!(cursor::Cursor.place(Scope::Project, &homes).is_ok());
    }

    #[test]
    fn a_client_that_was_told_to_read_elsewhere_is_not_written_past() {
        let moved = Homes::new(System::Linux, "/p".into(), |name| match name {
            "HOME" => Some("/h".into()),
            "CODEX_HOME" | "CLAUDE_CONFIG_DIR" => Some("/elsewhere".into()),
            _ => None,
        });
        for client in [&codex::Codex as &dyn Client, &claude_code::ClaudeCode] {
            let (problem, remedy) = client.place(Scope::User, &moved).unwrap_err();
            assert!(problem.contains("is set") && remedy.contains("--path /elsewhere/"), "{problem} {remedy}");
        }
    }
}
