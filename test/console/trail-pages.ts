/** What operators look up afterwards: sessions that are over, whether the trail is whole, how it went over time. */
import assert from 'node:assert/strict';
import { saved, type Walk } from './operator-pages.ts';

/** The session that an operator closed is there, in columns; what it was asked to run is text. */
export async function walkPastSessions({ page, show, check }: Walk): Promise<void> {
  await show('/past');
  await page.getByText('On this page is 1 session, of 1 person').waitFor();
  const row = page.getByRole('row').filter({ hasText: 'bob' });
  assert.match(await row.innerText(), /alpha.*127\.0\.0\.1.*a command.*echo up; exec sleep 60/s);
  await check('/past');
  await page.getByLabel('From where').fill('203.0.113.9');
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByText('No session that is over fits').waitFor();
  assert.match(page.url(), /address=203\.0\.113\.9/);
  // As a colleague opens it who was sent the address.
  await page.reload();
  await page.getByText('No session that is over fits').waitFor();
  await page.getByRole('link', { name: 'Show all' }).click();
  await row.waitFor();
  const [json, csv] = [await saved(page, 'Save as JSONL'), await saved(page, 'Save as CSV')];
  const { commands, channels } = JSON.parse(json);
  assert.deepEqual([commands, channels], [['echo up; exec sleep 60'], 1]);
  assert.match(csv, /"echo up; exec sleep 60"/);
}

/** The browser computes the chain itself, finds it whole, and the next time finds what it noted. */
export async function walkVerify({ page, show }: Walk): Promise<void> {
  await show('/audit?operation=ssh.*');
  await page.getByText('The newest of these is').waitFor();
  const names = await page.locator('tbody td code').allInnerTexts();
  assert.ok(names.length > 0 && names.every((name) => name.startsWith('ssh.')), names.join());
  await page.getByRole('button', { name: 'Check the trail' }).click();
  await page.getByText('This browser had not checked it before').waitFor();
  await page.getByRole('button', { name: 'Check again' }).click();
  await page.getByText('is still in it').waitFor();

  // Somebody changes what an answer says, and somebody puts another key in its place.
  await page.route('**/operator/audit?*', async (route) => {
    const headers = { ...route.request().headers(), 'sec-fetch-site': 'same-origin' };
    const response = await route.fetch({ headers });
    const body = await response.json();
    if (body.entries[1]) body.entries[1].reason = 'another reason';
    await route.fulfill({ response, json: body });
  });
  await page.getByRole('button', { name: 'Check again' }).click();
  await page.getByText('is the first that does not fit').waitFor();
  await page.unroute('**/operator/audit?*');
  await page.evaluate(
    `localStorage.setItem('andromeda-audit-seen', localStorage.getItem('andromeda-audit-seen').replace('ed25519:', 'ed25519:x'))`,
  );
  await page.getByRole('button', { name: 'Check again' }).click();
  await page.getByText('signs with another key').waitFor();
  await page.getByRole('button', { name: 'Forget what this browser has seen' }).click();
  await page.getByRole('button', { name: 'Check again' }).click();
  await page.getByText('This browser had not checked it before').waitFor();
}

/** The login is counted; every plot is a table as well. */
export async function walkActivity({ page, show, check }: Walk): Promise<void> {
  await show('/activity');
  await page.getByText(/In 24 hours, [1-9]\d* logins? and/).waitFor();
  await page.getByText('As a table').first().click();
  await page.getByRole('region', { name: 'Logins', exact: true }).getByRole('row').nth(1).waitFor();
  await check('/activity');
  await page.getByRole('link', { name: '90 days' }).click();
  await page.getByText(/In 90 days, [1-9]/).waitFor();
}
