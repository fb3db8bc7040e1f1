//! Plays over HTTP+SSE: one stream for what the server says, a POST on a socket of its own for each message.

use std::collections::VecDeque;
use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::Handle;

use super::http::{Event, Numbering, read_response};
use super::play::Player;
use super::served::Served;
use super::transcript::{Act, Client, Legacy, Said, SaidHead, Transcript};
use super::world::PATIENCE;

pub(crate) struct Sse {
    served: Served,
    /// Where messages are posted to.
    endpoint: String,
    told: Receiver<Event>,
    /// What was said in the answer of a POST alone.
    refusals: VecDeque<String>,
}

/// Begins a request on a socket of its own.
fn send(address: SocketAddr, head: &str, body: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{head}\r\nHost: {address}\r\n\r\n{body}").as_bytes()).unwrap();
    BufReader::new(stream)
}

impl Sse {
    pub(crate) fn open(transcript: &Transcript, legacy: Legacy, runtime: &Handle) -> Self {
        let served = Served::start(transcript, legacy, runtime);
        let input = send(served.address, "GET /sse HTTP/1.1\r\nAccept: text/event-stream", "");
        let (tell, told) = channel();
        std::thread::spawn(move || {
            let mut tell_one = |event| drop(tell.send(event));
            let numbering = Numbering { ids: false, primed: false, endpoint: true };
            let outcome = read_response(input, false, numbering, &mut tell_one);
            tell_one(Event::End(outcome));
        });
        let opened = [told.recv_timeout(PATIENCE), told.recv_timeout(PATIENCE)];
        let [Ok(Event::Head(SaidHead { status: 200, .. })), Ok(Event::Message(endpoint, None))] = opened else {
            panic!("no stream was opened: {opened:?}");
        };
        Self { served, endpoint, told, refusals: VecDeque::new() }
    }

    /// Posts a message. An error that the stream tells too is not heard twice.
    fn post(&mut self, text: &str) -> Result<(), String> {
        let head = format!(
            "POST {} HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {}",
            self.endpoint,
            text.len()
        );
        let (mut status, mut body) = (0, None);
        let numbering = Numbering { ids: false, primed: false, endpoint: false };
        let mut note = |event| match event {
            Event::Head(head) => status = head.status,
            Event::Message(text, _) => body = Some(text),
            Event::Blank(_) | Event::End(_) => {}
        };
        read_response(send(self.served.address, &head, text), false, numbering, &mut note)?;
        match (status, body) {
            (202, None) => {}
            (400, Some(body)) => {
                let value: Value = serde_json::from_str(&body).map_err(|error| format!("{error}: {body}"))?;
                if value.get("id").is_none() {
                    self.refusals.push_back(body);
                }
            }
            (status, body) => return Err(format!("a message is answered with {status} and {body:?}")),
        }
        Ok(())
    }
}

impl Player for Sse {
    fn play(&mut self, client: &Client) -> Result<(), String> {
        match client {
            Client::Send(text) => self.post(text),
            Client::Act(Act::Stop) => self.served.begin_stop(),
            Client::Act(act) if self.served.world.act(act) => Ok(()),
            Client::Act(act) => Err(format!("{act:?} did not come about")),
            other => Err(format!("{other:?} has no meaning over HTTP+SSE")),
        }
    }

    fn listen(&mut self, patience: Duration) -> Said {
        if let Some(refusal) = self.refusals.pop_front() {
            return Said::Message(refusal);
        }
        match self.told.recv_timeout(patience) {
            Ok(Event::Message(text, _)) => Said::Message(text),
            Ok(Event::End(Ok(()))) | Err(RecvTimeoutError::Disconnected) => Said::End,
            Ok(Event::End(Err(problem))) => Said::Message(format!("(the stream broke) {problem}")),
            Ok(other @ (Event::Head(_) | Event::Blank(_))) => Said::Message(format!("(out of place) {other:?}")),
            Err(RecvTimeoutError::Timeout) => Said::Nothing,
        }
    }

    fn finish(&mut self) -> Result<Vec<Said>, String> {
        // Calls that still run may end, then the stream does.
        self.served.stop()?;
        let mut rest = Vec::new();
        loop {
            match self.listen(PATIENCE) {
                Said::End => return Ok(rest),
                Said::Nothing => return Err("the stream does not end after the server has".to_owned()),
                said => rest.push(said),
            }
        }
    }
}
