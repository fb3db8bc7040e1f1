//! Plays one transcript one way, and tells what differs by showing the transcript.

use std::fmt::Write as _;
use std::time::Duration;

use tokio::runtime::Handle;

use super::http::Http;
use super::lines::Lines;
use super::memory::Memory;
use super::record::{Exchange, Recorder};
use super::sse::Sse;
use super::transcript::{
    Bound, Client, Expected, ExpectedHead, Group, Legacy, Said, SaidHead, Transcript, Way, glob, matches, short,
    substitute,
};
use super::world::PATIENCE;

/// The far end of a transcript.
pub(crate) trait Player {
    /// Does what the client does.
    fn play(&mut self, client: &Client) -> Result<(), String>;
    /// What the server says next.
    fn listen(&mut self, patience: Duration) -> Said;
    /// Leaves the stream of the latest request open.
    fn leave_open(&mut self) {}
    /// The request on whose response the latest message came, where there are such.
    fn exchange(&self) -> Option<Exchange> {
        None
    }
    /// Ends the peer's side; gives what the server said beyond the transcript.
    fn finish(&mut self) -> Result<Vec<Said>, String>;
}

/// How long nothing has to come until a blessing believes that nothing will.
const QUIET: Duration = Duration::from_millis(300);

/// The far end of a transcript, played one way; what it says is written to the folder `RECORD`, if there is one.
pub(crate) fn open(transcript: &Transcript, way: Way, legacy: Legacy, runtime: &Handle) -> Box<dyn Player> {
    let player: Box<dyn Player> = match way {
        Way::Memory => Box::new(Memory::open(transcript, legacy)),
        Way::Pipes => Box::new(Lines::pipes(transcript, legacy, runtime)),
        Way::Binary => Box::new(Lines::binary()),
        Way::Http => Box::new(Http::open(transcript, legacy, runtime)),
        Way::Sse => Box::new(Sse::open(transcript, legacy, runtime)),
    };
    match std::env::var_os("RECORD") {
        Some(folder) => Box::new(Recorder::new(player, &folder, transcript, way)),
        None => player,
    }
}

struct Play<'t> {
    transcript: &'t Transcript,
    player: Box<dyn Player>,
    bound: Bound,
    /// What was said and matched so far, for the report.
    report: String,
}

/// Plays a transcript; the error is the report.
pub(crate) fn play(transcript: &Transcript, way: Way, legacy: Legacy, runtime: &Handle) -> Result<(), String> {
    let player = open(transcript, way, legacy, runtime);
    let report = format!(
        "{}, played over {} with legacy {legacy:?}\n{}",
        transcript.name(),
        way.name(),
        transcript.head.trim_end()
    );
    let mut play = Play { transcript, player, bound: Bound::new(), report };
    play.run().map_err(|problem| format!("{}\n{problem}", play.report))
}

/// Plays a transcript one way, in each of its modes; gives what does not hold. One that is pending must not.
pub(crate) fn failures(transcript: &Transcript, way: Way, runtime: &Handle) -> Vec<String> {
    let mut failed = Vec::new();
    for legacy in &transcript.legacy {
        match (&transcript.pending, play(transcript, way, *legacy, runtime)) {
            (None, Err(report)) => failed.push(report),
            (Some(why), Ok(())) => {
                failed.push(format!("{} passes now: take out `pending: {why}`", transcript.name()));
            }
            (None, Ok(())) | (Some(_), Err(_)) => {}
        }
    }
    failed
}

fn handshake(revision: &str, capabilities: &str) -> [Client; 2] {
    [
        Client::Send(format!(
            r#"{{"jsonrpc":"2.0","id":"open","method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{capabilities},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
        )),
        Client::Send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_owned()),
    ]
}

