/** The times between the dots of a change that is followed: as they were seen, also after a reload; and none that nobody saw. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { setSimulated } from '../../platform/support.ts';
import { alpha, eventually } from '../../support/app.ts';
import { noBrowser } from '../../support/browser.ts';
import { signIn } from '../harness.ts';
import { checkPage, show, useConsole } from '../page.ts';

/** What stands on the lines of the strip of the cluster alpha. */
function linesOf(page: Page): Promise<string[]> {
  return page
    .locator('.panel')
    .filter({ has: page.getByRole('heading', { name: 'alpha', exact: true }) })
    .locator('.strip .line')
    .allInnerTexts();
}

const site = useConsole();

test('a reload keeps the times that a page saw, and a page that did not see them says none', {
  skip: noBrowser,
}, async () => {
  const ada = await signIn(site.app, 'ada');
  const { default_org_id: orgID } = await ada.ask('business/me');
  const { members } = await ada.ask(`business/organizations/${orgID}/members`);
  const { user_id: eve } = (members as { email: string; user_id: string }[]).find(({ email }) =>
    email.startsWith('eve@'),
  ) ?? { user_id: '' };
  const path = `/members/change?people=${eve}`;
  const applied = 'applied: done';
  await setSimulated(site.app.test, alpha, { failure: 'the disk is full' });
  const body = { permissions: ['clusters.ssh'] };
  await ada.ask(`business/organizations/${orgID}/members/${eve}/permissions`, { method: 'PUT', body });
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
