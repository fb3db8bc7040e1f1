//! The bytes that the server sent, beside what the client made of them: rmcp decodes straight into
//! its own types, which drop the members that they do not know.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use http_body_util::{BodyExt, combinators::BoxBody};
use hyper::{Request, Response, Uri, body::Bytes, body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, ReadBuf},
    net::{TcpListener, TcpStream},
};

/// The streams received so far: one over stdio, one a response over HTTP, in order of their start.
#[derive(Clone, Default)]
pub struct Tap(Arc<Mutex<Vec<Vec<u8>>>>);

impl Tap {
    /// The `result` of each response received so far.
    pub fn results(&self) -> Vec<Value> {
        let streams = self.0.lock().expect("no holder panics");
        let messages = streams.iter().flat_map(|bytes| {
            // A line of stdio or a JSON body is a message as it stands; in an event stream it follows `data:`.
            bytes.split(|b| *b == b'\n').filter_map(|line| {
                let line = line.strip_prefix(b"data:").unwrap_or(line);
                serde_json::from_slice::<Value>(line).ok()
            })
        });
        messages.filter_map(|mut m| m.get_mut("result").map(Value::take)).collect()
    }

    /// Reads from `inner` and keeps what it read.
    pub fn lines<R>(&self, inner: R) -> TappedRead<R> {
        TappedRead { inner, tap: self.clone(), stream: self.begin() }
    }

    fn begin(&self) -> usize {
        let mut streams = self.0.lock().expect("no holder panics");
        streams.push(Vec::new());
        streams.len() - 1
    }

    fn keep(&self, stream: usize, bytes: &[u8]) {
        self.0.lock().expect("no holder panics")[stream].extend_from_slice(bytes);
    }
}

pub struct TappedRead<R> {
    inner: R,
    tap: Tap,
    stream: usize,
}

impl<R: AsyncRead + Unpin> AsyncRead for TappedRead<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.tap.keep(self.stream, &buf.filled()[before..]);
        polled
    }
}

/// Starts a forward proxy on a loopback port. A proxy, and not an address of its own in the URL,
/// so that the server sees its own `Host`.
pub async fn relay(tap: Tap) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let tap = tap.clone();
            let service = service_fn(move |request| forward(request, tap.clone()));
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service));
        }
    });
    Ok(address)
}

type Forwarded = Result<Response<BoxBody<Bytes, hyper::Error>>, Box<dyn std::error::Error + Send + Sync>>;

async fn forward(mut request: Request<Incoming>, tap: Tap) -> Forwarded {
    let authority = request.uri().authority().ok_or("not a request to a proxy")?.to_string();
    let path = request.uri().path_and_query().map_or("/", |p| p.as_str()).parse::<Uri>()?;
    *request.uri_mut() = path;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(TcpStream::connect(authority).await?)).await?;
    tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let stream = tap.begin();
    Ok(response.map(|body| {
        body.map_frame(move |frame| {
            if let Some(bytes) = frame.data_ref() {
                tap.keep(stream, bytes);
            }
            frame
        })
        .boxed()
    }))
}
