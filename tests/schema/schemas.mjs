// Writes the specification's JSON schema of every revision as FOLDER/REVISION.json. The official conformance
// suite embeds the schemas of all revisions but the oldest one, which follows from the next.
//
//   node schemas.mjs .../@modelcontextprotocol/conformance/dist/index.js FOLDER
//
// Whatever way a schema came, it must be the specification's: its digest is pinned, which is the SHA-256 of its
// JSON with sorted keys and without descriptions.

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { argv } from 'node:process';
import { runInNewContext } from 'node:vm';

// Those of `schema/REVISION/schema.json` in the specification's repository.
const DIGESTS = {
  '2024-11-05': '32479960b553f8ac9263c12dcc1d5b5cf264b354437bfedf1cbcd98e1c88e952',
  '2025-03-26': '9ad7ee34400db4c18418252bd10a8f9151035f039ce87d607459c35f702f9535',
  '2025-06-18': '4dcc12216813c991ba77c24be25e27cb8bc321c4b1de96ce9b6eb07224ad455a',
  '2025-11-25': 'f09386cd771b71505dff1f0a02041f5f65fdc679b5412fd6df6d11cbb2221e0c',
  '2026-07-28': '90793cec89e00b21d24a6769c6d8f5aa7c5730c270d557d701875b4f655c7106',
};

const [suite, folder] = argv.slice(2);
const text = readFileSync(suite, 'utf8');

/** The object literal that begins at an index, as a value. It is data, evaluated where nothing is in reach. */
function literal(start) {
  let depth = 0;
  let quote = null;
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (quote) {
      if (character === '\\') at++;
      else if (character === quote) quote = null;
    } else if ('`"\''.includes(character)) quote = character;
    else if (character === '{') depth++;
    else if (character === '}' && --depth === 0) {
      return runInNewContext(`(${text.slice(start, at + 1)})`, Object.create(null), { timeout: 10_000 });
    }
  }
  throw new Error(`the object literal at ${start} has no end`);
}

/** A copy with every object of the tree changed by `change`, the leaves first. */
function mapped(value, change) {
  if (Array.isArray(value)) return value.map((element) => mapped(element, change));
  if (value === null || typeof value !== 'object') return value;
  return change(Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, mapped(inner, change)])));
}

function digest(schema) {
  const bare = mapped(schema, (object) => {
    const kept = Object.keys(object).filter((key) => key !== 'description' || typeof object[key] !== 'string');
    return Object.fromEntries(kept.sort().map((key) => [key, object[key]]));
  });
  return createHash('sha256').update(JSON.stringify(bare)).digest('hex');
}

/** Published with `integer` for these three members, although the schema's source says `number`; mended since. */
function withNumbers(schema) {
  const { properties } = (schema.$defs ?? schema.definitions).NumberSchema ?? { properties: {} };
  for (const member of ['minimum', 'maximum', 'default']) {
    if (properties[member]?.type === 'integer') properties[member].type = 'number';
  }
  return schema;
}

/** 2024-11-05 out of 2025-03-26: what the later revision added is taken out again. */
function oldest(next) {
  const { Annotations, AudioContent, JSONRPCBatchRequest, JSONRPCBatchResponse, ToolAnnotations, ...kept } =
    next.definitions;
  const refers = (schema, name) => schema.$ref === `#/definitions/${name}`;
  const definitions = mapped(kept, (object) => {
    if (refers(object, 'Annotations')) return structuredClone(Annotations);
    if (!Array.isArray(object.anyOf)) return object;
    const older = (choice) => !refers(choice, 'AudioContent') && choice.type !== 'array';
    return { ...object, anyOf: object.anyOf.filter(older) };
  });
  definitions.Annotated = { properties: { annotations: structuredClone(Annotations) }, type: 'object' };
  delete definitions.ProgressNotification.properties.params.properties.message;
  delete definitions.ServerCapabilities.properties.completions;
  delete definitions.Tool.properties.annotations;
  return { ...next, definitions };
}

/** 2026-07-28 as the suite has it, before one definition got its name and a response its definition. */
function newest(early) {
  const renamed = 'SubscriptionsListenResultMeta';
  const { [renamed]: meta, ...kept } = early.$defs;
  const $defs = mapped(kept, (object) =>
    object.$ref === `#/$defs/${renamed}` ? { ...object, $ref: `#/$defs/${renamed}Object` } : object,
  );
  $defs[`${renamed}Object`] = meta;
  const { properties, ...response } = structuredClone($defs.ListToolsResultResponse);
  const result = { $ref: '#/$defs/SubscriptionsListenResult' };
  $defs.SubscriptionsListenResultResponse = { ...response, properties: { ...properties, result } };
  return { ...early, $defs };
}

const table = /\{"2025-03-26":([\w$]+),"2025-06-18":([\w$]+),"2025-11-25":([\w$]+),\[[\w$]+\]:([\w$]+)\}/.exec(text);
if (!table) throw new Error('the suite has no table of schemas by revision any more');
const schemas = {};
['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'].forEach((revision, index) => {
  const assigned = `${table[index + 1]}={$schema:`;
  const at = text.indexOf(assigned);
  if (at < 0) throw new Error(`the suite has no schema of ${revision} any more`);
  schemas[revision] = withNumbers(literal(at + assigned.indexOf('{')));
});
schemas['2024-11-05'] = oldest(schemas['2025-03-26']);
schemas['2026-07-28'] = newest(schemas['2026-07-28']);

for (const [revision, expected] of Object.entries(DIGESTS)) {
  const found = digest(schemas[revision]);
  if (found !== expected) throw new Error(`the schema of ${revision} has the digest ${found} instead of ${expected}`);
  writeFileSync(join(folder, `${revision}.json`), JSON.stringify(schemas[revision]));
}
