/** Clusters at a glance: what is free, in use, out of work and why, and what is set aside for the reader. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setSimulated } from '../platform/support.ts';
import { alpha, physics } from '../support/app.ts';
import { noBrowser, openBrowser } from '../support/browser.ts';
import { signIn, startConsoleApp } from './harness.ts';
import { checkPage, show, withPageOf } from './page.ts';

const reason = 'ECC <img src=x onerror="window.hit=1">';

test('a member sees what is free, what is out of work and why, and the nodes that are reserved', {
  skip: noBrowser,
}, async () => {
  await using app = await startConsoleApp({ lab: physics });
  await using browser = await openBrowser();
  const service = app.test;
  await setSimulated(service, alpha, {
    computeNodes: 3,
    gpusInUse: 5,
    nodesDrained: 1,
    drainReason: reason,
  });
  const body = { cluster_id: alpha, node_count: 2 };
  const operator = await signIn(app, 'root');
  const headers = { 'content-type': 'application/json', 'idempotency-key': '1', 'audit-reason': 'a course' };
  const made = await operator.call('/api/business/operator/reservations', {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  assert.equal(made.status, 201);
  await withPageOf({ app, browser }, 'ada', async (page) => {
    await show(page, '/clusters');
    await page.getByText('11 of 24 GPUs free on 3 nodes').waitFor();
    await page.getByText('8 out of work').waitFor();
    await show(page, `/clusters/${alpha}`);
    await page.getByText('11 of 24 GPUs free on 3 nodes. It reports.').waitFor();
    await page.getByText(`alpha-3 takes no work: ${reason}`).waitFor();
    assert.equal(await page.evaluate('window.hit'), undefined);
    await page.getByRole('heading', { name: 'Reserved for you' }).waitFor();
    await page.getByText('2 nodes', { exact: true }).waitFor();
    await checkPage(page, `/clusters/${alpha}`);
    // By itself, on the open page.
    await setSimulated(service, alpha, { gpusInUse: 0 });
    await page.getByText('16 of 24 GPUs free on 3 nodes. It reports.').waitFor();
    const message = 'slurmctld does not answer.';
    await setSimulated(service, alpha, { schedulerFault: { reason: 'ControllerDown', message } });
    await page.getByText('It reports a fault.').waitFor();
    await page.getByText(message).waitFor();
  });
});
