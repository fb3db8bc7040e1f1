//! A running program with all that it started, and the end of it.
//!
//! Promises: a [`Group`] that is dropped, stopped or finished leaves no process behind, in its process
//! group or out of it, and no zombie: TERM, a grace, KILL, reaped. The first process stays unreaped
//! until the last is gone, so that no number is signalled that could be somebody else's.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, waitid, waitpid};
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::survivors::{Marker, Orphans, Owner, Process, belonging};

/// Between TERM and KILL.
pub const GRACE: Duration = Duration::from_secs(2);

/// How long a killed process may take to disappear before we stop waiting for it.
const KILLED_WITHIN: Duration = Duration::from_secs(5);
/// The standard streams come before it.
const FIRST_DESCRIPTOR_OF_OURS: i32 = 3;
const PAUSE_FIRST: Duration = Duration::from_millis(2);
const PAUSE_LONGEST: Duration = Duration::from_millis(100);
const ORPHANS_EVERY: Duration = Duration::from_secs(1);

/// The calls whose first process is not reaped yet. Held while one is started or reaped, so that a
/// zombie of ours that is not in it is an orphan.
static CALLS: Mutex<Vec<Owner>> = Mutex::new(Vec::new());
static CALL_ENDED: Notify = Notify::const_new();
static ADOPTS: AtomicBool = AtomicBool::new(false);

fn calls() -> MutexGuard<'static, Vec<Owner>> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It ended itself with this code.
    Code(i32),
    /// A signal of this number ended it.
    Signal(i32),
    /// Somebody else reaped it.
    Unknown,
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Unknown,
        }
    }
}

/// Makes orphaned descendants our children, so that they can be found and reaped. For a process whose
/// children are all started by this module: it reaps any other zombie of its own.
pub fn become_subreaper() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        ADOPTS.store(true, Ordering::Release);
    }
    Ok(())
}

/// Reaps adopted orphans while their call still runs; never ends. To be spawned beside a long-running server. What ends
/// after this was called is seen, whenever the future is first polled.
pub fn reap_orphans() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut ended = signal(SignalKind::child())?;
    Ok(async move {
        while ended.recv().await.is_some() {
            if tokio::task::spawn_blocking(|| reap_adopted(&Process::all())).await.is_err() {
                tracing::warn!("orphans could not be looked for");
            }
            // A storm of short-lived orphans costs one look a second.
            sleep(ORPHANS_EVERY).await;
        }
    })
}

/// Waits until no program that was started here is left; kills what is after `limit`, and gives its number.
pub async fn settle(limit: Duration) -> usize {
    let deadline = Instant::now() + limit;
    loop {
        let ended = CALL_ENDED.notified();
        tokio::pin!(ended);
        ended.as_mut().enable();
        let left = calls().len();
        if left == 0 || timeout_at(deadline, ended).await.is_err() {
            if left > 0 {
                kill_all();
            }
            return left;
        }
    }
}

/// Kills every program that was started here, at once and without waiting. For an exit that cannot wait.
pub fn kill_all() {
    let all = Process::all();
    let running = calls();
    for owner in running.iter() {
        // Listed, so not reaped yet: the group cannot be somebody else's.
        let _ = Pid::from_raw(owner.pid).map(|group| kill_process_group(group, Signal::KILL));
        signal_escaped(owner, &running, &all, Signal::KILL);
    }
}

fn orphans() -> Orphans {
    let we = i32::try_from(std::process::id()).ok().filter(|_| ADOPTS.load(Ordering::Acquire));
    we.map_or(Orphans::Elsewhere, Orphans::Ours)
}

/// Signals what escaped the group; all that belongs to the call is returned.
fn signal_escaped(owner: &Owner, running: &[Owner], all: &[Process], with: Signal) -> Vec<Process> {
    let found = belonging(owner, running, all, orphans(), Marker::of_process);
    for process in found.iter().filter(|process| !process.zombie && process.group != owner.pid) {
        signal_exactly(process, with);
    }
    found
}

/// Signals that process and no other that was given its number since.
#[cfg(target_os = "linux")]
fn signal_exactly(process: &Process, with: Signal) {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    let Ok(held) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    if Process::of(process.pid).is_some_and(|now| now.started == process.started) {
        // It ended meanwhile, or may not be signalled by us: the next look will tell.
        let _ = pidfd_send_signal(held, with);
    }
}

