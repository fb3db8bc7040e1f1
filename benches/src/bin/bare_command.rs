//! The limit of a tool that is a program: hyper, and one process a call, whose output is the answer.

use std::borrow::Cow;
use std::process::Stdio;

use anyhow::{Result, ensure};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::process::Command;
use twodoor_benches::{Answer, bare_http};

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Arguments<'a>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

async fn answer(message: Bytes) -> Result<Option<Answer>> {
    let Request { id, params } = serde_json::from_slice(&message)?;
    let mut command = Command::new("printf");
    command.args(["%s", &*params.arguments.text]).stdin(Stdio::null());
    let output = command.output().await?;
    ensure!(output.status.success(), "printf failed");
    let text = serde_json::to_string(&String::from_utf8(output.stdout)?)?;
    let head = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","content":[{{"type":"text","text":{text}}}],"isError":false}}}}"#
    );
    Ok(Some(Answer { head: head.into(), ..Answer::default() }))
}

#[tokio::main]
async fn main() -> Result<()> {
    bare_http::serve(answer).await
}
