//! Files of earlier revisions, read through git.
//!
//! Promises: git runs nothing that a repository names: no hooks, filters, text conversions, pagers, helpers or
//! remotes; it asks nobody and writes nothing; the configuration of user and machine is not read. A revision is
//! never an option. Output is bounded. The only caller of git in the crate.

use std::ffi::OsString;
use std::path::Path;

use super::{Capture, Ended, Environment, Exit, Launch, Program, SpawnError, run};
use crate::protocol::json::shortened;
use crate::surface::declaration::Variable;

/// Largest file that is read.
pub const FILE_BYTES: usize = 4 * 1024 * 1024;

/// Why a file of a revision cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git.
    #[error("git cannot be run: {0}")]
    NoGit(#[from] SpawnError),
    /// What was asked for cannot be a revision.
    #[error("{0:?} is no revision of a file")]
    Name(String),
    /// Git has no such file.
    #[error("git has no file {name:?}: {said}")]
    NoFile {
        /// What was asked for.
        name: String,
        /// What git said.
        said: String,
    },
    /// The file is larger than [`FILE_BYTES`].
    #[error("the file is larger than {FILE_BYTES} bytes in that revision")]
    TooLarge,
    /// Git was stopped.
    #[error("git was stopped")]
    Stopped,
}

/// Reads what `REVISION:PATH` names, in the repository that a folder is in. `PATH` starts at the top of the
/// repository, or at the folder if it begins with `./`.
pub async fn file_of(folder: &Path, name: &str) -> Result<Vec<u8>, GitError> {
    let sound = name.split_once(':').is_some_and(|(revision, path)| !revision.is_empty() && !path.is_empty());
    if !sound || name.starts_with('-') || name.len() > 4096 || name.chars().any(char::is_control) {
        return Err(GitError::Name(shortened(name, 200)));
    }
    let found = git(folder, &["rev-parse", "--verify", "--end-of-options", name]).await?;
    let object = found.output.trim_ascii().to_vec();
    let object = String::from_utf8(object)
        .ok()
        .filter(|object| matches!(object.len(), 40 | 64) && object.bytes().all(|b| b.is_ascii_hexdigit()));
    let no_file = |said: String| GitError::NoFile { name: shortened(name, 200), said };
    let Some(object) = object.filter(|_| found.ok) else { return Err(no_file(found.said)) };
    let read = git(folder, &["cat-file", "blob", &object]).await?;
    match (read.ok, read.cut) {
        (true, false) => Ok(read.output),
        (_, true) => Err(GitError::TooLarge),
        (false, false) => Err(no_file(read.said)),
    }
}

struct Answer {
    ok: bool,
    output: Vec<u8>,
    cut: bool,
    said: String,
}

async fn git(folder: &Path, arguments: &[&str]) -> Result<Answer, GitError> {
    const SETTINGS: [&str; 6] = [
        "core.fsmonitor=false",
        "core.hooksPath=/dev/null",
        "core.pager=cat",
        "protocol.allow=never",
        "credential.helper=",
        "gc.auto=0",
    ];
    const VARIABLES: [(&str, &str); 8] = [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_NO_REPLACE_OBJECTS", "1"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("HOME", "/nonexistent"),
    ];
    let mut all: Vec<OsString> = vec!["--no-pager".into(), "--no-optional-locks".into(), "--literal-pathspecs".into()];
    all.extend(SETTINGS.iter().flat_map(|setting| [OsString::from("-c"), OsString::from(setting)]));
    all.extend(arguments.iter().map(OsString::from));
    let variables = VARIABLES.iter().map(|(name, value)| Variable::Literal((*name).to_owned(), (*value).to_owned()));
    let launch = Launch {
        program: Program::find("git")?,
        arguments: all,
        cwd: Some(folder.to_owned()),
        environment: Environment::Minimal(variables.collect()),
        input: None,
    };
    match run(launch, std::future::pending()).await? {
        Ended::Stopped => Err(GitError::Stopped),
        Ended::Itself(run) => Ok(Answer {
            ok: matches!(run.exit, Exit::Code(0)),
            cut: run.stdout.is_cut() || run.stdout.total() > u64::try_from(FILE_BYTES).unwrap_or(u64::MAX),
            output: run.stdout.head().to_vec(),
            said: said(&run.stderr),
        }),
    }
}

fn said(stderr: &Capture) -> String {
    let text = String::from_utf8_lossy(&stderr.end(1024)).into_owned();
    let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it did not say why").to_owned();
    shortened(line.strip_prefix("fatal: ").unwrap_or(&line), 200)
}
