//! Which processes of this machine belong to a call, however far they went to escape it.
//!
//! Promises: a process that left its group (`setsid`, a double fork) is still found, by its ancestors
//! or by the variable its call was given; a process of another call, or of nobody, is not. The
//! decision is a pure function of what `/proc` shows. Where there is no `/proc`, nothing is found.

use std::collections::HashMap;
use std::io::Read as _;
use std::os::unix::fs::DirEntryExt as _;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::{fmt, fs, io, mem};

use super::spawn::CALL_VARIABLE;

/// A random number that a call's processes carry in their environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker(u128);

impl Marker {
    pub(super) fn random() -> io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|_| io::Error::other("the system gives no randomness"))?;
        Ok(Self(u128::from_ne_bytes(bytes)))
    }

    /// The marker in an environment as `/proc/PID/environ` shows it.
    fn in_environment(environment: &[u8]) -> Option<Self> {
        environment.split(|byte| *byte == 0).find_map(|variable| {
            let value = variable.strip_prefix(CALL_VARIABLE.as_bytes())?.strip_prefix(b"=")?;
            u128::from_str_radix(std::str::from_utf8(value).ok()?, 16).ok().map(Self)
        })
    }

    /// The marker of a process; `None` if it has none, cleared it, or may not be read.
    pub(super) fn of_process(pid: i32) -> Option<Self> {
        Self::in_environment(&fs::read(format!("/proc/{pid}/environ")).ok()?)
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A process as `/proc/PID/stat` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// Ended, and waiting for its parent to notice.
    pub(super) zombie: bool,
    /// When it started, in ticks since the machine did; with the pid, one process alone.
    pub(super) started: u64,
}

impl Process {
    /// Reads one line of `stat`. The name in it is the program's own choice, so the last `)` ends it.
    fn parse(stat: &[u8]) -> Option<Self> {
        let end_of_name = stat.iter().rposition(|byte| *byte == b')')?;
        let pid = std::str::from_utf8(stat.split(|byte| *byte == b' ').next()?).ok()?.parse().ok()?;
        let rest = std::str::from_utf8(stat.get(end_of_name + 1..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let zombie = matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        // proc_pid_stat(5): fields 3 to 5 are read, the start time is the 22nd.
        let started = fields.nth(16)?.parse().ok()?;
        Some(Self { pid, parent, group, zombie, started })
    }

    /// The process of that number now.
    pub(super) fn of(pid: i32) -> Option<Self> {
        // The fields up to the start time fit by far; one read is one consistent line.
        let mut line = [0; 1024];
        let length = fs::File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut line).ok()?;
        Self::parse(line.get(..length)?)
    }

    /// Every process that we can see.
    pub(super) fn all() -> Vec<Self> {
        Self::since(0)
    }

    /// Every process that started at that tick or later. Reads only those that are new since the last look:
    /// a start time never changes, and a number that was given to another process has another inode.
    pub(super) fn since(started: u64) -> Vec<Self> {
        let Ok(folder) = fs::read_dir("/proc") else { return Vec::new() };
        let before = mem::take(&mut *SEEN.lock().unwrap_or_else(PoisonError::into_inner));
        let (mut found, mut seen) = (Vec::new(), HashMap::with_capacity(before.len()));
        for entry in folder.filter_map(Result::ok) {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let inode = entry.ino();
            let known = before.get(&pid).filter(|known| known.inode == inode && known.started < started);
            if let Some(known) = known {
                seen.insert(pid, *known);
            } else if let Some(process) = Self::of(pid) {
                seen.insert(pid, Seen { inode, started: process.started });
                found.push(process);
            }
        }
        *SEEN.lock().unwrap_or_else(PoisonError::into_inner) = seen;
        found
    }
}

/// What is remembered of a process that was looked at.
#[derive(Debug, Clone, Copy)]
struct Seen {
    inode: u64,
    started: u64,
}

/// The processes at the last look. Two looks at once cost each other their memory and nothing else.
static SEEN: LazyLock<Mutex<HashMap<i32, Seen>>> = LazyLock::new(Mutex::default);

/// A call's first process: our own child, not yet reaped, so that its number is nobody else's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) pid: i32,
    pub(super) started: u64,
    pub(super) marker: Marker,
    /// Being killed: looks for what is left of it, and so leaves it to no other call to find.
    pub(super) ending: bool,
}

