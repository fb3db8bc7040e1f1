//! `twodoor init`: a project to begin with.
//!
//! Promises: what it writes passes `check` without a warning; no file that is there is touched, and where one is in the way
//! nothing is written at all.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use twodoor::protocol::ToolName;
use twodoor::protocol::json::visible;

use super::own_file::Problem;
use super::{exit, show};

/// Writes a project to begin with: a surface, a tool, a skill
#[derive(clap::Args)]
#[command(
    after_help = "Nothing that is there is touched: if a file is in the way, it is named and nothing is written.\n\n\
    Without --capability the surface names the example's command itself. With it the example is a capability with a \
    manifest, tools/hello/tool.yaml: the surface publishes one of its actions, and operator.yaml serves all capabilities \
    through six tools that find and run them.\n\n\
    Examples:\n  twodoor init\n  twodoor init tools --name ops --runtime python\n  twodoor init ops --capability"
)]
pub(crate) struct Init {
    /// The folder; it is made if it is not there
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// The surface's name; without it the folder's
    #[arg(long)]
    name: Option<String>,
    /// With a registry of capabilities, and a surface for its operators
    #[arg(long)]
    capability: bool,
    /// What the example is written in
    #[arg(long, default_value = "exec")]
    runtime: Runtime,
}

/// What the example is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Runtime {
    /// A program of its own: a shell script
    Exec,
    /// Python
    Python,
}

/// A file to write.
struct Made {
    path: &'static str,
    text: String,
    mode: u32,
}

impl Init {
    pub(crate) fn run(self) -> ExitCode {
        match self.carry_out() {
            Ok(()) => ExitCode::SUCCESS,
            Err((problem, remedy)) => {
                show::error(&problem, &remedy);
                exit::usage()
            }
        }
    }

    fn carry_out(&self) -> Result<(), Problem> {
        let name = self.name()?;
        let files = self.files(&name);
        let folder = std::path::absolute(&self.folder).map_err(|error| unwritable(&self.folder, &error))?;
        write(&folder, &files)?;
        let shown = visible(self.folder.to_string_lossy().chars());
        for file in &files {
            show::out(&format!("{}\n", visible(self.folder.join(file.path).to_string_lossy().chars())));
        }
        let go =
            if self.folder.as_os_str() == "." { String::new() } else { format!("  cd {}\n", show::quoted(&[shown])) };
        let both = if self.capability { " surface.yaml operator.yaml" } else { "" };
        let find =
            if self.capability { "  twodoor call capabilities search=greet --surface operator.yaml\n" } else { "" };
        show::out(&format!(
            "\nnext:\n{go}  twodoor check{both}\n  twodoor call hello name=Ada\n{find}  \
             twodoor serve{both} --http 127.0.0.1:8484\n  twodoor install claude-code\n"
        ));
        Ok(())
    }

    fn name(&self) -> Result<String, Problem> {
        if let Some(name) = &self.name {
            let good = ToolName::new(name).is_some() && !name.eq_ignore_ascii_case("workspace") && !name.contains('.');
            let problem = || format!("{name:?} is no name that every client takes");
            return good.then(|| name.clone()).ok_or_else(|| (problem(), "use 1 to 64 of A-Z a-z 0-9 _ -".to_owned()));
        }
        let folder = std::path::absolute(&self.folder).ok();
        let own = folder.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy().to_lowercase();
        let own: String = own.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let own: String = own.trim_matches(|c: char| !c.is_ascii_alphabetic()).chars().take(24).collect();
        let own = own.trim_end_matches('-');
        Ok(if own.is_empty() || own == "workspace" { "tools".to_owned() } else { own.to_owned() })
    }

    fn files(&self, name: &str) -> Vec<Made> {
        let (entry, path, program, runtime) = match self.runtime {
            Runtime::Exec => ("hello", "tools/hello/hello", include_str!("hello.sh"), "exec"),
            Runtime::Python => ("main.py", "tools/hello/main.py", include_str!("hello.py"), "python"),
        };
        let mut more = String::new();
        if self.capability {
            more.push_str(
                "| `operator.yaml` | the surface for whoever operates this: finds and runs every capability |\n",
            );
            more.push_str("| `tools/*/tool.yaml` | the manifests of the capabilities |\n");
        }
        let both = if self.capability { " surface.yaml operator.yaml" } else { "" };
        let find = if self.capability {
            "# any capability, as an operator finds it\ntwodoor call capabilities search=greet --surface operator.yaml\n"
        } else {
            ""
        };
        let filled = |text: &str| {
            text.replace("@BOTH@", both)
                .replace("@FIND@", find)
                .replace("@NAME@", name)
                .replace("@ENTRY@", entry)
                .replace("@RUNTIME@", runtime)
                .replace("@FILES@", &more)
        };
        let made = |path, text: &str, mode| Made { path, text: filled(text), mode };
        let surface = if self.capability { include_str!("capability.yaml") } else { include_str!("surface.yaml") };
        let mut files = vec![made("surface.yaml", surface, 0o666)];
        if self.capability {
            files.push(made("operator.yaml", include_str!("operator.yaml"), 0o666));
            files.push(made("tools/hello/tool.yaml", include_str!("tool.yaml"), 0o666));
        }
        // No program is served that others may write, so it is never made so.
        files.push(made(path, program, 0o755));
        files.push(made("skills/hello/SKILL.md", include_str!("SKILL.md"), 0o666));
        files.push(made("README.md", include_str!("README.md"), 0o666));
        files.push(made(".gitignore", "__pycache__/\n.env\n", 0o666));
        files
    }
}

/// Writes all of the files or none.
fn write(folder: &Path, files: &[Made]) -> Result<(), Problem> {
    for file in files {
        let path = folder.join(file.path);
        if path.symlink_metadata().is_ok() {
            let problem = format!("{} is there already, and nothing was written", path.display());
            return Err((problem, "name another folder, or move the file away".to_owned()));
        }
        // A folder that is a link leads elsewhere.
        let inside = path.ancestors().skip(1).take_while(|ancestor| *ancestor != folder);
        for ancestor in inside {
            if ancestor.symlink_metadata().is_ok_and(|metadata| !metadata.is_dir()) {
                let problem = format!("{} is no folder, and nothing was written", ancestor.display());
                return Err((problem, "name another folder, or move it away".to_owned()));
            }
        }
    }
    let mut made = Undo::default();
    for file in files {
        let path = folder.join(file.path);
        made.folders_of(&path).and_then(|()| made.file(&path, file)).map_err(|error| {
            made.all();
            unwritable(&path, &error)
        })?;
    }
    Ok(())
}

fn unwritable(path: &Path, error: &std::io::Error) -> Problem {
    (format!("{} cannot be written: {error}", path.display()), "name a folder that you may write".to_owned())
}

/// What was made so far.
#[derive(Default)]
struct Undo {
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Undo {
    fn folders_of(&mut self, path: &Path) -> std::io::Result<()> {
        let missing: Vec<_> = path.ancestors().skip(1).take_while(|folder| !folder.exists()).collect();
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder)?;
            self.folders.push(folder.to_owned());
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, file: &Made) -> std::io::Result<()> {
        let mut open = OpenOptions::new().write(true).create_new(true).mode(file.mode).open(path)?;
        self.files.push(path.to_owned());
        open.write_all(file.text.as_bytes())
    }

    fn all(&self) {
        for file in self.files.iter().rev() {
            let _ = fs::remove_file(file);
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}
