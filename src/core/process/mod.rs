//! Child processes: started from an argument vector, watched, and ended whole.
//!
//! Promises: no shell; nothing is inherited but what is declared; output is bounded in memory and never
//! blocks the program; whatever way a call ends, nothing of it is left running after the grace. Never
//! waits for the end of output, which a grandchild may hold open for ever. Logs no argument.
//! Used by the domains of `core`, and by the command line to start a server that it speaks to.

pub mod git;
mod group;
mod line;
mod output;
mod spawn;
mod survivors;

use std::convert::Infallible;
use std::ffi::OsString;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::oneshot;
use tokio::time::timeout;

pub use group::{Exit, GRACE, Group, become_subreaper, kill_all, reap_orphans, settle};
pub use line::{Line, TALK_DESCRIPTOR, TALK_VARIABLE};
pub use output::{Capture, STDERR_BYTES, STDOUT_BYTES, STDOUT_TAIL_BYTES};
pub use spawn::{CALL_VARIABLE, Environment, FIXED_PATH, Launch, Program, SpawnError, Stderr};

use spawn::{Started, Stdin, start};

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
pub async fn run(launch: Launch, gone: impl Future<Output = ()>) -> Result<Ended, SpawnError> {
    run_on(launch, None, None, gone).await
}

/// As [`run`], for a program of whose output a part is worth nothing: `Err(Overflowed)` where it wrote more than
/// [`STDOUT_BYTES`], at which it was stopped.
pub async fn run_whole(
    launch: Launch,
    gone: impl Future<Output = ()>,
) -> Result<Result<Ended, Overflowed>, SpawnError> {
    let (overflows, overflowed) = oneshot::channel();
    let mut is_over = false;
    let ended = run_on(launch, None, Some(overflows), async {
        tokio::select! {
            () = gone => {}
            () = async {
                if overflowed.await.is_err() {
                    // It ended within its bounds.
                    std::future::pending::<()>().await;
                }
            } => is_over = true,
        }
    });
    let ended = ended.await?;
    let is_cut = matches!(&ended, Ended::Itself(run) if run.stdout.is_cut());
    Ok(if is_over || is_cut { Err(Overflowed) } else { Ok(ended) })
}

/// A program wrote more than is kept of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflowed;

/// As [`run`], for a program that has one descriptor more, on which it can talk to us. Our end stays open until the
/// program has ended, whoever else drops it.
pub async fn run_talking(launch: Launch, line: Line, gone: impl Future<Output = ()>) -> Result<Ended, SpawnError> {
    run_on(launch, Some(line), None, gone).await
}

async fn run_on(
    mut launch: Launch,
    line: Option<Line>,
    overflows: Option<oneshot::Sender<()>>,
    gone: impl Future<Output = ()>,
) -> Result<Ended, SpawnError> {
    let input = launch.input.take();
    let stdin = if input.is_some() { Stdin::Piped } else { Stdin::Null };
    let (theirs, ours) = line.map(Line::split).unzip();
    let started = start(&launch, stdin, None, theirs)?;
    // Held here and nowhere else: when this future is dropped, whoever watches the program knows.
    let (waiting, nobody_waits) = oneshot::channel();
    let mut watching = tokio::spawn(async move {
        let ended = watch(started, input.unwrap_or_default(), overflows, nobody_waits).await;
        drop(ours);
        ended
    });
    tokio::select! {
        biased;
        () = gone => {}
        ended = &mut watching => return Ok(ended.unwrap_or(Ended::Stopped)),
    }
    drop(waiting);
    Ok(watching.await.unwrap_or(Ended::Stopped))
}

/// Watches a program in a task that lives as long as it does, so that its pipes stay open and are read
/// while it is being stopped: closed, they would end it by SIGPIPE before it has cleaned up.
async fn watch(
    mut started: Started,
    input: Vec<u8>,
    overflows: Option<oneshot::Sender<()>>,
    nobody_waits: oneshot::Receiver<Infallible>,
) -> Ended {
    let mut stdout = Capture::new(STDOUT_BYTES, STDOUT_TAIL_BYTES).telling(overflows);
    let mut stderr = Capture::new(0, STDERR_BYTES);
    {
        let pipes = async {
            let output = fill(&mut stdout, started.stdout);
            tokio::join!(feed(started.stdin, input), output, fill(&mut stderr, started.stderr));
        };
        tokio::pin!(pipes);
        let mut closed = false;
        let stopped = async {
            tokio::select! {
                biased;
                _ = nobody_waits => true,
                () = started.group.ended() => false,
            }
        };
        if beside(stopped, pipes.as_mut(), &mut closed).await {
            beside(started.group.stop(), pipes.as_mut(), &mut closed).await;
            return Ended::Stopped;
        }
        if !closed {
            // Given up where something still holds the pipes: what was read so far is the output.
            let _ = timeout(ABANDON_PIPES, pipes).await;
        }
    }
    let exit = started.group.finish().await;
    Ended::Itself(Run { exit, stdout, stderr })
}

/// Waits for one thing while another goes on, which may be done before or go on after.
async fn beside<T>(main: impl Future<Output = T>, mut other: Pin<&mut impl Future<Output = ()>>, done: &mut bool) -> T {
    tokio::pin!(main);
    loop {
        tokio::select! {
            biased;
            value = &mut main => return value,
            () = other.as_mut(), if !*done => *done = true,
        }
    }
}

async fn fill(capture: &mut Capture, stream: Option<impl tokio::io::AsyncRead + Unpin>) {
    if let Some(stream) = stream {
        capture.fill(stream).await;
    }
}

/// Writes all of the input and closes the pipe. A program that does not want it is not wrong. Dropped with
/// the program, so one that never reads does not keep it.
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
    /// What it writes to standard error, if that was to be piped.
    pub stderr: Option<ChildStderr>,
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
    spawn_to_speak(&Launch { program, arguments, cwd: None, environment, input: None }, stderr)
}

/// Starts a program to speak to, where the launch says; its `input` is not used. See [`Group`] for its end.
pub fn spawn_to_speak(launch: &Launch, stderr: Stderr) -> Result<Piped, SpawnError> {
    let started = start(launch, Stdin::Piped, Some(stderr), None)?;
    match (started.stdin, started.stdout) {
        (Some(stdin), Some(stdout)) => Ok(Piped { stdin, stdout, stderr: started.stderr, group: started.group }),
        _ => Err(SpawnError::Refused(std::io::Error::other("the program was started without its pipes"))),
    }
}
