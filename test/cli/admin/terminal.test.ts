/** Commands that ask, at a real terminal. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { changesTaken, type Routes, signedIn } from '../small-api.ts';
import { alpha, alphaId, bob, lookups } from './operator-api.ts';

async function terminal(t: TestContext, routes: Routes) {
  const { directory, requests, atTerminal } = await signedIn(t, { ...lookups, ...routes });
  const file = join(directory, 'lab.yaml');
  await writeFile(file, '{}');
  return {
    changes: () => changesTaken(requests),
    file,
    start: (...args: string[]) => atTerminal(['admin', ...args]),
  };
}

test('a password is asked for twice and never shown', async (t) => {
  const { start, changes } = await terminal(t, { 'PUT /operator/people/user_bob/password': bob });
  const command = start('person', 'password', 'bob@physics.example');
  await command.until('New password for bob@physics.example: ');
  command.type('sex\u007fcret \r');
  await command.until('The same again: ');
  command.type('secret \r');
  const { status, screen } = await command.result;
  assert.equal(status, 0, screen);
  assert.doesNotMatch(screen, /secret|sex/);
  assert.deepEqual(changes(), ['PUT /operator/people/user_bob/password {"password":"secret "}']);
});

test('two passwords that differ, or Ctrl-C, change nothing', async (t) => {
  const { start, changes } = await terminal(t, {});
  const differing = start('person', 'password', 'bob@physics.example');
  await differing.until('New password for bob@physics.example: ');
  differing.type('one\rother\r'); // typed ahead
  const { status, screen } = await differing.result;
  assert.match(screen, /The two are not the same; nothing was changed\.\n/);
  assert.equal(status, 1);
  const interrupted = start('person', 'password', 'bob@physics.example');
  await interrupted.until('New password for bob@physics.example: ');
  interrupted.type('one\u0003');
  assert.deepEqual((await interrupted.result).status, 130);
  assert.match((await interrupted.result).screen, /Cancelled; nothing was changed\.\n$/);
  assert.deepEqual(changes(), []);
});

test('a cluster is released once its name was typed', async (t) => {
  const release = `POST /operator/clusters/${alphaId}/release`;
  const { start, changes } = await terminal(t, { [release]: alpha });
  for (const [typed, status, done] of [
    ['alpha\r', 0, [release]],
    ['y\r', 1, []],
    ['\u0004', 130, []],
  ] as const) {
    const command = start('cluster', 'release', 'alpha');
    await command.until('This takes alpha of physics out of service, which cannot be undone.\n');
    await command.until('Type its name to go on: ');
    command.type(typed);
    const ended = await command.result;
    assert.equal(ended.status, status, ended.screen);
    assert.deepEqual(changes(), done);
  }
});

test('apply asks when something would be removed or jobs would end, and only then', async (t) => {
  const change = (action: string) => ({ action, kind: 'member', name: 'physics/bob', details: 'x' });
  const restart = {
    cluster_id: 'c',
    cluster_name: 'alpha',
    added: ['bob'],
    removed: [],
    restarts: ['compute'],
    ended_jobs: [{ id: '1', user: 'ada', name: 'train', machines: ['n1'] }],
  };
  const harmless = { changes: [change('create')], restarts: [{ ...restart, ended_jobs: [] }] };
  const removing = { changes: [change('remove')], restarts: [] };
  const ending = { changes: [change('create')], restarts: [restart] };
  const asked = 'POST /operator/lab/plan {"lab":{},"prune":false}';
  const applied = 'POST /operator/lab {"lab":{},"prune":false}';
  for (const [plan, flags, typed, status, requests] of [
    [harmless, [], undefined, 0, [asked, applied]],
    [removing, ['--yes'], undefined, 0, [applied]],
    [removing, [], 'y\r', 0, [asked, applied]],
    [ending, [], 'yes\r', 0, [asked, applied]],
    [ending, [], '\r', 1, [asked]],
    [removing, [], 'n\r', 1, [asked]],
  ] as const) {
    const { start, changes, file } = await terminal(t, {
      'POST /operator/lab/plan': plan,
      'POST /operator/lab': plan,
    });
    const command = start('apply', '-f', file, ...flags);
    if (typed !== undefined) {
      const screen = await command.until('Go on? [y/N] ');
      assert.match(screen, plan === ending ? /1 {4}ada {3}train/ : /remove {2}member/);
      command.type(typed);
    }
    const ended = await command.result;
    assert.equal(ended.status, status, ended.screen);
    if (typed === undefined) assert.doesNotMatch(ended.screen, /Go on/);
    assert.deepEqual(changes(), requests);
  }
});