#[cfg(not(target_os = "linux"))]
fn signal_exactly(_: &Process, _: Signal) {}

/// Reaps the zombies in `all` that we adopted.
fn reap_adopted(all: &[Process]) {
    let Orphans::Ours(we) = orphans() else { return };
    let running = calls();
    let adopted = |p: &&Process| p.zombie && p.parent == we && !running.iter().any(|call| call.pid == p.pid);
    for process in all.iter().filter(adopted) {
        // Already reaped by another look: there is nothing left to do.
        let _ = waitpid(Pid::from_raw(process.pid), WaitOptions::NOHANG);
    }
}

/// Our ends of a program's pipes, as the standard library gives them.
pub(super) struct Pipes {
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<ChildStdout>,
    pub(super) stderr: Option<ChildStderr>,
}

/// A call's first process, the leader of its group, until it is reaped.
#[derive(Debug)]
pub(super) struct Leader {
    child: Child,
    owner: Owner,
    exit: Option<Exit>,
}

impl Leader {
    /// Starts a program that is set up to lead its own group and to carry the marker.
    pub(super) fn start(mut command: Command, marker: Marker) -> io::Result<Self> {
        let mut running = calls();
        // Ours are closed on exec anyway; those that we were started with may not be.
        close_fds::set_fds_cloexec(FIRST_DESCRIPTOR_OF_OURS, &[]);
        let child = command.spawn()?;
        let pid = Pid::from_child(&child).as_raw_nonzero().get();
        let started = Process::of(pid).map_or(0, |process| process.started);
        let owner = Owner { pid, started, marker, ending: false };
        running.push(owner);
        Ok(Self { child, owner, exit: None })
    }

    pub(super) fn take_pipes(&mut self) -> Pipes {
        Pipes { stdin: self.child.stdin.take(), stdout: self.child.stdout.take(), stderr: self.child.stderr.take() }
    }

    fn signal_group(&self, with: Signal) {
        // The group cannot be somebody else's before its first process is reaped.
        let _ = kill_process_group(Pid::from_child(&self.child), with);
    }

    /// Whether the first process has ended; it stays unreaped.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that somebody else reaped it.
        !matches!(waitid(WaitId::Pid(Pid::from_child(&self.child)), options), Ok(None))
    }

    fn mark_ending(&self) {
        let mut running = calls();
        running.iter_mut().filter(|call| call.pid == self.owner.pid).for_each(|call| call.ending = true);
    }

    /// Looks for what is left beside the first process, signals what escaped the group if asked to, reaps
    /// what we adopted.
    fn sweep(&self, with: Option<Signal>) -> usize {
        let all = Process::since(self.owner.started);
        let orphans = orphans();
        let found = {
            let running = calls();
            match with {
                Some(with) => signal_escaped(&self.owner, &running, &all, with),
                None => belonging(&self.owner, &running, &all, orphans, Marker::of_process),
            }
        };
        reap_adopted(&all);
        // A zombie comes to us to be reaped, unless orphans go to somebody else.
        found.iter().filter(|process| !process.zombie || orphans != Orphans::Elsewhere).count()
    }

    fn reap(&mut self) -> Option<Exit> {
        let mut running = calls();
        let exit = match self.child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => status.into(),
            Err(_) => Exit::Unknown,
        };
        running.retain(|call| call.pid != self.owner.pid);
        drop(running);
        self.exit = Some(exit);
        CALL_ENDED.notify_waiters();
        Some(exit)
    }

    /// Sweeps on the threads for blocking work; `None` if the runtime is going down.
    async fn swept(self, with: Option<Signal>) -> Option<(Self, usize)> {
        let sweep = move || {
            let left = self.sweep(with);
            (self, left)
        };
        tokio::task::spawn_blocking(sweep).await.ok()
    }

    /// After TERM to the group: TERM to what escaped it, and a grace, which ends early where nothing is left;
    /// then as [`Leader::clear`]. Nobody gets TERM twice, which some programs take for an order not to clean up.
    async fn stop(self) -> Exit {
        let deadline = Instant::now() + GRACE;
        let Some((mut leader, mut left)) = self.swept(Some(Signal::TERM)).await else { return Exit::Unknown };
        // One that was stopped takes its TERM only when it goes on.
        leader.signal_group(Signal::CONT);
        let mut pause = PAUSE_FIRST;
        while (left > 0 || !leader.has_ended()) && Instant::now() < deadline {
            // The end of a process that is not our child gives no signal: it has to be looked for.
            sleep_until(deadline.min(Instant::now() + pause)).await;
            pause = (pause * 2).min(PAUSE_LONGEST);
            match leader.swept(None).await {
                Some(swept) => (leader, left) = swept,
                None => return Exit::Unknown,
            }
        }
        leader.clear().await
    }

    /// KILL until nothing is left, then reaps the first process.
    async fn clear(self) -> Exit {
        let deadline = Instant::now() + KILLED_WITHIN;
        self.mark_ending();
        let mut leader = self;
        let mut pause = PAUSE_FIRST;
        loop {
            leader.signal_group(Signal::KILL);
            let Some((swept, left)) = leader.swept(Some(Signal::KILL)).await else { return Exit::Unknown };
            leader = swept;
            if left == 0 && leader.has_ended() {
                break;
            }
            if Instant::now() >= deadline {
                tracing::warn!(pid = leader.owner.pid, left, "killed processes are still there; giving up on them");
                break;
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_LONGEST);
        }
        leader.reap().unwrap_or(Exit::Unknown)
    }
}