/// Who becomes the parent of a process whose own parent ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Orphans {
    /// We do, whose pid this is: every descendant can be reached from us.
    Ours(i32),
    /// Somebody else: only the group and the marker tell.
    Elsewhere,
}

/// The processes in `all` that belong to `owner`, itself left out; `calls` are all calls that are running.
pub(super) fn belonging(
    owner: &Owner,
    calls: &[Owner],
    all: &[Process],
    orphans: Orphans,
    marker: impl Fn(i32) -> Option<Marker>,
) -> Vec<Process> {
    let leads = |process: &Process| process.pid == owner.pid || calls.iter().any(|call| call.pid == process.pid);
    let escaped = |process: &Process| {
        process.started >= owner.started
            && match orphans {
                Orphans::Ours(we) => process.parent == we && claims(owner, calls, process, marker(process.pid)),
                Orphans::Elsewhere => marker(process.pid) == Some(owner.marker),
            }
    };
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all.iter().filter(|process| !leads(process)) {
        children.entry(process.parent).or_default().push(*process);
    }
    let is_root = |p: &&Process| !leads(p) && (p.parent == owner.pid || p.group == owner.pid || escaped(p));
    let mut waiting: Vec<Process> = all.iter().filter(is_root).copied().collect();
    let mut found: HashMap<i32, Process> = HashMap::new();
    while let Some(process) = waiting.pop() {
        if found.insert(process.pid, process).is_none() {
            waiting.extend(children.get(&process.pid).into_iter().flatten());
        }
    }
    found.into_values().collect()
}

