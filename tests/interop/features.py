"""The official Python client (mcp 2.x) against interop-server, feature by feature.

features.py auto|legacy TARGET...    TARGET: a URL (HTTP+SSE if it ends in /sse), or a command with its arguments

Prints one JSON line: each feature "ok", {"none": why the client has none} or {"failed": how}. Every
feature has a connection of its own, so that none can spoil the next.
"""

import asyncio
import json
import sys
import warnings
from typing import Literal

import anyio
import mcp_types as types
from mcp.client import Client
from mcp.client.extension import ClientExtension, ResultClaim
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import methods
from pydantic import ValidationError

# Each feature gets this long; nothing here takes a tenth of it.
AT_MOST = 20
WATCHED = "memo:watched"
NO_TASKS = "the server offers no tasks"
MODE, *TARGET = sys.argv[1:]
WAY = "stdio" if not TARGET[0].startswith("http") else "sse" if TARGET[0].endswith("/sse") else "http"
MODERN = MODE != "legacy"
# What the revisions after the handshake replaced is deprecated in this client, and is what legacy servers have.
warnings.simplefilter("ignore")


class None_(Exception):
    """The client has no such feature."""


class Peer:
    """What the client's callbacks were given, and what they answer."""

    def __init__(self, connection):
        self.connection, self.heard = connection, anyio.Condition()
        self.answer, self.asked, self.notices, self.logs, self.progress = None, [], [], [], []

    async def told(self, into, item):
        async with self.heard:
            into.append(item)
            self.heard.notify_all()

    async def until(self, holds):
        async with self.heard:
            while not holds():
                await self.heard.wait()

    async def on_elicit(self, context, params):
        self.asked.append(params)
        return self.answer

    async def on_sample(self, context, params):
        self.asked.append(params)
        content = types.TextContent(type="text", text="something")
        return types.CreateMessageResult(role="assistant", content=content, model="none")

    async def on_roots(self, context):
        return types.ListRootsResult(roots=[types.Root(uri="file:///srv/interop", name="interop")])

    async def on_log(self, params):
        await self.told(self.logs, (params.level, params.logger, params.data))

    async def on_message(self, message):
        await self.told(self.notices, message)

    async def on_progress(self, progress, total, message):
        await self.told(self.progress, (progress, total, message))

    async def call(self, name, **arguments):
        result = await self.client.call_tool(name, arguments, progress_callback=self.on_progress)
        text = result.content[0].text
        assert not result.is_error, f"{name} failed: {text}"
        return text


def same(got, expected):
    assert got == expected, f"got {got!r}, expected {expected!r}"


async def form(peer):
    for action, content in (("accept", {"name": "Ærø"}), ("decline", None), ("cancel", None)):
        peer.answer = types.ElicitResult(action=action, content=content)
        same(await peer.call("ask_form"), f"{action} {content['name']}" if content else action)
        asked = peer.asked.pop()
        same((asked.mode, asked.message), ("form", "What is your name?"))
        same(list(asked.requested_schema["properties"]), ["name"])


async def url(peer):
    for action in ("accept", "decline", "cancel"):
        peer.answer = types.ElicitResult(action=action)
        same(await peer.call("ask_url"), action)
        asked = peer.asked.pop()
        same((asked.mode, asked.url), ("url", "https://example.com/sign-in"))


async def sample(peer):
    same(await peer.call("ask_sample"), "something")
    same(peer.asked.pop().messages[0].content.text, "Say something.")


async def roots(peer):
    same(await peer.call("ask_roots"), "file:///srv/interop")


async def progress(peer):
    key, said = f"progress of {MODE} {TARGET}", []

    async def count():
        said.append(await peer.call("count", key=key))

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        await peer.until(lambda: len(peer.progress) == 3)
        await peer.call("finish", key=key)
    same(said, ["counted"])
    same(peer.progress, [(n, 3, f"at {n}") for n in (1, 2, 3)])


async def cancel(peer):
    key = f"cancel of {MODE} {TARGET}"
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: peer.call("wait", key=key))
        await peer.until(lambda: peer.progress)
        group.cancel_scope.cancel()
    same(await peer.call("stopped", key=key), "stopped")


