/** The web console in a real browser, with a real Slurm cluster behind it: what is done on the page happens there, and shows. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { type ConsoleApp, signIn, startConsoleApp } from '../console/harness.ts';
import { openSite, show } from '../console/page.ts';
import { alpha, eventually, physics } from '../support/app.ts';
import { noBrowser } from '../support/browser.ts';
import { keygen } from '../support/ssh-keys.ts';
import { noSlurm, type SlurmLab, startSlurmLab } from './lab.ts';
import { patienceMs } from './service.ts';

const address = `/clusters/${alpha}/slurm`;

/** The service with its console, whose one cluster is the lab, which lets the gateway in. */
async function startConsoleOn(slurm: SlurmLab): Promise<ConsoleApp> {
  const { simulated: _none, ...cluster } = physics.clusters?.[0] ?? {};
  const clusters = [{ ...cluster, slurm: slurm.settings({ rollout: 'live' }) }] as Lab['clusters'];
  const app = await startConsoleApp({
    lab: { ...physics, ...(clusters && { clusters }) },
    sync: { intervalSeconds: 3 },
    // Those of the other files that bring up a cluster: nobody of this machine has them.
    config: { uids: { base: 40_000 } },
  });
  const root = await signIn(app, 'root');
  const { public_key: key } = await root.ask('business/operator/gateway');
  writeFileSync(join(slurm.directory, 'etc/gateway.pub'), `${key}\n`);
  return app;
}

/** A laptop: a key, and OpenSSH's own client, which gets the lines that the page has for it. */
function laptop() {
  const directory = mkdtempSync(join(tmpdir(), 'andromeda-laptop-'));
  const { publicKey, privateKey } = keygen('-t', 'ed25519');
  const key = join(directory, 'key');
  writeFileSync(key, privateKey, { mode: 0o600 });
  const children = new Set<ChildProcess>();
  let line: string[] = [];
  const options = ['BatchMode=yes', 'IdentitiesOnly=yes', 'IdentityAgent=none', 'StrictHostKeyChecking=yes'];
  const own = ['-F', 'none', '-i', key, '-o', `UserKnownHostsFile=${directory}/known_hosts`];

  function start(command: string) {
    const child = spawn('ssh', [...own, ...options.flatMap((one) => ['-o', one]), ...line, command], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.add(child);
    const said = { out: '', err: '' };
    child.stdout.setEncoding('utf8').on('data', (part) => {
      said.out += part;
    });
    child.stderr.setEncoding('utf8').on('data', (part) => {
      said.err += part;
    });
    const ended = new Promise<{ status: number | null; out: string; err: string }>((resolve) => {
      child.on('close', (status) => {
        children.delete(child);
        resolve({ status, ...said });
      });
    });
    return { said, ended };
  }

  return {
    publicKey,
    /** As if typed: what the page has for the terminal, and for ~/.ssh/known_hosts. */
    take(sshLine: string, knownHost: string) {
      const [program, ...rest] = sshLine.trim().split(' ');
      assert.equal(program, 'ssh');
      line = rest;
      writeFileSync(join(directory, 'known_hosts'), `${knownHost.trim()}\n`);
    },
    start,
    run: (command: string) => start(command).ended,
    [Symbol.dispose]() {
      for (const child of children) child.kill('SIGKILL');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

test('the web console with a real Slurm cluster behind it', {
  skip: noSlurm || noBrowser,
}, async (t) => {
  using slurm = startSlurmLab({ HOMES: 'shared' });
  await using app = await startConsoleOn(slurm);
  await using site = await openSite(app);
  using bob = laptop();
  const head = async (command: string) => {
    const { status, out } = await slurm.on('head', command);
    assert.equal(status, 0, `${command}: ${out}`);
    return out;
  };
  const withPerson = (name: string, use: (page: Page) => Promise<void>) =>
    site.as(name, async (page) => {
      page.setDefaultTimeout(patienceMs);
      await use(page);
    });

  await t.test('her first day: a key, its way to the cluster, and a line that works', () =>
    withPerson('bob', async (page) => {
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
      await page.getByText('Three steps to a shell').waitFor();
      await page.getByLabel('Public key', { exact: true }).fill(bob.publicKey);
      await page.getByRole('button', { name: 'Register the key' }).click();
      await page.getByText('You can log in to alpha').waitFor();
      await page.locator('.strip', { hasText: 'Login ready' }).locator('li.done').nth(3).waitFor();
      const copied = async (label: string) => {
        await page.getByRole('button', { name: `Copy: ${label}` }).click();
        await page
          .getByRole('button', { name: `Copy: ${label}` })
          .getByText('Copied')
          .waitFor();
        return (await page.evaluate('navigator.clipboard.readText()')) as string;
      };
      const line = await copied('log in to alpha');
      await page.getByText('SSH config, VS Code, host key').click();
      bob.take(line, await copied('host key of the gateway to alpha'));
      const login = await bob.run('id -un; hostname; srun -Q hostname');
      assert.match(login.out, /^bob\nhead\na[12]\n$/, login.err);
      assert.equal(login.status, 0);
    }),
  );

  await t.test('an owner changes a partition; one that Slurm does not take changes nothing', async () => {
    await withPerson('ada', async (page) => {
      const editor = page.getByRole('textbox', { name: 'Slurm configuration of alpha, as YAML' });
      const write = async (line: string, reason: string) => {
        await editor.click();
        await page.keyboard.press('Control+a');
        await page.keyboard.insertText(`slurmPartitions: ${line} Default=YES MaxTime=90 State=UP\n`);
        await page.getByText('It is tested on the cluster first').waitFor();
        await page.getByLabel('Reason').fill(reason);
        await page.getByRole('button', { name: 'Save and test' }).click();
      };
      const stands = (words: string) => page.locator('.sentence', { hasText: words }).waitFor();
      await show(page, address);
      await page.getByText('No configuration yet').waitFor();
      await write('PartitionName=gpu Nodes=a[1-2],zz9', 'A node too many');
      await stands('Version 1 was tested and rejected; the previous one stays active');
      await page.locator('.strip [role=status]', { hasText: 'zz9' }).waitFor();
      assert.equal(await head('sinfo -h -o %R'), 'main');

      await write('PartitionName=gpu Nodes=a[1-2]', 'Shorter jobs');
      await stands('Version 2 is active');
      assert.match(
        await head('scontrol show partition'),
        /^PartitionName=gpu\s[\s\S]*Default=YES[\s\S]*MaxTime=01:30:00[\s\S]*Nodes=a\[1-2\]/,
      );
    });
    const run = await bob.run('srun -Q id -un; sinfo -h -o %R');
    assert.equal(run.out, 'bob\ngpu\n', run.err);
  });

  await t.test(
    'a lost laptop: its session ends, its key is refused, and the page says since when',
    async () => {
      await withPerson('bob', async (page) => {
        const session = bob.start('echo in; exec sleep 900');
        await eventually(
          async () => session.said,
          ({ out }) => out === 'in\n',
        );
        await show(page, '/security');
        await page.getByRole('button', { name: 'Close…' }).waitFor();
        await show(page, '/keys');
        await page.getByRole('button', { name: 'Revoke…' }).click();
        await page.getByRole('button', { name: 'Revoke', exact: true }).click();
        assert.equal((await session.ended).status, 255);
        await page.getByText('Refused by the gateway', { exact: true }).waitFor();
        await page.getByText('alpha removed it').waitFor();
        await show(page, '/security');
        await page.getByText('You have no active sessions.').waitFor();
        const refused = await bob.run('true');
        assert.equal(refused.status, 255, refused.out);
      });
    },
  );
});
