//! `verify` against servers that mean it ill: bounded in time, memory and words, and never deceived.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail by panicking"
)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_twodoor");

/// What was reviewed, and is served by none of them.
const REVIEWED: &str = r#"{"tools":[{"name":"reviewed","inputSchema":{"type":"object"}}]}"#;

/// Runs a command, and says last how much memory it or any that it waited for took at most, in KiB.
const MEASURED: &str = "import resource, subprocess, sys\n\
    code = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL).returncode\n\
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)\n\
    sys.exit(code)\n";

/// More than the largest list takes, far less than what the servers send or could.
const MEMORY_KIB: u64 = 700 * 1024;

/// How each server misbehaves; the codes with which `verify` may end; what it says.
const CASES: [(&str, &[i32], &str); 14] = [
    ("endless", &[2], "at most 1000 are read"),
    ("circle", &[2], "names a cursor that was followed before"),
    ("many", &[1], "does not deliver what was expected"),
    ("too-many", &[2], "100000"),
    ("line", &[2], "is longer than"),
    ("hang", &[2], "no answer to tools/list within"),
    ("other", &[2], ""),
    ("echo", &[1, 2], ""),
    ("twice", &[1], "names that more than one tool has: same"),
    ("keys", &[2], "duplicate key"),
    ("escapes", &[1], "does not deliver what was expected"),
    ("deep", &[2], "nested deeper"),
    ("refuses", &[2], "error -32000"),
    ("plain", &[1], "does not deliver what was expected"),
];

struct Http(Child, String);

impl Http {
    fn start(mode: &str) -> Self {
        let mut child = python(&[&script(), mode, "http"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self(child, format!("http://127.0.0.1:{}/mcp", port.trim()))
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn script() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile.py").to_str().unwrap().to_owned()
}

fn python(arguments: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Verifies the server of each case, all at once, and gives what is wrong with any.
fn wrong(verify: impl Fn(&Path, &str) -> Command + Sync) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("reviewed.json"), REVIEWED).unwrap();
    std::thread::scope(|scope| {
        let (verify, folder) = (&verify, folder.path());
        let one = |(mode, codes, words): (&'static str, &'static [i32], &'static str)| {
            scope.spawn(move || {
                let output = verify(folder, mode).output().unwrap();
                let (stdout, stderr) = (String::from_utf8(output.stdout), String::from_utf8(output.stderr));
                let (stdout, stderr) = (stdout.unwrap(), stderr.unwrap());
                let (said, kib) = stderr.trim_end().rsplit_once('\n').unwrap_or(("", stderr.trim_end()));
                let said = format!("{stdout}{said}");
                let kib: u64 = kib.parse().unwrap_or_else(|_| panic!("{mode}: {stderr}"));
                let clean = |c: char| {
                    c == '\n'
                        || !(c.is_control()
                            || ('\u{202a}'..='\u{202e}').contains(&c)
                            || ('\u{2066}'..='\u{2069}').contains(&c))
                };
                let good = codes.contains(&output.status.code().unwrap())
                    && said.contains(words)
                    && said.chars().all(clean)
                    && said.len() < 32 * 1024
                    && kib < MEMORY_KIB;
                let begin: String = said.chars().take(1500).collect();
                (!good).then(|| format!("{mode}: {:?}, {kib} KiB, {} bytes: {begin:?}", output.status, said.len()))
            })
        };
        let all = CASES.map(one);
        all.into_iter().filter_map(|case| case.join().unwrap()).collect()
    })
}

#[test]
fn over_stdio_a_hostile_server_is_told_or_not_within_bounds() {
    let wrong = wrong(|folder, mode| {
        let mut command =
            python(&["-c", MEASURED, BINARY, "verify", "reviewed.json", "--", "python3", &script(), mode]);
        command.current_dir(folder);
        command
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn over_http_a_hostile_server_is_told_or_not_within_bounds() {
    let servers = CASES.map(|(mode, ..)| (mode, Http::start(mode)));
    let wrong = wrong(|folder, mode| {
        let url = &servers.iter().find(|(known, _)| *known == mode).unwrap().1.1;
        let mut command = python(&["-c", MEASURED, BINARY, "verify", url, "reviewed.json"]);
        command.current_dir(folder);
        command
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}
