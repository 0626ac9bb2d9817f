/**
 * `npm run campaign -- cluster [--only capacity,kills,failovers,stops,revocations,restarts] [--short] [--slack N]`: three servers
 * behind HAProxy on PostgreSQL with a synchronous standby, under a load of writes, sessions, logins and sign-ins, on bad days.
 *
 *   main.ts → lab.ts (all of it: postgres.ts, failover.ts, servers.ts, issuer.ts, haproxy.ts, a Slurm cluster, person.ts)
 *           → writes.ts, sessions.ts, logins.ts, sign-ins.ts (by tries.ts), signed-in.ts, changes.ts (the load, and what it was answered)
 *           → capacity.ts, kills.ts, failovers.ts, stops.ts, revocations.ts, restarts.ts (the trials)
 *           → ../check.ts (what is missing, or broken)
 *
 * The exit status is 1 when something does not hold. `--slack` multiplies every limit of time, for machines that do much else;
 * with `--logs DIR` the servers' logs stay.
 */
import { mkdirSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { findFaultsBy } from '../check.ts';
import { measureWrites } from './capacity.ts';
import { startChanges } from './changes.ts';
import { failOver } from './failovers.ts';
import { killServers } from './kills.ts';
import { type ClusterLab, openLab, whyNoLab } from './lab.ts';
import { startLogins } from './logins.ts';
import { restartServers } from './restarts.ts';
import { revokeKeys } from './revocations.ts';
import { startSessions } from './sessions.ts';
import { startSignIns } from './sign-ins.ts';
import { startSignedIn } from './signed-in.ts';
import { stopEach } from './stops.ts';
import { atMost, formatLines, type Line, type World } from './trial.ts';
import { startWrites } from './writes.ts';

interface Sizes {
  /** 0: it is not measured. */
  capacityMs: number;
  sessions: number;
  revokers: number;
  writers: number;
  loginEveryMs: number;
  /** People who sign in, one every so often; terminals and pages that stay signed in. */
  signIns: { everyMs: number; terminals: number; readers: number };
  kills: { rounds: number; everyMs: number; downMs: number };
  failovers: number;
  stops: { stopMs: number; only?: RegExp };
  revocations: number;
  restarts: boolean;
}

const whole: Sizes = {
  capacityMs: 20_000,
  sessions: 9,
  revokers: 4,
  writers: 8,
  loginEveryMs: 1_000,
  signIns: { everyMs: 1_000, terminals: 4, readers: 3 },
  kills: { rounds: 30, everyMs: 20_000, downMs: 6_000 },
  failovers: 5,
  stops: { stopMs: 20_000 },
  revocations: 120,
  restarts: true,
};
const short: Sizes = {
  capacityMs: 0,
  sessions: 3,
  revokers: 1,
  writers: 2,
  loginEveryMs: 2_000,
  signIns: { everyMs: 4_000, terminals: 1, readers: 1 },
  kills: { rounds: 1, everyMs: 4_000, downMs: 500 },
  failovers: 1,
  stops: { stopMs: 2_000, only: /^server 1$/ },
  revocations: 2,
  restarts: false,
};
const trials = ['capacity', 'kills', 'failovers', 'stops', 'revocations', 'restarts'] as const;
const usage = `Usage: npm run campaign -- cluster [--only ${trials.join(',')}] [--short] [--slack N] [--rounds N] [--logs DIR]`;

/** The exit status. */
export async function runCluster(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      only: { type: 'string', default: trials.join(',') },
      short: { type: 'boolean', default: false },
      slack: { type: 'string', default: '1' },
      /** Of servers killed. */
      rounds: { type: 'string' },
      logs: { type: 'string' },
    },
  });
  const chosen = values.only.split(',');
  const slack = Number(values.slack);
  const sizes = { ...(values.short ? short : whole) };
  if (values.rounds !== undefined) sizes.kills = { ...sizes.kills, rounds: Number(values.rounds) };
  if (!chosen.every((one) => (trials as readonly string[]).includes(one)) || !(slack >= 1)) {
    console.error(usage);
    return 2;
  }
  const reason = whyNoLab();
  if (reason !== undefined) {
    console.error(`There is no campaign here: ${reason}.`);
    return 1;
  }
  const began = performance.now();
  const say = (sentence: string) =>
    console.log(`${((performance.now() - began) / 1_000).toFixed(1).padStart(6)}  ${sentence}`);
  if (values.logs !== undefined) mkdirSync(values.logs, { recursive: true });
  const lines = await run(sizes, { chosen: new Set(chosen), slack, logs: values.logs, say });
  console.log(`\n${formatLines(lines)}`);
  return lines.every(({ holds }) => holds) ? 0 : 1;
}

