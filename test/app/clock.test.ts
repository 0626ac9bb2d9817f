/** The clock of the host is set while people work. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLogger } from '../../src/lib/log.ts';
import { becomes, eventually, physics, startTestApp } from '../support/app.ts';
import { sshPerson } from '../support/ssh-person.ts';

const hour = 3_600_000;
const silent = {
  clusters: physics.clusters?.slice(0, 1).map((cluster) => ({
    ...cluster,
    simulated: { ...(cluster.simulated ?? { computeNodes: 1, gpusPerNode: 1 }), silent: true },
  })),
};

/** Sets the clock of this whole process. */
function setClock(milliseconds: number): Disposable {
  const { now } = Date;
  Date.now = () => now() + milliseconds;
  return {
    [Symbol.dispose]() {
      Date.now = now;
    },
  };
}

test('an hour forward or back ends no session and refuses no login, and the log says it once each time', async () => {
  const lines: string[] = [];
  const log = createLogger('info', (line) => lines.push(line));
  const jumps = () => lines.filter((line) => line.includes('clock.jumped')).map((line) => JSON.parse(line));
  await using service = await startTestApp({ log, gatewayLimits: { recheckSeconds: 1 } });
  using bob = await sshPerson(service, 'bob');
  const session = bob.start([bob.target, 'echo up; exec sleep 60']);
  await session.said;
  const applied = await service.write('/operator/lab', { as: 'root', body: { lab: silent } });
  assert.equal(applied.status, 200, JSON.stringify(applied.body));
  await sleep(500);
  for (const [ms, direction] of [
    [hour, 'forward'],
    [-hour, 'back'],
  ] as const) {
    using _clock = setClock(ms);
    assert.equal((await bob.access()).reason, 'ready');
    assert.equal((await bob.ssh([bob.target, 'exit 4'])).status, 4);
    const [jump] = await eventually(
      async () => jumps(),
      (found) => found.length > 0,
    );
    assert.ok(Math.abs(jump.ms - ms) < 1000, JSON.stringify(jump));
    assert.match(jump.message, new RegExp(`jumped ${direction} by 3[56]\\d\\d seconds`));
    // Open sessions are looked at every second.
    await sleep(2_000);
    assert.equal(session.child.exitCode, null, 'the session stays');
    assert.equal(jumps().length, 1, 'once');
    _clock[Symbol.dispose]();
    await becomes(() => jumps().length > 1, true);
    lines.length = 0;
  }
});

test('a clock that is set back makes no old report new', async () => {
  await using service = await startTestApp();
  using bob = await sshPerson(service, 'bob');
  await service.write('/operator/lab', { as: 'root', body: { lab: silent } });
  await sleep(500);
  service.jump(-hour);
  service.advance(121_000);
  assert.equal((await bob.access()).reason, 'observation_stale');
});
