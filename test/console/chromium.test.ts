import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { findRow, updateRows } from '../../src/store/engine/rows.ts';
import { setSimulated } from '../platform/support.ts';
import { alpha, becomes, physics } from '../support/app.ts';
import { clearCookies, noWholeBrowser } from '../support/browser.ts';
import { password } from './harness.ts';
import { checkPage, openSite, show, test, useConsole } from './page.ts';

const adaKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPVEkn9qO9WSmvcQd3hzQWbrKvbrJKJsUs6QD9K/sGqh ada@laptop';
const bobKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEU40KXcUcvZ4jcBb6eFMzdpBYmlk0rNQK2Hs1hvZuPB bob@laptop';
const evil = '<img src=x onerror="window.hit=1">{{7*7}}';
const lab = {
  ...physics,
  users: [
    ...(physics.users ?? []),
    { email: 'ada@physics.example', name: `Ada ${evil}`, staff: ['staff.operate'] },
  ],
  organizations: physics.organizations?.map((one) => (one.slug === 'physics' ? { ...one, name: evil } : one)),
} as typeof physics;

/** Every page of members and owners. */
const pages = [
  '/',
  '/access',
  '/keys',
  '/clusters',
  `/clusters/${alpha}/slurm`,
  `/clusters/${alpha}`,
  '/gpus',
  '/storage',
  '/members',
  '/requests',
  '/past/mine',
  '/security',
];
/** Those that no other test lets axe look at, with something in it. */
const looked = ['/keys', '/clusters', '/storage', '/past/mine', '/security'];

const site = useConsole({ lab });

/** On the page of the issuer. */
async function signInByForm(page: Page, name: string): Promise<void> {
  await page.getByLabel('Email').fill(`${name}@physics.example`);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Live', { exact: true }).waitFor();
}

test('in the browser that people have, a member registers a key on her first day, sees it arrive, and has the line to copy', async (t) => {
  if (noWholeBrowser) return t.skip(noWholeBrowser);
  await using whole = await openSite(site.app, { isWhole: true });
  await whole.withStranger(async (page) => {
    await page.goto(site.app.url);
    await signInByForm(page, 'bob');
    await page.getByText('Three steps to a shell').waitFor();
    const field = page.getByLabel('Public key', { exact: true });
    await field.fill('-----BEGIN OPENSSH PRIVATE KEY-----');
    await page.getByText('This is a private key').waitFor();
    const kept = async () =>
      String(await page.evaluate('JSON.stringify({ ...sessionStorage, ...localStorage })'));
    assert.doesNotMatch(await kept(), /PRIVATE/);
    await field.fill(bobKey);
    assert.match(await kept(), /ssh-ed25519/);
    // Twice at once is once.
    await page.getByRole('button', { name: 'Register the key' }).dblclick();
    await page.getByText('You can log in to alpha').waitFor();
    await page.getByText(`${alpha}.bob@127.0.0.1`).first().waitFor();
    await show(page, '/access');
    await page.getByText('You can log in over SSH.').waitFor();
    await show(page, '/keys');
    await page.getByText('You have 1 active key').waitFor();

    // The page is told of what happens elsewhere: the key is revoked in another tab.
    const other = await page.context().newPage();
    const streams: string[] = [];
    other.on('request', (request) => {
      if (request.url().endsWith('/events')) streams.push(request.url());
    });
    await other.goto(`${site.app.url}/keys`);
    await checkLabel(other);
    await page.getByText('bob’s desk').waitFor();
    await other.getByRole('button', { name: 'Revoke…' }).click();
    await other.getByRole('button', { name: 'Revoke', exact: true }).click();
    await page.getByText('You have no active keys').waitFor();
    assert.deepEqual(streams, [], 'one stream serves both tabs');
    await show(page, '/access');
    await page.getByText('You have no SSH key registered.', { exact: true }).first().waitFor();
  });
});