interface RunOptions {
  chosen: ReadonlySet<string>;
  slack: number;
  logs: string | undefined;
  say(sentence: string): void;
}

async function run(sizes: Sizes, { chosen, slack, logs, say }: RunOptions): Promise<Line[]> {
  await using lab = await openLab({ people: sizes.sessions + 1 + sizes.revokers, logs, say });
  const { people, servers } = lab;
  const lines: Line[] = [];
  if (chosen.has('capacity') && sizes.capacityMs > 0)
    lines.push(...(await measureWrites(lab, sizes.capacityMs)));
  const sessions = await startSessions(people.slice(0, sizes.sessions), servers);
  const [caller, ...others] = people.slice(sizes.sessions);
  if (!caller) throw new Error('nobody is there to log in');
  const writes = startWrites(lab.business, lab.writers.slice(0, sizes.writers));
  const logins = startLogins(caller, { everyMs: sizes.loginEveryMs, slack });
  const changes = startChanges(lab);
  const { visitors, urls } = lab;
  const signIns = startSignIns(urls.console, visitors.visitor, { everyMs: sizes.signIns.everyMs, slack });
  const signedIn = await startSignedIn(
    { ...urls, slack },
    {
      terminals: visitors.terminal.slice(0, sizes.signIns.terminals),
      readers: visitors.reader.slice(0, sizes.signIns.readers),
    },
  );
  const world: World = { lab, writes, sessions, logins, signIns, signedIn, changes, slack, say };
  try {
    if (chosen.has('revocations')) lines.push(...(await revokeKeys(world, others, sizes.revocations)));
    if (chosen.has('kills')) lines.push(...(await killServers(world, sizes.kills)));
    if (chosen.has('failovers')) lines.push(...(await failOver(world, sizes.failovers)));
    if (chosen.has('stops')) lines.push(...(await stopEach(world, sizes.stops)));
    if (chosen.has('restarts') && sizes.restarts) lines.push(...(await restartServers(world)));
  } finally {
    // All at once, for each waits for what is under way.
    await Promise.all([writes, logins, signIns, signedIn, changes, sessions].map((one) => one.stop()));
  }
  const lost = await findLost(lab, world);
  for (const fault of lost.slice(0, 20)) say(fault);
  const unexpected = [...writes.ledger.unexpected, ...changes.unexpected];
  for (const sentence of [...unexpected, ...signedIn.out].slice(0, 20)) say(sentence);
  return [
    ...lines,
    atMost(
      'at the end',
      `of ${writes.ledger.answers} acknowledged writes lost, or the trail broken`,
      lost.length,
      0,
    ),
    atMost('at the end', 'answers that nobody should get', unexpected.length, 0),
    atMost(
      'at the end',
      `people signed out, of ${signedIn.renewals} renewals and ${signedIn.events} events on pages`,
      signedIn.out.length,
      0,
    ),
  ];
}

async function findLost({ pair }: ClusterLab, { writes }: World): Promise<string[]> {
  const options = { database: 'andromeda', limitMs: 60_000 };
  return findFaultsBy(async <Row>(sql: string) => {
    const rows = await pair.primary.query(`select row_to_json(found) from (${sql}) as found`, options);
    return rows.map((row) => JSON.parse(row) as Row);
  }, writes.ledger);
}
