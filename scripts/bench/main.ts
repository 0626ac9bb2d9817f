/**
 * `npm run bench` (all of it, or `-- --only http --only writes …`; `--json`): how fast this checkout is on this machine.
 *
 * Machines differ and are busy with other things, so no number stands alone: each row runs by turns with a reference
 * that does the same work with the least that can do it (a bare process, a bare server, OpenSSH), and what counts is
 * the ratio, the median over the rounds. What is worse than in the last release (docs/performance.md) is said. Nothing here asserts a time: a row falls short in words only, and the exit
 * status says whether everything ran.
 *
 *   main.ts (which rows) → start-up.ts · executable.ts · http.ts · members.ts · writes.ts · issuer.ts · store.ts · engines.ts · slow-disk.ts
 *                        · organization.ts · lab.ts · copy.ts · connect.ts · echo.ts · far.ts · tabs.ts · pages.ts · idle.ts · busy.ts · slurm.ts · kubernetes.ts
 *                        → rounds.ts (by turns) → table.ts · last-release.ts
 *
 * The references and what puts load on both sides are processes of their own: bare-server.ts, commits.ts, load.ts,
 * write-load.ts, probe.ts, gateway.ts, hold.ts, logins.ts, delay.ts, kubernetes-api.ts, kubernetes-load.ts. A few aims are absolute, where people feel the time and not the ratio.
 *
 * Everything lives below one temporary folder and ends with this process (scratch.ts).
 */
import { parseArgs } from 'node:util';
import { benchBusy } from './busy.ts';
import { benchConnect } from './connect.ts';
import { benchCopy } from './copy.ts';
import { benchEcho } from './echo.ts';
import { benchEngines } from './engines.ts';
import { benchExecutable } from './executable.ts';
import { benchFar } from './far.ts';
import { benchHttp } from './http.ts';
import { benchIdle } from './idle.ts';
import { benchIssuer } from './issuer.ts';
import { benchKubernetes } from './kubernetes.ts';
import { benchLab } from './lab.ts';
import { findWorse, readLastRelease } from './last-release.ts';
import { benchMembers } from './members.ts';
import { benchOrganization } from './organization.ts';
import { benchPages } from './pages.ts';
import { createScratch, type Scratch } from './scratch.ts';
import { benchSlowDisk } from './slow-disk.ts';
import { benchSlurm } from './slurm.ts';
import { benchStartUp } from './start-up.ts';
import { benchStore } from './store.ts';
import { type Report, table } from './table.ts';
import { benchTabs } from './tabs.ts';
import { benchWrites } from './writes.ts';

const benches: Record<string, (scratch: Scratch) => Promise<Report>> = {
  start: benchStartUp,
  executable: benchExecutable,
  http: benchHttp,
  members: benchMembers,
  writes: benchWrites,
  issuer: benchIssuer,
  store: benchStore,
  engines: benchEngines,
  'slow-disk': benchSlowDisk,
  organization: benchOrganization,
  lab: benchLab,
  copy: benchCopy,
  connect: benchConnect,
  echo: benchEcho,
  far: benchFar,
  tabs: benchTabs,
  pages: benchPages,
  idle: benchIdle,
  busy: benchBusy,
  slurm: benchSlurm,
  kubernetes: benchKubernetes,
};

const names = Object.keys(benches).join(', ');
const { values } = parseArgs({
  options: { only: { type: 'string', multiple: true }, json: { type: 'boolean', default: false } },
});
const chosen = values.only ?? Object.keys(benches);
const unknown = chosen.find((name) => !benches[name]);
if (unknown !== undefined) {
  console.error(`There is no bench ${unknown}; there are ${names}.`);
  process.exit(2);
}

const rows: Report['rows'] = [];
const notes: string[] = [];
await using scratch = createScratch();
for (const name of chosen) {
  process.stderr.write(`Running ${name}…\n`);
  try {
    const report = await benches[name]?.(scratch);
    rows.push(...(report?.rows ?? []));
    notes.push(...(report?.notes ?? []));
  } catch (error) {
    notes.push(`${name} failed: ${error instanceof Error ? error.message : error}`);
    process.exitCode = 1;
  }
  await scratch.endProcesses();
}
notes.push(...findWorse(rows, readLastRelease()));
process.stdout.write(values.json ? `${JSON.stringify({ rows, notes }, null, 2)}\n` : table({ rows, notes }));