/** A key is called by its comment until it is named, has its whole fingerprint, and is marked once it is of no use. */
async function checkLabel(page: Page): Promise<void> {
  const row = page.getByRole('row').filter({ hasText: 'SHA256:' });
  assert.match(
    (await row.innerText()).replace(/\s+/g, ' '),
    /^bob@laptop SHA256:[\w+/]{43} Copy just now|\d+ s ago from 127\.0\.0\.1 Not yet Rename… Revoke…$/,
  );
  await row.getByRole('button', { name: 'Copy: the fingerprint of bob@laptop' }).waitFor();
  await row.getByRole('button', { name: 'Rename…' }).click();
  await page.getByLabel('Label').fill('bob’s desk');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await row.getByText('bob’s desk').waitFor();
  const set = (change: object) =>
    site.app.test.app.store.write(async ({ db, changed }) => {
      await updateRows(db, 'ssh_keys', { label: 'bob’s desk' }, change);
      changed({ kind: 'everything' });
    });
  await set({ created_at: '2026-01-01T00:00:00.000Z' });
  await row.getByText('Never used').waitFor();
  await set({ last_used_at: '2026-01-02T00:00:00.000Z', last_used_from: '192.0.2.7' });
  await row.getByText(/Not used for \d+ days/).waitFor();
  await row.getByText('from 192.0.2.7').waitFor();
}

test('a page that was open before an upgrade loads itself anew where a part of it is gone', () =>
  site.as('ada', async (page) => {
    let asked = 0;
    await page.route('**/assets/members-*.js', (route) => {
      asked += 1;
      return asked === 1 ? route.fulfill({ status: 404, json: { code: 'not_found' } }) : route.continue();
    });
    await show(page, '/members');
    await page.getByText('bob@physics.example').first().waitFor();
    assert.equal(asked, 2);
  }));

test('names from outside are text, and axe finds nothing on any page in either scheme', () =>
  site.again('ada', async (page) => {
    await page.getByLabel('Public key', { exact: true }).fill(adaKey);
    await page.getByRole('button', { name: 'Register the key' }).click();
    await page.getByText('You can log in to').waitFor();
    for (const path of pages) {
      await show(page, path);
      await page.getByText(evil).first().waitFor();
      if (looked.includes(path)) await checkPage(page, path);
      assert.equal(await page.evaluate('window.hit'), undefined, path);
      assert.equal(await page.locator('img[src]').count(), 0, path);
    }
  }));

test('the menu has what is for the person, in groups, and on a phone three pages and a sheet with all', async () => {
  const names = (page: Page, group: string) =>
    page.locator('.sheet').getByRole('region', { name: group }).getByRole('link').allInnerTexts();
  await setSimulated(site.app.test, alpha, { storage: { types: ['ceph', 'weka'], quotaBytes: 5e12 } });
  await site.again('ada', async (page) => {
    assert.deepEqual(await names(page, 'Me'), ['Start', 'Access', 'Keys', 'Sessions']);
    const lab = ['Members', 'Requests', 'Clusters', 'GPUs', 'Active sessions', 'Ended sessions', 'Audit'];
    assert.deepEqual(await names(page, 'Lab'), lab);
    const operations = ['Overview', 'Machines', 'Storage', 'People', 'Keys and backups'];
    assert.deepEqual(await names(page, 'Operations'), operations);
    await page.setViewportSize({ width: 390, height: 844 });
    const bar = page.getByRole('navigation', { name: 'Main pages' });
    assert.deepEqual(await bar.getByRole('link').allInnerTexts(), ['Start', 'Access', 'Overview']);
    await page.getByRole('link', { name: 'Storage' }).waitFor({ state: 'hidden' });
    await bar.getByRole('button', { name: 'More' }).click();
    await page.getByRole('link', { name: 'Storage' }).click();
    await page.getByRole('heading', { level: 1, name: 'Storage' }).waitFor();
    await page.getByRole('link', { name: 'Storage' }).waitFor({ state: 'hidden' });
    await page.getByText('2 volumes on 2 clusters.').waitFor();
    await page.getByRole('row').filter({ hasText: 'Ceph' }).filter({ hasText: 'alpha' }).waitFor();
    await bar.getByRole('button', { name: 'More' }).press('Enter');
    await checkPage(page, 'the open sheet');
  });
  await site.as('bob', async (page) => {
    assert.deepEqual(await names(page, 'Lab'), ['Members', 'Clusters', 'GPUs']);
    assert.equal(await page.getByRole('region', { name: 'Operations' }).count(), 0);
    await show(page, '/gpus');
    await page
      .getByText('32 of 32 GPUs free on 4 nodes of 2 clusters: 4 whole nodes, at most 8 on one.')
      .waitFor();
    await show(page, '/storage');
    await page.getByText('operators with the staff key staff.read').waitFor();
    await page.goto(`${site.app.url}/no/such/page`);
    await page.getByRole('heading', { name: 'Page not found' }).waitFor();
    assert.deepEqual(await names(page, 'Me'), ['Start', 'Access', 'Keys', 'Sessions']);
    await page.goto(`${site.app.url}/signed-in`);
    await page.getByText('Go back to your terminal').waitFor();
    await page.goto(`${site.app.url}/signed-out`);
    await page.getByRole('heading', { name: 'You are signed in as bob' }).waitFor();
    await page.getByRole('link', { name: 'Continue' }).click();
    await page.getByText('Live', { exact: true }).waitFor();
  });
});

