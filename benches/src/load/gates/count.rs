//! The count of what one request costs a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::profile::Counts;
use crate::check::Form;
use crate::client::Client;
use crate::http::block_on;
use crate::server::{Door, Program, Server};
use crate::stdio::Pipe;
use crate::wire::{Address, FIRST_ID, Question};

/// How often is asked before the count, which warms the server up, and until its end.
const ASKED: [u64; 2] = [100, 500];

/// A server under valgrind that takes this long hangs.
const AT_MOST: Duration = Duration::from_secs(180);

/// What a request costs on average.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    pub instructions: f64,
    pub allocations: f64,
}

/// Counts two processes, of which one is asked more often; profiles go to files that begin with `name`.
pub fn cost(program: &Program, door: Door, question: &Question, profiles: &Path, name: &str) -> Result<Cost> {
    let counted = |asked| {
        let profile = profiles.join(format!("{name}.{asked}"));
        run(program, door, question, asked, &profile).with_context(|| format!("{name}, {asked} requests"))
    };
    let [few, many] = ASKED;
    let counts = counted(many)? - counted(few)?;
    let each = |count: u64| count as f64 / (many - few) as f64;
    Ok(Cost { instructions: each(counts.instructions), allocations: each(counts.allocations) })
}

fn run(program: &Program, door: Door, question: &Question, asked: u64, profile: &Path) -> Result<Counts> {
    let log = profile.with_extension(format!("{asked}.log"));
    let _ = fs::remove_file(profile);
    ask(&under_callgrind(program, profile, &log), door, question, asked)
        .and_then(|()| Counts::read(profile))
        .with_context(|| format!("valgrind said: {}", fs::read_to_string(&log).unwrap_or_default().trim()))
}

fn under_callgrind(program: &Program, profile: &Path, log: &Path) -> Program {
    let mut words = vec!["--quiet".to_owned(), "--tool=callgrind".to_owned()];
    words.push(format!("--callgrind-out-file={}", profile.display()));
    words.push(format!("--log-file={}", log.display()));
    words.push(program.path.display().to_string());
    words.extend(program.arguments.iter().cloned());
    let under = Program { path: PathBuf::from("valgrind"), arguments: words, ..program.clone() };
    under.with("TOKIO_WORKER_THREADS", 1)
}

/// Asks one request at a time; every answer is checked.
fn ask(program: &Program, door: Door, question: &Question, asked: u64) -> Result<()> {
    let mut server = Server::start(program, None, AT_MOST)?;
    match door {
        Door::Http => {
            let at = Address::read(&server.url()?).context("not a URL")?;
            block_on(async {
                let mut client = Client::open(&at, question.clone(), Some(Form::Json)).await?;
                for id in (FIRST_ID..).take(usize::try_from(asked)?) {
                    client.ask(id).await?;
                }
                Ok(())
            })?;
        }
        Door::Stdio => {
            let mut pipe = Pipe::open(&mut server, question)?;
            for _ in 0..asked {
                pipe.send(1)?;
                pipe.receive(&mut server, |_| {})?;
            }
        }
    }
    server.end()
}
