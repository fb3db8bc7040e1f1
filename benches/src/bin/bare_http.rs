//! The limit of HTTP under hyper: read the body, parse it once, send a fixed answer.
//! Prints its URL, then serves until it is killed.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use twodoor_benches::Fixed;

/// An answer's parts, sent without joining them.
#[derive(Default)]
struct Parts([Bytes; 2]);

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let part = self.0.iter_mut().find(|p| !p.is_empty()).map(std::mem::take);
        Poll::Ready(part.map(|p| Ok(Frame::data(p))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.iter().all(Bytes::is_empty)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|p| p.len() as u64).sum())
    }
}

/// The body; a body of one frame, as all of the benchmark's are, is not copied.
async fn read(mut body: Incoming) -> Result<Bytes, hyper::Error> {
    let mut whole = Bytes::new();
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let Ok(data) = frame?.into_data() else { continue };
        whole = if whole.is_empty() { data } else { [whole, data].concat().into() };
    }
    Ok(whole)
}

async fn answer(fixed: &Fixed, request: Request<Incoming>) -> Result<Response<Parts>, anyhow::Error> {
    let body = read(request.into_body()).await?;
    let response = Response::builder().header(header::CONTENT_TYPE, "application/json");
    let response = match fixed.answer(&body) {
        Ok(Some(answer)) => {
            let response = if answer.opens { response.header("mcp-session-id", "bare") } else { response };
            response.body(Parts([answer.head.into(), answer.tail]))
        }
        Ok(None) => response.status(202).body(Parts::default()),
        Err(_) => response.status(400).body(Parts::default()),
    };
    Ok(response?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let fixed = Arc::new(Fixed::new());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/mcp", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let fixed = Arc::clone(&fixed);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(&fixed, request));
            // A connection ends with an error whenever the load program drops it.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(socket), service).await;
        });
    }
}
