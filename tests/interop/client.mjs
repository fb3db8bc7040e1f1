// The official TypeScript clients against one server.
//
// client.mjs v2 auto|legacy TOOL JSON-ARGUMENTS TARGET...   @modelcontextprotocol/client 2.x
// client.mjs v1 legacy      TOOL JSON-ARGUMENTS TARGET...   @modelcontextprotocol/sdk 1.x
// TARGET: a URL (HTTP+SSE if it ends in /sse), or a command with its arguments. INTEROP_NODE_MODULES: where npm installed the clients.
//
// Prints one JSON line. Exit 0: the call succeeded, every tool arrived, and the digest recomputed
// from the list as delivered is the one that the server publishes.
import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const KEY = 'dev.twodoor/toolsDigest';
const [line, mode, tool, args, ...target] = process.argv.slice(2);
const need = createRequire(resolve(process.env.INTEROP_NODE_MODULES ?? 'node_modules', 'x.js'));
const way = !/^https?:/.test(target[0]) ? 'stdio' : target[0].endsWith('/sse') ? 'sse' : 'http';
const clientName = line === 'v2' ? 'typescript-2' : 'typescript-1';

// Keys in code-point order, which the default sort is not beyond U+FFFF.
const byCodePoint = (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));
const canonical = (v) =>
  Array.isArray(v)
    ? `[${v.map(canonical).join(',')}]`
    : v !== null && typeof v === 'object'
      ? `{${Object.keys(v).sort(byCodePoint).map((k) => `${JSON.stringify(k)}:${canonical(v[k])}`).join(',')}}`
      : JSON.stringify(v);
const digest = (tools) => `sha256:${createHash('sha256').update(canonical(tools), 'utf8').digest('hex')}`;

// Keeps every result as it reaches the transport's handler, before the SDK's types can drop a member.
// A property on the instance, not a subclass: the SDK probes a subclassed stdio transport differently.
const tap = (transport) => {
  const results = [];
  let handler;
  Object.defineProperty(transport, 'onmessage', {
    get: () => handler,
    set: (next) => {
      handler = next && ((message, extra) => {
        // A copy: the SDK removes tools from the list that it was given.
        if (message.result) results.push(structuredClone(message.result));
        return next(message, extra);
      });
    },
  });
  return results;
};

const run = async () => {
  const base = line === 'v2' ? '@modelcontextprotocol/client' : '@modelcontextprotocol/sdk/client';
  const m = line === 'v2'
    ? { ...need(base), ...need(`${base}/stdio`) }
    : { ...need(`${base}/index.js`), ...need(`${base}/stdio.js`), ...need(`${base}/streamableHttp.js`), ...need(`${base}/sse.js`) };
  const transport = way === 'stdio'
    ? new m.StdioClientTransport({ command: target[0], args: target.slice(1) })
    : new (way === 'sse' ? m.SSEClientTransport : m.StreamableHTTPClientTransport)(new URL(target[0]));
  const negotiation = mode === 'auto' ? { versionNegotiation: { mode: 'auto' } } : {};
  const client = new m.Client({ name: 'interop', version: '1' }, { capabilities: {}, ...negotiation });
  const results = tap(transport);
  await client.connect(transport);
  // Over stdio, version 2 discovers on a process of its own, which the tap does not see.
  const opened = client.getDiscoverResult?.() ?? results.find((r) => r.protocolVersion);
  const published = new Set([opened?._meta?.[KEY]]);
  const before = results.length;
  const names = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? undefined : { cursor });
    published.add(page._meta?.[KEY]);
    names.push(...page.tools.map((t) => t.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  const delivered = results.slice(before).flatMap((r) => r.tools ?? []);
  const called = await client.callTool({ name: tool, arguments: JSON.parse(args) });
  const recomputed = digest(delivered);
  const row = {
    client: clientName,
    mode,
    transport: way,
    revision: client.getNegotiatedProtocolVersion?.() ?? opened?.protocolVersion,
    tools: names.length,
    digest_published: published.size === 1 ? [...published][0] ?? null : [...published].map(String),
    digest_recomputed: recomputed,
    call: { isError: called.isError === true, text: called.content.find((c) => c.type === 'text')?.text ?? null },
  };
  await transport.terminateSession?.();
  await client.close();
  console.log(JSON.stringify(row));
  const whole = JSON.stringify(names) === JSON.stringify(delivered.map((t) => t.name));
  return row.digest_published === recomputed && !row.call.isError && whole ? 0 : 1;
};

const late = new Promise((_, reject) => setTimeout(() => reject(new Error('no end after 60 s')), 60_000));
Promise.race([run(), late]).then(
  (code) => process.exit(code),
  (error) => {
    console.log(JSON.stringify({ client: clientName, mode, error: String(error?.message ?? error) }));
    process.exit(1);
  },
);
