/** The service is killed in the middle of a write of the console, and started again: sent again, the write is done once. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { setPassword } from '../../src/store/people/identities.ts';
import { findPersonByEmail } from '../../src/store/people/people.ts';
import { adaHash } from '../identity/issuer/harness.ts';
import { eventually } from '../support/app.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { signIn } from './harness.ts';

const lab = {
  organizations: [
    {
      slug: 'physics',
      name: 'Physics',
      members: [{ email: 'ada@physics.example', role: 'owner', username: 'ada' }],
    },
  ],
};

interface Service extends AsyncDisposable {
  url: string;
  start(): Promise<void>;
  /** Kills it at that point of the next write. */
  killAt(point: 'commit' | 'answer'): void;
  /** Resolves when it is dead. */
  died(): Promise<void>;
  /** How often an operation was done, as the audit trail has it, and what is there of it. */
  timesDone(operation: string): Promise<number>;
}

async function prepareService(directory: string): Promise<Service> {
  const ports = await freePorts(5);
  const [platform, business, gateway, issuer, console] = ports.map((port) => ({
    listen: `127.0.0.1:${port}`,
  }));
  const settings = {
    ...{ dataDir: './data', platform, business, console, seed: './lab.yaml' },
    gateway: { ...gateway, processes: 0 },
    identity: { embedded: issuer },
  };
  const file = join(directory, 'andromeda.yaml');
  writeFileSync(file, stringify(settings));
  writeFileSync(join(directory, 'lab.yaml'), stringify(lab));
  const point = join(directory, 'point');
  writeFileSync(point, 'never');
  let child: ChildProcess | undefined;
  let isPrepared = false;
  const open = () => openStore(join(directory, 'data'), { beside: true });

  const died = async () => {
    if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  };
  return {
    url: `http://${console?.listen}`,
    async start() {
      writeFileSync(point, 'never');
      const preload = new URL('kill-points.ts', import.meta.url).pathname;
      const args = ['--import', preload, 'src/main.ts', 'serve', '--config', file];
      const started = spawn(process.execPath, args, {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { ...process.env, ANDROMEDA_KILL_AT: point },
      });
      child = started;
      let log = '';
      started.stderr.setEncoding('utf8').on('data', (part) => {
        log += part;
      });
      await eventually(
        async () => (started.exitCode === null ? log : assert.fail(`the service said: ${log}`)),
        (text) => text.includes('serve.ready'),
      );
      // A new password would end the sign-ins.
      if (isPrepared) return;
      isPrepared = true;
      const store = await open();
      try {
        const ada = await findPersonByEmail(store.read, 'ada@physics.example');
        assert.ok(ada);
        await store.write((tx) => setPassword(tx, { userId: ada.id, hash: adaHash }));
      } finally {
        await store.close();
      }
    },
    killAt: (where) => writeFileSync(point, where),
    died,
    async timesDone(operation) {
      const store = await open();
      try {
        const rows = await store.read
          .selectFrom('audit_entries')
          .select('seq')
          .where('operation', '=', operation)
          .where('result', '=', 'done')
          .execute();
        return rows.length;
      } finally {
        await store.close();
      }
    },
    async [Symbol.asyncDispose]() {
      child?.kill('SIGKILL');
      await died();
    },
  };
}

test('a service that is killed in the middle of a write, before and after it is on disk: sent again, it is done once', async () => {
  using directory = temporaryDirectory();
  await using service = await prepareService(directory.path);
  await service.start();
  const browser = await signIn(service, 'ada');
  const public_key = newPublicKey();
  const send = (path: string, body: object) => {
    const own = { 'idempotency-key': `a key ${path}`, 'audit-reason': 'a test' };
    const headers = { 'content-type': 'application/json', ...own };
    return browser.call(`/api/business/me/ssh-keys${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
  };
  /** Sends it to a service that dies of it, and again to the next one. */
  const sendTwice = async (point: 'commit' | 'answer', path: string, body: object) => {
    service.killAt(point);
    await assert.rejects(send(path, body).then((answer) => answer.text()));
    await service.died();
    const operation = path === '' ? 'registerSshKey' : 'revokeSshKey';
    assert.equal(await service.timesDone(operation), point === 'answer' ? 1 : 0);
    await service.start();
    const answer = await send(path, body);
    assert.equal(answer.status, 200);
    assert.equal(await service.timesDone(operation), 1);
    return (await answer.json()) as { ssh_key: { id: string } };
  };
  // On disk, and not answered; then written, and not committed.
  const { ssh_key: key } = await sendTwice('answer', '', { public_key });
  await sendTwice('commit', `/${key.id}/revoke`, {});
});
