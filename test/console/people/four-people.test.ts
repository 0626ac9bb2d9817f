/**
 * What four people come to the console for, each with the keyboard alone: an owner, a member with SSH, one with Kubernetes
 * only, and an operator. Axe looks at what no other test comes to.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { findPersonByEmail } from '../../../src/store/people/people.ts';
import { alpha, beta, physics } from '../../support/app.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';
import { type Keyboard, useKeyboard } from '../keyboard.ts';
import { checkPage, show, test, untilReady, useConsole } from '../page.ts';

const [first, ...others] = physics.organizations ?? [];
const lab = {
  ...physics,
  organizations: [
    {
      ...first,
      members: [
        ...(first?.members ?? []),
        {
          email: 'kay@physics.example',
          role: 'member',
          username: 'kay',
          permissions: ['clusters.kubernetes'],
        },
        { email: 'sam@physics.example', role: 'member', username: 'sam', permissions: ['clusters.ssh'] },
      ],
    },
    ...others,
  ],
  clusters: [
    ...(physics.clusters ?? []),
    {
      name: 'gamma',
      organization: 'physics',
      scheduler: 'sunk',
      simulated: { computeNodes: 1, gpusPerNode: 1, failure: 'The disk of node-1 is full.' },
    },
  ],
} as typeof physics;

const site = useConsole({ lab, identity: { kubernetes: { clientId: 'andromeda-kubernetes' } } });

/** Signed in; from there on without a mouse. */
async function as(name: string, use: (page: Page, keys: Keyboard) => Promise<void>): Promise<void> {
  await site.again(name, async (page) => {
    const keys = await useKeyboard(page);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await use(page, keys);
  });
}

async function copied(page: Page, keys: Keyboard, name: string): Promise<string> {
  const button = page.getByRole('button', { name: `Copy: ${name}` });
  await keys.activate(button);
  await button.getByText('Copied', { exact: true }).waitFor();
  return String(await page.evaluate('navigator.clipboard.readText()'));
}

async function idOf(name: string): Promise<string> {
  return (await findPersonByEmail(site.app.test.app.store.read, `${name}@physics.example`))?.id ?? '';
}

test('where what one can do is not known, the pages say so and claim nothing', () =>
  site.as('kay', async (page) => {
    const away = { status: 500, json: { code: 'internal', message: 'Out of order.', retryable: false } };
    await page.route('**/api/business/me/access', (route) => route.fulfill(away));
    for (const path of ['/', '/access']) {
      await page.goto(`${site.app.url}${path}`);
      await page.getByRole('alert').getByText('Out of order.').waitFor();
      assert.equal(
        await page.getByText(/Loading|no cluster|no access to a cluster|SSH key registered/).count(),
        0,
      );
    }
    await page.unroute('**/api/business/me/access');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('You can use kubectl on beta.').waitFor();
  }));

/** What a panel says of a cluster. */
const panelOf = (page: Page, name: string) =>
  page.locator('.panel').filter({ has: page.getByRole('heading', { name, exact: true }) });

test('with Kubernetes only: the kubeconfig to save and to copy, the line that signs in, and no word of a key', () =>
  as('kay', async (page, keys) => {
    await page.getByText('You can use kubectl on beta.').waitFor();
    await checkPage(page, '/');
    assert.equal(await page.getByText(/SSH key|Log in|alpha|gamma/).count(), 0);
    assert.equal(
      await copied(page, keys, 'sign in to beta with kubectl'),
      'kubectl --kubeconfig beta.kubeconfig auth whoami',
    );
    const saving = page.waitForEvent('download');
    await keys.activate(page.getByRole('button', { name: 'Download kubeconfig of beta' }));
    const download = await saving;
    assert.equal(download.suggestedFilename(), 'beta.kubeconfig');
    const saved = await readFile(await download.path(), 'utf8');
    assert.match(saved, new RegExp(`current-context: "?${beta}`));
    await keys.activate(page.getByText('kubeconfig, sign-in plugin'));
    assert.equal(await copied(page, keys, 'kubeconfig of beta'), saved);

    await show(page, '/access');
    const panel = panelOf(page, 'beta');
    await panel.getByText('beta has no SSH: it runs Kubernetes only.').waitFor();
    await panel.getByText('You can use kubectl.').waitFor();
    assert.equal(await panel.getByRole('button', { name: /Request/ }).count(), 0);
  }));

