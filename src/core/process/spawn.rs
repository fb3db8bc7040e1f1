//! From an argument vector to a running program.
//!
//! Promises: the program is an absolute path, its arguments are a list and never text for a shell,
//! its environment is what is declared here. The only place in the crate that starts a process.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use command_fds::{CommandFdExt as _, FdMapping};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::group::{Group, Leader};
use super::line::{TALK_DESCRIPTOR, TALK_VARIABLE};
use super::survivors::Marker;
use crate::surface::declaration::Variable;

/// Where a program that is declared by name is looked for, and the `PATH` it is given.
pub const FIXED_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The variable by which a process that left its group is still known as part of a call.
pub const CALL_VARIABLE: &str = "TWODOOR_CALL";

/// A program on this machine: an absolute path that may be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program(PathBuf);

impl Program {
    /// Finds a declared program: an absolute path as it stands, a bare name in [`FIXED_PATH`].
    pub fn find(declared: &str) -> Result<Self, SpawnError> {
        Self::find_in(OsStr::new(declared), OsStr::new(FIXED_PATH), None)
    }

    /// Finds a program as the operator's own shell would: also in our `PATH`, and relative to our folder.
    pub fn find_ours(typed: &OsStr) -> Result<Self, SpawnError> {
        let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(FIXED_PATH));
        Self::find_in(typed, &path, std::env::current_dir().ok().as_deref())
    }

    fn find_in(name: &OsStr, path: &OsStr, relative_to: Option<&Path>) -> Result<Self, SpawnError> {
        let name = Path::new(name);
        let is_bare = name.components().count() == 1 && name.file_name() == Some(name.as_os_str());
        if is_bare {
            let mut refused = SpawnError::NoProgram;
            for folder in std::env::split_paths(path).filter(|folder| folder.is_absolute()) {
                match Self::check(folder.join(name)) {
                    Err(SpawnError::NoProgram) => {}
                    Err(error) => refused = error,
                    found => return found,
                }
            }
            return Err(refused);
        }
        match (name.is_absolute(), relative_to) {
            (true, _) => Self::check(name.to_path_buf()),
            (false, Some(folder)) => Self::check(folder.join(name)),
            (false, None) => Err(SpawnError::NoProgram),
        }
    }

    fn check(path: PathBuf) -> Result<Self, SpawnError> {
        if !path.is_file() {
            return Err(SpawnError::NoProgram);
        }
        access(&path, Access::EXEC_OK).map_err(|_| SpawnError::NotExecutable)?;
        Ok(Self(path))
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Its name without folders, which may be told to a peer.
    pub fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// What a program's environment starts from.
#[derive(Debug, Clone)]
pub enum Environment {
    /// `PATH` fixed, `LANG=C.UTF-8`, our `TZ`, and these.
    Minimal(Vec<Variable>),
    /// Ours, for a program that the operator named on the command line.
    Inherited,
}

impl Environment {
    /// The variables in the order in which they are set; a later one replaces an earlier one.
    fn variables(declared: &[Variable]) -> Vec<(OsString, OsString)> {
        let mut variables: Vec<(OsString, OsString)> =
            vec![("PATH".into(), FIXED_PATH.into()), ("LANG".into(), "C.UTF-8".into())];
        variables.extend(std::env::var_os("TZ").map(|zone| ("TZ".into(), zone)));
        for variable in declared {
            let (name, value) = match variable {
                Variable::Literal(name, value) => (name, Some(OsString::from(value))),
                Variable::Inherited(name) => (name, std::env::var_os(name)),
            };
            if let Some(value) = value {
                variables.retain(|(known, _)| known.as_os_str() != OsStr::new(name));
                variables.push((name.into(), value));
            }
        }
        variables
    }

    /// The names that a minimal environment with these declared variables will hold.
    pub fn names(declared: &[Variable]) -> Vec<String> {
        let names = Self::variables(declared).into_iter().map(|(name, _)| name.to_string_lossy().into_owned());
        names.chain([CALL_VARIABLE.to_owned()]).collect()
    }
}

/// A program that is ready to be started.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The program.
    pub program: Program,
    /// Its arguments, without the program.
    pub arguments: Vec<OsString>,
    /// The folder it runs in; ours if absent.
    pub cwd: Option<PathBuf>,
    /// Its environment.
    pub environment: Environment,
    /// What it can read from standard input, which ends there; nothing if absent.
    pub input: Option<Vec<u8>>,
}

