//! The end of the server itself: every program that it started ends with it. In a process of its own,
//! as it is about all children of a process.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]

mod children;

use std::future::pending;
use std::time::Duration;

use children::{HOSTILE, PATIENCE, Scratch, all_vanished, sh, to_the_end};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use twodoor::core::process::{Exit, Launch, SpawnError, kill_all, run, settle};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Starts every hostile script several times; the tasks are the calls.
async fn hostile(times: usize) -> (Vec<tokio::task::JoinHandle<()>>, Vec<i32>, Vec<Scratch>) {
    let (mut calls, mut pids, mut scratches) = (Vec::new(), Vec::new(), Vec::new());
    for (_, files, script) in HOSTILE.iter().cycle().take(HOSTILE.len() * times) {
        let scratch = Scratch::new();
        let launch = sh(script, &scratch, &[]);
        calls.push(tokio::spawn(async move { drop(run(launch, pending()).await) }));
        pids.extend(scratch.pids(files).await);
        scratches.push(scratch);
    }
    (calls, pids, scratches)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_when_all_calls_are_dropped_or_all_are_killed() {
    // What the runtime opens once is no leak.
    to_the_end(sh("exit 0", &Scratch::new(), &[])).await;
    let before = descriptors();

    let (calls, pids, _scratches) = hostile(6).await;
    calls.iter().for_each(|call| call.abort());
    assert_eq!(settle(PATIENCE).await, 0);
    all_vanished(pids).await;

    let (calls, pids, _scratches) = hostile(1).await;
    kill_all();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(settle(PATIENCE).await, 0);
    all_vanished(pids).await;

    let (calls, pids, _scratches) = hostile(1).await;
    assert_eq!(settle(Duration::ZERO).await, calls.len());
    all_vanished(pids).await;
    assert_eq!(settle(PATIENCE).await, 0);

    for _ in 0..100 {
        let launch = Launch { input: Some(b"input".to_vec()), ..sh("cat", &Scratch::new(), &[]) };
        assert_eq!(to_the_end(launch).await.stdout.head(), b"input");
    }
    let children = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
        (fields.next()? == std::process::id().to_string()).then_some(stat)
    });
    assert_eq!(children.collect::<Vec<_>>(), Vec::<String>::new());
    assert_eq!(descriptors(), before);

    let scratch = Scratch::new();
    let limit = getrlimit(Resource::Nofile);
    let none_left = Rlimit { current: Some(3), ..limit };
    setrlimit(Resource::Nofile, none_left).unwrap();
    let refused = run(sh("exit 0", &scratch, &[]), pending()).await;
    setrlimit(Resource::Nofile, limit).unwrap();
    assert!(matches!(refused, Err(SpawnError::NoRoom(_))), "{refused:?}");
    assert_eq!(to_the_end(sh("exit 6", &scratch, &[])).await.exit, Exit::Code(6));
}
