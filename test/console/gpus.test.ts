/** Clusters at a glance: what is free, in use, out of work and why, and what is set aside for the reader. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setSimulated } from '../platform/support.ts';
import { alpha, physics } from '../support/app.ts';
import { noBrowser, openBrowser } from '../support/browser.ts';
import { startConsoleApp } from './harness.ts';
import { checkPage, show, withPageOf } from './page.ts';

const reason = 'ECC <img src=x onerror="window.hit=1">';

test('a member sees what is free, what is out of work and why, and the nodes that are reserved', {
  skip: noBrowser,
}, async () => {
  const clusters = physics.clusters?.map((one) => (one.id === alpha ? { ...one, reservedNodes: 2 } : one));
  await using app = await startConsoleApp({ lab: { ...physics, clusters: clusters ?? [] } });
  await using browser = await openBrowser();
  const service = app.test;
  await setSimulated(service, alpha, {
    computeNodes: 3,
    gpusInUse: 5,
    nodesDrained: 1,
    drainReason: reason,
  });
  await withPageOf({ app, browser }, 'ada', async (page) => {
    await show(page, '/clusters');
    await page.getByText('11 of 24 GPUs free on 3 nodes').waitFor();
    await page.getByText('8 unavailable').waitFor();
    await show(page, `/clusters/${alpha}`);
    await page.getByText('11 of 24 GPUs free on 3 nodes. It reports normally.').waitFor();
    await page.getByText(`alpha-3 is unavailable: ${reason}`).waitFor();
    assert.equal(await page.evaluate('window.hit'), undefined);
    await page.getByRole('heading', { name: 'Reserved for you' }).waitFor();
    await page.getByText('2 nodes', { exact: true }).waitFor();
    await checkPage(page, `/clusters/${alpha}`);
    // By itself, on the open page.
    await setSimulated(service, alpha, { gpusInUse: 0 });
    await page.getByText('16 of 24 GPUs free on 3 nodes. It reports normally.').waitFor();
    const message = 'slurmctld does not answer.';
    await setSimulated(service, alpha, { schedulerFault: { reason: 'ControllerDown', message } });
    await page.getByText('It reports a fault.').waitFor();
    await page.getByText(message).waitFor();
  });
});
