/**
 * `npm run campaign -- cluster` is cluster/main.ts, of several servers on one PostgreSQL.
 *
 * `npm run campaign -- --minutes N [--kind kill|power]`: ends the running service at random moments under people who
 * write, by `kill -9` or by a power cut, and looks whether everything that was answered is there. `--rounds N` takes the
 * place of `--minutes`; `--flush none` is a disk whose flushes do nothing (or, with a number, take so many ms longer).
 *
 *   main.ts (how long) → campaign.ts (rounds) → people.ts (who writes and reads, and what they were answered)
 *                                             → disk.ts (a file system that loses power)
 *                                             → left-behind.ts (the gateway process, which outlives it)
 *                                             → check.ts (what is missing, or broken)
 *
 * The exit status is 1 when something was.
 */
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { badFlush } from './bad-flush.ts';
import { runCampaign } from './campaign.ts';
import { whyNoDisk } from './disk.ts';

if (process.argv[2] === 'cluster') {
  const { runCluster } = await import('./cluster/main.ts');
  process.exit(await runCluster(process.argv.slice(3)));
}
const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    rounds: { type: 'string' },
    kind: { type: 'string', multiple: true, default: ['kill', 'power'] },
    flush: { type: 'string' },
    // Set where this process has mounts of its own.
    apart: { type: 'boolean', default: false },
  },
});
const { kind: kinds, flush, apart } = values;
const minutes = Number(values.minutes) / kinds.length;
if (kinds.some((kind) => kind !== 'kill' && kind !== 'power') || !(minutes > 0)) {
  console.error('Usage: npm run campaign -- --minutes N [--kind kill|power]');
  process.exit(2);
}
// Whoever makes a mount namespace takes a copy of every mount along, and a disk that is still mounted somewhere does not
// lose what it should. Ours ends with this process.
if (kinds.includes('power') && !apart) {
  const reason = whyNoDisk();
  if (reason !== undefined) {
    console.error(`There are no power cuts here: ${reason}.`);
    process.exit(1);
  }
  const args = ['--mount', process.execPath, ...process.argv.slice(1), '--apart'];
  process.exit(spawnSync('unshare', args, { stdio: 'inherit' }).status ?? 1);
}
for (const kind of kinds as ('kill' | 'power')[]) {
  const until = performance.now() + minutes * 60_000;
  const { rounds, answers, faults } = await runCampaign({
    kind,
    goesOn: (done) =>
      values.rounds === undefined ? performance.now() < until : done < Number(values.rounds),
    onRound: (round, text) => console.log(`${kind} ${round}: ${text}`),
    env: (dir) => (flush === undefined ? {} : badFlush(dir, flush)),
  });
  console.log(`${kind}: ${rounds} rounds, ${answers} writes answered, ${faults.length} faults.`);
  for (const fault of faults.slice(0, 20)) console.log(`  ${fault}`);
  if (faults.length > 0) process.exitCode = 1;
}
