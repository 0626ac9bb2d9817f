/** An owner: who reaches what, who joins and leaves, what that does before it is saved, and the change until every cluster has it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import type { Lab } from '../../../src/domain/clusters/lab.ts';
import { reviewMembers } from '../../../src/store/audit/member-reviews.ts';
import { findRow, insertRow, listRows, updateRows } from '../../../src/store/engine/rows.ts';
import {
  createMembership,
  updateMemberPermissions,
} from '../../../src/store/organizations/membership-changes.ts';
import { findPersonByEmail } from '../../../src/store/people/people.ts';
import { alpha, becomes, beta, eventually, physics } from '../../support/app.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';
import { type CookieBrowser, signIn } from '../harness.ts';
import { tabTo } from '../keyboard.ts';
import { checkPage, show, test, useConsole } from '../page.ts';

const evil = '<img src=x onerror="window.hit=1">{{7*7}}';
const [alphaCluster, betaCluster] = physics.clusters ?? [];
if (!alphaCluster?.simulated || !betaCluster) throw new Error('unreachable');
const lab: Lab = {
  ...physics,
  users: [...(physics.users ?? []), { email: 'bob@physics.example', name: `Bob ${evil}` }],
  clusters: [alphaCluster, betaCluster],
  grants: [
    {
      user: 'guest@elsewhere.example',
      cluster: 'beta',
      relation: 'kubernetes.developer',
      namespace: 'ml',
      expiresAt: '2999-01-01T00:00:00Z',
    },
    { user: 'bob@physics.example', cluster: 'beta', relation: 'kubernetes.viewer' },
  ],
};

let ada: CookieBrowser;
const site = useConsole({ lab }, async (app) => {
  ada = await signIn(app, 'ada');
  const bob = await signIn(app, 'bob');
  await bob.ask('business/me/ssh-keys', { body: { public_key: newPublicKey() } });
});
const read = (path: string) => ada.ask(`business${path}`);

async function organizationOf(): Promise<string> {
  return (await read('/me')).default_org_id;
}

async function members(): Promise<Map<string, { user_id: string; role: string }>> {
  const { members: list } = await read(`/organizations/${await organizationOf()}/members`);
  return new Map(list.map((one: { email: string }) => [one.email, one]));
}

/** How often a write was made, as the audit trail has it. */
async function timesDone(operation: string, target: RegExp): Promise<number> {
  const where = { operation, result: 'done' };
  const entries = await listRows(site.app.test.app.store.read, 'audit_entries', where);
  return entries.filter((one) => target.test(one.target)).length;
}

const there = 'All 2 clusters are up to date.';
/** A button that does something now. */
const ready = ':not([aria-disabled="true"])';