async def lists(peer):
    async def names():
        return [t.name for t in (await peer.client.list_tools(cache_mode="refresh")).tools]

    before = await names()
    assert "grown" not in before, "the server was grown already"
    if MODERN:
        async with peer.client.listen(tools_list_changed=True) as stream:
            assert stream.honored.tools_list_changed, "the filter was not honoured"
            await peer.call("grow")
            same(type(await anext(aiter(stream))).__name__, "ToolsListChanged")
    else:
        await peer.call("grow")
        await peer.until(lambda: any(isinstance(n, types.ToolListChangedNotification) for n in peer.notices))
    same(await names(), [*before, "grown"])


async def updates(peer):
    async def read():
        return (await peer.client.read_resource(WATCHED, cache_mode="refresh")).contents[0].text

    def told():
        return [n.params.uri for n in peer.notices if isinstance(n, types.ResourceUpdatedNotification)]

    before = await read()
    if MODERN:
        async with peer.client.listen(resource_subscriptions=[WATCHED]) as stream:
            same(list(stream.honored.resource_subscriptions), [WATCHED])
            await peer.call("touch")
            same((await anext(aiter(stream))).uri, WATCHED)
    else:
        await peer.client.subscribe_resource(WATCHED)
        await peer.call("touch")
        await peer.until(told)
        same(told(), [WATCHED])
        await peer.client.unsubscribe_resource(WATCHED)
    assert await read() != before, "the contents are the old ones"


async def read(peer):
    listed = (await peer.client.list_resources()).resources
    same([(r.uri, r.mime_type) for r in listed], [(WATCHED, "text/plain")])
    contents = (await peer.client.read_resource(WATCHED)).contents
    assert contents[0].text.startswith("touched "), contents


async def template(peer):
    listed = (await peer.client.list_resource_templates()).resource_templates
    same([t.uri_template for t in listed], ["memo:colours/{colour}"])
    same((await peer.client.read_resource("memo:colours/green")).contents[0].text, "the colour green")
    try:
        await peer.client.read_resource("memo:colours/none")
    except MCPError as error:
        same(error.code, -32602 if MODERN else -32002)
    else:
        raise AssertionError("a colour that does not exist was read")


async def prompt(peer):
    listed = (await peer.client.list_prompts()).prompts
    same([(p.name, p.arguments[0].name, p.arguments[0].required) for p in listed], [("greeting", "language", True)])
    got = await peer.client.get_prompt("greeting", {"language": "danish"})
    same([(m.role, m.content.text) for m in got.messages], [("user", "Greet me in danish.")])


async def complete(peer):
    of_prompt = types.PromptReference(type="ref/prompt", name="greeting")
    got = await peer.client.complete(of_prompt, {"name": "language", "value": "d"})
    same(got.completion.values, ["danish", "dutch"])
    of_template = types.ResourceTemplateReference(type="ref/resource", uri="memo:colours/{colour}")
    got = await peer.client.complete(of_template, {"name": "colour", "value": "a"})
    same(got.completion.values, ["amber", "azure"])


async def log(peer):
    if MODERN:
        await peer.call("log")
    else:
        await peer.client.set_logging_level("warning")
        await peer.call("log")
    await peer.until(lambda: peer.logs)
    same(peer.logs, [("warning", "interop", {"said at": "warning"})])


