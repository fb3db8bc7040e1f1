//! Children for tests: shell scripts that say when they are ready, and what must be gone afterwards.

#![allow(dead_code, reason = "each test binary uses a part of this")]

use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use twodoor::core::process::{Ended, Environment, Launch, Program, Run, become_subreaper, run};

/// Upper bound for whatever is waited for: far above what it takes, so that only a hang meets it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A folder that is removed with its owner; scripts find it as `$1`.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        become_subreaper().unwrap();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("twodoor-children-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The number that a script wrote into a file here, as soon as the line is whole.
    pub(crate) async fn pid(&self, file: &str) -> i32 {
        let path = self.0.join(file);
        until(&format!("{file} is written"), || {
            std::fs::read_to_string(&path).ok().filter(|text| text.ends_with('\n'))?.trim().parse().ok()
        })
        .await
    }

    /// The numbers of all of a hostile script's processes, once it is ready.
    pub(crate) async fn pids(&self, files: &[&str]) -> Vec<i32> {
        self.pid("ready").await;
        let mut pids = Vec::new();
        for file in files {
            pids.push(self.pid(file).await);
        }
        pids
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Looks until there is something to see.
pub(crate) async fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "never happened: {what}");
        sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until a process is gone, and not as a zombie.
pub(crate) async fn vanished(pid: i32) {
    until(&format!("process {pid} is gone"), || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(())).await;
}

/// As [`vanished`], for several.
pub(crate) async fn all_vanished(pids: Vec<i32>) {
    for pid in pids {
        vanished(pid).await;
    }
}

/// `sh -c script sh SCRATCH arguments…`
pub(crate) fn sh(script: &str, scratch: &Scratch, arguments: &[&str]) -> Launch {
    let mut all = vec!["-c".into(), script.into(), "sh".into(), scratch.0.clone().into_os_string()];
    all.extend(arguments.iter().map(Into::into));
    Launch {
        program: Program::find("sh").unwrap(),
        arguments: all,
        cwd: None,
        environment: Environment::Minimal(Vec::new()),
        input: None,
    }
}

/// Runs to the program's own end.
pub(crate) async fn to_the_end(launch: Launch) -> Run {
    match timeout(PATIENCE, run(launch, pending())).await.expect("ends in time").expect("starts") {
        Ended::Itself(run) => run,
        Ended::Stopped => panic!("nobody stopped it"),
    }
}

/// Scripts that resist their end. Each writes a number for every process that must be gone, then `ready`.
pub(crate) const HOSTILE: &[(&str, &[&str], &str)] = &[
    ("ignores TERM", &["a"], r#"trap '' TERM; echo $$ > $1/a; echo 1 > $1/ready; while :; do sleep 1; done"#),
    (
        "forks",
        &["a", "b", "c"],
        r#"sleep 1000 & echo $! > $1/a; sh -c 'sleep 1000 & echo $! > $1/b; wait' sh $1 & echo $$ > $1/c; echo 1 > $1/ready; wait"#,
    ),
    (
        "detaches with a double fork and setsid",
        &["a", "b"],
        r#"(setsid sh -c 'trap "" TERM; echo $$ > $1/b; echo 1 > $1/ready; exec sleep 1000' sh $1 </dev/null >/dev/null 2>&1 &)
           echo $$ > $1/a; sleep 1000"#,
    ),
    (
        "detaches and holds its output open",
        &["a", "b"],
        r#"(setsid sh -c 'echo $$ > $1/b; echo 1 > $1/ready; exec sleep 1000' sh $1 &) ; echo $$ > $1/a; sleep 1000"#,
    ),
    (
        "detaches and clears its environment",
        &["a", "b"],
        r#"(env -i setsid sh -c 'echo $$ > $1/b; echo 1 > $1/ready; exec sleep 1000' sh $1 &) ; echo $$ > $1/a; sleep 1000"#,
    ),
    ("stops itself", &["a"], r#"echo $$ > $1/a; echo 1 > $1/ready; kill -STOP $$; sleep 1000"#),
    (
        "stops itself detached",
        &["a", "b"],
        r#"(setsid sh -c 'echo $$ > $1/b; echo 1 > $1/ready; kill -STOP $$' sh $1 &) ; echo $$ > $1/a; sleep 1000"#,
    ),
    ("writes without end", &["a"], r#"echo $$ > $1/a; echo 1 > $1/ready; exec yes"#),
    ("complains without end", &["a"], r#"echo $$ > $1/a; echo 1 > $1/ready; exec yes >&2"#),
];