test('with the keyboard alone: a person joins with a permission, another leaves, and each change is followed', () =>
  site.as('ada', async (page) => {
    const press = (key: string) => page.keyboard.press(key);
    await press('Control+k');
    await page.keyboard.type('members');
    await page.getByRole('dialog').getByRole('link', { name: 'Members' }).waitFor();
    await press('Enter');
    await page.getByText('3 members, 1 of them owner or admin.').waitFor();
    await tabTo(page, page.getByRole('button', { name: 'Add members' }));
    await press('Enter');
    // The field has the focus.
    await page.getByRole('dialog', { name: 'Add members' }).waitFor();
    await page.keyboard.insertText('Cy Young <CY@physics.example>, bob@physics.example');
    await page.getByText('2 addresses.').waitFor();
    await tabTo(page, page.getByRole('checkbox', { name: /^clusters\.ssh / }));
    await press('Space');
    await page.getByText('bob@physics.example is a member already.').waitFor();
    await page.getByText('A new member: cy@physics.example (cy).').waitFor();
    await page
      .getByText('Login accounts added once they have an SSH key, at once if they have one: cy.')
      .waitFor();
    await page.getByRole('button', { name: 'Add', exact: true }).and(page.locator(ready)).waitFor();
    await tabTo(page, page.getByRole('button', { name: 'Add', exact: true }));
    await press('Enter');
    await page.getByRole('heading', { name: 'Progress' }).waitFor();
    await page.getByText(there).waitFor();
    // Its address is all that it needs.
    await page.reload();
    await page.getByText(there).waitFor();
    const { user_id: cy = '' } = (await members()).get('cy@physics.example') ?? {};
    assert.equal(new URL(page.url()).searchParams.get('people'), cy);
    const person = await read(`/organizations/${await organizationOf()}/members/${cy}/permissions`);
    assert.deepEqual(person.permissions, ['clusters.ssh']);

    await tabTo(page, page.getByRole('link', { name: 'Members', exact: true }).first());
    await press('Enter');
    await page.getByText('4 members').waitFor();
    await tabTo(page, page.getByRole('button', { name: /^Change bob@/ }));
    await press('Enter');
    await page.getByRole('dialog', { name: 'Change bob@physics.example' }).waitFor();
    await tabTo(page, page.getByRole('button', { name: 'Remove…' }));
    await press('Enter');
    await page.getByText('Login accounts removed: bob. Home directories stay.').waitFor();
    await page.getByText('Restarts: login nodes, then Slurm controller').waitFor();
    await page.getByText('One Kubernetes grant stays').waitFor();
    await page.getByRole('button', { name: 'Remove', exact: true }).and(page.locator(ready)).waitFor();
    await tabTo(page, page.getByRole('button', { name: 'Remove', exact: true }));
    await press('Enter');
    await page.getByRole('heading', { name: 'Progress' }).waitFor();
    await page.getByText(there).waitFor();
    await page.getByText('not a member').waitFor();
    assert.equal(await timesDone('removeMember', /./), 1);
  }));

test('a double click and a lost connection end in one change; a batch that goes half way says so, and is tried again', () =>
  site.again('ada', async (page) => {
    const orgId = await organizationOf();
    await show(page, '/members');
    await page.getByRole('button', { name: 'Add members' }).click();
    await page.getByLabel('Addresses').fill('dee@physics.example\nfay@physics.example;gus@physics.example');
    const button = page.getByRole('button', { name: 'Add 3 people' });
    await button.and(page.locator(ready)).waitFor();
    // The first arrives, and its answer is lost; the connection is away for one more.
    const lost = new Set<string>();
    await page.route('**/organizations/*/members', async (route) => {
      const { email } = (route.request().postDataJSON() ?? {}) as { email?: string };
      if (email === undefined || lost.has(email)) return route.fallback();
      lost.add(email);
      if (email === 'dee@physics.example') {
        const headers = { ...route.request().headers(), 'sec-fetch-site': 'same-origin' };
        assert.equal((await route.fetch({ headers })).status(), 201);
        return route.abort('connectionreset');
      }
      if (email !== 'fay@physics.example') return route.fallback();
      // Somebody else adds her meanwhile.
      await ada.ask(`business/organizations/${orgId}/members`, { body: { email } });
      return route.abort('connectionrefused');
    });
    await button.dblclick();
    const outcome = page.getByRole('alert');
    await outcome.getByText('2 of 3 are members now.').waitFor();
    await outcome.getByText('fay@physics.example: fay@physics.example is a member already.').waitFor();
    await outcome.getByText('Added: dee@physics.example, gus@physics.example.').waitFor();
    assert.equal(await page.getByLabel('Addresses').inputValue(), 'fay@physics.example');
    // Tried again with the others as well: nobody is added twice.
    await page.getByLabel('Addresses').fill('dee@physics.example, fay@physics.example, hal@physics.example');
    await page.getByText('dee@physics.example is a member already.').waitFor();
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByRole('heading', { name: 'Progress' }).waitFor();
    await page.getByText('3 people').waitFor();
    await page.unroute('**/organizations/*/members');
    const known = await members();
    for (const name of ['dee', 'fay', 'gus', 'hal']) {
      assert.ok(known.has(`${name}@physics.example`));
      assert.equal(await timesDone('addMember', new RegExp(`${name}@`)), 1, name);
    }

    // The connection is cut after the request, and the page is loaded anew before there is an answer.
    const { user_id: gus = '' } = known.get('gus@physics.example') ?? {};
    await show(page, `/members/${gus}`);
    await page.getByRole('button', { name: 'Role…' }).click();
    await page.getByLabel('Role', { exact: true }).selectOption('admin');
    const arrived = Promise.withResolvers<void>();
    await page.route('**/role', async (route) => {
      const headers = { ...route.request().headers(), 'sec-fetch-site': 'same-origin' };
      await route.fetch({ headers });
      arrived.resolve();
      await route.abort('connectionreset').catch(() => {});
    });
    await page.getByLabel('Reason').fill('Helps out');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await arrived.promise;
    await page.unroute('**/role');
    await page.reload();
    await page.getByText('An admin, with access to 2 of 2 clusters.').waitFor();
    assert.equal(await timesDone('setMemberRole', new RegExp(gus)), 1);
    // The last owner stays, whoever asks.
    await show(page, `/members/${known.get('ada@physics.example')?.user_id}`);
    await page.getByRole('button', { name: 'Role…' }).click();
    await page.getByLabel('Role', { exact: true }).selectOption('member');
    await page.getByText('This is the last owner.').waitFor();
    assert.ok(await page.getByRole('button', { name: 'Save', exact: true }).isDisabled());
  }));

