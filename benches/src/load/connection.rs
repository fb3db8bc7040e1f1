//! An HTTP/1.1 connection that stays open, and what comes back on it.

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::check::Form;

/// A connection with at most one request in flight.
pub struct Connection {
    socket: TcpStream,
    buffer: Vec<u8>,
    /// The body that came in chunks, joined.
    joined: Vec<u8>,
}

/// The head of an answer.
pub struct Head {
    pub status: u16,
    pub form: Option<Form>,
    pub session: Option<String>,
    start: usize,
    length: Length,
}

#[derive(Clone, Copy)]
enum Length {
    Known(usize),
    Chunked,
}

impl Connection {
    pub async fn open(host: &str) -> Result<Self> {
        Self::over(TcpStream::connect(host).await?)
    }

    fn over(socket: TcpStream) -> Result<Self> {
        socket.set_nodelay(true)?;
        Ok(Self { socket, buffer: Vec::with_capacity(64 * 1024), joined: Vec::new() })
    }

    /// Sends a request and reads the whole answer.
    pub async fn exchange(&mut self, request: &[u8]) -> Result<Head> {
        let head = self.begin(request).await?;
        let end = match head.length {
            Length::Known(length) => {
                let end = head.start + length;
                self.fill_to(end).await?;
                end
            }
            Length::Chunked => self.join_chunks(head.start).await?,
        };
        ensure!(self.buffer.len() == end, "bytes after the end of an answer");
        Ok(head)
    }

    /// Sends a request and reads the head of the answer.
    pub async fn begin(&mut self, request: &[u8]) -> Result<Head> {
        self.buffer.clear();
        self.socket.write_all(request).await?;
        loop {
            self.fill().await?;
            if let Some(head) = Head::read(&self.buffer)? {
                return Ok(head);
            }
        }
    }

    /// Reads until this was among what came since the request.
    pub async fn await_text(&mut self, text: &str) -> Result<()> {
        while memchr::memmem::find(&self.buffer, text.as_bytes()).is_none() {
            self.fill().await?;
        }
        Ok(())
    }

    /// The body of the answer to the last exchange.
    pub fn body(&self, head: &Head) -> &[u8] {
        match head.length {
            Length::Known(_) => &self.buffer[head.start..],
            Length::Chunked => &self.joined,
        }
    }

    async fn join_chunks(&mut self, mut at: usize) -> Result<usize> {
        self.joined.clear();
        loop {
            let httparse::Status::Complete((used, size)) = httparse::parse_chunk_size(&self.buffer[at..])
                .map_err(|_| anyhow::anyhow!("not the size of a chunk"))?
            else {
                self.fill().await?;
                continue;
            };
            let (start, end) = (at + used, at + used + usize::try_from(size)?);
            self.fill_to(end + 2).await?;
            ensure!(&self.buffer[end..end + 2] == b"\r\n", "a chunk longer than it says");
            self.joined.extend_from_slice(&self.buffer[start..end]);
            at = end + 2;
            if size == 0 {
                return Ok(at);
            }
        }
    }

    async fn fill_to(&mut self, length: usize) -> Result<()> {
        self.buffer.reserve(length.saturating_sub(self.buffer.len()));
        while self.buffer.len() < length {
            self.fill().await?;
        }
        Ok(())
    }

    async fn fill(&mut self) -> Result<()> {
        ensure!(self.socket.read_buf(&mut self.buffer).await? != 0, "the server closed the connection");
        Ok(())
    }
}

impl Head {
    /// `None` while it is not whole.
    fn read(buffer: &[u8]) -> Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(start) = response.parse(buffer)? else { return Ok(None) };
        let status = response.code.unwrap_or_default();
        let (mut form, mut session, mut length) = (None, None, None);
        for header in response.headers {
            if header.name.eq_ignore_ascii_case("content-type") {
                form = match header.value {
                    media if media.starts_with(b"application/json") => Some(Form::Json),
                    media if media.starts_with(b"text/event-stream") => Some(Form::Events),
                    _ => None,
                };
            } else if header.name.eq_ignore_ascii_case("content-length") {
                length = Some(Length::Known(std::str::from_utf8(header.value)?.trim().parse()?));
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                length = Some(Length::Chunked);
            } else if header.name.eq_ignore_ascii_case("mcp-session-id") {
                session = Some(std::str::from_utf8(header.value)?.to_owned());
            }
        }
        let empty = matches!(status, 202 | 204).then_some(Length::Known(0));
        let Some(length) = length.or(empty) else { bail!("an answer without a length") };
        Ok(Some(Self { status, form, session, start, length }))
    }

    /// That it is the answer to a request, in a form.
    pub fn expect_answer(&self, body: &[u8]) -> Result<Form> {
        ensure!(self.status == 200, "HTTP {}: {}", self.status, String::from_utf8_lossy(body));
        self.form.context("an answer that is neither JSON nor an event stream")
    }
}
