// judge.mjs SET RESULTS BASELINE [-v]
// Reads what the suite left in RESULTS (scenarios.txt, checks/) and holds it against the baseline,
// which has the suite's own format: `server:` and a list of `scenario` or `scenario:check-id`.
import { readdirSync, readFileSync } from 'node:fs';

const [set, results, baseline, verbose] = process.argv.slice(2);

const expected = new Map();
for (const [i, line] of readFileSync(baseline, 'utf8').split('\n').entries()) {
  const text = line.replace(/\s*#.*$/, '');
  if (text === '' || text === 'server:' || text === 'server: []') continue;
  const entry = /^  - ([^\s:]+)(?::(\S+))?$/.exec(text);
  if (!entry) throw new Error(`${baseline}:${i + 1}: expected '  - scenario' or '  - scenario:check-id'`);
  const [, scenario, check = '*'] = entry;
  expected.set(scenario, [...(expected.get(scenario) ?? []), check]);
}

const ran = new Map();
for (const folder of readdirSync(`${results}/checks`)) {
  const scenario = folder.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '');
  try {
    ran.set(scenario, JSON.parse(readFileSync(`${results}/checks/${folder}/checks.json`, 'utf8')));
  } catch {
    // Left out, and so reported as a scenario that did not run.
  }
}
const scenarios = readFileSync(`${results}/scenarios.txt`, 'utf8').split('\n').filter((line) => line !== '');
if (scenarios.length === 0) throw new Error(`the suite has no scenario for ${set}`);

const bad = (check) => check.status === 'FAILURE' || check.status === 'WARNING';
// The suite adds a wire-schema check to every scenario, which even a closed port passes.
const own = (check) => !check.id.startsWith('wire-schema-');
// Scenarios whose every check the suite skips, whatever a server does.
const skippedByTheSuite = new Set(['tasks-status-notifications']);
const skips = (scenario, checks) =>
  skippedByTheSuite.has(scenario) && checks?.length > 0 && checks.filter(own).every((c) => c.status === 'SKIPPED');
let surprises = 0;
let skipped = 0;
let passed = 0;
let failed = 0;
for (const scenario of scenarios) {
  const checks = ran.get(scenario);
  const entries = expected.get(scenario) ?? [];
  expected.delete(scenario);
  const wrong = checks?.filter(bad) ?? [];
  const shown = wrong.map((c) => `      ${c.status} ${c.id}: ${(c.errorMessage ?? c.description).slice(0, 400)}`);
  const passes = checks?.some((c) => own(c) && c.status === 'SUCCESS') && wrong.length === 0;
  let surprise = [];
  if (skips(scenario, checks) && wrong.length === 0) {
    skipped += 1;
  } else if (passes) {
    passed += 1;
    surprise = entries.map((e) => `stale entry ${e === '*' ? scenario : `${scenario}:${e}`}: it passes`);
  } else {
    failed += 1;
    if (!checks) surprise.push(`${scenario} did not run to its end`);
    else if (entries.length === 0) surprise.push(`${scenario} fails`);
    else if (!entries.includes('*')) {
      const excused = (check) => entries.includes(check.id);
      if (wrong.length === 0) surprise.push(`${scenario}: no check of its own succeeded`);
      surprise.push(...new Set(wrong.filter((c) => !excused(c)).map((c) => `${scenario}:${c.id} fails`)));
      const succeeded = (id) => checks.some((c) => c.id === id && c.status === 'SUCCESS');
      const stale = entries.filter((id) => succeeded(id) && !wrong.some((c) => c.id === id));
      surprise.push(...stale.map((id) => `stale entry ${scenario}:${id}: it passes`));
    }
  }
  surprises += surprise.length;
  if (surprise.length > 0 || (verbose && shown.length > 0)) {
    console.log([`   ${scenario}`, ...surprise.map((s) => `      UNEXPECTED ${s}`), ...shown].join('\n'));
  }
}
// A frozen set is held against the baseline of its revision, which has more scenarios.
for (const scenario of set.startsWith('required-') ? [] : expected.keys()) {
  surprises += 1;
  console.log(`   UNEXPECTED stale entry ${scenario}: no such scenario in ${set}`);
}
const left = skipped === 0 ? '' : `, ${skipped} skipped by the suite`;
console.log(`${set}: ${passed} passed, ${failed} failed${left}${surprises === 0 ? (failed === 0 ? '' : ' as expected') : `, ${surprises} unexpected`}`);
process.exit(surprises === 0 ? 0 : 1);