test('a permission ends by itself as it was granted, at another time, and no more', () =>
  site.again('ada', async (page) => {
    const orgId = await organizationOf();
    const idOf = async () => (await members()).get('ivy@physics.example')?.user_id;
    const endOf = async () => {
      const held = await read(`/organizations/${orgId}/members/${await idOf()}/permissions`);
      assert.deepEqual(held.permissions, ['clusters.ssh']);
      return held.expires_at?.['clusters.ssh'];
    };
    const term = page.getByLabel('Duration of clusters.ssh');
    const moment = page.getByLabel('End of clusters.ssh');
    const plan = page.getByRole('region', { name: 'What will change' });
    const press = async (name: string) => {
      await page.getByRole('button', { name, exact: true }).click();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    };
    await show(page, '/members');
    await page.getByRole('button', { name: 'Add members' }).click();
    await page.getByLabel('Addresses').fill('ivy@physics.example');
    await page.getByRole('checkbox', { name: /^clusters\.ssh / }).check();
    await moment.waitFor({ state: 'detached' });
    await term.selectOption('for 7 days');
    await plan.getByText('Gains clusters.ssh, until').waitFor();
    // A time that has passed is refused before it is saved.
    await moment.fill('2001-01-01T00:00');
    await plan.getByText('Not possible').waitFor();
    await term.selectOption('for 30 days');
    await plan.getByText('A new member: ivy@physics.example').waitFor();
    await checkPage(page, 'the form for new members, with an end');
    const before = Date.now();
    await press('Add');
    const first = Date.parse(await endOf());
    assert.ok(Math.abs(first - before - 30 * 86_400_000) < 86_400_000);

    const open = async () => {
      await show(page, `/members/${await idOf()}`);
      await page.getByRole('button', { name: 'Permissions…' }).click();
    };
    await open();
    await moment.fill('2999-01-01T00:00');
    await plan.getByText('clusters.ssh, until Jan 1, 2999').waitFor();
    await page.getByLabel('Reason').fill('Stays longer');
    await press('Save');
    const local = new Date('2999-01-01T00:00');
    assert.equal(await endOf(), local.toISOString());
    await open();
    await term.selectOption('no end date');
    await plan.getByText('clusters.ssh, with no end date.').waitFor();
    await page.getByLabel('Reason').fill('Stays');
    await press('Save');
    assert.equal(await endOf(), undefined);
  }));

