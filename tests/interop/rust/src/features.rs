//! rmcp against interop-server, feature by feature.
//!
//! Each feature has a connection of its own, so that none can spoil the next.

// What the revisions after the handshake replaced is deprecated in rmcp, and is what legacy servers have.
#![allow(deprecated)]

use std::{
    collections::BTreeSet,
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, ClientCapabilities, ClientConfig,
        CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ErrorData,
        GetPromptRequestParams, GetTaskParams, Implementation, ListRootsResult, LoggingLevel,
        LoggingMessageNotificationParam, ProgressNotificationParam, ReadResourceRequestParams,
        ResourceUpdatedNotificationParam, Root, SamplingMessage, ServerNotification, SetLevelRequestParams,
        SubscribeRequestParams, SubscriptionFilter, TaskPayload, TaskStatus, UnsubscribeRequestParams,
    },
    service::{ClientServiceExt, NotificationContext, RequestContext, RunningService, ServiceError},
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{Error, lifecycle};

/// Each feature gets this long; nothing here takes a tenth of it.
const AT_MOST: Duration = Duration::from_secs(20);
const WATCHED: &str = "memo:watched";
const FEATURES: [&str; 14] = [
    "form", "url", "sample", "roots", "progress", "cancel", "lists", "read", "template", "prompt", "complete",
    "updates", "log", "tasks",
];

type Client = RunningService<RoleClient, Arc<Peer>>;

/// What the client's handler was given, and what it answers.
#[derive(Default)]
struct Peer {
    heard: Mutex<Heard>,
    news: Notify,
    answer: Mutex<Value>,
    follows_tasks: bool,
}

#[derive(Default)]
struct Heard {
    asked: Vec<Value>,
    progress: Vec<Value>,
    logs: Vec<Value>,
    updated: Vec<String>,
    tools_changed: usize,
}

impl Peer {
    fn hear(&self, note: impl FnOnce(&mut Heard)) {
        note(&mut self.heard.lock().expect("no holder panics"));
        self.news.notify_waiters();
    }

    fn now<T>(&self, read: impl FnOnce(&mut Heard) -> T) -> T {
        read(&mut self.heard.lock().expect("no holder panics"))
    }

    async fn until(&self, holds: impl Fn(&Heard) -> bool) {
        loop {
            let news = self.news.notified();
            if self.now(|heard| holds(heard)) {
                return;
            }
            news.await;
        }
    }
}

impl ClientHandler for Peer {
    fn get_info(&self) -> ClientConfig {
        let mut declared = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
        if self.follows_tasks {
            declared["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
        }
        let capabilities: ClientCapabilities = serde_json::from_value(declared).unwrap_or_default();
        ClientConfig::new(capabilities, Implementation::new("interop", "1"))
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.hear(|heard| heard.asked.push(json!(params)));
        serde_json::from_value(self.answer.lock().expect("no holder panics").clone())
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        self.hear(|heard| heard.asked.push(json!(params)));
        Ok(CreateMessageResult::new(SamplingMessage::assistant_text("something"), "none".to_owned()))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new("file:///srv/interop")]))
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.hear(|heard| heard.progress.push(json!([told.progress, told.total, told.message])));
    }

    async fn on_logging_message(&self, told: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        self.hear(|heard| heard.logs.push(json!([told.level, told.logger, told.data])));
    }

    async fn on_resource_updated(&self, told: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        self.hear(|heard| heard.updated.push(told.uri));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.hear(|heard| heard.tools_changed += 1);
    }
}

/// How a feature ended, unless it works.
enum Ended {
    None(String),
    Failed(String),
}

impl<E: Into<Error>> From<E> for Ended {
    fn from(error: E) -> Self {
        Self::Failed(error.into().to_string())
    }
}

type Checked = Result<(), Ended>;

fn same(got: impl Serialize, expected: impl Serialize) -> Checked {
    let (got, expected) = (json!(got), json!(expected));
    if got == expected { Ok(()) } else { Err(Ended::Failed(format!("got {got}, expected {expected}"))) }
}

