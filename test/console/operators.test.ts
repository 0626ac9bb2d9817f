/** Operators' pages in a browser: what is to be mended, who is on and was, and who did what. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { acceptBreak } from '../../src/store/audit/retention.ts';
import { recordObserveFailure } from '../../src/store/clusters/cluster-sides.ts';
import { addBroken } from '../audit/support.ts';
import { alpha } from '../support/app.ts';
import { loadAuditKey } from '../support/service-keys.ts';
import { personOfConsole } from './harness.ts';
import { checkPage, show, test, useConsole } from './page.ts';

const site = useConsole();

test('is everything converged: what must be mended is said in words, and comes and goes by itself', () =>
  site.as('root', async (page) => {
    await show(page, '/operator');
    await page.getByText('2 clusters, all in sync.').waitFor();
    const words = 'alpha-login <img src=x onerror="window.hit=1"> cannot be reached.';
    // The next look at the cluster finds it well again.
    const failing = setInterval(
      () => void recordObserveFailure(site.app.test.app.store, alpha, 'slurm', words).catch(() => {}),
      100,
    );
    try {
      await page.getByText(words).first().waitFor();
      await page.getByText('See that its controller is up').waitFor();
      await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
      await page.getByText('1 of 2 clusters needs attention.').waitFor();
      assert.equal(await page.evaluate('window.hit'), undefined);
      await checkPage(page, '/operator');
    } finally {
      clearInterval(failing);
    }
    await page.getByText('2 clusters, all in sync.').waitFor();
  }));

test('who is on: a session is closed with a reason that its person reads, and is in what is past and in the audit trail', () =>
  site.again('root', async (page) => {
    await show(page, '/who');
    await page.getByText('No one is logged in through the gateway').waitFor();
    using bob = await personOfConsole(site.app, 'bob');
    const shell = bob.start([bob.target, 'echo up; exec sleep 60']);
    await shell.said;
    // The page shows the session without a reload.
    await page.getByText('1 person in 1 session on 1 cluster').waitFor();
    const row = page.getByRole('row').filter({ hasText: 'bob' });
    assert.match(await row.innerText(), /alpha\s.*127\.0\.0\.1/s);
    await checkPage(page, '/who');
    await page.getByRole('button', { name: 'Close the session of bob' }).click();
    await page.getByLabel('Reason').fill('maintenance <b>now</b>');
    await page.getByRole('button', { name: 'Close the session', exact: true }).click();
    assert.match((await shell.ended).err, /maintenance <b>now<\/b>/);
    await page.getByText('No one is logged in through the gateway').waitFor();

    // The session is in what is past, in columns; what it was asked to run is text.
    await show(page, '/past');
    await page.getByText('This page shows 1 session of 1 person').waitFor();
    const past = page.getByRole('row').filter({ hasText: 'bob' });
    assert.match(await past.innerText(), /alpha.*127\.0\.0\.1.*1 command.*echo up; exec sleep 60/s);
    await checkPage(page, '/past');
    await page.getByLabel('Source address').fill('203.0.113.9');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByText('No ended session matches').waitFor();
    assert.match(page.url(), /address=203\.0\.113\.9/);
    // As a colleague opens it who was sent the address.
    await page.reload();
    await page.getByText('No ended session matches').waitFor();
    await page.getByRole('link', { name: 'Show all' }).click();
    await past.waitFor();
    const { commands, channels } = JSON.parse(await saved(page, 'Save as JSONL'));
    assert.deepEqual([commands, channels], [['echo up; exec sleep 60'], 1]);
    assert.match(await saved(page, 'Save as CSV'), /"echo up; exec sleep 60"/);

    // Who did what: newest first, narrowed by the address, saved as it is shown.
    await show(page, '/audit');
    await page.getByText('The latest entry is number').waitFor();
    await page.getByText('maintenance <b>now</b>').first().waitFor();
    assert.equal(await page.locator('td b').count(), 0);
    const numbers = async () => (await page.locator('tbody td:first-child').allInnerTexts()).map(Number);
    const all = await numbers();
    assert.deepEqual(
      all,
      all.toSorted((a, b) => b - a),
    );
    const closed = page.getByRole('row').filter({ hasText: 'maintenance <b>now</b>' });
    assert.match(
      await closed.last().innerText(),
      /root closed an SSH session of \S*bob\S* on alpha: maintenance <b>now<\/b>.*Done.*root@physics\.example/is,
    );
    const ofCluster = await closed.last().getByRole('link', { name: 'alpha' }).getAttribute('href');
    assert.match(ofCluster ?? '', /\/operator\/machines\?cluster=/);
    await checkPage(page, '/audit');

    await page.getByLabel('Result').selectOption('Refused');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.waitForURL(/\?result=refused$/);
    await page.getByText('No entry matches.').waitFor();
    await show(page, '/audit');
    await page.getByText('The latest entry is number').waitFor();

    await page.getByRole('textbox', { name: 'Person' }).fill('bob@physics.example');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByText('The newest match is').waitFor();
    assert.match(page.url(), /\?person=bob%40physics\.example$/);
    const ofBob = await numbers();
    assert.ok(ofBob.length > 0 && ofBob.length < all.length);
    await show(page, '/audit?person=bob%40physics.example&operation=operatorCloseSession');
    await page.locator('tbody tr').nth(1).waitFor({ state: 'detached' });
    const [json, csv] = [await saved(page, 'Save as JSONL'), await saved(page, 'Save as CSV')];
    assert.equal(JSON.parse(json).reason, 'maintenance <b>now</b>');
    assert.equal(csv.trim().split('\r\n').length, 2);
    assert.match(csv, /root@physics\.example.*bob@physics\.example/);

    await show(page, '/audit?person=nobody%40physics.example');
    await page.getByText('There is no account for nobody@physics.example').waitFor();
    await show(page, `/audit?before=${all.at(-1)}&cluster=%22`);
    await page.getByText(/There is no cluster/).waitFor();
    await show(page, `/audit?before=${all.at(0)}&from=nonsense`);
    await page.getByText(`number ${all[1]},`).waitFor();
    await page.getByRole('link', { name: 'Newest' }).click();
    await page.getByText('The latest entry is number').waitFor();

    // By operation; an entry at which the chain broke says that this was accepted on the host.
    await show(page, '/audit?operation=ssh.*');
    await page.getByText('The newest match is').waitFor();
    const names = await page.locator('tbody td code').allInnerTexts();
    assert.ok(names.length > 0 && names.every((name) => name.startsWith('ssh.')), names.join());

    const { store } = site.app.test.app;
    const seq = await addBroken(store, 1, 'x\ud83d');
    const key = loadAuditKey(join(site.app.test.dataDir, 'data'));
    const at = new Date().toISOString();
    await store.write((tx) =>
      acceptBreak(tx, seq, (previous, entry) => key.signRedaction(previous, entry, at, true)),
    );
    await show(page, '/audit?operation=test');
    await page.getByText('The hash chain broke here; an operator accepted this on the host.').waitFor();
  }));

test('the pages are in no menu of who may not read them, and say so to who comes by address', () =>
  site.as('eve', async (page) => {
    assert.equal(await page.getByRole('link', { name: 'Audit' }).count(), 0);
    assert.equal(await page.getByRole('link', { name: 'Active sessions' }).count(), 0);
    await show(page, '/audit');
    await page.getByText('operators with the staff key staff.audit').waitFor();
    await show(page, '/who');
    await page.getByText('operators with the staff key staff.read').waitFor();
    // An address may have anything in it.
    await show(page, '/members?filter=5&org=7');
    await page.getByRole('table').waitFor();
  }));

async function saved(page: Page, button: string): Promise<string> {
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: button }).click();
  return readFileSync(await (await download).path(), 'utf8');
}