test('the theme that a person chose is kept, in every tab, and there before anything is drawn', () =>
  site.as('bob', async (page) => {
    const background = (one: Page) => one.evaluate('getComputedStyle(document.body).backgroundColor');
    const choose = (name: string) => page.getByLabel('Theme').selectOption(name);
    const [light, dark] = ['rgb(244, 245, 249)', 'rgb(13, 15, 22)'];
    await page.emulateMedia({ colorScheme: 'light' });
    const other = await page.context().newPage();
    await other.emulateMedia({ colorScheme: 'light' });
    await other.goto(site.app.url);
    await other.getByText('Live', { exact: true }).waitFor();
    await choose('Dark theme');
    assert.equal(await background(page), dark);
    await other.locator('[data-theme=dark]').waitFor();
    await becomes(() => other.getByLabel('Theme').inputValue(), 'dark');
    // Without the pages' own script, which draws them.
    await other.route('**/assets/app-*.js', (route) => route.abort());
    await other.goto(site.app.url);
    assert.equal(await background(other), dark);
    await choose('Light theme');
    await page.emulateMedia({ colorScheme: 'dark' });
    assert.equal(await background(page), light);
    await choose('System theme');
    assert.equal(await background(page), dark);
    await page.emulateMedia({ colorScheme: 'light' });
    assert.equal(await background(page), light);
  }));

test('the filter of a table is in the address, which shows another person the same rows', () =>
  site.as('ada', async (page) => {
    for (const [path, name, one] of [
      ['/members', 'members', 'bob@physics.example'],
      ['/gpus', 'nodes', 'alpha-1'],
    ] as const) {
      const rows = () => page.getByRole('region', { name, exact: true }).locator('tbody tr').count();
      await show(page, `${path}?filter=${one}`);
      await becomes(rows, 1);
      const field = page.getByRole('searchbox', { name: `Filter ${name}` });
      assert.equal(await field.inputValue(), one);
      // Typed faster than the page is drawn, and not at the end.
      await field.press('Home');
      await page.keyboard.type('no such row ');
      await becomes(rows, 0);
      assert.equal(await field.inputValue(), `no such row ${one}`);
      assert.equal(new URL(page.url()).searchParams.get('filter'), `no such row ${one}`);
      await page.locator(`#menu a[href="${path}"]`).click();
      await becomes(async () => (await rows()) > 1, true);
      assert.equal(new URL(page.url()).search, '');
    }
  }));