/// Checks every feature and gives the row for the table.
pub async fn row(mode: &str, target: &[String]) -> Value {
    let over_http = matches!(target, [url] if url.starts_with("http"));
    let (mut told, mut revisions) = (serde_json::Map::new(), BTreeSet::new());
    for name in FEATURES {
        let peer = Arc::new(Peer { follows_tasks: name == "tasks", ..Peer::default() });
        let run = async {
            let client = connect(mode, target, over_http, Arc::clone(&peer)).await?;
            let revision = client.peer_info().map(|opened| opened.protocol_version.as_str().to_owned());
            let checked = check(name, &Check { client: &client, peer: &peer, modern: mode != "legacy" }).await;
            client.cancel().await?;
            checked.map(|()| revision)
        };
        let outcome = match tokio::time::timeout(AT_MOST, run).await {
            Ok(Ok(revision)) => {
                revisions.extend(revision);
                json!("ok")
            }
            Ok(Err(Ended::None(why))) => json!({ "none": why }),
            Ok(Err(Ended::Failed(how))) => json!({ "failed": how }),
            Err(_) => json!({ "failed": "nothing came in time" }),
        };
        told.insert(name.to_owned(), outcome);
    }
    json!({
        "client": "rust",
        "mode": mode,
        "transport": if over_http { "http" } else { "stdio" },
        "revision": revisions.into_iter().collect::<Vec<_>>().join(", "),
        "features": told,
    })
}

async fn connect(mode: &str, target: &[String], over_http: bool, peer: Arc<Peer>) -> Result<Client, Ended> {
    if over_http {
        let http = reqwest::Client::builder().no_proxy().build()?;
        let config = StreamableHttpClientTransportConfig::with_uri(target[0].as_str());
        let transport = StreamableHttpClientTransport::with_client(http, config);
        return Ok(peer.serve_with_lifecycle(transport, lifecycle(mode)).await?);
    }
    let (command, rest) = target.split_first().ok_or("no target")?;
    let mut server =
        tokio::process::Command::new(command).args(rest).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(stdin), Some(stdout)) = (server.stdin.take(), server.stdout.take()) else {
        return Err("no pipes".into());
    };
    // It ends by itself once its input does.
    tokio::spawn(async move { server.wait().await });
    Ok(peer.serve_with_lifecycle((stdout, stdin), lifecycle(mode)).await?)
}

struct Check<'c> {
    client: &'c Client,
    peer: &'c Peer,
    modern: bool,
}

async fn check(name: &str, with: &Check<'_>) -> Checked {
    match name {
        "form" => with.form().await,
        "url" => with.url().await,
        "sample" => with.sample().await,
        "roots" => same(with.call("ask_roots", json!({})).await?, "file:///srv/interop"),
        "progress" => with.progress().await,
        "cancel" => with.cancel().await,
        "lists" => with.lists().await,
        "read" => with.read().await,
        "template" => with.template().await,
        "prompt" => with.prompt().await,
        "complete" => with.complete().await,
        "updates" => with.updates().await,
        "log" => with.log().await,
        "tasks" => with.tasks().await,
        _ => Err("no such feature".into()),
    }
}

fn request<T: DeserializeOwned>(params: Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(params)
}