class TaskOf(types.Request[types.GetTaskRequestParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    name_param = "taskId"


class CancelOf(types.Request[types.CancelTaskRequestParams, Literal["tasks/cancel"]]):
    method: Literal["tasks/cancel"] = "tasks/cancel"
    name_param = "taskId"


class TaskResult(types.Result):
    """The task that a call became, and what `tasks/get` answers (the tasks extension)."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str


class TaskState(types.Result):
    task_id: str
    status: str
    poll_interval_ms: int | None = None
    result: dict | None = None


class Tasks(ClientExtension):
    """The client has claims for extensions, and no tasks extension of its own: this is it."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, peer):
        self.peer = peer

    def claims(self):
        return [ResultClaim(result_type="task", model=TaskResult, resolve=self.resolve)]

    async def get(self, session, task_id):
        return await session.send_request(TaskOf(params=types.GetTaskRequestParams(task_id=task_id)), TaskState)

    async def resolve(self, task, context):
        await self.peer.told(self.peer.notices, task)
        while True:
            state = await self.get(context.session, task.task_id)
            if state.status == "completed":
                return types.CallToolResult.model_validate(state.result)
            if state.status in ("failed", "cancelled"):
                return types.CallToolResult(content=[types.TextContent(type="text", text=state.status)], is_error=True)
            await anyio.sleep((state.poll_interval_ms or 100) / 1000)


async def tasks(peer):
    if not MODERN:
        # The types of 2025-11-25 are there, but a call's result must be a CallToolResult, so a task is refused.
        now = "2026-01-01T00:00:00Z"
        task = {"taskId": "t", "status": "working", "createdAt": now, "lastUpdatedAt": now, "ttl": None}
        try:
            methods.validate_server_result("tools/call", "2025-11-25", {"task": task})
        except ValidationError:
            raise None_("its types alone: mcp_types.methods takes no CreateTaskResult for tools/call") from None
        raise AssertionError("the client takes a CreateTaskResult by now: write the check")
    assert "io.modelcontextprotocol/tasks" in (peer.client.server_capabilities.extensions or {}), NO_TASKS
    key = f"task of {MODE} {TARGET}"
    ended = []

    async def slow(key):
        result = await peer.client.call_tool("slow", {"key": key})
        ended.append((bool(result.is_error), result.content[0].text))

    def became():
        return [n for n in peer.notices if isinstance(n, TaskResult)]

    async with anyio.create_task_group() as group:
        group.start_soon(slow, key)
        await peer.until(became)
        same((await peer.tasks.get(peer.client.session, became()[0].task_id)).status, "working")
        await peer.call("finish", key=key)
    same(ended.pop(), (False, "done slowly"))
    async with anyio.create_task_group() as group:
        group.start_soon(slow, f"{key} cancelled")
        await peer.until(lambda: len(became()) == 2)
        params = types.CancelTaskRequestParams(task_id=became()[1].task_id)
        await peer.client.session.send_request(CancelOf(params=params), types.EmptyResult)
        await peer.call("stopped", key=f"{key} cancelled")
    same(ended.pop(), (True, "cancelled"))


FEATURES = [form, url, sample, roots, progress, cancel, lists, read, template, prompt, complete, updates, log, tasks]


def connect(peer):
    if WAY == "stdio":
        transport = stdio_client(StdioServerParameters(command=TARGET[0], args=TARGET[1:]))
    else:
        transport = (sse_client if WAY == "sse" else streamable_http_client)(TARGET[0])
    peer.tasks = Tasks(peer)
    return Client(
        transport,
        mode=MODE,
        elicitation_callback=peer.on_elicit,
        sampling_callback=peer.on_sample,
        list_roots_callback=peer.on_roots,
        logging_callback=peer.on_log,
        log_level="warning" if MODERN else None,
        message_handler=peer.on_message,
        extensions=[peer.tasks] if peer.connection == "tasks" and MODERN else None,
    )


async def check(feature):
    peer = Peer(feature.__name__)
    try:
        async with asyncio.timeout(AT_MOST):
            async with connect(peer) as peer.client:
                await feature(peer)
                return "ok", peer.client.protocol_version
    except BaseException as error:
        while getattr(error, "exceptions", None):
            error = error.exceptions[0]
        if isinstance(error, None_):
            return {"none": str(error)}, None
        problem = str(error) or "nothing came in time"
        return {"failed": f"{type(error).__name__}: {problem}"}, None


async def main():
    features, revisions = {}, set()
    for feature in FEATURES:
        features[feature.__name__], revision = await check(feature)
        revisions.add(revision)
    revision = ", ".join(sorted(revisions - {None}))
    row = {"client": "python", "mode": MODE, "transport": WAY}
    print(json.dumps({**row, "revision": revision, "features": features}, ensure_ascii=False))


asyncio.run(main())
