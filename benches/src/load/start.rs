//! How long a server takes from its start to its first answer.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::client::Client;
use crate::cores::Cores;
use crate::http::block_on;
use crate::server::{Door, Program, Server};
use crate::stdio::Pipe;
use crate::wire::{Address, Ask, Era, FIRST_ID, Question};

/// Starts in a row; the middle one counts.
const STARTS: usize = 5;

/// One that takes this long hangs.
const AT_MOST: Duration = Duration::from_secs(30);

/// Milliseconds to the first checked answer, and MiB of memory that the server then holds.
pub fn first_answer(program: &Program, cores: Option<Cores>, door: Door) -> Result<[f64; 2]> {
    let mut starts = (0..STARTS).map(|_| start(program, cores, door)).collect::<Result<Vec<_>>>()?;
    starts.sort_by(|one, other| one[0].total_cmp(&other[0]));
    Ok(starts[STARTS / 2])
}

fn start(program: &Program, cores: Option<Cores>, door: Door) -> Result<[f64; 2]> {
    let question = Question { era: Era::Modern, ask: Ask::Discover, text: String::new(), tools: 0 };
    let began = Instant::now();
    let mut server = Server::start(program, cores, AT_MOST)?;
    match door {
        Door::Stdio => {
            let mut pipe = Pipe::open(&mut server, &question)?;
            pipe.send(1)?;
            pipe.receive(&mut server, |_| {})?;
            finish(began, &server)
        }
        Door::Http => {
            let at = Address::read(&server.url()?).context("not a URL")?;
            block_on(async {
                Client::open(&at, question, None).await?.ask(FIRST_ID).await?;
                finish(began, &server)
            })
        }
    }
}

fn finish(began: Instant, server: &Server) -> Result<[f64; 2]> {
    Ok([began.elapsed().as_secs_f64() * 1e3, server.resident()? / 1024.0])
}