impl Play<'_> {
    fn run(&mut self) -> Result<(), String> {
        self.open_session()?;
        for group in &self.transcript.groups {
            self.note(&group.prose);
            group.written.iter().for_each(|line| self.note(line));
            self.player.play(&bind(&group.client, &self.bound))?;
            for expected in &group.expected {
                self.expect(expected, group)?;
            }
            if group.open {
                self.note("< open");
                self.player.leave_open();
            } else if matches!(group.client, Client::Http(_)) {
                match self.player.listen(PATIENCE) {
                    Said::End => {}
                    more => return Err(format!("unexpected: < {}", short(&more.to_string()))),
                }
            }
        }
        let more = self.player.finish()?;
        if more.is_empty() {
            return Ok(());
        }
        let more: Vec<_> = more.iter().map(|said| format!("unexpected: < {}", short(&said.to_string()))).collect();
        Err(more.join("\n"))
    }

    fn open_session(&mut self) -> Result<(), String> {
        let Some(session) = &self.transcript.session else { return Ok(()) };
        let (revision, capabilities) = session.split_once(' ').unwrap_or((session, r#"{"elicitation":{}}"#));
        let [initialize, initialized] = handshake(revision, capabilities);
        self.player.play(&initialize)?;
        match self.player.listen(PATIENCE) {
            Said::Message(text) if text.contains(&format!(r#""protocolVersion":"{revision}""#)) => {}
            other => return Err(format!("no session of {revision} was opened: {other}")),
        }
        self.player.play(&initialized)
    }

    fn note(&mut self, text: &str) {
        if !text.trim().is_empty() {
            let _ = write!(self.report, "\n{}", short(text.trim_end()));
        }
    }

    fn expect(&mut self, expected: &Expected, group: &Group) -> Result<(), String> {
        let said = self.player.listen(PATIENCE);
        let (written, fits) = match (expected, &said) {
            (Expected::Message(pattern), Said::Message(text)) => (pattern, matches(pattern, text, &mut self.bound)),
            (Expected::Message(pattern), _) => (pattern, false),
            (Expected::Head(head), Said::Head(said)) => (&head.written, head_fits(head, said, group)),
            (Expected::Head(head), _) => (&head.written, false),
        };
        let written = written.clone();
        if fits {
            self.note(&format!("< {written}"));
            return Ok(());
        }
        Err(format!("expected:   < {written}\ngot:        < {}", short(&said.to_string())))
    }

    /// What the server says to each group, expectations kept where they hold.
    fn bless(&mut self) -> Result<Vec<Vec<String>>, String> {
        self.open_session()?;
        let mut all = Vec::new();
        for group in &self.transcript.groups {
            self.player.play(&bind(&group.client, &self.bound))?;
            let http = matches!(group.client, Client::Http(_));
            let mut lines = Vec::new();
            let mut expected = group.expected.iter();
            loop {
                // Nothing is known to come beyond what is expected; an end is known for HTTP alone.
                let patience = if expected.len() > 0 { PATIENCE } else { QUIET };
                let said = self.player.listen(if http && !group.open { PATIENCE } else { patience });
                let fitting = expected.next();
                let line = match (&said, fitting) {
                    (Said::End | Said::Nothing, _) => break,
                    (Said::Message(text), Some(Expected::Message(pattern)))
                        if matches(pattern, text, &mut self.bound) =>
                    {
                        pattern.clone()
                    }
                    (Said::Head(head), Some(Expected::Head(expected))) if head_fits(expected, head, group) => {
                        expected.written.clone()
                    }
                    (said, _) => said.to_string().replace("io.modelcontextprotocol/", "$io/"),
                };
                lines.push(format!("< {line}"));
            }
            if group.open {
                lines.push("< open".to_owned());
                self.player.leave_open();
            }
            all.push(lines);
        }
        Ok(all)
    }
}

fn bind(client: &Client, bound: &Bound) -> Client {
    match client {
        Client::Send(text) => Client::Send(substitute(text, bound)),
        Client::Drip(text) => Client::Drip(substitute(text, bound)),
        Client::Http(request) => {
            let mut request = request.clone();
            if let Some(text) = request.body.as_ref().and_then(|body| std::str::from_utf8(body).ok()) {
                request.body = Some(substitute(text, bound).into_bytes());
            }
            Client::Http(request)
        }
        other => other.clone(),
    }
}

fn head_fits(expected: &ExpectedHead, said: &SaidHead, group: &Group) -> bool {
    let kind = said.header("content-type");
    let body = group.expected.iter().any(|e| matches!(e, Expected::Message(_)));
    let kind_fits = match (expected.stream, body) {
        (true, _) => {
            kind == Some("text/event-stream")
                && said.header("cache-control") == Some("no-cache")
                && said.header("x-accel-buffering") == Some("no")
        }
        (false, true) => kind == Some("application/json"),
        (false, false) => kind.is_none() && said.header("content-length").is_none_or(|length| length == "0"),
    };
    // A head is never expected to name a session unless it says so.
    let silent = ["mcp-session-id", "allow"];
    let unexpected = silent
        .iter()
        .any(|name| said.header(name).is_some() && !expected.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name)));
    let header_fits = |(name, value): &(String, Option<String>)| match (value, said.header(name)) {
        (None, None) => true,
        (Some(pattern), Some(value)) => pattern == "$any" || glob(pattern, value),
        _ => false,
    };
    said.status == expected.status && kind_fits && !unexpected && expected.headers.iter().all(header_fits)
}

/// Rewrites the expectations of a transcript by what the server says the first way.
pub(crate) fn bless(transcript: &Transcript, runtime: &Handle) -> Result<(), String> {
    let (way, legacy) = (transcript.ways[0], transcript.legacy[0]);
    let player = open(transcript, way, legacy, runtime);
    let mut play = Play { transcript, player, bound: Bound::new(), report: String::new() };
    let said = play.bless()?;
    let _ = play.player.finish();
    let mut text = transcript.head.clone();
    for (group, lines) in transcript.groups.iter().zip(said) {
        text.push_str(&group.prose);
        for line in group.written.iter().chain(&lines) {
            text.push_str(line);
            text.push('\n');
        }
    }
    std::fs::write(&transcript.path, text).map_err(|error| error.to_string())
}