test('with SSH: a key, the line to log in, a fault that is no waiting, and what may not be used is not offered', async () => {
  await as('bob', async (page, keys) => {
    await page.getByText('Three steps to a shell').waitFor();
    await keys.tabTo(page.getByLabel('Public key', { exact: true }));
    await keys.type(newPublicKey());
    await keys.activate(page.getByRole('button', { name: 'Register the key' }));
    await page.getByText('You can log in to alpha.').waitFor();
    assert.match(await copied(page, keys, 'log in to alpha'), new RegExp(` ${alpha}\\.bob@127`));
    // A fault that a person must mend, in the operator's words: bob sees the cluster.
    await page
      .getByText(/A fault on gamma keeps .*: The disk of node-1 is full\.$/)
      .first()
      .waitFor();
    assert.equal(await page.getByText(/kubectl|kubeconfig/).count(), 0, 'answers 403');
    await checkPage(page, '/');

    await show(page, '/access');
    await panelOf(page, 'gamma').getByText('An operator acts next.').waitFor();
    const onBeta = panelOf(page, 'beta');
    await onBeta.getByText('it takes the permission clusters.kubernetes').waitFor();
    await keys.activate(onBeta.getByRole('button', { name: 'Request Kubernetes access…' }));
    const reason = page.getByLabel(/^Reason/);
    await keys.tabTo(reason);
    await keys.type('to train on beta');
    await untilReady(page);
    await keys.press('Enter');
    await onBeta.getByText(/You asked for Kubernetes access on .* An owner or admin decides\./).waitFor();

    await show(page, '/clusters');
    await page.getByText('alpha').first().waitFor();
  });
  // Who does not see the cluster reads that an operator knows, and not the words that are the operator's.
  await as('sam', async (page, keys) => {
    await keys.tabTo(page.getByLabel('Public key', { exact: true }));
    await keys.type(newPublicKey());
    await keys.activate(page.getByRole('button', { name: 'Register the key' }));
    await page.getByText('You can log in to alpha.').waitFor();
    await page
      .getByText(/on gamma keeps .*\. Your administrator has been told\.$/)
      .first()
      .waitFor();
    assert.equal(await page.getByText('The disk of node-1').count(), 0);
  });
});

test('an owner: who waits for what, giving it with one key, taking it away, and what the member then reads', () =>
  as('bob', async (bob) => {
    await show(bob, '/access');
    await as('ada', async (page, keys) => {
      await show(page, '/requests');
      await page.getByText('to train on beta').waitFor();
      await keys.activate(page.getByRole('button', { name: 'Approve…' }));
      await keys.activate(page.getByRole('button', { name: 'Approve', exact: true }));
      await page.getByText('No pending requests.').waitFor();
      const onBeta = panelOf(bob, 'beta');
      await onBeta.getByText('You can use kubectl.').waitFor();
      await onBeta.getByText(/\. Ends /).waitFor();

      await show(page, `/members/${await idOf('bob')}`);
      await keys.activate(page.getByRole('button', { name: 'Permissions…' }));
      await keys.activate(page.getByRole('checkbox', { name: /clusters\.kubernetes / }), 'Space');
      await page.getByText(/Loses clusters\.kubernetes/).waitFor();
      await keys.tabTo(page.getByLabel(/^Reason/));
      await keys.type('the project is over');
      await untilReady(page);
      await keys.press('Enter');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await onBeta.getByText(/approved on .* and has been taken away again/).waitFor();
      await bob.getByText('Taken away again', { exact: true }).waitFor();
      await checkPage(bob, '/access');
      await show(page, '/members');
      await page.getByText('bob@physics.example').first().waitFor();
    });
  }));

test('an operator: the fault that members read of, and who did what', () =>
  as('root', async (page) => {
    await page.getByText('You are not in an organization yet.').waitFor();
    await checkPage(page, '/');
    await show(page, '/operator');
    await page.getByText('The disk of node-1 is full.').first().waitFor();
    await show(page, '/audit');
    await page.getByText('the project is over').first().waitFor();
  }));
