// The official TypeScript clients against interop-server, feature by feature.
//
// features.mjs v2 auto|legacy TARGET...   @modelcontextprotocol/client 2.x
// features.mjs v1 legacy      TARGET...   @modelcontextprotocol/sdk 1.x
// TARGET: a URL (HTTP+SSE if it ends in /sse), or a command with its arguments. INTEROP_NODE_MODULES: where npm installed the clients.
//
// Prints one JSON line: each feature "ok", {"none": why the client has none} or {"failed": how}. Every
// feature has a connection of its own, so that none can spoil the next.
import { strict as assert } from 'node:assert';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

// Each feature gets this long; nothing here takes a tenth of it.
const AT_MOST = 20_000;
const WATCHED = 'memo:watched';
const [line, mode, ...target] = process.argv.slice(2);
const need = createRequire(resolve(process.env.INTEROP_NODE_MODULES ?? 'node_modules', 'x.js'));
const way = !/^https?:/.test(target[0]) ? 'stdio' : target[0].endsWith('/sse') ? 'sse' : 'http';
const v2 = line === 'v2';
const modern = mode !== 'legacy';
const base = v2 ? '@modelcontextprotocol/client' : '@modelcontextprotocol/sdk';
const m = v2
  ? { ...need(base), ...need(`${base}/stdio`) }
  : { ...need(`${base}/client/index.js`), ...need(`${base}/client/stdio.js`), ...need(`${base}/client/streamableHttp.js`), ...need(`${base}/client/sse.js`), ...need(`${base}/types.js`) };

class None extends Error {}

// What came, and who waits for it.
class Heard {
  items = [];
  waiting = [];
  add(item) {
    this.items.push(item);
    for (const wake of this.waiting.splice(0)) wake();
  }
  async until(holds) {
    while (!holds(this.items)) await new Promise((wake) => this.waiting.push(wake));
    return this.items;
  }
}

const same = (got, expected) => assert.deepEqual(got, expected);
// A schema that lets everything pass, for results that the client has no schema of.
const any = v2 ? { '~standard': { version: 1, vendor: 'interop', validate: (value) => ({ value }) } } : m.ResultSchema;

const connect = async (peer) => {
  const transport = way === 'stdio'
    ? new m.StdioClientTransport({ command: target[0], args: target.slice(1) })
    : new (way === 'sse' ? m.SSEClientTransport : m.StreamableHTTPClientTransport)(new URL(target[0]));
  const extensions = peer.name === 'tasks' && modern ? { extensions: { 'io.modelcontextprotocol/tasks': {} } } : {};
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {}, ...extensions };
  const negotiation = modern ? { versionNegotiation: { mode: 'auto' } } : {};
  const listChanged = peer.name === 'lists'
    ? { listChanged: { tools: { onChanged: (error, tools) => peer.lists.add(error ?? tools.map((t) => t.name)) } } }
    : {};
  const client = new m.Client({ name: 'interop', version: '1' }, { capabilities, ...negotiation, ...listChanged });
  // The first line names methods by their schemas, the second by their names.
  const request = (name, schema, handler) => client.setRequestHandler(v2 ? name : m[schema], handler);
  const notified = (name, schema, handler) => client.setNotificationHandler(v2 ? name : m[schema], handler);
  request('elicitation/create', 'ElicitRequestSchema', ({ params }) => (peer.asked.push(params), peer.answer));
  request('sampling/createMessage', 'CreateMessageRequestSchema', ({ params }) => {
    peer.asked.push(params);
    return { role: 'assistant', content: { type: 'text', text: 'something' }, model: 'none' };
  });
  request('roots/list', 'ListRootsRequestSchema', () => ({ roots: [{ uri: 'file:///srv/interop', name: 'interop' }] }));
  notified('notifications/message', 'LoggingMessageNotificationSchema', ({ params: { level, logger, data } }) =>
    peer.logs.add({ level, logger, data }));
  notified('notifications/resources/updated', 'ResourceUpdatedNotificationSchema', ({ params }) =>
    peer.updates.add(params.uri));
  let revision;
  if (!v2) {
    // The first line tells the revision to the transport alone.
    const set = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (version) => (revision = version, set?.(version));
  }
  await client.connect(transport);
  return { client, transport, revision: () => revision };
};

const call = async (peer, name, args = {}, options = {}, meta = {}) => {
  const params = { name, arguments: args, ...meta };
  const result = v2 ? await peer.client.callTool(params, options) : await peer.client.callTool(params, undefined, options);
  assert.ok(!result.isError, `${name} failed: ${result.content[0].text}`);
  return result.content[0].text;
};
const aborted = (promise) => promise.then(() => assert.fail('the call was answered'), () => undefined);

