/** Asking for access and deciding, with the keyboard alone, in two browsers that see each other's steps by themselves. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { updateMemberPermissions } from '../../../src/store/organizations/membership-changes.ts';
import { findOrganizationBySlug } from '../../../src/store/organizations/organizations.ts';
import { findPersonByEmail } from '../../../src/store/people/people.ts';
import { setSimulated } from '../../platform/support.ts';
import { alpha } from '../../support/app.ts';
import { newPublicKey } from '../../support/ssh-keys.ts';
import { type ConsoleApp, password } from '../harness.ts';
import { tabTo } from '../keyboard.ts';
import { checkPage, show, test, untilReady, useConsole } from '../page.ts';

const evil = 'runs for the paper <img src=x onerror="window.hit=1">';

async function press(page: Page, name: string | RegExp, key = 'Enter'): Promise<void> {
  await tabTo(page, page.getByRole('button', { name }).first());
  await page.keyboard.press(key);
}

async function goTo(page: Page, name: string): Promise<void> {
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog', { name: 'Go to' }).waitFor();
  await page.keyboard.type(name);
  await page.getByRole('dialog').getByRole('link', { name }).first().waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name }).waitFor();
}

async function fillReason(page: Page, text: string): Promise<void> {
  await tabTo(page, page.getByLabel(/^Reason/));
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(text);
  await untilReady(page);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
}

/** Lets what eve holds end in a moment. */
async function endSoon({ test: { app } }: ConsoleApp): Promise<void> {
  const eve = await findPersonByEmail(app.store.read, 'eve@physics.example');
  const organization = await findOrganizationBySlug(app.store.read, 'physics');
  const expiresAt = new Date(Date.now() + 2_000).toISOString();
  const of = { organizationId: organization?.id ?? '', userId: eve?.id ?? '' };
  const permissions = [{ key: 'clusters.read' as const, expiresAt }];
  await app.store.write((tx) => updateMemberPermissions(tx, { ...of, permissions }));
}

/** What was typed is there again after a reload and a sign-out, and is shown to no other person of the browser. */
async function keepsDraft(page: Page): Promise<void> {
  const reason = page.getByLabel(/^Reason/);
  const term = page.getByLabel('Duration', { exact: false });
  const isBack = page.getByText('What you entered before is back.');
  const open = async (name: string) => {
    await page.getByRole('button', { name }).first().click();
    await reason.waitFor();
  };
  const signInAs = async (name: string) => {
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.getByLabel('Email').fill(`${name}@physics.example`);
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Live', { exact: true }).waitFor();
    await goTo(page, 'Access');
  };
  await open('Request access…');
  assert.equal(await isBack.count(), 0);
  await term.selectOption('for 30 days');
  await reason.fill('for the visi');
  await page.reload();
  await open('Request access…');
  await isBack.waitFor();
  assert.deepEqual([await reason.inputValue(), await term.inputValue()], ['for the visi', '720']);
  await page.getByRole('button', { name: 'Close' }).click();

  await signInAs('bob');
  await open('Request access…');
  assert.equal(await reason.inputValue(), '');
  assert.equal(await isBack.count(), 0);
  await page.getByRole('button', { name: 'Cancel' }).click();

  await signInAs('eve');
  await open('Request access…');
  await isBack.waitFor();
  assert.equal(await reason.inputValue(), 'for the visi');
  await page.getByRole('button', { name: 'Start over' }).click();
  await isBack.waitFor({ state: 'detached' });
  assert.deepEqual([await reason.inputValue(), await term.inputValue()], ['', '168']);
  await reason.fill('not any more');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await open('Request access…');
  assert.equal(await reason.inputValue(), '');
  await page.getByRole('button', { name: 'Cancel' }).click();
}

const site = useConsole();

