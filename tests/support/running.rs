//! The binary that a test runs in a folder, and what it says.

#![allow(dead_code, reason = "each test program uses its part")]

use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use crate::common::PATIENCE;

/// The binary, whose state and input are the test's own.
pub(crate) fn twodoor(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_twodoor"));
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1").env("XDG_STATE_HOME", folder.join("state"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Lines as they come.
pub(crate) fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    told
}

/// A server that ends with the test.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) said: Receiver<String>,
}

impl Running {
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = twodoor(folder, &[&["serve"], arguments].concat()).spawn().unwrap();
        let said = lines(child.stderr.take().unwrap());
        Self { child, said }
    }

    /// Waits until standard error says this, and gives what came before and that line.
    #[track_caller]
    pub(crate) fn hears(&self, text: &str) -> (Vec<String>, String) {
        let mut before = Vec::new();
        loop {
            match self.said.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return (before, line),
                Ok(line) => before.push(line),
                Err(error) => panic!("{text:?} was never said: {error}, after {before:#?}"),
            }
        }
    }

    pub(crate) fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }

    pub(crate) fn hang_up(&self) {
        self.signal("-HUP");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The host and port in a line that says where it listens.
pub(crate) fn address(line: &str) -> String {
    line.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned()
}
