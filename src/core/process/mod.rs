//! Child processes: started from an argument vector, watched, and ended whole.
//!
//! Promises: no shell; nothing is inherited but what is declared; output is bounded in memory and never
//! blocks the program; whatever way a call ends, nothing of it is left running after the grace. Never
//! waits for the end of output, which a grandchild may hold open for ever. Logs no argument.
//! Used by the domains of `core`, and by the command line to start a server that it speaks to.

mod group;
mod output;
mod spawn;
mod survivors;

use std::ffi::OsString;
use std::future::Future;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::time::timeout;

pub use group::{Exit, GRACE, Group, become_subreaper, kill_all, reap_orphans, settle};
pub use output::{Capture, STDERR_BYTES, STDOUT_BYTES, STDOUT_TAIL_BYTES};
pub use spawn::{CALL_VARIABLE, Environment, FIXED_PATH, Launch, Program, SpawnError, Stderr};

use spawn::{Stdin, start};

/// How long output is still read after the program has ended while something holds its pipes open.
pub const ABANDON_PIPES: Duration = Duration::from_secs(1);

/// What a program did.
#[derive(Debug)]
pub struct Run {
    /// How it ended.
    pub exit: Exit,
    /// What it wrote to standard output.
    pub stdout: Capture,
    /// What it wrote to standard error: the end alone.
    pub stderr: Capture,
}

/// How a run came to its end.
#[derive(Debug)]
pub enum Ended {
    /// By itself.
    Itself(Run),
    /// Because nobody waited for it any more; nothing of it is left.
    Stopped,
}

/// Runs a program to its end, or until `gone` ends, which stops it.
///
/// Memory is bounded by [`STDOUT_BYTES`], [`STDOUT_TAIL_BYTES`] and [`STDERR_BYTES`]. If this future is
/// dropped, the program and all that it started are stopped all the same. Must be polled in a tokio runtime.
pub async fn run(mut launch: Launch, gone: impl Future<Output = ()>) -> Result<Ended, SpawnError> {
    let input = launch.input.take();
    let stdin = if input.is_some() { Stdin::Piped } else { Stdin::Null };
    let mut started = start(&launch, stdin, None)?;
    let mut stdout = Capture::new(STDOUT_BYTES, STDOUT_TAIL_BYTES);
    let mut stderr = Capture::new(0, STDERR_BYTES);
    tokio::pin!(gone);
    let ended = {
        let read = async {
            tokio::join!(fill(&mut stdout, started.stdout), fill(&mut stderr, started.stderr));
        };
        let feed = async {
            feed(started.stdin, input.unwrap_or_default()).await;
            // Fed or not, only the program's end is an end.
            std::future::pending::<()>().await;
        };
        tokio::pin!(read, feed);
        let mut all_read = false;
        let ended = loop {
            tokio::select! {
                biased;
                () = &mut gone => break false,
                () = started.group.ended() => break true,
                () = &mut read, if !all_read => all_read = true,
                () = &mut feed => {}
            }
        };
        if ended && !all_read {
            tokio::select! {
                biased;
                () = &mut gone => {}
                // Given up where something still holds the pipes: what was read so far is the output.
                _ = timeout(ABANDON_PIPES, &mut read) => {}
            }
        }
        ended
    };
    if !ended {
        started.group.stop().await;
        return Ok(Ended::Stopped);
    }
    let exit = started.group.finish().await;
    Ok(Ended::Itself(Run { exit, stdout, stderr }))
}

async fn fill(capture: &mut Capture, stream: Option<impl tokio::io::AsyncRead + Unpin>) {
    if let Some(stream) = stream {
        capture.fill(stream).await;
    }
}

/// Writes all of the input and closes the pipe. A program that does not want it is not wrong.
async fn feed(stdin: Option<ChildStdin>, input: Vec<u8>) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(&input).await;
    }
}

/// A program that is spoken to: our ends of its standard streams, and the program itself.
#[derive(Debug)]
pub struct Piped {
    /// What it reads; dropped, it sees the end of its input.
    pub stdin: ChildStdin,
    /// What it writes.
    pub stdout: ChildStdout,
    /// The program and all that it started.
    pub group: Group,
}

/// Starts a program to speak to, in our own folder. See [`Group`] for its end.
pub fn spawn_piped(
    program: Program,
    arguments: Vec<OsString>,
    environment: Environment,
    stderr: Stderr,
) -> Result<Piped, SpawnError> {
    let launch = Launch { program, arguments, cwd: None, environment, input: None };
    let started = start(&launch, Stdin::Piped, Some(stderr))?;
    match (started.stdin, started.stdout) {
        (Some(stdin), Some(stdout)) => Ok(Piped { stdin, stdout, group: started.group }),
        _ => Err(SpawnError::Refused(std::io::Error::other("the program was started without its pipes"))),
    }
}