test('with the keyboard: the palette, the help, and signing out at the issuer too', () =>
  site.as('ada', async (page) => {
    await page.keyboard.press('Control+k');
    await page.keyboard.type('alpha');
    await page.getByRole('dialog').getByRole('link', { name: 'Cluster alpha' }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'alpha' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('alpha');
    const second = page.getByRole('dialog').getByRole('link', { name: 'Slurm configuration of alpha' });
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await second.and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Slurm configuration of alpha' }).waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Sign out' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.getByLabel('Password').waitFor();
  }));

test('a stream of changes that is never answered is given up after the time of one and a half heartbeats', () =>
  site.withStranger(async (page) => {
    await page.goto(site.app.url);
    await signInByForm(page, 'ada');
    let asked = 0;
    await page.route('**/events', () => {
      asked += 1;
    });
    await page.clock.install();
    await page.reload();
    await becomes(() => asked, 1);
    await page.clock.fastForward(14_000);
    assert.equal(asked, 1);
    await page.clock.fastForward(2_000);
    // And asked for again within seconds.
    await page.clock.fastForward(3_000);
    await becomes(() => asked, 2);
  }));

test('a page that is offline says so, how old it is, and is current again by itself', () =>
  site.as('ada', async (page) => {
    await show(page, '/members');
    const { store } = site.app.test.app;
    const who = { primary_email: 'ada@physics.example' };
    const before = await findRow(store.read, 'users', who);
    const rename = (name: string) =>
      store.write(async ({ db, changed }) => {
        await updateRows(db, 'users', who, { display_name: name });
        changed({ kind: 'everything' });
      });
    const banner = page.getByRole('status').filter({ hasText: 'You are offline.' });
    const opacity = () => page.evaluate(`getComputedStyle(document.querySelector('article.page')).opacity`);
    assert.equal(await opacity(), '1');
    await page.context().setOffline(true);
    await banner.waitFor();
    await page.getByText(/^This page shows what was known (just now|\d+ s ago)\.$/).waitFor();
    assert.equal(await opacity(), '0.6');
    // What changed meanwhile is there once the network is.
    await rename('Ada Anew');
    await page.context().setOffline(false);
    await banner.waitFor({ state: 'detached' });
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByText('Ada Anew').first().waitFor();
    assert.equal(await opacity(), '1');
    await rename(before?.display_name ?? '');
  }));

test('signing out holds in every tab, however slow the network, and a session that ends waits for the next', () =>
  site.as('bob', async (page) => {
    const open = async (path: string) => {
      const tab = await page.context().newPage();
      await tab.goto(site.app.url + path);
      await tab.getByText('Live', { exact: true }).waitFor();
      return tab;
    };
    const other = await open('/clusters');
    // Ended elsewhere: every tab says so, keeps its place, and goes on when one of them is signed in again.
    await page.evaluate(`(async () => {
      const headers = { 'X-Andromeda-Console': 'active' };
      const { sessions } = await (await fetch('/sessions', { headers })).json();
      const { id } = sessions.find(({ current }) => current);
      await fetch('/sessions/' + id + '/end', { method: 'POST', headers });
    })()`);
    for (const tab of [page, other]) await tab.getByText('Your session has ended').waitFor();
    await page.getByRole('link', { name: 'Sign in' }).click();
    for (const tab of [page, other]) await tab.getByText('Live', { exact: true }).waitFor();
    assert.equal(new URL(other.url()).pathname, '/clusters');
    await page.goto(`${site.app.url}/signed-out?why=again`);
    await page.getByText('Live', { exact: true }).waitFor();

    // Somebody else signs in in this browser: no page acts as another than it shows.
    await clearCookies(other);
    await other.goto(`${site.app.url}/signed-out`);
    await other.getByRole('link', { name: 'Sign in' }).click();
    await signInByForm(other, 'eve');
    for (const tab of [other, page]) await tab.getByText('eve@physics.example').first().waitFor();

    await page.context().route('**/sign-out', async (route) => {
      const headers = { ...route.request().headers(), 'sec-fetch-site': 'same-origin' };
      const response = await route.fetch({ headers });
      // Before the answer arrives, the other tabs know of it, and one is loaded anew.
      await other.getByRole('heading', { name: 'You are signed out' }).waitFor();
      await other.goto(`${site.app.url}/keys`);
      await other.getByRole('heading', { name: 'You are signed out' }).waitFor();
      await route.fulfill({ response });
    });
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'You are signed out' }).waitFor();
    await page.context().unroute('**/sign-out');
    await other.getByRole('link', { name: 'Sign in' }).click();
    await other.getByLabel('Password').waitFor();
    for (const why of ['__proto__', 'toString', 'refused']) {
      await page.goto(`${site.app.url}/signed-out?why=${why}`);
      await page.getByText(why === 'refused' ? 'did not sign you in' : 'The sign-in failed').waitFor();
    }
  }));
