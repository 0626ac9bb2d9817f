/** The times between the dots of a change that is followed: as they were seen, also after a reload; and none that nobody saw. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { setSimulated } from '../../platform/support.ts';
import { alpha, eventually } from '../../support/app.ts';
import { signIn } from '../harness.ts';
import { checkPage, show, test, useConsole } from '../page.ts';

/** What stands on the lines of the strip of the cluster alpha. */
function linesOf(page: Page): Promise<string[]> {
  return page
    .locator('.panel')
    .filter({ has: page.getByRole('heading', { name: 'alpha', exact: true }) })
    .locator('.strip .line')
    .allInnerTexts();
}

const site = useConsole();

/** Has the cluster alpha fail at a change of one member. Returns the address where it is followed, and a read of how it is there. */
async function startFailing(name: string, permissions: string[]) {
  const ada = await signIn(site.app, 'ada');
  const { default_org_id: orgID } = await ada.ask('business/me');
  const { members } = await ada.ask(`business/organizations/${orgID}/members`);
  const { user_id: person } = (members as { email: string; user_id: string }[]).find(({ email }) =>
    email.startsWith(`${name}@`),
  ) ?? { user_id: '' };
  const path = `/members/change?people=${person}`;
  await setSimulated(site.app.test, alpha, { failure: 'the disk is full' });
  const body = { permissions };
  await ada.ask(`business/organizations/${orgID}/members/${person}/permissions`, { method: 'PUT', body });
  const stateOnAlpha = async () => {
    const { people } = await ada.ask(`business/organizations/${orgID}/access?user_ids=${person}`);
    return people[0].clusters[0].slurm.state;
  };
  await eventually(stateOnAlpha, (state) => state === 'failed');
  return { path, stateOnAlpha };
}

test('a reload keeps the times that a page saw, and a page that did not see them says none', async () => {
  const { path } = await startFailing('eve', ['clusters.ssh']);
  const applied = 'applied: done';
  await site.as('ada', async (page) => {
    await show(page, path);
    const panel = page.locator('.panel').filter({ hasText: 'alpha' });
    await panel.getByText('the disk is full').waitFor();
    await panel.getByText('applied: failed').waitFor();
    // Seen from a page that has been told of changes for longer than a moment.
    await page.waitForTimeout(2_500);
    await setSimulated(site.app.test, alpha, { failure: undefined });
    await panel.getByText('Up to date', { exact: true }).waitFor();
    await panel.getByText(applied).waitFor();
    const seen = await page.evaluate('sessionStorage.getItem("andromeda-witnessed")');
    assert.match(String(seen), /"applied":"\d{4}-/);
    const lines = await linesOf(page);
    assert.match(lines.join(), /\d (s|min)/);
    await checkPage(page, path);
    await page.reload();
    await panel.getByText(applied).waitFor();
    assert.deepEqual(await linesOf(page), lines);
    assert.equal(await page.evaluate('sessionStorage.getItem("andromeda-witnessed")'), seen);
  });
  await site.as('ada', async (page) => {
    await show(page, path);
    await page.getByText(applied).first().waitFor();
    const lines = await eventually(
      () => linesOf(page),
      (found) => found.length > 0,
    );
    assert.deepEqual(
      lines.filter((text) => text !== ''),
      [],
    );
  });
});

test('a change that comes while a page is read for the first time is shown, though the answer is from before', async () => {
  const { path, stateOnAlpha } = await startFailing('bob', []);
  await site.as('ada', async (page) => {
    await page.route(
      '**/access?user_ids*',
      async (route) => {
        const headers = { ...route.request().headers(), 'sec-fetch-site': 'same-origin' };
        const response = await route.fetch({ headers });
        await setSimulated(site.app.test, alpha, { failure: undefined });
        await eventually(stateOnAlpha, (state) => state === 'applied');
        // The page receives the event of the change before this older answer.
        await page.waitForTimeout(2_500);
        await route.fulfill({ response });
      },
      { times: 1 },
    );
    await show(page, path);
    const panel = page.locator('.panel').filter({ hasText: 'alpha' });
    await panel.getByText('Up to date', { exact: true }).waitFor();
  });
});
