/** Clusters at a glance: what is free, in use, out of work and why, and what is set aside for the reader. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setSimulated } from '../platform/support.ts';
import { alpha, physics } from '../support/app.ts';
import { noBrowser, openBrowser } from '../support/browser.ts';
import { startConsoleApp } from './harness.ts';
import { personOfConsole } from './operator-pages.ts';
import { checkPage, show, withPageOf } from './page.ts';

const reason = 'ECC <img src=x onerror="window.hit=1">';

test('a member with a running job has the lines that lead into it on the start page', {
  skip: noBrowser,
}, async () => {
  const runningJobs = [{ id: '4711', user: 'bob', name: 'train', machines: ['alpha-2'] }];
  const clusters = physics.clusters?.map((one) =>
    one.id === alpha && one.simulated
      ? { ...one, simulated: { ...one.simulated, runningJobs, requeue: true } }
      : one,
  );
  await using app = await startConsoleApp({ lab: { ...physics, clusters: clusters ?? [] } });
  await using browser = await openBrowser();
  using bob = await personOfConsole(app, 'bob');
  await withPageOf({ app, browser }, 'bob', async (page) => {
    const job = page.getByRole('region', { name: 'Job 4711' });
    await job.getByText('On alpha-2 with 8 GPUs.').waitFor();
    const line = await job.locator('pre').innerText();
    assert.equal(line, `ssh -p ${app.test.gatewayPort} ${alpha}.bob+4711@${bob.target}`);
    assert.equal(
      await job.getByRole('link', { name: 'VS Code in your newest job' }).getAttribute('href'),
      'vscode://vscode-remote/ssh-remote+andromeda-alpha-job/',
    );
    await checkPage(page, '/');
    await setSimulated(app.test, alpha, { runningJobs: [] });
    await job.waitFor({ state: 'detached' });
  });
});

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
  const { user, ...job } = { id: '4711', user: 'bob', name: `train ${reason}`, machines: ['alpha-2'] };
  await withPageOf({ app, browser }, 'ada', async (page) => {
    await setSimulated(service, alpha, { runningJobs: [{ ...job, user }] });
    await show(page, '/gpus');
    const row = page.getByRole('row').filter({ hasText: '4711' });
    await row.getByText('alpha-2').waitFor();
    assert.match(await row.innerText(), /bob[\s\S]*train ECC <img[\s\S]*alpha[\s\S]*8/);
    await checkPage(page, '/gpus');
    await setSimulated(service, alpha, { runningJobs: [] });
    await page.getByText('No job that you may see holds GPUs.').waitFor();
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
