//! One client of an HTTP server: its connection, its session, its one question.

use anyhow::{Context, Result, ensure};

use crate::check::{Checker, Form};
use crate::connection::Connection;
use crate::wire::{Address, Ask, Era, FIRST_ID, Question, Request};

/// A client that asks one question over and over.
pub struct Client {
    pub connection: Connection,
    at: Address,
    request: Request,
    checker: Checker,
    /// In what form the answer has to come; `None`: in either, as a peer likes.
    form: Option<Form>,
    /// Whether each answer opens a session, which is ended again.
    ends_sessions: bool,
}

impl Client {
    /// Connects and, in the legacy era, opens a session.
    pub async fn open(at: &Address, question: Question, form: Option<Form>) -> Result<Self> {
        let mut connection = Connection::open(&at.host).await?;
        let ends_sessions = question.ask == Ask::Initialize;
        let session = if question.era == Era::Legacy && !ends_sessions {
            Some(open_session(&mut connection, at).await?)
        } else {
            None
        };
        let request = question.post(at, session.as_deref());
        Ok(Self { connection, at: at.clone(), request, checker: Checker::new(question), form, ends_sessions })
    }

    /// Asks under that id and checks the answer.
    pub async fn ask(&mut self, id: u64) -> Result<()> {
        let head = self.connection.exchange(self.request.with_id(id)).await?;
        let body = self.connection.body(&head);
        let form = head.expect_answer(body)?;
        ensure!(self.form.is_none_or(|wanted| form == wanted), "an answer as {form:?}");
        let answered = self.checker.check(form, body)?;
        ensure!(answered == id, "an answer to {answered} instead of {id}");
        if self.ends_sessions {
            let session = head.session.context("no Mcp-Session-Id")?;
            let status = self.connection.exchange(&self.at.delete(&session)).await?.status;
            ensure!((200..300).contains(&status), "HTTP {status} to DELETE");
        }
        Ok(())
    }
}

/// A legacy session, ready to be used.
pub async fn open_session(connection: &mut Connection, at: &Address) -> Result<String> {
    let question = Question { era: Era::Legacy, ask: Ask::Initialize, text: String::new(), tools: 0 };
    let head = connection.exchange(question.post(at, None).with_id(FIRST_ID)).await?;
    let body = connection.body(&head);
    Checker::new(question).check(head.expect_answer(body)?, body)?;
    let session = head.session.context("no Mcp-Session-Id")?;
    let status = connection.exchange(&at.initialized(&session)).await?.status;
    ensure!(status == 202, "HTTP {status} to notifications/initialized");
    Ok(session)
}