impl Drop for Leader {
    /// The last resort, where no runtime is left to do it in order: KILL, and a short wait on this thread.
    fn drop(&mut self) {
        if self.exit.is_some() {
            return;
        }
        self.mark_ending();
        for _ in 0..100 {
            self.signal_group(Signal::KILL);
            if self.sweep(Some(Signal::KILL)) == 0 && self.reap().is_some() {
                return;
            }
            std::thread::sleep(PAUSE_FIRST);
        }
        // Its number may become somebody else's once we exit, so nobody may look for it any more.
        calls().retain(|call| call.pid != self.owner.pid);
        CALL_ENDED.notify_waiters();
    }
}

/// A running program and all that it started.
///
/// Dropping it stops it as [`Group::stop`] does, in a task of its own that nobody waits for.
#[derive(Debug)]
pub struct Group {
    leader: Option<Leader>,
    ended: Signals,
    runtime: Handle,
}

impl Group {
    pub(super) fn new(leader: Leader) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let ended = signal(SignalKind::child())?;
        Ok(Self { leader: Some(leader), ended, runtime })
    }

    /// Ends when the first process has ended. May be dropped and called again.
    pub async fn ended(&mut self) {
        while let Some(leader) = &self.leader {
            if leader.has_ended() || self.ended.recv().await.is_none() {
                return;
            }
        }
    }

    /// Kills what the first process left behind, and the process itself if it has not ended.
    pub async fn finish(mut self) -> Exit {
        match self.leader.take() {
            // A task of its own: dropped half-way, it would leave the rest to the last resort.
            Some(leader) => self.runtime.spawn(leader.clear()).await.unwrap_or(Exit::Unknown),
            None => Exit::Unknown,
        }
    }

    /// TERM to all of it, a grace of [`GRACE`], KILL to what is left; ends when nothing is. If this future
    /// is dropped, the rest is still done.
    pub async fn stop(mut self) -> Exit {
        match self.hand_over() {
            Some(stopping) => stopping.await.unwrap_or(Exit::Unknown),
            None => Exit::Unknown,
        }
    }

    /// Gives it time to end by itself, as one does that sees its input closed, then stops it.
    pub async fn end_within(mut self, patience: Duration) -> Exit {
        match timeout(patience, self.ended()).await {
            Ok(()) => self.finish().await,
            Err(_) => self.stop().await,
        }
    }

    fn hand_over(&mut self) -> Option<tokio::task::JoinHandle<Exit>> {
        let leader = self.leader.take()?;
        leader.signal_group(Signal::TERM);
        Some(self.runtime.spawn(leader.stop()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        drop(self.hand_over());
    }
}
