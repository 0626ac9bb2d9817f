/** The service is killed in the middle of a form's write, and started again: the form, tried again, does it once and says so. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { stringify } from 'yaml';
import { consoleFiles } from '../../src/lib/packaging.ts';
import { openStore } from '../../src/store/data-dir/open-store.ts';
import { setPassword } from '../../src/store/people/identities.ts';
import { findPersonByEmail } from '../../src/store/people/people.ts';
import { adaHash } from '../identity/issuer/harness.ts';
import { eventually } from '../support/app.ts';
import { noBrowser, openBrowser } from '../support/browser.ts';
import { temporaryDirectory } from '../support/directory.ts';
import { freePorts } from '../support/ports.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { password } from './harness.ts';
import { show } from './page.ts';

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

/** Presses the button, with a service that dies of it; resolves when the form says that it had no answer. */
async function pressInVain(page: Page, service: Service, name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).click();
  await service.died();
  await page.getByText('The console cannot be reached.').first().waitFor();
  await page.getByText('the change may or may not have been made').waitFor();
  await page.getByText(`Press “${name}” again`).waitFor();
}

const onceOnly = 'It was sent more than once and applied once.';

test('a service that is killed in the middle of a write, before and after it is on disk: tried again, it is done once', {
  skip: noBrowser,
}, async () => {
  using directory = temporaryDirectory();
  await using service = await prepareService(directory.path);
  await using browser = await openBrowser();
  await consoleFiles();
  await service.start();
  await browser.withPage(
    async (page) => {
      await page.goto(service.url);
      await page.getByLabel('Email').fill('ada@physics.example');
      await page.getByLabel('Password').fill(password);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('Live', { exact: true }).waitFor();
      await page.getByLabel('Public key', { exact: true }).fill(newPublicKey());

      // On disk, and not answered.
      service.killAt('answer');
      await pressInVain(page, service, 'Register the key');
      assert.equal(await service.timesDone('registerSshKey'), 1);
      await service.start();
      await page.getByRole('button', { name: 'Register the key' }).click();
      await page.getByText(onceOnly).waitFor();
      await page.getByText('Registered', { exact: true }).waitFor();
      assert.equal(await service.timesDone('registerSshKey'), 1);

      // Written, and not committed.
      await show(page, '/keys');
      await page.getByRole('button', { name: 'Revoke…' }).click();
      service.killAt('commit');
      await pressInVain(page, service, 'Revoke');
      assert.equal(await service.timesDone('revokeSshKey'), 0);
      await service.start();
      await page.getByRole('button', { name: 'Revoke', exact: true }).click();
      await page.getByText(onceOnly).waitFor();
      await page.getByText('You have no active keys').waitFor();
      assert.equal(await service.timesDone('revokeSshKey'), 1);
      await page.getByRole('button', { name: 'Close', exact: true }).click();
      await page.getByText(onceOnly).waitFor({ state: 'detached' });
    },
    { width: 1280, height: 800 },
    true,
  );
});
