/** The pages below "Installation", walked in a browser: what operators do by the command line, they do here. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after } from 'node:test';
import type { Page } from 'playwright-core';
import { parse } from 'yaml';
import { noteBackupFailure, noteKeptBackup } from '../../../src/store/data-dir/last-backup.ts';
import { setSimulated } from '../../platform/support.ts';
import { alpha, physics } from '../../support/app.ts';
import { temporaryDirectory } from '../../support/directory.ts';
import { signIn } from '../harness.ts';
import { checkPage, show, test, untilReady, useConsole } from '../page.ts';

const evil = '<img src=x onerror="window.hit=1">{{7*7}}';
const lab = {
  ...physics,
  users: [
    ...(physics.users ?? []),
    { email: 'ada@physics.example', name: `Ada ${evil}` },
    { email: 'eve@physics.example', staff: ['staff.read'] },
  ],
} as typeof physics;

const directory = temporaryDirectory();
const trail = join(directory.path, 'trail.jsonl');
const site = useConsole({
  lab,
  config: { audit: { file: trail }, clusters: { secretsDir: directory.path } },
});
after(() => directory[Symbol.dispose]());

/** Gives the reason, and does it. */
async function confirm(page: Page, button: string, reason = `a test ${evil}`): Promise<void> {
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Reason').fill(reason);
  await dialog.getByRole('button', { name: button, exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
}

test('machines: kept from work with a reason, and let work again', async () => {
  await setSimulated(site.app.test, alpha, { nodesDrained: 1, drainReason: `bad fan ${evil}` });
  await site.as('root', async (page) => {
    await show(page, '/operator');
    await page.getByRole('link', { name: 'Machines' }).click();
    await page.getByText(`bad fan ${evil}`).waitFor();
    await page.getByRole('button', { name: 'Quarantine… alpha-1' }).click();
    await page.getByText('its GPUs no longer count as free').waitFor();
    await confirm(page, 'Quarantine');
    await page.getByText('alpha has 2 machines: 1 quarantined, 1 otherwise unavailable.').waitFor();
    await checkPage(page, '/operator/machines');
    await page.getByRole('button', { name: 'Admit… alpha-1' }).click();
    await confirm(page, 'Admit');
    await page.getByText('alpha has 2 machines: 0 quarantined').waitFor();
    await page.getByLabel('Cluster').selectOption('beta');
    await page.getByText('beta has 2 machines').waitFor();
    assert.match(page.url(), /cluster=/);
  });
});

/** The answer of a survey that found an account with a name that does harm in a page, and one to adopt. */
const surveyed = {
  cluster: 'alpha',
  organization: { slug: 'physics', name: 'Physics' },
  notices: [`head: may write account files: ${evil}`],
  hosts: [],
  people: ['bob', evil].map((username, index) => ({
    ...{ username, uid: 1003 + index, gid: 100, group: 'users', groups: [], name: '', shell: '/bin/sh' },
    home: { path: `/home/${username}`, owner: null, mode: null, closed: false },
    ...{ source: 'files', password: 'none', expired: false, others: [], unread: [], logins: [] },
    keys: [{ line: 'ssh-ed25519 AAAA', fingerprint: 'SHA256:a', file: 'f' }],
    slurm: { accounts: [], default: '', level: '', coordinates: [], cpu: 0, gpu: 0, running: 1, pending: 2 },
    ...(index === 0
      ? { verdict: 'adopt', reasons: [], commands: [] }
      : { verdict: 'name', reasons: ['it could be img'], commands: [`usermod -l img '${evil}'`] }),
  })),
};

const withHosts = {
  ...{ name: 'alpha', organization_slug: 'physics', site: { id: 'a', name: 'A' }, drivers: ['slurm'] },
  ...{
    cluster: { id: alpha, state: 'active' },
    access_list: null,
    sides: [],
    observed_at: null,
    failure: null,
  },
};

test('a survey of accounts: asked for by a button, as a table and a lab file', () =>
  site.again('root', async (page) => {
    // A simulated cluster has no hosts to be asked.
    await page.route('**/api/business/operator/clusters', (route) =>
      route.fulfill({ json: { clusters: [withHosts] } }),
    );
    await page.route('**/operator/clusters/*/survey', (route) => route.fulfill({ json: surveyed }));
    await page.reload();
    await show(page, '/operator/machines');
    await page.getByRole('button', { name: 'Survey' }).click();
    await page.getByText('adopt as is').waitFor();
    await page.getByText(`may write account files: ${evil}`).waitFor();
    assert.equal(await page.evaluate('window.hit'), undefined);
    await checkPage(page, '/operator/machines');
    await page.getByLabel('Addresses for the lab file').fill('{username}@physics.example');
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save the lab file' }).click();
    const text = readFileSync(await (await saved).path(), 'utf8');
    assert.match(text, /^# From a survey of alpha\..*\n# <img .* is left out: the name cannot be one here/);
    assert.deepEqual(parse(text).organizations[0].members, [
      {
        ...{ email: 'bob@physics.example', role: 'member', username: 'bob', uid: 1003, gid: 100 },
        ...{ permissions: ['clusters.read', 'clusters.ssh'], keys: ['ssh-ed25519 AAAA'] },
      },
    ]);
  }));

test('people and staff, by the keyboard: staff keys, an identity, and the end of an account', () =>
  site.again('root', async (page) => {
    await show(page, '/operator/people');
    await page.getByText(`Ada ${evil}`).waitFor();
    assert.equal(await page.evaluate('window.hit'), undefined);
    await checkPage(page, '/operator/people');
    await page.getByRole('button', { name: 'Add person…' }).focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('Email', { exact: true }).focus();
    await page.keyboard.insertText('new@physics.example');
    await page.getByLabel('Reason').focus();
    await page.keyboard.insertText('Joins');
    await untilReady(page);
    await page.keyboard.press('Enter');
    const row = page.getByRole('row').filter({ hasText: 'new@physics.example' });
    await row.waitFor();
    await row.getByRole('button', { name: 'Staff keys…' }).focus();
    await page.keyboard.press('Enter');
    await page.getByLabel('staff.audit').focus();
    await page.keyboard.press('Space');
    await page.getByText('Gains staff.audit, at once.').waitFor();
    await page.getByLabel('Reason').focus();
    await page.keyboard.insertText('Checks the trail');
    await untilReady(page);
    await page.keyboard.press('Enter');
    await row.getByText('staff.audit').waitFor();

    await row.getByRole('button', { name: 'Identities…' }).click();
    await page.getByText('No identity is bound').waitFor();
    await page.getByRole('button', { name: 'Bind another…' }).click();
    await page.getByLabel('Issuer').fill('https://login.example');
    await page.getByLabel('Subject').fill(evil);
    await page.getByText('is bound to this account and replaces the previous identity.').waitFor();
    await page.getByLabel('Reason').fill('Came back');
    await page.getByRole('button', { name: 'Bind', exact: true }).click();
    await page.getByText('at https://login.example').waitFor();
    await page.getByRole('button', { name: 'Unbind…' }).click();
    await page.getByLabel('Reason').fill('A mistake');
    await page.getByRole('button', { name: 'Unbind' }).click();
    await page.getByText('an email address does not bind these to an account again').waitFor();
    await page.keyboard.press('Escape');

    await row.getByRole('button', { name: 'Deactivate…' }).click();
    await page.getByText('their jobs on clusters may be cancelled').waitFor();
    await page.getByText('Nothing changes on the clusters').waitFor();
    await confirm(page, 'Deactivate');
    await row.getByText('Deactivated').waitFor();
    await page.getByLabel('Find by email').fill('bob@physics.example');
    await page.getByRole('button', { name: 'Find' }).click();
    await page.getByText('1 person: 0 staff, 0 deactivated.').waitFor();
    assert.match(page.url(), /email=bob/);
    // What cannot be done is said before it is tried.
    await page.getByLabel('Find by email').fill('ada@physics.example');
    await page.getByRole('button', { name: 'Find' }).click();
    await page.waitForURL(/email=ada/);
    await page
      .getByRole('row')
      .filter({ hasText: 'ada@physics.example' })
      .getByRole('button', { name: 'Deactivate…' })
      .click();
    await page.getByText('Not possible').waitFor();
    await checkPage(page, 'deactivating');
    await page.getByRole('button', { name: 'Cancel' }).click();
  }));

test('a copy of the audit trail that cannot be written is to be mended, until it can, on the open page', async () => {
  const ada = await signIn(site.app, 'ada');
  await site.again('root', async (page) => {
    await show(page, '/operator');
    await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
    const item = page.getByRole('listitem').filter({ hasText: `Audit trail, copy to ${trail}` });
    rmSync(trail, { force: true });
    mkdirSync(trail);
    await ada.ask('business/me/login-preferences', { method: 'PUT', body: { shell: '/bin/zsh' } });
    await item.getByText('its disk has room').waitFor();
    await checkPage(page, 'an audit trail that is not copied');
    rmdirSync(trail);
    await item.waitFor({ state: 'detached' });
  });
});

test('keys, backups and what must be mended, for who may read only', async () => {
  const dataDir = `${site.app.test.dataDir}/data`;
  const at = new Date().toISOString();
  noteKeptBackup(dataDir, { at, file: '/b/one', bytes: 2 ** 20, awaits: false });
  noteBackupFailure(dataDir, { at, failures: 2, message: `no room ${evil}` });
  await site.as('eve', async (page) => {
    await show(page, '/operator');
    await page.getByText(`2 times in a row: no room ${evil}`).waitFor();
    assert.equal(await page.evaluate('window.hit'), undefined);
    await show(page, '/operator/service');
    await page.getByText('Backups fail. No key is being replaced.').waitFor();
    await page.getByText('andromeda admin key new host').waitFor();
    await checkPage(page, '/operator/service');
    for (const path of ['machines', 'people']) {
      await show(page, `/operator/${path}`);
      const reading = page.locator('.loading');
      while ((await reading.count()) > 0) await reading.first().waitFor({ state: 'detached' });
      const buttons = page.getByRole('button', {
        name: /Admit|Quarantine|Deactivate|Add person/,
      });
      assert.equal(await buttons.count(), 0, path);
    }
  });
});