/// Why a program was not started. No text here holds a path, an argument or a variable.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is none of that name.
    #[error("the program is not there")]
    NoProgram,
    /// There is one, and we may not execute it.
    #[error("the program is not executable for this server")]
    NotExecutable,
    /// It is neither a binary for this machine nor a script with a `#!` line.
    #[error("the program is neither a binary for this machine nor a script that names its interpreter")]
    NotAProgram,
    /// A script's interpreter, or a binary's loader, is missing.
    #[error("the interpreter or loader that the program names is not there")]
    NoInterpreter,
    /// The folder to run in is missing or may not be entered.
    #[error("the folder to run in is missing or closed to this server")]
    NoFolder,
    /// Arguments and environment together, or one argument, are larger than the system takes.
    #[error("the arguments are too long")]
    TooLong,
    /// No process, memory or descriptor is left.
    #[error("the machine cannot start another process now")]
    NoRoom(#[source] io::Error),
    /// The system refused for another reason.
    #[error("the system refused to start the program")]
    Refused(#[source] io::Error),
}

/// Where standard error of a program that is spoken to goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stderr {
    /// Nowhere.
    Null,
    /// Where ours goes.
    Ours,
    /// To us, on a pipe that has to be read.
    Piped,
}

/// A started program and our ends of its pipes.
pub(super) struct Started {
    pub(super) group: Group,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

/// Whether standard input is a pipe of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stdin {
    Null,
    Piped,
}

/// Starts a program in a process group of its own, with its output on pipes; standard error too, unless it
/// is sent elsewhere. `line` is the program's end of the descriptor to talk on. Must be called within a tokio runtime.
pub(super) fn start(
    launch: &Launch,
    stdin: Stdin,
    stderr: Option<Stderr>,
    line: Option<OwnedFd>,
) -> Result<Started, SpawnError> {
    let marker = Marker::random().map_err(SpawnError::NoRoom)?;
    let mut command = Command::new(launch.program.path());
    command.args(&launch.arguments).process_group(0);
    if let Environment::Minimal(declared) = &launch.environment {
        command.env_clear().envs(Environment::variables(declared));
    }
    command.env(CALL_VARIABLE, marker.to_string());
    if let Some(cwd) = &launch.cwd {
        command.current_dir(cwd);
    }
    command.stdin(if stdin == Stdin::Piped { Stdio::piped() } else { Stdio::null() }).stdout(Stdio::piped());
    command.stderr(match stderr {
        Some(Stderr::Null) => Stdio::null(),
        Some(Stderr::Ours) => Stdio::inherit(),
        Some(Stderr::Piped) | None => Stdio::piped(),
    });
    match line {
        // Ours is about our own descriptors.
        None => drop(command.env_remove(TALK_VARIABLE)),
        Some(parent_fd) => {
            command.env(TALK_VARIABLE, TALK_DESCRIPTOR.to_string());
            let mapping = FdMapping { parent_fd, child_fd: TALK_DESCRIPTOR };
            command.fd_mappings(vec![mapping]).map_err(|error| SpawnError::Refused(io::Error::other(error)))?;
        }
    }
    let mut leader = Leader::start(command, marker).map_err(|error| explain(error, launch))?;
    let pipes = leader.take_pipes();
    // From here on a failure drops the group, which ends the program.
    let group = Group::new(leader).map_err(SpawnError::NoRoom)?;
    Ok(Started {
        group,
        stdin: pipes.stdin.map(ChildStdin::from_std).transpose().map_err(SpawnError::NoRoom)?,
        stdout: pipes.stdout.map(ChildStdout::from_std).transpose().map_err(SpawnError::NoRoom)?,
        stderr: pipes.stderr.map(ChildStderr::from_std).transpose().map_err(SpawnError::NoRoom)?,
    })
}

/// The system gives one number for several conditions; the files tell which it was.
fn explain(error: io::Error, launch: &Launch) -> SpawnError {
    let folder_fails = launch.cwd.as_ref().is_some_and(|cwd| !cwd.is_dir() || access(cwd, Access::EXEC_OK).is_err());
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory if folder_fails => {
            SpawnError::NoFolder
        }
        io::ErrorKind::NotFound if launch.program.path().is_file() => SpawnError::NoInterpreter,
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => SpawnError::NoProgram,
        io::ErrorKind::PermissionDenied => SpawnError::NotExecutable,
        io::ErrorKind::ArgumentListTooLong => SpawnError::TooLong,
        io::ErrorKind::WouldBlock | io::ErrorKind::OutOfMemory => SpawnError::NoRoom(error),
        _ => match Errno::from_io_error(&error) {
            Some(Errno::NOEXEC) => SpawnError::NotAProgram,
            Some(Errno::MFILE | Errno::NFILE) => SpawnError::NoRoom(error),
            _ => SpawnError::Refused(error),
        },
    }
}
