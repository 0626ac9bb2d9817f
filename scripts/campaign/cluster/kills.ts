/** One server after the other loses its host: service and gateway end from one moment to the next, and start again. */
import { setTimeout as sleep } from 'node:timers/promises';
import { atMost, type Line, longestWithout, seconds, type World, within } from './trial.ts';
import type { Try } from './tries.ts';

interface KillOptions {
  rounds: number;
  everyMs: number;
  downMs: number;
}

const trial = 'a server killed';
/** An open session that has not answered for so long is no session. */
const silenceMs = 10_000;

export async function killServers(world: World, { rounds, everyMs, downMs }: KillOptions): Promise<Line[]> {
  const { lab, writes, sessions, logins, signIns, signedIn, changes, slack, say } = world;
  const [loginsBefore, signInsBefore] = [logins.all.length, signIns.all.length];
  const answersBefore = writes.ledger.answers;
  const began = performance.now();
  let [others, lost] = [0, 0];
  for (let round = 0; round < rounds; round += 1) {
    const server = lab.servers[round % lab.servers.length];
    if (!server) break;
    const elsewhere = sessions.all.filter((session) => session.isOpen && session.server !== server);
    const at = performance.now();
    await server.loseHost(downMs);
    await sleep(everyMs - (performance.now() - at));
    const gone = elsewhere.filter(
      (session) => !session.isOpen || performance.now() - session.answeredAt > silenceMs * slack,
    );
    for (const session of gone) say(`a session on ${session.server.name} ended too: ${session.said}`);
    others += elsewhere.length;
    lost += gone.length;
    const found = { gap: writes.longestGap(at), sync: changes.longest(at) };
    say(
      `${server.name} killed: writes paused ${seconds(found.gap)}, sync ${seconds(found.sync)}, ${elsewhere.length} other sessions`,
    );
    await server.ready();
    await sessions.refill();
  }
  // What began while the last one was away has the time to end.
  await Promise.all([writes, logins, signIns, changes].map((one) => one.next(60_000 * slack)));
  const [gap, sync] = [writes.longestGap(began), changes.longest(began)];
  const signInGap = longestWithout(signIns.all, began);
  const silence = signedIn.longestSilence(began);
  return [
    { trial, what: `rounds, one every ${everyMs / 1_000} s`, found: `${rounds}`, limit: '', holds: true },
    atMost(trial, `of ${others} sessions of other servers lost`, lost, 0),
    attemptsLine(world, 'login', logins.all.slice(loginsBefore)),
    attemptsLine(world, 'sign-in', signIns.all.slice(signInsBefore)),
    atMost(trial, 'repetitions of one request of a sign-in', signIns.repeats(began), Math.ceil(slack)),
    within(world, { trial, what: 'longest without a sign-in', ms: signInGap, limitMs: 15_000 }),
    within(world, { trial, what: "longest that a page's stream was away", ms: silence, limitMs: 15_000 }),
    within(world, {
      trial,
      what: `longest pause of writes, of ${writes.ledger.answers - answersBefore}`,
      ms: gap,
      limitMs: 15_000,
    }),
    within(world, { trial, what: "a cluster's sync goes on", ms: sync, limitMs: 20_000 }),
  ];
}

/** How many failed, and not only once. */
function attemptsLine({ say }: World, name: string, all: readonly Try[]): Line {
  const failed = all.filter(({ attempts }) => attempts === undefined);
  for (const { said } of failed) say(`a ${name} failed twice: ${said}`);
  const again = all.filter(({ attempts }) => attempts === 2);
  for (const { said } of again) say(`a ${name} took a second attempt: ${said}`);
  return atMost(
    trial,
    `of ${all.length} ${name}s failed (${again.length} took a second attempt)`,
    failed.length,
    0,
  );
}
