//! A server under load: its process, its CPU time and its memory.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::time::ClockId;
use nix::unistd::Pid;

use crate::cores::Cores;

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    Http,
    Stdio,
}

/// How to start a server.
#[derive(Debug, Clone)]
pub struct Program {
    pub path: PathBuf,
    pub arguments: Vec<String>,
    pub environment: Vec<(&'static str, String)>,
    /// Whether it may use all cores instead of one.
    pub on_all_cores: bool,
    /// How long it needs before it is as fast as it gets.
    pub warm: Duration,
}

impl Program {
    pub fn new(path: impl Into<PathBuf>, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        Self { path: path.into(), arguments, environment: Vec::new(), on_all_cores: false, warm: Duration::ZERO }
    }

    /// A program that was built beside this one.
    pub fn beside(own: &Path, name: &str, arguments: &[&str]) -> Self {
        Self::new(own.with_file_name(name), arguments)
    }

    #[must_use]
    pub fn with(mut self, variable: &'static str, value: impl ToString) -> Self {
        self.environment.push((variable, value.to_string()));
        self
    }
}

/// A running server. Ends with the value.
pub struct Server {
    child: Child,
    pid: Pid,
    clock: ClockId,
    watchdog: Option<Watchdog>,
    pub input: Option<ChildStdin>,
    pub output: ChildStdout,
}

impl Server {
    /// Starts a server that is killed once it has run for `at_most`: then it hangs.
    pub fn start(program: &Program, cores: Option<Cores>, at_most: Duration) -> Result<Self> {
        // A child inherits the cores of the thread that starts it.
        if let Some(cores) = cores {
            cores.begin_server(program.on_all_cores)?;
        }
        let child = Command::new(&program.path)
            .args(&program.arguments)
            .envs(program.environment.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.path.display()));
        if let Some(cores) = cores {
            cores.begin_load()?;
        }
        let mut child = child?;
        let pid = Pid::from_raw(child.id().try_into()?);
        let (input, output) = (child.stdin.take(), child.stdout.take().context("no stdout")?);
        let watchdog = Some(Watchdog::start(pid, at_most));
        Ok(Self { child, pid, clock: ClockId::pid_cpu_clock_id(pid)?, watchdog, input, output })
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

    /// KiB of memory that it holds now.
    pub fn resident(&self) -> Result<f64> {
        self.status("VmRSS:")
    }

    /// KiB of memory that it ever held.
    pub fn peak(&self) -> Result<f64> {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix(field)).with_context(|| format!("no {field}"))?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    /// Asks it to end and waits until it has.
    pub fn end(mut self) -> Result<()> {
        self.input = None;
        kill(self.pid, Signal::SIGTERM)?;
        self.child.wait()?;
        self.watchdog = None;
        Ok(())
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
