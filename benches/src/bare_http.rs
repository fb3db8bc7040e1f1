//! The limit of HTTP under hyper: read the body, hand it on, send what comes back.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use anyhow::Result;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::fixed::Answer;

/// An answer's bytes, sent without joining them.
enum Sent {
    Parts([Bytes; 2]),
    Events(std::vec::IntoIter<Bytes>),
}

impl Sent {
    fn new(answer: Answer) -> Self {
        if answer.events.is_empty() {
            return Self::Parts([answer.head.into(), answer.tail]);
        }
        let mut events = answer.events;
        events.push([b"data: ", &answer.head[..], &answer.tail, b"\n\n"].concat().into());
        Self::Events(events.into_iter())
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut *self {
            Self::Parts(parts) => parts.iter_mut().find(|p| !p.is_empty()).map(std::mem::take),
            Self::Events(events) => events.next(),
        };
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Parts(parts) => parts.iter().all(Bytes::is_empty),
            Self::Events(events) => events.len() == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Parts(parts) => SizeHint::with_exact(parts.iter().map(|p| p.len() as u64).sum()),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

/// The body. One of a single frame, as most are, is not copied; any other has room for all of it from the start.
async fn read(mut body: Incoming) -> Result<Bytes, hyper::Error> {
    let length = body.size_hint().exact().unwrap_or(0) as usize;
    let (mut first, mut rest) = (Bytes::new(), Vec::new());
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(data) = frame?.into_data() else { continue };
        if first.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.reserve_exact(length);
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&data);
        }
    }
    Ok(if rest.is_empty() { first } else { rest.into() })
}

fn response(answer: Option<Answer>) -> Result<Response<Sent>> {
    let Some(answer) = answer else { return Ok(Response::builder().status(202).body(Sent::new(Answer::default()))?) };
    let media = if answer.events.is_empty() { "application/json" } else { "text/event-stream" };
    let response = Response::builder().header(header::CONTENT_TYPE, media);
    let response = if answer.opens { response.header("mcp-session-id", "bare") } else { response };
    Ok(response.body(Sent::new(answer))?)
}

/// Prints its URL, then serves until it is killed: `answer` gives the answer to a message, `None` to a notification.
pub async fn serve<A, F>(answer: A) -> Result<()>
where
    A: Fn(Bytes) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Option<Answer>>> + Send,
{
    let answer = Arc::new(answer);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let answer = Arc::clone(&answer);
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| async {
                // A session is nothing here, so there is nothing to end.
                let ends = request.method() == Method::DELETE;
                let body = read(request.into_body()).await?;
                response(if ends { None } else { answer(body).await? })
            });
            // A connection ends with an error whenever the load program drops it.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}
