//! A server under load: its process, its core and its CPU time.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::time::ClockId;
use nix::unistd::Pid;

/// Where servers and the load run: on a core of their own each, if there are two.
#[derive(Debug, Clone, Copy)]
pub struct Cores {
    pub server: usize,
    pub load: usize,
}

impl Cores {
    /// The first and the last core that this process may use; `None` if they are the same.
    pub fn choose() -> Option<Self> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let mut cores = (0..CpuSet::count()).filter(|core| allowed.is_set(*core).unwrap_or(false));
        let server = cores.next()?;
        Some(Self { server, load: cores.next_back()? })
    }
}

fn move_to(core: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(core)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// How to start a server.
#[derive(Debug, Clone)]
pub struct Program {
    pub path: PathBuf,
    pub arguments: &'static [&'static str],
}

impl Program {
    /// A program that was built beside this one.
    pub fn beside(own: &Path, name: &str, arguments: &'static [&'static str]) -> Self {
        Self { path: own.with_file_name(name), arguments }
    }
}

/// A running server. Ends with the value.
pub struct Server {
    child: Child,
    clock: ClockId,
    watchdog: Option<Watchdog>,
    pub input: Option<ChildStdin>,
    pub output: ChildStdout,
}

impl Server {
    /// Starts a server that is killed once it has run for `at_most`: then it hangs.
    pub fn start(program: &Program, cores: Option<Cores>, at_most: Duration) -> Result<Self> {
        // A child inherits the core of the thread that starts it.
        if let Some(cores) = cores {
            move_to(cores.server)?;
        }
        let child = Command::new(&program.path)
            .args(program.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.path.display()));
        if let Some(cores) = cores {
            move_to(cores.load)?;
        }
        let mut child = child?;
        let pid = Pid::from_raw(child.id().try_into()?);
        let (input, output) = (child.stdin.take(), child.stdout.take().context("no stdout")?);
        let watchdog = Some(Watchdog::start(pid, at_most));
        Ok(Self { child, clock: ClockId::pid_cpu_clock_id(pid)?, watchdog, input, output })
    }

    /// The URL that an HTTP server prints when it listens.
    pub fn url(&mut self) -> Result<String> {
        let mut line = String::new();
        BufReader::new(&mut self.output).read_line(&mut line)?;
        ensure!(line.starts_with("http://"), "the server printed {line:?} instead of its URL");
        Ok(line.trim_end().to_owned())
    }

    /// User and system time of all its threads so far, those that ended included.
    pub fn cpu(&self) -> Result<Duration> {
        cpu(self.clock)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The watchdog goes first: it must not kill a process id that may be another's by then.
        self.watchdog = None;
        // A stdio server ends with its input.
        self.input = None;
        let until = Instant::now() + Duration::from_millis(50);
        while Instant::now() < until {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Kills a process that outlives its time. Dropped before that, it has no effect.
struct Watchdog {
    called_off: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    fn start(pid: Pid, at_most: Duration) -> Self {
        let (called_off, waits) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            if waits.recv_timeout(at_most) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("the server hangs: killed after {} s", at_most.as_secs());
                let _ = kill(pid, Signal::SIGKILL);
            }
        });
        Self { called_off: Some(called_off), thread: Some(thread) }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.called_off = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// CPU time of the load program itself.
pub fn own_cpu() -> Result<Duration> {
    cpu(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

fn cpu(clock: ClockId) -> Result<Duration> {
    Ok(clock.now()?.into())
}
