/** PostgreSQL's primary is killed, and the standby takes its place. */
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from './lab.ts';
import { atMost, type Line, longestWithout, seconds, type World, within } from './trial.ts';

const trial = 'the primary killed';
const limitMs = 30_000;
/** To see that what is back stays. */
const settleMs = 3_000;

export async function failOver(world: World, rounds: number): Promise<Line[]> {
  const { lab, writes, sessions, logins, signIns, changes, slack, say } = world;
  const longest = { writes: 0, logins: 0, signIns: 0, sync: 0 };
  let lost = 0;
  for (let round = 0; round < rounds; round += 1) {
    await lab.pair.safe();
    await sessions.refill();
    const { failovers } = lab.pair;
    const before = sessions.all;
    const at = performance.now();
    await lab.pair.primary.kill();
    await until(() => lab.pair.failovers > failovers, 60_000, 'the standby did not take over');
    await Promise.all([writes, logins, signIns, changes].map((one) => one.next(limitMs * 2 * slack)));
    await sleep(settleMs);
    const found = {
      writes: writes.longestGap(at),
      logins: lastFailure(logins.all, at),
      signIns: longestWithout(signIns.all, at),
      sync: changes.longest(at),
    };
    for (const key of ['writes', 'logins', 'signIns', 'sync'] as const)
      longest[key] = Math.max(longest[key], found[key]);
    const gone = before.filter((session) => !session.isOpen);
    for (const session of gone) say(`a session on ${session.server.name} ended: ${session.said}`);
    lost += gone.length;
    say(
      `the primary killed: writes paused ${seconds(found.writes)}, logins ${seconds(found.logins)}, sign-ins ${seconds(found.signIns)}, sync ${seconds(found.sync)}`,
    );
  }
  return [
    { trial, what: 'rounds', found: `${rounds}`, limit: '', holds: true },
    within(world, { trial, what: 'longest pause of writes', ms: longest.writes, limitMs }),
    within(world, { trial, what: 'logins succeed again', ms: longest.logins, limitMs }),
    within(world, { trial, what: 'longest without a sign-in', ms: longest.signIns, limitMs }),
    within(world, { trial, what: "a cluster's sync goes on", ms: longest.sync, limitMs }),
    atMost(trial, 'sessions lost', lost, 0),
  ];
}

/** From then until the end of the last login that failed. */
function lastFailure(all: World['logins']['all'], since: number): number {
  const failed = all.filter(({ at, attempts }) => at >= since && attempts === undefined);
  return Math.max(0, ...failed.map(({ at, ms }) => at + ms - since));
}
