/** Clusters at a glance: what is free, in use, out of work and why, and what is set aside for the reader. */
import assert from 'node:assert/strict';
import { lastDays } from '../../../src/domain/clusters/gpu-hours.ts';
import { saveGpuDays } from '../../../src/store/clusters/gpu-days.ts';
import { setSimulated, silence } from '../../platform/support.ts';
import { alpha, physics } from '../../support/app.ts';
import { personOfConsole } from '../harness.ts';
import { checkPage, show, test, useConsole } from '../page.ts';

const reason = 'ECC <img src=x onerror="window.hit=1">';

const runningJobs = [{ id: '4711', user: 'bob', name: 'train', machines: ['alpha-2'] }];
const links = [{ name: 'Utilisation', url: 'https://grafana.example.org/d/alpha' }];
const clusters = physics.clusters?.map((one) =>
  one.id === alpha && one.simulated
    ? { ...one, reservedNodes: 2, links, simulated: { ...one.simulated, runningJobs, requeue: true } }
    : one,
);
const site = useConsole({ lab: { ...physics, clusters: clusters ?? [] } });

test('a member with a running job has the lines that lead into it on the start page', async () => {
  using bob = await personOfConsole(site.app, 'bob');
  await site.as('bob', async (page) => {
    const job = page.getByRole('region', { name: 'Job 4711' });
    await job.getByText('On alpha-2 with 8 GPUs.').waitFor();
    const line = await job.locator('pre').innerText();
    assert.equal(line, `ssh -p ${site.app.test.gatewayPort} ${alpha}.bob+4711@${bob.target}`);
    assert.equal(
      await job.getByRole('link', { name: 'VS Code in your newest job' }).getAttribute('href'),
      'vscode://vscode-remote/ssh-remote+andromeda-alpha-job/',
    );
    await checkPage(page, '/');
    await setSimulated(site.app.test, alpha, { runningJobs: [] });
    await job.waitFor({ state: 'detached' });
  });
});

test('a member sees what is free, what is out of work and why, and the nodes that are reserved', async () => {
  const service = site.app.test;
  await setSimulated(service, alpha, {
    computeNodes: 3,
    gpusInUse: 5,
    nodesDrained: 1,
    drainReason: reason,
  });
  const { user, ...job } = { id: '4711', user: 'bob', name: `train ${reason}`, machines: ['alpha-2'] };
  await site.as('ada', async (page) => {
    const pendingJobs = [{ id: '4712', user: 'ada', name: 'later', reason: 'Priority', gpus: 16 }];
    await setSimulated(service, alpha, { runningJobs: [{ ...job, user }], pendingJobs });
    await show(page, '/gpus');
    const link = page.getByRole('region', { name: 'clusters' }).getByRole('link', { name: 'Utilisation' });
    assert.equal(await link.getAttribute('href'), 'https://grafana.example.org/d/alpha');
    await page.getByText(/ whole nodes?, at most 8 on one\.$/).waitFor();
    const waiting = page.getByRole('region', { name: 'waiting' }).getByRole('row');
    assert.match(
      await waiting.filter({ hasText: '4712' }).innerText(),
      /ada[\s\S]*later[\s\S]*16\s+0\s+Priority/,
    );
    const node = page.getByRole('region', { name: 'nodes' }).getByRole('row');
    assert.match(await node.filter({ hasText: 'alpha-2' }).innerText(), /bob[^\n]* \(4711\)/);
    const row = page.getByRole('region', { name: 'jobs' }).getByRole('row').filter({ hasText: '4711' });
    await row.getByText('alpha-2').waitFor();
    assert.match(await row.innerText(), /bob[\s\S]*train ECC <img[\s\S]*alpha[\s\S]*8/);
    await checkPage(page, '/gpus');
    await setSimulated(service, alpha, { runningJobs: [] });
    await page.getByText('No job that you may see holds GPUs.').waitFor();
    await silence(service, alpha);
    const [today = '', old = ''] = [0, 20].map((ago) => lastDays(Date.now(), 90)[ago]);
    await service.app.store.write((tx) =>
      saveGpuDays(tx, alpha, [
        { day: today, seconds: { ada: 9_000 } },
        { day: old, seconds: { bob: 36_000 } },
      ]),
    );
    await page.reload();
    const hours = page.getByRole('region', { name: 'gpu-hours' }).getByRole('row');
    assert.match(await hours.nth(1).innerText(), /bob[\s\S]*alpha\s+10\.00/);
    await page.getByText(`alpha: 12.50 GPU-hours since ${old}, of members 12.50.`).waitFor();
    await page.getByLabel('Of the last').selectOption('7 days');
    await page.getByText(`alpha: 2.50 GPU-hours since ${today}, of members 2.50.`).waitFor();
    assert.equal(await hours.count(), 2);
    await checkPage(page, '/gpus');
    await setSimulated(service, alpha, { silent: false });
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
