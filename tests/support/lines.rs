//! Plays over byte streams: pipes to `transport::stdio` in this process, or the binary's standard streams.

use std::io::{BufRead as _, BufReader, PipeReader, PipeWriter, Read, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use twodoor::protocol::Limits;
use twodoor::transport::{ServeError, stdio};

use super::play::Player;
use super::transcript::{Act, Client, Legacy, Said, Transcript};
use super::world::{PATIENCE, World};

pub(crate) struct Lines {
    input: Option<PipeWriter>,
    said: Receiver<String>,
    far_end: FarEnd,
}

enum FarEnd {
    Pipes {
        world: Arc<World>,
        runtime: Handle,
        stop: Option<oneshot::Sender<()>>,
        served: Option<JoinHandle<Result<(), ServeError>>>,
    },
    Binary {
        child: Child,
    },
}

impl Lines {
    pub(crate) fn pipes(transcript: &Transcript, legacy: Legacy, runtime: &Handle) -> Self {
        let world = World::new(legacy, transcript.shows);
        let engine = world.engine(Limits::default());
        let (stop, stopped) = oneshot::channel::<()>();
        let (their_input, input) = std::io::pipe().unwrap();
        let (output, their_output) = std::io::pipe().unwrap();
        let streams = stdio::Streams::new(OwnedFd::from(their_input), OwnedFd::from(their_output));
        let stopped = async move {
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let served = Some(runtime.spawn(stdio::serve(engine, streams, stopped)));
        let far_end = FarEnd::Pipes { world, runtime: runtime.clone(), stop: Some(stop), served };
        Self { input: Some(input), said: read_lines(output), far_end }
    }

    pub(crate) fn binary() -> Self {
        let (their_input, input) = std::io::pipe().unwrap();
        let (output, their_output): (PipeReader, PipeWriter) = std::io::pipe().unwrap();
        let surface = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/surface.yaml");
        let child = Command::new(env!("CARGO_BIN_EXE_twodoor"))
            .arg("serve")
            .arg(surface)
            .stdin(their_input)
            .stdout(their_output)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { input: Some(input), said: read_lines(output), far_end: FarEnd::Binary { child } }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("the input has ended")?;
        input.write_all(bytes).map_err(|error| format!("cannot be sent: {error}"))
    }
}

/// Whole lines, as they come; a last one without its end is kept apart by a mark.
fn read_lines(output: impl Read + Send + 'static) -> Receiver<String> {
    let (tell, said) = channel();
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            let text = String::from_utf8_lossy(&line);
            let whole = text.strip_suffix('\n').map_or_else(|| format!("(cut) {text}"), str::to_owned);
            if tell.send(whole).is_err() {
                return;
            }
            line.clear();
        }
    });
    said
}

impl Player for Lines {
    fn play(&mut self, client: &Client) -> Result<(), String> {
        match client {
            Client::Send(text) => self.write(format!("{text}\n").as_bytes()),
            Client::Raw(bytes) => self.write(bytes),
            Client::Drip(text) => format!("{text}\n").as_bytes().chunks(1).try_for_each(|byte| self.write(byte)),
            Client::EndOfInput => {
                self.input = None;
                Ok(())
            }
            Client::Act(act) => match &mut self.far_end {
                FarEnd::Pipes { stop, .. } if matches!(act, Act::Stop) => {
                    stop.take().ok_or("stopped twice")?.send(()).map_err(|()| "it has ended".to_owned())
                }
                FarEnd::Pipes { world, .. } if world.act(act) => Ok(()),
                FarEnd::Pipes { .. } => Err(format!("{act:?} did not come about")),
                // Lines are read in their order: a call sent before is known when the next line is read.
                FarEnd::Binary { .. } => Ok(()),
            },
            other => Err(format!("{other:?} has no meaning on a stream")),
        }
    }

    fn listen(&mut self, patience: Duration) -> Said {
        match self.said.recv_timeout(patience) {
            Ok(line) => Said::Message(line),
            Err(RecvTimeoutError::Timeout) => Said::Nothing,
            Err(RecvTimeoutError::Disconnected) => Said::End,
        }
    }

    fn finish(&mut self) -> Result<Vec<Said>, String> {
        self.input = None;
        let mut rest = Vec::new();
        loop {
            match self.listen(PATIENCE) {
                Said::End => break,
                Said::Nothing => return Err("the output does not end after the input has".to_owned()),
                said => rest.push(said),
            }
        }
        match &mut self.far_end {
            FarEnd::Pipes { runtime, served, .. } => {
                let served = served.take().ok_or("finished twice")?;
                match runtime.block_on(served) {
                    Ok(Ok(())) => Ok(rest),
                    other => Err(format!("serving ended with {other:?}")),
                }
            }
            FarEnd::Binary { child } => match child.wait() {
                Ok(status) if status.success() => Ok(rest),
                other => Err(format!("the process ended with {other:?}")),
            },
        }
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        if let Self::Binary { child } = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