test('a member asks, an owner approves, declines and changes the term, and both see it by themselves', () =>
  site.as('eve', async (eve) => {
    await site.as('ada', async (ada) => {
      await goTo(ada, 'Requests');
      await ada.getByText('No pending requests.').waitFor();

      await goTo(eve, 'Access');
      await eve.getByText('You have no permissions in this organization.').waitFor();
      await keepsDraft(eve);
      await press(eve, 'Request access…');
      // What somebody who may do nothing needs is chosen; one thing more is, by hand.
      await tabTo(eve, eve.getByRole('checkbox', { name: /^clusters\.kubernetes / }));
      await eve.keyboard.press('Space');
      await checkPage(eve, 'asking');
      await fillReason(eve, evil);
      await eve.getByRole('status').filter({ hasText: 'Send request: done.' }).waitFor();
      await eve.getByText('Pending').waitFor();

      await ada.getByText('1 pending request.').waitFor();
      await ada.getByRole('link', { name: 'Requests 1 pending' }).waitFor();
      await ada.getByText(evil).waitFor();
      assert.equal(await ada.evaluate('window.hit'), undefined);
      await checkPage(ada, '/requests');
      await press(ada, 'Approve…');
      await ada.getByText('Kubernetes: eve from nothing to edit.').waitFor();
      await ada.getByText('eve gets a login account after registering an SSH key.').waitFor();
      await checkPage(ada, 'approving');
      await press(ada, /^Approve$/);
      await ada.getByText('No pending requests.').waitFor();
      await ada.getByText('Last approved: eve@physics.example').waitFor();
      await eve.getByText('Approved', { exact: true }).first().waitFor();
      await eve.getByText(/^clusters\.ssh until/).waitFor();
      await eve.getByText('applied: done').first().waitFor();
      await checkPage(eve, '/access');

      await press(eve, 'Request more time…');
      await fillReason(eve, 'the runs take longer');
      await ada.getByText('the runs take longer').first().waitFor();
      await press(ada, 'Approve…');
      await tabTo(ada, ada.getByLabel('Duration', { exact: true }));
      await ada.keyboard.press('ArrowDown');
      await ada.getByText('Ends on').waitFor();
      await ada.getByText('Nothing changes on the clusters').waitFor();
      await tabTo(ada, ada.getByLabel(/^Reason/));
      await untilReady(ada);
      await ada.keyboard.press('Enter');
      await ada.getByText('No pending requests.').waitFor();

      await press(eve, 'Request access…');
      await tabTo(eve, eve.getByRole('checkbox', { name: /^members\.manage / }));
      await eve.keyboard.press('Space');
      await fillReason(eve, 'I want it all');
      await ada.getByText('I want it all').first().waitFor();
      await press(ada, 'Decline…');
      await fillReason(ada, 'ask me in person');
      await eve.getByText('ada@physics.example: “ask me in person”').waitFor();

      await press(eve, 'Request access…');
      await tabTo(eve, eve.getByRole('checkbox', { name: /^members\.manage / }));
      await eve.keyboard.press('Space');
      await fillReason(eve, 'by mistake');
      await ada.getByText('1 pending request.').waitFor();
      await press(eve, 'Withdraw…');
      await press(eve, /^Withdraw$/);
      await ada.getByText('No pending requests.').waitFor();

      // It ends by itself, on the open page.
      await endSoon(site.app);
      await eve.getByText('You have no permissions in this organization.').waitFor();
    });
  }));

test('a first key and the end of the last one say what they end, and are sent once that is confirmed', async () => {
  const jobs = ['41', '42'].map((id) => ({ id, user: 'ada', name: 'train', machines: ['alpha-1'] }));
  await setSimulated(site.app.test, alpha, { runningJobs: jobs });
  await site.as('bob', async (page) => {
    await show(page, '/keys');
    await page.getByRole('button', { name: 'Register a key' }).first().click();
    const dialog = page.getByRole('dialog');
    const plan = dialog.getByRole('region', { name: 'What will change' });
    await plan.getByText('Login accounts added: bob.').waitFor();
    await plan.getByText('Ends 2 running jobs.').waitFor();
    await checkPage(page, 'registering a key that ends jobs');
    await dialog.getByLabel('Public key', { exact: true }).fill(newPublicKey());
    const register = dialog.getByRole('button', { name: 'Register the key' });
    assert.equal(await register.getAttribute('aria-disabled'), 'true');
    await dialog.getByRole('checkbox', { name: 'End 2 running jobs' }).check();
    await register.click();
    await dialog.waitFor({ state: 'detached' });

    // They ended as the compute nodes restarted; now there is nothing to confirm.
    await page.getByRole('button', { name: 'Revoke…' }).click();
    await plan.getByText('Login accounts removed: bob.').waitFor();
    await plan.getByText('No running job ends.').waitFor();
    // The console is away: pressed again when it is back, it is the same request, and the form says so.
    const revoke = dialog.getByRole('button', { name: 'Revoke', exact: true });
    const sent = new Set<string | undefined>();
    page.on('request', (request) => {
      if (request.url().endsWith('/revoke')) sent.add(request.headers()['idempotency-key']);
    });
    await page.route('**/revoke', (route) => route.abort('connectionreset'));
    await revoke.click();
    await dialog.getByText('The console cannot be reached.').first().waitFor();
    await dialog.getByText('the change may or may not have been made').waitFor();
    await dialog.getByText('Press “Revoke” again').waitFor();
    await page.unroute('**/revoke');
    await revoke.click();
    await page.getByText('It was sent more than once and applied once.').waitFor();
    await page.getByText('You have no active keys').waitFor();
    assert.equal(sent.size, 1);
  });
});

test('the form of a first key says that what it does could not be loaded, and can load it again', async () => {
  const part = '**/assets/consequences-*';
  await site.as(
    'bob',
    async (page) => {
      await page
        .getByRole('alert')
        .getByText(/consequences/)
        .waitFor();
      await page.getByLabel('Public key', { exact: true }).fill(newPublicKey());
      await page.unroute(part);
      await page.getByRole('button', { name: 'Try again' }).click();
      await page.getByText('Login accounts added: bob.').waitFor();
    },
    (page) => void page.route(part, (route) => route.abort()),
  );
});