test('who reaches what, by which way and until when: people, one person, one cluster, each as a file too', async () => {
  const orgId = await organizationOf();
  const { grants } = await read(`/organizations/${orgId}/grants`);
  const idOf = (email: string): string =>
    grants.find(({ grant }: { grant: { username: string } }) => grant.username === email)?.grant.user_id;
  const [bob, guest] = [idOf('bob@physics.example'), idOf('guest@elsewhere.example')];
  await becomes(
    async () =>
      (await read(`/organizations/${orgId}/access?user_ids=${guest}`)).people[0].clusters[1].kubernetes
        .state === 'applied',
    true,
  );
  await site.again('ada', async (page) => {
    await show(page, '/members');
    await page.getByText('2 more hold a Kubernetes grant.').waitFor();
    const row = page.getByRole('row').filter({ hasText: 'guest@elsewhere.example' });
    await row.getByText('not a member').waitFor();
    await row.getByText('beta/ml: developer').waitFor();
    await row.getByText(/^in \d+ d$/).waitFor();
    const file = await saved(page);
    assert.match(file, /"name","address","user name","role".*"grants","until"/);
    assert.match(file, /"guest@elsewhere.example","","not a member".*beta\/ml: developer 2999/);

    await row.getByRole('link').click();
    await page.getByText('Not a member, with access to 1 of 2 clusters.').waitFor();
    await page.getByText('Kubernetes: applied').waitFor();
    assert.match(await saved(page), /"guest@elsewhere.example","beta","kubernetes","grant"/);
    await show(page, `/members/${bob}`);
    await page.getByText(`Bob ${evil}`).first().waitFor();
    await page.getByText('SHA256:').first().waitFor();

    await page.getByRole('link', { name: 'beta' }).first().click();
    await page.getByRole('heading', { name: 'Access to beta' }).waitFor();
    await page.getByRole('row').filter({ hasText: 'guest@' }).getByText('grant: developer in ml').waitFor();
    assert.match(
      await saved(page),
      /"beta",[^\n]*"ada@physics.example","ada","owner",[^\n]*"kubernetes.admin","role"/,
    );

    const pages = [`/members/${bob}`, `/members/change?people=${bob},${guest}`, `/clusters/${beta}/people`];
    for (const path of pages) {
      await show(page, path);
      await page.locator('.panel').first().waitFor();
      await checkPage(page, path);
      assert.equal(await page.evaluate('window.hit'), undefined, path);
      assert.equal(await page.locator('img').count(), 0, path);
    }
    await show(page, '/members');
    await page.getByRole('button', { name: 'Add members' }).click();
    await page.getByLabel('Addresses').fill(`${evil} zed@physics.example`);
    await page.getByText('A new member: zed@physics.example').waitFor();
    assert.equal(await page.evaluate('window.hit'), undefined);
  });
  // Who may not grant sees their own, and nobody else's.
  await site.as('eve', async (page) => {
    await show(page, `/members/${bob}`);
    await page.getByText('This page needs the permission members.manage').waitFor();
    await show(page, `/clusters/${alpha}/people`);
    await page.getByText('This page needs the permission members.manage').waitFor();
  });
});

test('the table stays usable: its button in sight, in the order asked for', () =>
  site.again('ada', async (page) => {
    await show(page, '/members');
    const table = page.getByRole('table');
    const first = () => table.locator('tbody tr').first().innerText();
    await table.getByRole('button', { name: 'Role' }).click();
    await table.locator('th[aria-sort=ascending]').filter({ hasText: 'Role' }).waitFor();
    await eventually(first, (text) => text.includes('ada@physics.example'));
    await table.getByRole('button', { name: 'Person' }).click();
    await table.getByRole('button', { name: 'Person' }).click();
    await table.locator('th[aria-sort=descending]').filter({ hasText: 'Person' }).waitFor();
    await eventually(first, (text) => !text.includes('ada@physics.example'));

    const change = page.getByRole('button', { name: /^Change ada@/ });
    const { x = 0, width = 0 } = (await change.boundingBox()) ?? {};
    assert.ok(x > 0 && x + width <= 1280, 'the button of a row is in sight');
    const title = await table.getByRole('button', { name: 'SSH', exact: true }).getAttribute('title');
    assert.match(title ?? '', /^clusters\.ssh: /);
  }));

