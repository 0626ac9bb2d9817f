/** A server that is killed takes no session of the others with it; what it had is its own again, or closed in the record by another. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { becomes, eventually } from '../support/app.ts';
import { fieldsOf } from '../support/fields.ts';
import { noServers, openServersLab, type RunningServer } from './lab.ts';

interface Past {
  id: string;
  end_reason: string;
}

const openAt = async (server: RunningServer): Promise<string[]> =>
  (await server.business('/operator/sessions', { as: 'root' })).body.sessions.map(
    ({ id }: { id: string }) => id,
  );
const pastAt = async (server: RunningServer): Promise<Past[]> =>
  (await server.business('/operator/sessions/past', { as: 'root' })).body.sessions;

test('kill -9 of a service, which comes back to its sessions; then of all of it, whose sessions another closes in the record', {
  skip: noServers,
}, async () => {
  // What is not confirmed for so long is not open any more, as far as A knows. B may take its time to come back.
  const gateway = (name: string) => (name === 'a' ? { limits: { confirmGraceSeconds: 20 } } : {});
  await using lab = await openServersLab({ gateway });
  const a = await lab.serve('a');
  const b = await lab.serve('b');
  await lab.addKey(a);
  const ofA = lab.ssh(a);
  const ofB = lab.ssh(b);
  assert.deepEqual([await ofA.said, await ofB.said], ['up\n', 'up\n']);
  const both = await eventually(
    () => openAt(a),
    (ids) => ids.length === 2,
  );

  await b.kill('SIGKILL');
  const again = await lab.serve('b');
  assert.equal(again.events('gateway.process.found').length, 1, 'its gateway process lives');
  const listed = await eventually(
    () => openAt(again),
    (ids) => ids.length === 2,
  );
  assert.deepEqual(new Set(listed), new Set(both));
  ofB.child.stdin?.write('still here\n');
  await becomes(() => ofB.out(), 'up\nstill here\n');

  await again.kill('SIGKILL', 'all');
  await ofB.ended;
  const onA = await eventually(() => pastAt(a), hasPresumed);
  const presumed = onA.filter(({ end_reason: reason }) => isPresumed(reason));
  assert.deepEqual(fieldsOf(presumed, 'end_reason'), ['its server was not seen for 45 s']);
  assert.deepEqual(
    await openAt(a),
    both.filter((id) => id !== presumed[0]?.id),
  );
  ofA.child.stdin?.end('still here');
  assert.equal((await ofA.ended).out, 'up\nstill here');
});

test('a login at a server whose service is gone ends with a sentence, and the next server lets the person in', {
  skip: noServers,
}, async () => {
  await using lab = await openServersLab();
  const a = await lab.serve('a');
  const b = await lab.serve('b');
  await lab.addKey(a);
  const open = lab.ssh(a);
  assert.equal(await open.said, 'up\n');
  await a.kill('SIGKILL');
  const { status, err } = await lab.ssh(a).ended;
  assert.equal(status, 255);
  assert.match(err, /Access cannot be confirmed at the moment\. Please try again shortly\./);
  const next = lab.ssh(b);
  assert.equal(await next.said, 'up\n');
  for (const { child, ended } of [open, next]) {
    child.stdin?.end('still here');
    assert.equal((await ended).out, 'up\nstill here');
  }
});

const isPresumed = (reason: string) => reason.includes('was not seen');
const hasPresumed = (all: Past[]) => all.some(({ end_reason: reason }) => isPresumed(reason));
