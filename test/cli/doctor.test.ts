/** `andromeda doctor` on a laptop: each thing that can be wrong is said, and what to do about the first. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMachine } from './harness.ts';
import { startEnvironment } from './issuer.ts';

interface Finding {
  verdict: string;
  about: string;
  text: string;
  fix?: string;
}

test('without an address, or at one where nothing is, it says so first', async (t) => {
  const { run } = await createMachine(t);
  const nowhere = await run(['doctor']);
  assert.equal(nowhere.status, 1);
  assert.match(
    nowhere.stdout,
    /^wrong {2}address +None is known for the profile 'default'\.\nok +ssh +OpenSSH_/,
  );
  assert.match(nowhere.stdout, /\n\nDo this first: `andromeda auth login --url <platform_url>`/);
  const refused = await run(['doctor', '--url', 'http://127.0.0.1:1', '--quiet']);
  assert.equal(refused.status, 1);
  assert.match(
    refused.stdout,
    /^wrong {2}address +Could not reach http:\/\/127\.0\.0\.1:1: the connection was refused\./,
  );
  const wrong = await run(['doctor', '--url', 'ftp://x']);
  assert.deepEqual([wrong.status, wrong.stdout], [2, '']);
});

test('an address where nobody is signed in yet, and one that is no platform', async (t) => {
  const { run } = await createMachine(t);
  const environment = await startEnvironment(t);
  const { stdout, status } = await run(['doctor', '--json', '--url', environment.url]);
  const { findings, todo } = JSON.parse(stdout) as { findings: Finding[]; todo: string };
  assert.equal(status, 1);
  const said = findings.map(({ verdict, about }) => `${verdict} ${about}`);
  assert.deepEqual(said, ['ok address', 'ok tls', 'ok clock', 'wrong sign-in', 'ok ssh'], stdout);
  assert.equal(todo, '`andromeda auth login`');
  const elsewhere = await run(['doctor', '--quiet', '--url', `${environment.url}/elsewhere`]);
  assert.equal(elsewhere.status, 1);
  assert.match(elsewhere.stdout, /^wrong {2}address +\S+ answers, and not as a platform does/);
});