const features = {
  async form(peer) {
    for (const [action, content] of [['accept', { name: 'Ærø' }], ['decline'], ['cancel']]) {
      peer.answer = content ? { action, content } : { action };
      same(await call(peer, 'ask_form'), content ? `${action} ${content.name}` : action);
      const asked = peer.asked.pop();
      same([asked.mode, asked.message], ['form', 'What is your name?']);
      same(Object.keys(asked.requestedSchema.properties), ['name']);
    }
  },
  async url(peer) {
    for (const action of ['accept', 'decline', 'cancel']) {
      peer.answer = { action };
      same(await call(peer, 'ask_url'), action);
      const asked = peer.asked.pop();
      same([asked.mode, asked.url], ['url', 'https://example.com/sign-in']);
    }
  },
  async sample(peer) {
    same(await call(peer, 'ask_sample'), 'something');
    same(peer.asked.pop().messages[0].content.text, 'Say something.');
  },
  async roots(peer) {
    same(await call(peer, 'ask_roots'), 'file:///srv/interop');
  },
  async progress(peer) {
    const heard = new Heard();
    const key = `progress of ${line} ${mode} ${target}`;
    // It ends only after the client has heard all: both lines drop progress that arrives together with the result.
    const counting = call(peer, 'count', { key }, { onprogress: (p) => heard.add(p) });
    await heard.until((items) => items.length === 3);
    await call(peer, 'finish', { key });
    same(await counting, 'counted');
    same(heard.items, [1, 2, 3].map((n) => ({ progress: n, total: 3, message: `at ${n}` })));
  },
  async cancel(peer) {
    const key = `cancel of ${line} ${mode} ${target}`;
    const began = new Heard();
    const abort = new AbortController();
    const waiting = aborted(call(peer, 'wait', { key }, { signal: abort.signal, onprogress: () => began.add(1) }));
    await began.until((items) => items.length > 0);
    abort.abort();
    await waiting;
    same(await call(peer, 'stopped', { key }), 'stopped');
  },
  async lists(peer) {
    const names = async () => (await peer.client.listTools(undefined, { cacheMode: 'refresh' })).tools.map((t) => t.name);
    const before = await names();
    assert.ok(!before.includes('grown'), 'the server was grown already');
    if (modern) assert.equal(peer.client.autoOpenedSubscription?.honoredFilter.toolsListChanged, true);
    await call(peer, 'grow');
    same((await peer.lists.until((items) => items.length > 0))[0], [...before, 'grown']);
    same(await names(), [...before, 'grown']);
  },
  async read(peer) {
    const { resources } = await peer.client.listResources();
    same(resources.map((r) => [r.uri, r.mimeType]), [[WATCHED, 'text/plain']]);
    assert.match((await peer.client.readResource({ uri: WATCHED })).contents[0].text, /^touched \d+ times$/);
  },
  async template(peer) {
    const { resourceTemplates } = await peer.client.listResourceTemplates();
    same(resourceTemplates.map((t) => t.uriTemplate), ['memo:colours/{colour}']);
    const { contents } = await peer.client.readResource({ uri: 'memo:colours/green' });
    same(contents[0].text, 'the colour green');
    // The second line gives the code of the modern revision for the legacy one's too.
    const codes = modern || v2 ? [-32602] : [-32002];
    await assert.rejects(peer.client.readResource({ uri: 'memo:colours/none' }), ({ code }) => codes.includes(code));
  },
  async prompt(peer) {
    const { prompts } = await peer.client.listPrompts();
    same(prompts.map((p) => [p.name, p.arguments[0].name, p.arguments[0].required]), [['greeting', 'language', true]]);
    const { messages } = await peer.client.getPrompt({ name: 'greeting', arguments: { language: 'danish' } });
    same(messages.map((said) => [said.role, said.content.text]), [['user', 'Greet me in danish.']]);
  },
  async complete(peer) {
    const values = async (ref, name, value) =>
      (await peer.client.complete({ ref, argument: { name, value } })).completion.values;
    same(await values({ type: 'ref/prompt', name: 'greeting' }, 'language', 'd'), ['danish', 'dutch']);
    const template = { type: 'ref/resource', uri: 'memo:colours/{colour}' };
    same(await values(template, 'colour', 'a'), ['amber', 'azure']);
  },
  async updates(peer) {
    const read = async () => (await peer.client.readResource({ uri: WATCHED }, { cacheMode: 'refresh' })).contents[0].text;
    const before = await read();
    const stream = modern ? await peer.client.listen({ resourceSubscriptions: [WATCHED] }) : undefined;
    if (stream) same(stream.honoredFilter.resourceSubscriptions, [WATCHED]);
    else await peer.client.subscribeResource({ uri: WATCHED });
    await call(peer, 'touch');
    same(await peer.updates.until((items) => items.length > 0), [WATCHED]);
    assert.notEqual(await read(), before);
    if (stream) {
      await stream.close();
      same(await stream.closed, 'local');
    } else await peer.client.unsubscribeResource({ uri: WATCHED });
  },
  async log(peer) {
    if (modern) await call(peer, 'log', {}, {}, { _meta: { [m.LOG_LEVEL_META_KEY]: 'warning' } });
    else {
      await peer.client.setLoggingLevel('warning');
      await call(peer, 'log');
    }
    const expected = [{ level: 'warning', logger: 'interop', data: { 'said at': 'warning' } }];
    same(await peer.logs.until((items) => items.length > 0), expected);
  },
  async tasks(peer) {
    const key = `task of ${line} ${mode} ${target}`;
    const { tasks, extensions } = peer.client.getServerCapabilities();
    assert.ok(modern ? extensions?.['io.modelcontextprotocol/tasks'] : tasks, 'the server offers no tasks');
    if (modern) {
      // It can send `tasks/get` under a schema of one's own, but its decoder refuses the result that begins a task.
      const refused = (error) => error.code === m.SdkErrorCode.UnsupportedResultType;
      await assert.rejects(peer.client.request({ method: 'tools/call', params: { name: 'slow', arguments: { key } } }, any), refused);
      throw new None('its 2026-07-28 decoder refuses resultType "task"');
    }
    await peer.client.listTools();
    if (v2) return requested(peer, key);
    const told = new Heard();
    const follow = async (args) => {
      const stream = peer.client.experimental.tasks.callToolStream({ name: 'slow', arguments: args });
      for await (const message of stream) told.add(message);
    };
    const following = follow({ key });
    await told.until((items) => items.some((i) => i.type === 'taskStatus'));
    same(told.items[0].type, 'taskCreated');
    same(told.items[0].task.status, 'working');
    await call(peer, 'finish', { key });
    await following;
    same(told.items.at(-1).type, 'result');
    same(told.items.at(-1).result.content[0].text, 'done slowly');
    const again = follow({ key: `${key} cancelled` });
    const created = (items) => items.filter((i) => i.type === 'taskCreated');
    await told.until((items) => created(items).length === 2);
    const { taskId } = created(told.items)[1].task;
    same((await peer.client.experimental.tasks.cancelTask(taskId)).status, 'cancelled');
    same(await call(peer, 'stopped', { key: `${key} cancelled` }), 'stopped');
    await again;
    same(told.items.at(-1).type, 'error');
  },
};

