//! Children that misbehave: whatever they do, the call ends, memory stays bounded and nothing is left.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may")]

mod children;

use std::future::pending;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;

use children::{HOSTILE, PATIENCE, Scratch, all_vanished, sh, to_the_end, vanished};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;
use tokio::time::timeout;
use twodoor::core::process::{
    Ended, Environment, Exit, Launch, Program, STDERR_BYTES, STDOUT_BYTES, SpawnError, Stderr, reap_orphans, run,
    spawn_piped,
};
use twodoor::surface::declaration::Variable;

#[tokio::test]
async fn arguments_arrive_byte_for_byte_each_as_one() {
    let scratch = Scratch::new();
    let long = "x".repeat(100 * 1024);
    let arguments = ["; rm -rf x", "$(id)", "`id`", "a\nb", "%PATH%", "'\"\\", "*", "", " ", "-rf", "é\u{1b}", &long];
    let run = to_the_end(sh(r#"shift; for a; do printf '%s\0' "$a"; done"#, &scratch, &arguments)).await;
    let expected: Vec<u8> = arguments.iter().flat_map(|a| a.bytes().chain([0])).collect();
    assert_eq!((run.exit, run.stdout.head() == expected), (Exit::Code(0), true));
}

#[tokio::test]
async fn the_environment_is_what_is_declared_and_nothing_else() {
    let scratch = Scratch::new();
    // The test runner's own variables stand for the secrets of a server's environment.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let declared = vec![
        Variable::Literal("COLOR".into(), "no".into()),
        Variable::Inherited("CARGO_PKG_NAME".into()),
        Variable::Inherited("TWODOOR_NEVER_SET".into()),
    ];
    let names = Environment::names(&declared);
    let launch = Launch {
        program: Program::find("env").unwrap(),
        arguments: vec!["-0".into()],
        environment: Environment::Minimal(declared),
        ..sh("", &scratch, &[])
    };
    let run = to_the_end(launch).await;
    let text = String::from_utf8(run.stdout.head().to_vec()).unwrap();
    let mut seen: Vec<&str> = text.split_terminator('\0').collect();
    assert_eq!(seen.iter().map(|v| v.split('=').next().unwrap()).collect::<Vec<_>>().len(), names.len(), "{seen:?}");
    seen.retain(|variable| !variable.starts_with("TZ=") && !variable.starts_with("TWODOOR_CALL="));
    seen.sort_unstable();
    let path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    assert_eq!(seen, ["CARGO_PKG_NAME=twodoor", "COLOR=no", "LANG=C.UTF-8", path]);
    assert!(names.iter().all(|name| text.contains(&format!("{name}="))));
}

#[tokio::test]
async fn the_child_has_the_three_standard_descriptors_only() {
    let scratch = Scratch::new();
    let _listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let _file = std::fs::File::create(scratch.0.join("journal")).unwrap();
    // The shell's own descriptor for the listing is closed again when its name is looked up.
    let run = to_the_end(sh(r#"for f in /proc/$$/fd/*; do [ -e $f ] && echo ${f##*/}; done"#, &scratch, &[])).await;
    assert_eq!(run.stdout.head(), b"0\n1\n2\n");
}

#[tokio::test]
async fn each_way_to_end_is_told_apart() {
    let scratch = Scratch::new();
    for code in [0, 1, 126, 127, 255] {
        let run = to_the_end(sh("exit $2", &scratch, &[&code.to_string()])).await;
        assert_eq!(run.exit, Exit::Code(code));
    }
    assert_eq!(to_the_end(sh("kill -SEGV $$", &scratch, &[])).await.exit, Exit::Signal(11));
    let (killed, ()) = tokio::join!(to_the_end(sh("echo $$ > $1/pid; exec sleep 1000", &scratch, &[])), async {
        let pid = Pid::from_raw(scratch.pid("pid").await).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    });
    assert_eq!(killed.exit, Exit::Signal(9));
}

#[tokio::test]
async fn a_cancelled_call_leaves_nothing_whatever_its_program_does() {
    for (name, pids, script) in HOSTILE {
        let scratch = Scratch::new();
        let (cancel, cancelled) = oneshot::channel::<()>();
        let call = run(sh(script, &scratch, &[]), async { drop(cancelled.await) });
        let (ended, pids) = tokio::join!(timeout(PATIENCE, call), async {
            let pids = scratch.pids(pids).await;
            cancel.send(()).unwrap();
            pids
        });
        assert!(matches!(ended, Ok(Ok(Ended::Stopped))), "{name}: {ended:?}");
        all_vanished(pids).await;
    }
}

#[tokio::test]
async fn a_dropped_call_leaves_nothing_whatever_its_program_does() {
    for (_, pids, script) in HOSTILE {
        let scratch = Scratch::new();
        let pids = tokio::select! {
            _ = run(sh(script, &scratch, &[]), pending()) => panic!("it does not end by itself"),
            pids = scratch.pids(pids) => pids,
        };
        all_vanished(pids).await;
    }
}

#[test]
fn a_runtime_that_goes_down_leaves_nothing() {
    let (_, pids, script) = HOSTILE[2];
    let scratch = Scratch::new();
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let first = runtime();
    first.spawn(run(sh(script, &scratch, &[]), pending()));
    let pids = first.block_on(scratch.pids(pids));
    drop(first);
    runtime().block_on(all_vanished(pids));
}

#[tokio::test]
async fn a_program_that_takes_its_term_has_time_to_clean_up() {
    let scratch = Scratch::new();
    let script =
        r#"trap 'sleep 0.3; echo 1 > $1/cleaned; exit 0' TERM; echo 1 > $1/ready; while :; do sleep 0.05; done"#;
    tokio::select! {
        _ = run(sh(script, &scratch, &[]), pending()) => panic!("it does not end by itself"),
        _ = scratch.pid("ready") => {}
    }
    scratch.pid("cleaned").await;
}

#[tokio::test]
async fn a_grandchild_that_holds_the_output_does_not_hold_the_outcome() {
    for script in ["sleep 1000 & echo $! > $1/pid; echo done", "setsid sleep 1000 & echo $! > $1/pid; echo done"] {
        let scratch = Scratch::new();
        let run = to_the_end(sh(script, &scratch, &[])).await;
        assert_eq!((run.exit, run.stdout.head()), (Exit::Code(0), &b"done\n"[..]));
        vanished(scratch.pid("pid").await).await;
    }
}

#[tokio::test]
async fn what_a_finished_program_left_in_the_background_is_ended() {
    let scratch = Scratch::new();
    let script = "(setsid sh -c 'echo $$ > $1/pid; exec sleep 1000' sh $1 </dev/null >/dev/null 2>&1 &)
                  while ! [ -s $1/pid ]; do sleep 0.01; done; exit 4";
    let run = to_the_end(sh(script, &scratch, &[])).await;
    assert_eq!(run.exit, Exit::Code(4));
    assert!(!std::path::Path::new(&format!("/proc/{}", scratch.pid("pid").await)).exists(), "gone before the outcome");
}

fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_flood_is_read_to_its_end_in_bounded_memory() {
    let scratch = Scratch::new();
    let before = memory("VmRSS:");
    let run = to_the_end(sh("head -c 1073741824 /dev/zero | tr '\\0' a; echo end", &scratch, &[])).await;
    assert_eq!((run.exit, run.stdout.total(), run.stdout.is_cut()), (Exit::Code(0), (1 << 30) + 4, true));
    assert_eq!((run.stdout.head().len(), run.stdout.end(5)), (STDOUT_BYTES, b"aend\n".to_vec()));
    let grown = memory("VmHWM:").saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB");
}

#[tokio::test]
async fn standard_error_keeps_its_end() {
    let scratch = Scratch::new();
    let run = to_the_end(sh("head -c 5000000 /dev/zero >&2; echo last >&2; exit 1", &scratch, &[])).await;
    assert_eq!((run.stderr.total(), run.stderr.end(usize::MAX).len()), (5_000_005, STDERR_BYTES));
    assert!(run.stderr.end(6).ends_with(b"\0last\n"));
}

#[tokio::test]
async fn the_capture_is_exact_one_below_at_and_one_above_its_limit() {
    let scratch = Scratch::new();
    for (bytes, cut) in [(STDOUT_BYTES - 1, false), (STDOUT_BYTES, false), (STDOUT_BYTES + 1, true)] {
        let run = to_the_end(sh("head -c $2 /dev/urandom", &scratch, &[&bytes.to_string()])).await;
        assert_eq!((run.stdout.is_cut(), run.stdout.head().len()), (cut, bytes.min(STDOUT_BYTES)));
    }
}

#[tokio::test]
async fn input_is_fed_and_ended_and_need_not_be_read() {
    let scratch = Scratch::new();
    let much = vec![b'x'; 3_000_000];
    let fed = |script: &str| Launch { input: Some(much.clone()), ..sh(script, &scratch, &[]) };
    assert_eq!(to_the_end(fed("wc -c")).await.stdout.head().trim_ascii(), b"3000000");
    assert_eq!(to_the_end(fed("cat")).await.stdout.head().len(), 3_000_000);
    assert_eq!(to_the_end(fed("exit 7")).await.exit, Exit::Code(7));
    assert_eq!(to_the_end(fed("exec 0<&-; sleep 0.1; echo fine")).await.stdout.head(), b"fine\n");
    assert_eq!(to_the_end(fed("head -c 4; exit 0")).await.stdout.head(), b"xxxx");
    assert_eq!(to_the_end(sh("wc -c", &scratch, &[])).await.stdout.head().trim_ascii(), b"0");
}

#[tokio::test]
async fn a_program_may_close_its_output_early() {
    let scratch = Scratch::new();
    let run = to_the_end(sh("exec >&- 2>&-; sleep 0.1; exit 3", &scratch, &[])).await;
    assert_eq!((run.exit, run.stdout.total()), (Exit::Code(3), 0));
}

async fn refusal(launch: impl Fn() -> Launch) -> SpawnError {
    loop {
        match run(launch(), pending()).await {
            // A child that another test is just starting still holds the freshly written script open.
            Err(SpawnError::Refused(error)) if error.kind() == ErrorKind::ExecutableFileBusy => {}
            started => return started.expect_err("does not start"),
        }
    }
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let scratch = Scratch::new();
    let write = |name: &str, text: &str, mode: u32| {
        let path = scratch.0.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        Program::find(path.to_str().unwrap())
    };
    assert!(matches!(write("plain", "#!/bin/sh\n", 0o644), Err(SpawnError::NotExecutable)));
    assert!(matches!(Program::find("/"), Err(SpawnError::NoProgram)));
    assert!(matches!(Program::find("./sh"), Err(SpawnError::NoProgram)));
    assert!(matches!(Program::find(""), Err(SpawnError::NoProgram)));
    let start = |program: &Program| Launch { program: program.clone(), ..sh("", &scratch, &[]) };
    let nameless = write("nameless", "echo no interpreter\n", 0o755).unwrap();
    assert!(matches!(refusal(|| start(&nameless)).await, SpawnError::NotAProgram));
    let stray = write("stray", "#!/no/such/interpreter\n", 0o755).unwrap();
    assert!(matches!(refusal(|| start(&stray)).await, SpawnError::NoInterpreter));
    std::fs::remove_file(scratch.0.join("stray")).unwrap();
    assert!(matches!(refusal(|| start(&stray)).await, SpawnError::NoProgram));
    let nowhere = || Launch { cwd: Some(scratch.0.join("gone")), ..sh("exit 0", &scratch, &[]) };
    assert!(matches!(refusal(nowhere).await, SpawnError::NoFolder));
    let long = "x".repeat(200 * 1024);
    assert!(matches!(refusal(|| sh("exit 0", &scratch, &[&long])).await, SpawnError::TooLong));
}

#[tokio::test]
async fn orphans_are_reaped_while_their_call_goes_on() {
    let scratch = Scratch::new();
    let reaper = tokio::spawn(reap_orphans().unwrap());
    let script = "(sh -c 'echo $$ > $1/pid' sh $1 &); exec sleep 1000";
    tokio::select! {
        _ = run(sh(script, &scratch, &[]), pending()) => panic!("it does not end by itself"),
        () = async { vanished(scratch.pid("pid").await).await } => {}
    }
    reaper.abort();
}

#[tokio::test]
async fn a_program_can_be_spoken_to_and_is_ended_whole() {
    let scratch = Scratch::new();
    let piped = |script: &str, stderr| {
        let launch = sh(script, &scratch, &[]);
        spawn_piped(launch.program, launch.arguments, Environment::Inherited, stderr).unwrap()
    };
    let mut polite = piped("cat; echo $CARGO_PKG_NAME; echo noise >&2; exit 5", Stderr::Null);
    polite.stdin.write_all(b"hello\n").await.unwrap();
    let mut line = [0; 6];
    polite.stdout.read_exact(&mut line).await.unwrap();
    drop(polite.stdin);
    let mut rest = String::new();
    polite.stdout.read_to_string(&mut rest).await.unwrap();
    assert_eq!((&line, rest.as_str()), (b"hello\n", "twodoor\n"));
    assert_eq!(polite.group.end_within(PATIENCE).await, Exit::Code(5));

    let mut telling = piped("echo why >&2; exit 1", Stderr::Piped);
    let mut told = String::new();
    telling.stderr.take().unwrap().read_to_string(&mut told).await.unwrap();
    assert_eq!((told.as_str(), telling.group.end_within(PATIENCE).await), ("why\n", Exit::Code(1)));

    let stubborn = piped("trap '' TERM; echo $$ > $1/stubborn; while :; do sleep 1; done", Stderr::Ours);
    let pid = scratch.pid("stubborn").await;
    assert_eq!(timeout(PATIENCE, stubborn.group.stop()).await, Ok(Exit::Signal(9)));
    vanished(pid).await;

    let forgotten = piped("echo $$ > $1/forgotten; exec sleep 1000", Stderr::Null);
    let pid = scratch.pid("forgotten").await;
    drop(forgotten);
    vanished(pid).await;
}
