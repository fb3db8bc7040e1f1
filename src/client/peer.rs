//! One server, whatever carries its messages.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::Options;
use super::http::{HttpPeer, HttpTarget};
use super::problem::Problem;
use super::stdio::{Pipes, StdioPeer};
use super::wire::Ask;
use crate::protocol::RawJson;
use crate::protocol::invoke::BoxFuture;

/// Starts a server's program and hands over its streams; called once a door.
pub type Connect = Arc<dyn Fn() -> BoxFuture<'static, io::Result<Pipes>> + Send + Sync>;

/// A server that is a program with standard streams.
#[derive(Clone)]
pub struct Program {
    /// The command for a person.
    pub shown: String,
    /// Starts it.
    pub connect: Connect,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Program").field(&self.shown).finish()
    }
}

/// Which server is meant.
#[derive(Debug, Clone)]
pub enum Target {
    /// One behind a URL.
    Http(HttpTarget),
    /// One that is started for each door.
    Program(Program),
}

impl Target {
    /// The address or the command, for a person.
    pub fn shown(&self) -> String {
        match self {
            Self::Http(target) => target.shown(),
            Self::Program(program) => program.shown.clone(),
        }
    }
}

/// An open way to a server.
#[derive(Debug)]
pub(super) enum Peer {
    Stdio(StdioPeer),
    Http(Box<HttpPeer>),
}

impl Peer {
    /// Starts the program; a URL is connected to when something is sent.
    pub(super) async fn connect(target: &Target, options: &Options) -> Result<Self, Problem> {
        match target {
            Target::Http(target) => Ok(Self::Http(Box::new(HttpPeer::new(target.clone(), options)))),
            Target::Program(program) => {
                let (to, within) = (program.shown.clone(), options.connect);
                match tokio::time::timeout(within, (program.connect)()).await {
                    Err(_) => Err(Problem::ConnectTime { to, within }),
                    Ok(Err(source)) => Err(Problem::Connect { to, source }),
                    Ok(Ok(pipes)) => Ok(Self::Stdio(StdioPeer::new(pipes, options))),
                }
            }
        }
    }

    pub(super) async fn request(&self, ask: &Ask<'_>, within: Duration) -> Result<RawJson, Problem> {
        match self {
            Self::Stdio(peer) => peer.request(ask, within).await,
            Self::Http(peer) => peer.request(ask, within).await,
        }
    }

    pub(super) async fn notify(&self, ask: &Ask<'_>, within: Duration) -> Result<(), Problem> {
        let told = async {
            match self {
                Self::Stdio(peer) => peer.notify(ask).await,
                Self::Http(peer) => peer.notify(ask).await,
            }
        };
        match tokio::time::timeout(within, told).await {
            Ok(told) => told,
            Err(_) => Err(Problem::Time { method: ask.method.to_owned(), within, strays: None }),
        }
    }

    /// Whether nothing will come any more, as far as that is known without asking.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Stdio(peer) => peer.is_closed(),
            Self::Http(_) => false,
        }
    }

    /// What came that answers nothing.
    pub(super) fn strays(&self) -> Option<String> {
        match self {
            Self::Stdio(peer) => peer.strays(),
            Self::Http(_) => None,
        }
    }

    /// Ends the session or the program; how it ended, if that is known.
    pub(super) async fn close(self, headers: Vec<(String, String)>) -> Option<String> {
        match self {
            Self::Stdio(peer) => peer.close().await,
            Self::Http(peer) => {
                peer.close(headers).await;
                None
            }
        }
    }
}