impl Check<'_> {
    async fn call(&self, name: &str, arguments: Value) -> Result<String, Ended> {
        self.call_with(json!({ "name": name, "arguments": arguments })).await
    }

    async fn call_with(&self, params: Value) -> Result<String, Ended> {
        let result = self.client.call_tool(request(params)?).await?;
        let text = result.content.iter().find_map(|c| c.as_text()).map(|t| t.text.clone()).unwrap_or_default();
        if result.is_error == Some(true) { Err(Ended::Failed(format!("the call failed: {text}"))) } else { Ok(text) }
    }

    fn asked(&self) -> Result<Value, Ended> {
        self.peer.now(|heard| heard.asked.pop()).ok_or_else(|| "the client was not asked".into())
    }

    fn answer(&self, answer: Value) {
        *self.peer.answer.lock().expect("no holder panics") = answer;
    }

    async fn form(&self) -> Checked {
        for (answer, said) in [
            (json!({ "action": "accept", "content": { "name": "Ærø" } }), "accept Ærø"),
            (json!({ "action": "decline" }), "decline"),
            (json!({ "action": "cancel" }), "cancel"),
        ] {
            self.answer(answer);
            same(self.call("ask_form", json!({})).await?, said)?;
            let asked = self.asked()?;
            same(&asked["message"], "What is your name?")?;
            same(&asked["requestedSchema"]["required"], ["name"])?;
        }
        Ok(())
    }

    async fn url(&self) -> Checked {
        for action in ["accept", "decline", "cancel"] {
            self.answer(json!({ "action": action }));
            same(self.call("ask_url", json!({})).await?, action)?;
            let asked = self.asked()?;
            same([&asked["mode"], &asked["url"]], ["url", "https://example.com/sign-in"])?;
        }
        Ok(())
    }

    async fn sample(&self) -> Checked {
        same(self.call("ask_sample", json!({})).await?, "something")?;
        same(&self.asked()?["messages"][0]["content"]["text"], "Say something.")
    }

    async fn progress(&self) -> Checked {
        let key = format!("progress {}", self.modern);
        let finish = async {
            self.peer.until(|heard| heard.progress.len() == 3).await;
            self.call("finish", json!({ "key": key })).await
        };
        let (counted, finished) = tokio::join!(self.call("count", json!({ "key": key })), finish);
        same([counted?, finished?], ["counted", "finished"])?;
        let told = self.peer.now(|heard| std::mem::take(&mut heard.progress));
        same(told, json!([[1.0, 3.0, "at 1"], [2.0, 3.0, "at 2"], [3.0, 3.0, "at 3"]]))
    }

    async fn cancel(&self) -> Checked {
        let key = format!("cancel {}", self.modern);
        // rmcp cancels a call whose future is dropped.
        tokio::select! {
            ended = self.call("wait", json!({ "key": key })) => {
                return Err(Ended::Failed(format!("the call was answered: {:?}", ended.ok())));
            }
            () = self.peer.until(|heard| !heard.progress.is_empty()) => {}
        }
        same(self.call("stopped", json!({ "key": key })).await?, "stopped")
    }

    async fn names(&self) -> Result<Vec<String>, Ended> {
        let tools = self.client.list_all_tools().await?;
        Ok(tools.into_iter().map(|tool| tool.name.into_owned()).collect())
    }

    async fn lists(&self) -> Checked {
        let mut before = self.names().await?;
        if before.iter().any(|name| name == "grown") {
            return Err("the server was grown already".into());
        }
        if self.modern {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            let mut stream = self.client.listen(filter).await?;
            same(stream.acknowledged().tools_list_changed, true)?;
            self.call("grow", json!({})).await?;
            let told = stream.next().await?;
            if !matches!(told, Some(ServerNotification::ToolListChangedNotification(_))) {
                return Err(Ended::Failed(format!("heard {told:?}")));
            }
            stream.cancel().await?;
        } else {
            self.call("grow", json!({})).await?;
            self.peer.until(|heard| heard.tools_changed > 0).await;
        }
        before.push("grown".to_owned());
        same(self.names().await?, before)
    }

    async fn text_of(&self, uri: &str) -> Result<String, Ended> {
        let result = self.client.read_resource(ReadResourceRequestParams::new(uri)).await?;
        let contents = json!(result.contents);
        Ok(contents[0]["text"].as_str().unwrap_or_default().to_owned())
    }

    async fn read(&self) -> Checked {
        let listed = json!(self.client.list_all_resources().await?);
        same([&listed[0]["uri"], &listed[0]["mimeType"]], [WATCHED, "text/plain"])?;
        same(self.text_of(WATCHED).await?.starts_with("touched "), true)
    }

    async fn template(&self) -> Checked {
        let listed = json!(self.client.list_all_resource_templates().await?);
        same(&listed[0]["uriTemplate"], "memo:colours/{colour}")?;
        same(self.text_of("memo:colours/green").await?, "the colour green")?;
        match self.client.read_resource(ReadResourceRequestParams::new("memo:colours/none")).await {
            Err(ServiceError::McpError(error)) => same(error.code.0, if self.modern { -32602 } else { -32002 }),
            other => Err(Ended::Failed(format!("a colour that does not exist gave {other:?}"))),
        }
    }

    async fn prompt(&self) -> Checked {
        let listed = json!(self.client.list_all_prompts().await?);
        same(&listed[0]["name"], "greeting")?;
        same(&listed[0]["arguments"], json!([{ "name": "language", "required": true }]))?;
        let params: GetPromptRequestParams =
            request(json!({ "name": "greeting", "arguments": { "language": "danish" } }))?;
        let got = json!(self.client.get_prompt(params).await?.messages);
        same(&got, json!([{ "role": "user", "content": { "type": "text", "text": "Greet me in danish." } }]))
    }

    async fn complete(&self) -> Checked {
        same(self.client.complete_prompt_simple("greeting", "language", "d").await?, ["danish", "dutch"])?;
        let of_template = self.client.complete_resource_simple("memo:colours/{colour}", "colour", "a").await?;
        same(of_template, ["amber", "azure"])
    }

    async fn updates(&self) -> Checked {
        let before = self.text_of(WATCHED).await?;
        if self.modern {
            let filter: SubscriptionFilter = request(json!({ "resourceSubscriptions": [WATCHED] }))?;
            let mut stream = self.client.listen(filter).await?;
            same(&stream.acknowledged().resource_subscriptions, [WATCHED])?;
            self.call("touch", json!({})).await?;
            match stream.next().await? {
                Some(ServerNotification::ResourceUpdatedNotification(told)) => same(told.params.uri, WATCHED)?,
                other => return Err(Ended::Failed(format!("heard {other:?}"))),
            }
            stream.cancel().await?;
        } else {
            self.client.subscribe(SubscribeRequestParams::new(WATCHED)).await?;
            self.call("touch", json!({})).await?;
            self.peer.until(|heard| !heard.updated.is_empty()).await;
            same(self.peer.now(|heard| heard.updated.clone()), [WATCHED])?;
            self.client.unsubscribe(request::<UnsubscribeRequestParams>(json!({ "uri": WATCHED }))?).await?;
        }
        same(self.text_of(WATCHED).await? != before, true)
    }

    async fn log(&self) -> Checked {
        if self.modern {
            let meta = json!({ "io.modelcontextprotocol/logLevel": "warning" });
            self.call_with(json!({ "name": "log", "arguments": {}, "_meta": meta })).await?;
        } else {
            self.client.set_level(SetLevelRequestParams::new(LoggingLevel::Warning)).await?;
            self.call("log", json!({})).await?;
        }
        self.peer.until(|heard| !heard.logs.is_empty()).await;
        let logs = self.peer.now(|heard| std::mem::take(&mut heard.logs));
        same(logs, json!([["warning", "interop", { "said at": "warning" }]]))
    }

    async fn tasks(&self) -> Checked {
        if !self.modern {
            // `CallToolRequestParams` has no `task`, and its task types are those of the extension, which is modern alone.
            let params: CallToolRequestParams = request(json!({ "name": "slow", "task": {} }))?;
            same(json!(params).get("task"), Value::Null)?;
            return Err(Ended::None("its calls have no member `task` (2025-11-25)".to_owned()));
        }
        if !self.client.peer_info().is_some_and(|opened| opened.capabilities.supports_tasks()) {
            return Err("the server offers no tasks".into());
        }
        let begin = async |key: &str| {
            let params = request(json!({ "name": "slow", "arguments": { "key": key } }))?;
            match self.client.call_tool_once(params).await? {
                CallToolResponse::Task(created) => Ok(created.task.task_id),
                other => Err(Ended::Failed(format!("the call became no task: {other:?}"))),
            }
        };
        let task = begin("task").await?;
        same(self.client.get_task(GetTaskParams::new(&task)).await?.task.status(), TaskStatus::Working)?;
        self.call("finish", json!({ "key": "task" })).await?;
        let result = loop {
            let state = self.client.get_task(GetTaskParams::new(&task)).await?.task;
            match state.payload {
                TaskPayload::Completed { result } => break result,
                TaskPayload::Working => {
                    tokio::time::sleep(Duration::from_millis(state.task.poll_interval_ms.unwrap_or(100))).await;
                }
                other => return Err(Ended::Failed(format!("the task came to {other:?}"))),
            }
        };
        same(&json!(result)["content"][0]["text"], "done slowly")?;
        let task = begin("task cancelled").await?;
        self.client.cancel_task(request::<CancelTaskParams>(json!({ "taskId": task }))?).await?;
        same(self.call("stopped", json!({ "key": "task cancelled" })).await?, "stopped")?;
        same(self.client.get_task(GetTaskParams::new(&task)).await?.task.status(), TaskStatus::Cancelled)
    }
}
