//! An upstream that is a program: started with the minimal environment, in the surface's folder.
//!
//! Promises: nothing of our environment reaches it but what is declared; it ends with its connection; the
//! end of what it wrote to standard error goes to the operator's log.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::client::{Pipes, Program};
use crate::core::process::{self, Capture, Environment, Launch, Stderr};
use crate::protocol::invoke::BoxFuture;
use crate::protocol::json::shortened;
use crate::surface::declaration::Variable;

/// How long it may take to end by itself once its input has ended.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Bytes kept of what it writes to standard error: its end, where the reason stands.
const SAID_BYTES: usize = 4096;

/// A program that is started for each connection.
pub(super) fn program(name: &str, path: &Path, arguments: &[String], env: &[Variable], cwd: &Path) -> Program {
    let shown = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
    let (name, path) = (name.to_owned(), path.to_owned());
    let (environment, cwd) = (Environment::Minimal(env.to_vec()), cwd.to_owned());
    let connect = move || -> BoxFuture<'static, io::Result<Pipes>> {
        let started = start(&name, &path, arguments.clone(), environment.clone(), &cwd);
        Box::pin(std::future::ready(started))
    };
    Program { shown, connect: Arc::new(connect) }
}

fn start(name: &str, path: &Path, arguments: Vec<OsString>, environment: Environment, cwd: &Path) -> io::Result<Pipes> {
    let program = path.to_str().map_or(Err(process::SpawnError::NoProgram), process::Program::find);
    let program = program.map_err(io::Error::other)?;
    let launch = Launch { program, arguments, cwd: Some(cwd.to_owned()), environment, input: None };
    let mut piped = process::spawn_to_speak(&launch, Stderr::Piped).map_err(io::Error::other)?;
    let (stderr, name) = (piped.stderr.take(), name.to_owned());
    // Ends with the program, or with what holds its standard error.
    tokio::spawn(async move {
        let mut capture = Capture::new(0, SAID_BYTES);
        if let Some(stderr) = stderr {
            capture.fill(stderr).await;
        }
        let said = capture.end(SAID_BYTES);
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        tracing::info!(upstream = %name, "the upstream's program ended; it said last: {}", shortened(last, 200));
    });
    let group = piped.group;
    Ok(Pipes {
        reader: Box::new(piped.stdout),
        writer: Box::new(piped.stdin),
        end: Box::new(move || {
            Box::pin(async move {
                let _ = group.end_within(END_WITHIN).await;
                None
            })
        }),
    })
}