test('where a read behind a list fails, at first or later, the list says so, counts nothing and saves nothing', async () => {
  const refused = { status: 500, json: { code: 'internal', message: 'Injected.', retryable: false } };
  const fail = (page: Page, read: string) => page.route(read, (route) => route.fulfill(refused));
  const use = async (page: Page) => {
    const counted = page.getByText(/owner or admin/);
    const injected = page.getByRole('alert').filter({ hasText: 'Injected.' });
    const csv = page.getByRole('button', { name: 'Save as CSV' });
    await show(page, '/members');
    await injected.first().waitFor();
    assert.deepEqual([await counted.count(), await page.getByRole('table').count()], [0, 0]);
    for (const one of await csv.all()) assert.ok(await one.isDisabled());
    await page.unroute('**/access-review*');
    await page.getByRole('button', { name: 'Try again' }).last().click();
    await counted.waitFor();
    await fail(page, '**/access-review/csv*');
    await csv.click();
    await page.getByText('Nothing was saved. Injected.').waitFor();
    await fail(page, '**/access-review?*');
    await page.getByRole('button', { name: 'Role' }).click();
    await injected.last().waitFor();
    await counted.waitFor({ state: 'detached' });
    assert.ok(await csv.isDisabled());
  };
  await site.as('ada', use, (page) => void fail(page, '**/access-review*'));
});

test('members whose access a review ends are listed with their last login, and one click keeps it', async () => {
  const { store } = site.app.test.app;
  const round = () => reviewMembers(store, 6, { now: Date.now(), stopping: new AbortController().signal });
  const email = 'bob@physics.example';
  const userId = (await findPersonByEmail(store.read, email))?.id ?? '';
  const bob = { organizationId: await organizationOf(), userId };
  const permissions = [{ key: 'clusters.ssh', expiresAt: null }];
  const isMember = (await members()).has(email);
  const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
  await store.write(async (tx) => {
    if (!isMember) await createMembership(tx, { ...bob, email, role: 'member' });
    await updateMemberPermissions(tx, { ...bob, permissions });
    const review_from = ago(400);
    await tx.db.updateTable('memberships').set({ review_from }).execute();
  });
  const ended = await round();
  assert.ok(ended > 0);
  await site.again('ada', async (page) => {
    await show(page, '/members');
    await page
      .getByRole('heading', { name: new RegExp(`Access of ${ended} members? ends unless you keep it`) })
      .waitFor();
    const table = page.getByRole('region', { name: 'to keep' });
    const row = table.getByRole('row').filter({ hasText: 'bob@physics.example' });
    await row.getByText('in 29 d').waitFor();
    await row.getByText('clusters.ssh').waitFor();
    assert.match((await row.locator('[data-name="Last sign-in"]').textContent()) ?? '', /ago|just now/);
    assert.equal(await row.locator('[data-name="Last SSH login"]').textContent(), 'never');
    await checkPage(page, '/members');
    await row.getByRole('button', { name: 'Change bob@physics.example under review' }).click();
    await page.getByRole('dialog', { name: 'Change bob@physics.example' }).getByText('Remove…').waitFor();
    await page.keyboard.press('Escape');
  });
  await site.as('bob', async (page) => {
    await page.getByText(/^Your clusters\.ssh in Physics ends at .*, unless an owner keeps it\./).waitFor();
  });
  await site.as('ada', async (page) => {
    await show(page, '/members');
    await page.getByRole('button', { name: 'Keep the access of bob@physics.example' }).click();
    await page.getByText('The access is kept.').waitFor();
    if (ended > 1) await page.getByRole('button', { name: 'Keep all' }).click();
    await page.getByRole('button', { name: 'Keep all' }).waitFor({ state: 'detached' });
  });
  const { permissions: held, expires_at: ends } = await read(
    `/organizations/${bob.organizationId}/members/${bob.userId}/permissions`,
  );
  assert.deepEqual([held, ends], [['clusters.ssh'], undefined]);
});

