//! Reaching a server of somebody else's: an address that was checked and then connected to, TLS where its URL says so.
//!
//! Promises: a name is resolved once, and nothing is connected to that was not checked; a private
//! address is refused unless it was allowed; a certificate is verified by the platform's roots, and no
//! switch turns that off; no redirect is followed, no proxy asked, no cookie kept. Used by this
//! client, and by the HTTP requests of a surface.

mod address;
mod tls;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

pub use address::{Refusal, check};
pub use tls::Trust;

use crate::protocol::invoke::BoxFuture;

/// Connections kept for the next request.
const IDLE: usize = 8;

/// Addresses of one name that are tried.
const TRIED: usize = 4;

/// Longest head of an answer, bytes.
const HEAD_BYTES: usize = 64 * 1024;

/// Whom requests go to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// Whether it is spoken to over TLS.
    pub tls: bool,
    /// A name or an address, one of version 6 without its brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Origin {
    /// `host` or `host:port`, as the `Host` header has it.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }
}

/// Finds the addresses of a name.
pub type Resolve = Arc<dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// How a server may be reached.
#[derive(Clone)]
pub struct Reach {
    /// Whether an address of this machine or of a private network may be connected to.
    pub allow_private: bool,
    /// How long resolving, connecting and the TLS handshake may take together.
    pub within: Duration,
    /// Who vouches for a server.
    pub trust: Trust,
    /// Finds the addresses of a name; the system does if absent.
    pub resolve: Option<Resolve>,
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reach").field("allow_private", &self.allow_private).finish_non_exhaustive()
    }
}

impl Reach {
    /// Public addresses alone, or private ones too; 10 s; the platform's roots.
    pub fn new(allow_private: bool) -> Self {
        Self { allow_private, within: Duration::from_secs(10), trust: Trust::Platform, resolve: None }
    }
}

/// Why no connection came about. No text here holds an address that was resolved.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// The name has no address.
    #[error("its name has no address")]
    NoAddress(#[source] Option<io::Error>),
    /// Every address of it is refused.
    #[error("its address is {0}, which is refused unless `allow_private: true` is declared")]
    Refused(Refusal),
    /// The system could not connect.
    #[error("no connection")]
    Connect(#[source] io::Error),
    /// It took too long.
    #[error("no connection within {0:?}")]
    Time(Duration),
    /// The TLS handshake failed: the certificate is not valid for that name, or no protocol is shared.
    #[error("the TLS handshake failed")]
    Handshake(#[source] io::Error),
    /// The roots of the platform cannot be read.
    #[error("certificates cannot be verified here")]
    Roots(#[source] io::Error),
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// No connection.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The connection ended before the answer, or what came is no HTTP.
    #[error("the connection ended before the answer")]
    Closed(#[source] hyper::Error),
}

/// A connection on which one request after the other is sent.
pub type Sender = SendRequest<Full<Bytes>>;

/// Both halves of a connection.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The connections to one origin.
#[derive(Debug)]
pub struct Pool {
    origin: Origin,
    reach: Reach,
    idle: Mutex<Vec<Sender>>,
}

impl Pool {
    /// None yet: one is made when something is sent.
    pub fn new(origin: Origin, reach: Reach) -> Self {
        Self { origin, reach, idle: Mutex::default() }
    }

    /// Whom they lead to.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Sends a request once, on a connection that is open if there is one; that is to be given back by [`Pool::keep`]
    /// when the answer was read to its end.
    pub async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<(Response<Incoming>, Sender), Unanswered> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let reused = idle.is_some();
            let mut sender = match idle {
                Some(sender) => sender,
                None => self.connect().await?,
            };
            if sender.ready().await.is_err() && reused {
                continue;
            }
            match sender.try_send_request(request).await {
                Ok(response) => return Ok((response, sender)),
                // Only what was not sent at all is sent again.
                Err(mut error) => match error.take_message() {
                    Some(unsent) if reused => request = unsent,
                    _ => return Err(Unanswered::Closed(error.into_error())),
                },
            }
        }
    }

    /// Keeps a connection for the next request.
    pub fn keep(&self, sender: Sender) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE && !sender.is_closed() {
            idle.push(sender);
        }
    }

    async fn connect(&self) -> Result<Sender, Unanswered> {
        let within = self.reach.within;
        let stream = connect(&self.origin, &self.reach, Instant::now() + within).await?;
        let io = TokioIo::new(stream);
        let (sender, connection) =
            Builder::new().max_buf_size(HEAD_BYTES).handshake(io).await.map_err(Unanswered::Closed)?;
        // The task ends with the connection: when its sender and its last body are dropped.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(sender)
    }
}

async fn connect(origin: &Origin, reach: &Reach, until: Instant) -> Result<Box<dyn Stream>, Unreachable> {
    let late = |_| Unreachable::Time(reach.within);
    let found = timeout_at(until, resolve(origin, reach)).await.map_err(late)?;
    let found = found.map_err(|error| Unreachable::NoAddress(Some(error)))?;
    let mut failed = Unreachable::NoAddress(None);
    let mut tried = 0;
    for address in found {
        if !reach.allow_private
            && let Err(refusal) = check(address.ip())
        {
            if tried == 0 {
                failed = Unreachable::Refused(refusal);
            }
            continue;
        }
        if tried == TRIED {
            break;
        }
        tried += 1;
        match timeout_at(until, TcpStream::connect(address)).await.map_err(late)? {
            Ok(stream) => {
                // Only the delay of small writes depends on it.
                let _ = stream.set_nodelay(true);
                return secure(origin, reach, stream, until).await;
            }
            Err(error) => failed = Unreachable::Connect(error),
        }
    }
    Err(failed)
}

async fn secure(
    origin: &Origin,
    reach: &Reach,
    stream: TcpStream,
    until: Instant,
) -> Result<Box<dyn Stream>, Unreachable> {
    if !origin.tls {
        return Ok(Box::new(stream));
    }
    let connector = tls::connector(&reach.trust).await.map_err(Unreachable::Roots)?;
    let name = tls::name(&origin.host).map_err(Unreachable::Handshake)?;
    let handshake = timeout_at(until, connector.connect(name, stream)).await;
    let stream = handshake.map_err(|_| Unreachable::Time(reach.within))?.map_err(Unreachable::Handshake)?;
    Ok(Box::new(stream))
}

async fn resolve(origin: &Origin, reach: &Reach) -> io::Result<Vec<SocketAddr>> {
    if let Some(resolve) = &reach.resolve {
        return resolve(origin.host.clone(), origin.port).await;
    }
    Ok(tokio::net::lookup_host((origin.host.as_str(), origin.port)).await?.collect())
}

/// The body of at most `limit` bytes; `Err(None)` if it is longer.
pub async fn collect(response: Response<Incoming>, limit: usize) -> Result<Bytes, Option<hyper::Error>> {
    let mut body = response.into_body();
    let over = |bytes: u64| usize::try_from(bytes).map_or(true, |bytes| bytes > limit);
    if over(body.size_hint().lower()) {
        return Err(None);
    }
    let mut out = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(bytes) = frame.map_err(Some)?.into_data() else { continue };
        if bytes.len() > limit.saturating_sub(out.len()) {
            return Err(None);
        }
        out.extend_from_slice(&bytes);
    }
    Ok(out.freeze())
}

#[cfg(test)]
mod tests;
