/** A key is revoked at one server while its session is open at another. */
import { percentile } from '../../bench/percentile.ts';
import { ports } from './addresses.ts';
import { createApi } from './api.ts';
import { type Person, registerPerson } from './person.ts';
import { openSession } from './sessions.ts';
import { type Line, type World, within } from './trial.ts';

const trial = 'a revocation elsewhere';
const atOnce = 4;

export async function revokeKeys(world: World, people: readonly Person[], rounds: number): Promise<Line[]> {
  const times: number[] = [];
  let next = 0;
  const work = people.slice(0, atOnce).map(async (person) => {
    while (next < rounds) {
      next += 1;
      times.push(await revokeOne(world, person, next));
    }
  });
  await Promise.all(work);
  const p50 = percentile(times, 0.5);
  world.say(`${times.length} keys revoked, half of their sessions ended within ${p50.toFixed(0)} ms`);
  return [
    { trial, what: 'keys revoked', found: `${times.length}`, limit: '', holds: true },
    within(world, { trial, what: 'half of the sessions ended', ms: p50, limitMs: 1_000 }),
    within(world, { trial, what: 'p99', ms: percentile(times, 0.99), limitMs: 1_000 }),
  ];
}

/** How long it takes, in ms, from the request to the end of the session. */
async function revokeOne({ lab, say }: World, { name, token }: Person, round: number): Promise<number> {
  const { servers } = lab;
  const here = servers[round % servers.length];
  const there = servers[(round + 1 + (round % 2)) % servers.length];
  if (!here || !there) throw new Error('there are three servers');
  const person = await registerPerson(lab, { name, token, orgId: lab.owner.orgId });
  const session = await openSession(person, servers, there.host);
  const business = createApi(`http://${here.host}:${ports.business}`);
  const at = performance.now();
  const [, ms] = await Promise.all([
    business.ask(`/me/ssh-keys/${person.keyId}/revoke`, { token, body: {} }),
    session.ended.then(() => performance.now() - at),
  ]);
  if (ms > 1_000)
    say(
      `a session on ${there.name} ended ${ms.toFixed(0)} ms after the request to ${here.name}: ${session.said}`,
    );
  return ms;
}