async function saved(page: Page): Promise<string> {
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Save as CSV' }).first().click();
  return readFileSync(await (await download).path(), 'utf8');
}

test('who had access on a date is chosen on the page, with nothing to change, and saved as it was', async () => {
  const day = (back: number) => new Date(Date.now() - back * 86_400_000).toISOString().slice(0, 10);
  const orgID = await organizationOf();
  const guest = 'guest@elsewhere.example';
  await site.app.test.app.store.write(async ({ db }) => {
    const { id: user_id = '' } = (await findRow(db, 'users', { primary_email: guest })) ?? {};
    await updateRows(db, 'counters', { name: 'member history since' }, { value: Date.parse(day(9)) });
    const time = { since: `${day(9)}T00:00:00.000Z`, ended_at: `${day(2)}T00:00:00.000Z` };
    const here = { org_id: orgID, user_id };
    await insertRow(db, 'memberships', {
      ...{ ...here, role: 'member', lifecycle_state: 'removed' },
      ...{ created_at: time.since, updated_at: time.ended_at, review_from: time.since },
    });
    for (const [kind, what] of [
      ['member', ''],
      ['username', 'gast'],
      ['role', 'member'],
      ['permission', 'clusters.ssh'],
    ] as const)
      await insertRow(db, 'holdings', { ...here, kind, what, source: 'hand', ...time });
  });
  await site.again('ada', async (page) => {
    await show(page, '/members');
    await page
      .getByRole('button', { name: /^Change / })
      .first()
      .waitFor();
    const date = page.getByLabel('As it was on');
    await date.fill(day(3));
    await page.getByText(`At the beginning of ${day(3)} (UTC): 1 member`).waitFor();
    const row = page.getByRole('row').filter({ hasText: 'guest@elsewhere.example' });
    assert.match(await row.innerText(), /gast/);
    assert.equal(await page.getByRole('button', { name: /^Change / }).count(), 0);
    assert.equal(await page.getByText('never', { exact: true }).count(), 0);
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save as CSV' }).click();
    const text = readFileSync(await (await saved).path(), 'utf8');
    assert.match(text, /"guest@elsewhere\.example","gast"/);
    assert.doesNotMatch(text, /bob@physics/);
    await checkPage(page, '/members of a date');
    await date.fill(day(20));
    await page.getByText(/Who had access is known from .* on, not before/).waitFor();
    assert.equal(await page.getByRole('row').filter({ hasText: 'gast' }).count(), 0);
    await date.fill('');
    await page
      .getByRole('button', { name: /^Change / })
      .first()
      .waitFor();
  });
});

test('the page of members has the teams, once there are some', () =>
  site.again('ada', async (page) => {
    await show(page, '/members');
    const teams = page.getByRole('heading', { name: 'Teams' });
    assert.equal(await teams.count(), 0);
    const { user_id: adas } = (await members()).get('ada@physics.example') ?? {};
    const path = `business/organizations/${await organizationOf()}/teams/vision`;
    await ada.ask(path, { method: 'PUT', body: { members: [adas] } });
    await teams.waitFor();
    await page.getByRole('row', { name: /^vision \d+ ada@physics\.example/ }).waitFor();
    await page.getByRole('row', { name: /^physics \d+ everyone/ }).waitFor();
  }));