// The second line has the types and methods of legacy tasks, but nothing that follows one.
const requested = async (peer, key) => {
  const begin = async (args) => {
    const params = { name: 'slow', arguments: args, task: { ttl: 60_000 } };
    const { task } = await peer.client.request({ method: 'tools/call', params }, any);
    assert.ok(task, 'the call became no task');
    same(task.status, 'working');
    return task;
  };
  const of = (method, { taskId }) => peer.client.request({ method, params: { taskId } }, any);
  const task = await begin({ key });
  same((await of('tasks/get', task)).status, 'working');
  await call(peer, 'finish', { key });
  same((await of('tasks/result', task)).content[0].text, 'done slowly');
  same((await of('tasks/get', task)).status, 'completed');
  const other = await begin({ key: `${key} cancelled` });
  same((await of('tasks/cancel', other)).status, 'cancelled');
  same(await call(peer, 'stopped', { key: `${key} cancelled` }), 'stopped');
};

const check = async (name) => {
  const peer = { name, asked: [], logs: new Heard(), updates: new Heard(), lists: new Heard() };
  let opened;
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('nothing came in time')), AT_MOST);
  });
  const run = async () => {
    opened = await connect(peer);
    peer.client = opened.client;
    await features[name](peer);
  };
  try {
    await Promise.race([run(), late]);
    return ['ok', opened.client.getNegotiatedProtocolVersion?.() ?? opened.revision()];
  } catch (error) {
    const problem = String(error?.message ?? error).split('\n').filter(Boolean).join(' | ');
    return [error instanceof None ? { none: problem } : { failed: problem }, undefined];
  } finally {
    clearTimeout(timer);
    await opened?.transport.terminateSession?.().catch(() => undefined);
    await opened?.client.close().catch(() => undefined);
  }
};

const row = { client: v2 ? 'typescript-2' : 'typescript-1', mode, transport: way };
const revisions = new Set();
const told = {};
for (const name of Object.keys(features)) {
  const [outcome, revision] = await check(name);
  told[name] = outcome;
  if (revision) revisions.add(revision);
}
console.log(JSON.stringify({ ...row, revision: [...revisions].join(', '), features: told }));
process.exit(0);
