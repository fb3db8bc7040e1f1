// Looks at a git repository; one JSON object on standard output, whatever happens.
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";

const OPTIONS = {
  "recent-commits": { count: { type: "string", default: "10" }, path: { type: "string" } },
  "changed-files": {},
};

class Failed extends Error {
  constructor(code, message, exit = 1) {
    super(message);
    Object.assign(this, { code, exit });
  }
}

function git(...args) {
  const safe = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-pager", "--no-optional-locks"];
  const ran = spawnSync("git", [...safe, ...args], { encoding: "utf8", maxBuffer: 16 * 1024 * 1024 });
  if (ran.error) throw new Failed("not_installed", "git is missing: install it");
  if (ran.status !== 0) throw new Failed("git_failed", ran.stderr.trim().split("\n").at(-1) || "git failed");
  return ran.stdout;
}

function recentCommits({ count, path }) {
  const wanted = Number(count);
  if (!Number.isInteger(wanted) || wanted < 1 || wanted > 100) {
    throw new Failed("invalid_argument", "count is a whole number from 1 to 100", 2);
  }
  const format = ["%h", "%cs", "%an", "%s"].join("%x1f");
  const paths = path === undefined ? [] : [path];
  const lines = git("log", `--max-count=${wanted}`, `--format=${format}`, "--", ...paths).split("\n").filter(Boolean);
  const commits = lines.map((line) => {
    const [hash, date, author, subject] = line.split("\x1f");
    return { hash, date, author, subject };
  });
  return { commits };
}

function changedFiles() {
  const states = { "?": "new", A: "added", D: "deleted", M: "modified", R: "renamed", U: "conflict" };
  const entries = git("status", "--porcelain=v1", "-z", "--no-renames").split("\0").filter(Boolean);
  const files = entries.map((entry) => {
    const letter = entry.slice(0, 2).trim()[0];
    return { path: entry.slice(3), state: states[letter] ?? letter };
  });
  return { files };
}

function run([action, ...rest]) {
  if (!Object.hasOwn(OPTIONS, action ?? "")) {
    throw new Failed("usage", `unknown action '${action ?? ""}'; the actions are ${Object.keys(OPTIONS).join(", ")}`, 2);
  }
  let values;
  try {
    ({ values } = parseArgs({ args: rest, options: OPTIONS[action], strict: true }));
  } catch (error) {
    throw new Failed("usage", `unrecognized arguments: ${error.message}`, 2);
  }
  return action === "recent-commits" ? recentCommits(values) : changedFiles();
}

try {
  console.log(JSON.stringify(run(process.argv.slice(2))));
} catch (error) {
  const { code = "failed", exit = 1, message } = error;
  console.log(JSON.stringify({ error: { code, message, details: {} } }));
  process.exitCode = exit;
}
