// The TypeScript SDK at its best: its low-level server, and a list built once.
//
// `server.mjs http` serves modern requests, `server.mjs sessions` legacy sessions with JSON answers; both print their URL.
// `server.mjs stdio` serves the standard streams. Stands beside its node_modules: run.sh copies it there.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { Server, createMcpHandler } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const textSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
const fillerSchema = {
  type: 'object',
  properties: {
    query: { type: 'string', description: 'Free text query' },
    limit: { type: 'integer', minimum: 1, maximum: 100 },
    verbose: { type: 'boolean' },
  },
  required: ['query'],
};
const tools = [
  { name: 'echo', description: 'Echo the text back', inputSchema: textSchema },
  { name: 'progress', description: 'Echo the text back after ten notices of progress', inputSchema: textSchema },
  { name: 'slow', description: 'Echo the text back after a while', inputSchema: textSchema },
];
for (let i = tools.length; i < Number(process.env.TOOLS ?? 100); i++) {
  tools.push({
    name: `tool_${String(i).padStart(4, '0')}`,
    description: `Synthetic tool number ${i}, here to give tools/list a realistic size.`,
    inputSchema: fillerSchema,
  });
}

function build() {
  const server = new Server({ name: 'typescript', version: '0' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', () => ({ tools }));
  server.setRequestHandler('tools/call', ({ params }) => ({ content: [{ type: 'text', text: params.arguments.text }] }));
  return server;
}

function listen(handle) {
  const server = createServer(handle);
  server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
}

const sessions = new Map();

async function serveSession(request, response) {
  let transport = sessions.get(request.headers['mcp-session-id']);
  if (!transport) {
    transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      enableJsonResponse: true,
      onsessioninitialized: id => void sessions.set(id, transport),
      onsessionclosed: id => void sessions.delete(id),
    });
    await build().connect(transport);
  }
  await transport.handleRequest(request, response);
}

const door = process.argv[2];
if (door === 'http') {
  listen(toNodeHandler(createMcpHandler(build)));
} else if (door === 'sessions') {
  listen(serveSession);
} else if (door === 'stdio') {
  serveStdio(build);
} else {
  throw new Error('server.mjs http | sessions | stdio');
}