/// Whether an orphan that we adopted is this call's. One that carries no running call's marker, having
/// cleared or overwritten its environment, is this call's if no other call is old enough; one that is
/// ending too may claim it as well, so that of several the last to end does.
fn claims(owner: &Owner, calls: &[Owner], orphan: &Process, marker: Option<Marker>) -> bool {
    let others = || calls.iter().filter(|call| call.pid != owner.pid);
    match marker {
        Some(marker) if marker == owner.marker => true,
        Some(marker) if others().any(|call| call.marker == marker) => false,
        _ => !others().any(|call| !call.ending && call.started <= orphan.started),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WE: i32 = 10;

    fn process(pid: i32, parent: i32, group: i32, started: u64) -> Process {
        Process { pid, parent, group, zombie: false, started }
    }

    fn call(pid: i32, started: u64) -> Owner {
        Owner { pid, started, marker: Marker(u128::from(pid.unsigned_abs())), ending: false }
    }

    fn found(owner: i32, calls: &[Owner], all: &[Process], orphans: Orphans, marked: &[(i32, u128)]) -> Vec<i32> {
        let owner = calls.iter().find(|call| call.pid == owner).unwrap();
        let marker = |pid| marked.iter().find(|(known, _)| *known == pid).map(|(_, value)| Marker(*value));
        let mut pids: Vec<i32> = belonging(owner, calls, all, orphans, marker).iter().map(|p| p.pid).collect();
        pids.sort_unstable();
        pids
    }

    #[test]
    fn a_calls_processes_are_found_and_nobody_elses() {
        let calls = [call(20, 100), call(30, 200)];
        let all = [
            process(1, 0, 1, 1),
            process(WE, 1, WE, 50),
            process(20, WE, 20, 100),
            process(30, WE, 30, 200),
            process(21, 20, 20, 110), // a child
            process(22, 21, 22, 111), // a grandchild in a session of its own
            process(23, WE, 20, 112), // adopted, still in the group
            process(24, WE, 24, 250), // adopted, of another group, marked
            process(25, 24, 25, 251), // its child
            process(26, WE, 26, 150), // adopted, unmarked, older than the other call
            process(27, WE, 27, 260), // adopted, unmarked, as likely of the other call
            process(28, WE, 28, 270), // adopted, marked by the other call
            process(31, 30, 30, 300), // the other call's child
            process(40, 1, 40, 400),  // a stranger
            process(41, WE, 41, 60),  // a child of ours from before
            process(42, WE, 42, 280), // adopted, with the marker of no running call, as likely of the other
        ];
        let marked = [(24, 20), (28, 30), (31, 30), (42, 99)];
        assert_eq!(found(20, &calls, &all, Orphans::Ours(WE), &marked), [21, 22, 23, 24, 25, 26]);
        assert_eq!(found(30, &calls, &all, Orphans::Ours(WE), &marked), [28, 31]);
        assert_eq!(
            found(20, &calls[..1], &all, Orphans::Ours(WE), &marked),
            [21, 22, 23, 24, 25, 26, 27, 28, 30, 31, 42]
        );
    }

    #[test]
    fn of_two_calls_that_end_together_both_claim_what_may_be_of_either() {
        let orphan = [process(26, WE, 26, 300), process(28, WE, 28, 300)];
        let marked = [(28, 30)];
        for (ending, first, second) in [
            ([false, false], &[][..], &[28][..]),
            ([true, false], &[], &[26, 28]),
            ([false, true], &[26], &[28]),
            ([true, true], &[26], &[26, 28]),
        ] {
            let calls = [Owner { ending: ending[0], ..call(20, 100) }, Owner { ending: ending[1], ..call(30, 200) }];
            assert_eq!(found(20, &calls, &orphan, Orphans::Ours(WE), &marked), first, "{ending:?}");
            assert_eq!(found(30, &calls, &orphan, Orphans::Ours(WE), &marked), second, "{ending:?}");
        }
    }

    #[test]
    fn where_orphans_go_elsewhere_the_marker_and_the_group_tell() {
        let calls = [call(20, 100)];
        let all = [
            process(20, WE, 20, 100),
            process(21, 1, 20, 110),
            process(22, 1, 22, 111),
            process(23, 22, 23, 112),
            process(24, 1, 24, 113),
            process(25, WE, 25, 114),
        ];
        assert_eq!(found(20, &calls, &all, Orphans::Elsewhere, &[(22, 20), (24, 7)]), [21, 22, 23]);
    }

    #[test]
    fn a_name_that_imitates_the_line_does_not_mislead() {
        let line = b"77 (a) Z 1 (x) S 5 6 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 9999 1000 10\n";
        let expected = Process { pid: 77, parent: 5, group: 6, zombie: false, started: 9999 };
        assert_eq!(Process::parse(line), Some(expected));
        for bad in [&b""[..], b"x", b"1 (", b"1 (a) S", b"1 (a) S 1 2 3", b"(a)"] {
            assert_eq!(Process::parse(bad), None);
        }
    }

    #[test]
    fn the_marker_is_found_in_an_environment_and_survives_printing() {
        let marker = Marker::random().unwrap();
        let environment = format!("A=b\0X{CALL_VARIABLE}=1\0{CALL_VARIABLE}={marker}\0Z=\0");
        assert_eq!(Marker::in_environment(environment.as_bytes()), Some(marker));
        assert_eq!(Marker::in_environment(b""), None);
        assert_eq!(Marker::in_environment(b"TWODOOR_CALL=zz\0"), None);
    }

    #[test]
    fn we_see_ourselves_and_only_what_started_late_enough() {
        let we = Process::of(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(!we.zombie);
        for _ in 0..3 {
            assert!(Process::all().iter().any(|p| p.pid == we.pid));
            assert!(Process::since(we.started).iter().any(|p| p.pid == we.pid));
            assert!(!Process::since(we.started + 1).iter().any(|p| p.pid == we.pid));
        }
    }
}
