// Recomputes the digests in vectors.json that JavaScript can, with nothing but Node: all but those of sorted keys,
// since a number's text is lost to JSON.parse. Exit 1 if one differs. See docs/digest.md.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const WORDS = ["title", "description", "examples", "$comment"];
const NAMED = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];
const LISTED = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
const ONE = ["additionalProperties", "unevaluatedProperties", "unevaluatedItems", "additionalItems", "items", "contains",
  "not", "if", "then", "else", "propertyNames", "contentSchema"];
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
// Without a prototype, so that a key may be called __proto__.
const object = (members) => Object.assign(Object.create(null), Object.fromEntries(members));
const refuse = (why) => { throw new Error(why); };

function read(text) {
  const value = JSON.parse(text);
  const open = [];
  const tokens = text.match(/"(?:\\.|[^"\\])*"|[{}[\],:]|[^\s{}[\],:"]+/g);
  tokens.forEach((token, at) => {
    if (token === "{" || token === "[") open.push(new Set());
    else if (token === "}" || token === "]") open.pop();
    else if (token[0] === '"') {
      const string = JSON.parse(token);
      if (!string.isWellFormed()) refuse("lone surrogate");
      if (tokens[at + 1] === ":" && open.at(-1).size === open.at(-1).add(string).size) refuse("duplicate key");
    } else if (/^[-\d]/.test(token) && !Number.isFinite(Number(token))) refuse("no double");
  });
  return value;
}

function rfc8785(value) {
  if (Array.isArray(value)) return `[${value.map(rfc8785).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value);
  // Array.prototype.sort compares UTF-16 code units, as RFC 8785 asks.
  return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${rfc8785(value[key])}`).join(",")}}`;
}

const sha256 = (value) => `sha256:${createHash("sha256").update(rfc8785(value)).digest("hex")}`;
const filled = (value) => Object.keys(value).length > 0;

// What of a schema is there to be read, or the rest of it.
function half(schema, words) {
  if (!isObject(schema)) return words ? {} : schema;
  const kept = [];
  for (const [key, value] of Object.entries(schema)) {
    let below;
    if (WORDS.includes(key)) {
      if (words) kept.push([key, value]);
      continue;
    } else if (NAMED.includes(key) && isObject(value)) {
      const members = Object.entries(value).map(([name, schema]) => [name, half(schema, words)]);
      below = object(members.filter(([, schema]) => !words || filled(schema)));
    } else if (LISTED.includes(key) && Array.isArray(value)) {
      below = value.map((schema) => half(schema, words));
      if (words && !below.some(filled)) below = [];
    } else if (ONE.includes(key)) below = half(value, words);
    else if (words) continue;
    else below = value;
    if (!words || filled(below)) kept.push([key, below]);
  }
  return object(kept);
}

function ofTool(tool) {
  const declared = (...keys) => keys.filter((key) => Object.hasOwn(tool, key)).map((key) => [key, tool[key]]);
  const of = (format, members) => sha256(object([["format", `twodoor/${format}/1`], ...members]));
  const hints = tool.annotations;
  const part = (isTitle) => object(Object.entries(hints).filter(([key]) => (key === "title") === isTitle));
  const schemas = (words) => declared("inputSchema", "outputSchema").map(([key, schema]) => [key, half(schema, words)]);
  const words = schemas(true).filter(([, schema]) => filled(schema));
  if (isObject(hints) && "title" in hints) words.push(["annotations", part(true)]);
  const shape = schemas(false);
  if (hints !== undefined) shape.push(["annotations", isObject(hints) ? part(false) : hints]);
  const empty = (value) => value === null || (typeof value !== "boolean" && typeof value !== "number" && !filled(value));
  const pinned = declared("name", "description", "inputSchema", "outputSchema").filter(([, value]) => !empty(value));
  return {
    tool: of("tool", declared("name", "title", "description", "inputSchema", "outputSchema", "annotations")),
    wording: of("wording", [...declared("title", "description"), ...words]),
    shape: of("shape", [...declared("name"), ...shape]),
    gateway: typeof tool.name === "string" && tool.name ? sha256(object(pinned)) : null,
  };
}

function ofSurface({ tools, ...rest }) {
  const digests = object(tools.map((tool) => [tool.name, ofTool(tool).tool]));
  return { surface: sha256({ format: "twodoor/surface/1", ...rest, tools: digests }) };
}

function compute({ kind, text }) {
  try {
    return { json: (value) => ({ rfc8785: sha256(value) }), tool: ofTool, surface: ofSurface }[kind](read(text));
  } catch {
    return { refused: true };
  }
}

const { cases } = JSON.parse(readFileSync(new URL("vectors.json", import.meta.url), "utf8"));
const wrong = cases.filter((one) => {
  const { sortedKeys, ...expected } = one.expected;
  return rfc8785(compute(one)) !== rfc8785(expected);
});
console.log([`javascript: ${cases.length - wrong.length} of ${cases.length} vectors`, ...wrong.map((one) => `  ${one.name}`)].join("\n"));
process.exit(wrong.length ? 1 : 0);
