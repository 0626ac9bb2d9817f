/** What operators look up afterwards: sessions that are over, the audit trail. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { acceptBreak } from '../../src/store/audit/retention.ts';
import { addBroken } from '../audit/support.ts';
import { loadAuditKey } from '../support/service-keys.ts';
import { saved, type Walk } from './operator-pages.ts';

/** The session that an operator closed is there, in columns; what it was asked to run is text. */
export async function walkPastSessions({ page, show, check }: Walk): Promise<void> {
  await show('/past');
  await page.getByText('This page shows 1 session of 1 person').waitFor();
  const row = page.getByRole('row').filter({ hasText: 'bob' });
  assert.match(await row.innerText(), /alpha.*127\.0\.0\.1.*a command.*echo up; exec sleep 60/s);
  await check('/past');
  await page.getByLabel('Source address').fill('203.0.113.9');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.getByText('No ended session matches').waitFor();
  assert.match(page.url(), /address=203\.0\.113\.9/);
  // As a colleague opens it who was sent the address.
  await page.reload();
  await page.getByText('No ended session matches').waitFor();
  await page.getByRole('link', { name: 'Show all' }).click();
  await row.waitFor();
  const [json, csv] = [await saved(page, 'Save as JSONL'), await saved(page, 'Save as CSV')];
  const { commands, channels } = JSON.parse(json);
  assert.deepEqual([commands, channels], [['echo up; exec sleep 60'], 1]);
  assert.match(csv, /"echo up; exec sleep 60"/);
}

/** The trail reads by operation; an entry at which the chain broke says that this was accepted on the host. */
export async function walkTrail({ app, page, show }: Walk): Promise<void> {
  await show('/audit?operation=ssh.*');
  await page.getByText('The newest match is').waitFor();
  const names = await page.locator('tbody td code').allInnerTexts();
  assert.ok(names.length > 0 && names.every((name) => name.startsWith('ssh.')), names.join());

  const { store } = app.test.app;
  const seq = await addBroken(store, 1, 'x\ud83d');
  const key = loadAuditKey(join(app.test.dataDir, 'data'));
  const at = new Date().toISOString();
  await store.write((tx) =>
    acceptBreak(tx, seq, (previous, entry) => key.signRedaction(previous, entry, at, true)),
  );
  await show('/audit?operation=test');
  await page.getByText('The hash chain broke here; an operator accepted this on the host.').waitFor();
}
