//! What a server keeps in memory for each of many that are there and ask nothing.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::check::Form;
use crate::client::{Client, open_session};
use crate::connection::Connection;
use crate::cores::Cores;
use crate::http::block_on;
use crate::neighbours::listen;
use crate::server::{Program, Server};
use crate::wire::{Address, Ask, Era, FIRST_ID, Question};

/// The opening of all of them takes seconds; one that takes this long hangs.
const AT_MOST: Duration = Duration::from_secs(120);

/// What is held.
#[derive(Debug, Clone, Copy)]
pub enum Held {
    /// Connections on which one request was answered.
    Connections,
    /// Legacy sessions without a connection of their own.
    Sessions,
    /// The stream of a legacy session, and its connection.
    Gets,
    /// A stream of `subscriptions/listen`, and its connection.
    Listens,
}

/// KiB that each of so many costs the server.
pub fn each(program: &Program, cores: Option<Cores>, held: Held, count: usize) -> Result<f64> {
    let mut server = Server::start(program, cores, AT_MOST)?;
    let at = Address::read(&server.url()?).context("not a URL")?;
    block_on(async {
        // The first of a kind allocates what all of them share.
        let mut sessions = Connection::open(&at.host).await?;
        let mut kept = vec![open(held, &at, &mut sessions, 0).await?];
        let mut opened = Vec::new();
        if let Held::Gets = held {
            for _ in 0..count {
                opened.push(open_session(&mut sessions, &at).await?);
            }
        }
        let before = server.resident()?;
        for number in 1..=count {
            kept.push(match opened.pop() {
                Some(session) => Some(get(&at, &session).await?),
                None => open(held, &at, &mut sessions, number).await?,
            });
        }
        Ok((server.resident()? - before) / count as f64)
    })
}

/// Opens one; gives what keeps it.
async fn open(held: Held, at: &Address, sessions: &mut Connection, number: usize) -> Result<Option<Connection>> {
    let question = |ask| Question { era: Era::Modern, ask, text: String::new(), tools: 0 };
    Ok(match held {
        Held::Connections => {
            let mut client = Client::open(at, question(Ask::Discover), Some(Form::Json)).await?;
            client.ask(FIRST_ID + number as u64).await?;
            Some(client.connection)
        }
        Held::Sessions => {
            open_session(sessions, at).await?;
            None
        }
        Held::Gets => {
            let session = open_session(sessions, at).await?;
            Some(get(at, &session).await?)
        }
        Held::Listens => Some(listen(at, question(Ask::Listen)).await?),
    })
}

async fn get(at: &Address, session: &str) -> Result<Connection> {
    let mut connection = Connection::open(&at.host).await?;
    let head = connection.begin(&at.get(session)).await?;
    ensure!(head.status == 200 && head.form == Some(Form::Events), "HTTP {} to GET", head.status);
    Ok(connection)
}
