//! Clients that make work for the server while others are measured.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use crate::check::Form;
use crate::client::Client;
use crate::connection::Connection;
use crate::wire::{Address, Ask, Era, FIRST_ID, Question};

/// What goes on beside a measurement.
#[derive(Debug, Clone, Copy)]
pub enum Neighbours {
    /// So many connections that call a slow tool all the time.
    Callers(usize),
    /// So many connections that ask for lists and read none.
    SlowReaders(usize),
    /// So many streams on which changes are announced.
    Listeners(usize),
}

/// Requests that a slow reader sends at once: their answers are more than sockets hold.
const UNREAD: usize = 64;

/// Callers begin within this time: as long as the slow tool takes.
const SPREAD: Duration = Duration::from_millis(20);

/// Brings them up. Those who go on become tasks; those who only stay there are tasks that never end.
pub async fn settle(at: &Address, neighbours: Neighbours, tools: usize, tasks: &mut JoinSet<Result<()>>) -> Result<()> {
    let question = |ask, seed: usize| Question { era: Era::Modern, ask, text: format!("neighbour {seed}"), tools };
    match neighbours {
        Neighbours::Callers(count) => {
            for seed in 0..count {
                let mut client = Client::open(at, question(Ask::Slow, seed), Some(Form::Json)).await?;
                // Callers who know nothing of each other do not call in step.
                let later = SPREAD * u32::try_from(seed)? / u32::try_from(count)?;
                tasks.spawn_local(async move {
                    tokio::time::sleep(later).await;
                    for id in FIRST_ID.. {
                        client.ask(id).await?;
                    }
                    Ok(())
                });
            }
        }
        Neighbours::SlowReaders(count) => {
            for seed in 0..count {
                let socket = TcpSocket::new_v4()?;
                socket.set_recv_buffer_size(4096)?;
                let mut socket = socket.connect(at.host.parse()?).await?;
                let mut request = question(Ask::List, seed).post(at, None);
                tasks.spawn_local(async move {
                    for id in (FIRST_ID..).take(UNREAD) {
                        socket.write_all(request.with_id(id)).await.context("a slow reader")?;
                    }
                    std::future::pending().await
                });
            }
        }
        Neighbours::Listeners(count) => {
            let mut listeners = Vec::with_capacity(count);
            for seed in 0..count {
                listeners.push(listen(at, question(Ask::Listen, seed)).await?);
            }
            tasks.spawn_local(async move {
                let _listeners = listeners;
                std::future::pending().await
            });
        }
    }
    Ok(())
}

/// A connection with an acknowledged listen stream.
pub async fn listen(at: &Address, question: Question) -> Result<Connection> {
    let mut connection = Connection::open(&at.host).await?;
    let head = connection.begin(question.post(at, None).with_id(FIRST_ID)).await?;
    ensure!(head.status == 200 && head.form == Some(Form::Events), "HTTP {} to subscriptions/listen", head.status);
    connection.await_text("notifications/subscriptions/acknowledged").await?;
    Ok(connection)
}
