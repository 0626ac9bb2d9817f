/** Permissions that end by themselves, as whoever manages them sees and saves them. */
import assert from 'node:assert/strict';
import { alpha } from '../../support/app.ts';
import { signIn } from '../harness.ts';
import { checkPage, show, test, useConsole } from '../page.ts';

const hour = 3_600_000;

const site = useConsole();

test('an end that passes under an open form stays one, and each way to a cluster shows its own', async () => {
  const ada = await signIn(site.app, 'ada');
  const me = await ada.ask('business/me');
  const org = `business/organizations/${me.default_org_id}`;
  const { members } = await ada.ask(`${org}/members`);
  const eve = members.find(({ email }: { email: string }) => email === 'eve@physics.example').user_id;
  const end = new Date(Date.now() + hour).toISOString();
  const body = { permissions: ['clusters.read', 'clusters.ssh'], expires_at: { 'clusters.ssh': end } };
  await ada.ask(`${org}/members/${eve}/permissions`, { method: 'PUT', body });

  await site.as('ada', async (page) => {
    await show(page, `/clusters/${alpha}/people`);
    const row = page.getByRole('row').filter({ hasText: 'eve@physics.example' });
    await row.getByRole('listitem').filter({ hasText: 'SSH (clusters.ssh): in' }).waitFor();
    await row.getByRole('listitem').filter({ hasText: '(clusters.read): no end date' }).waitFor();
    await checkPage(page, 'who reaches a cluster, with ends');

    await show(page, `/members/${eve}`);
    const save = async () => {
      await page.getByLabel('Reason').fill('A test');
      const [request] = await Promise.all([
        page.waitForRequest((one) => one.method() === 'PUT'),
        page.getByRole('button', { name: 'Save', exact: true }).click(),
      ]);
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      return request.postDataJSON();
    };
    await page.getByRole('button', { name: 'Permissions…' }).click();
    await page.getByRole('checkbox', { name: /^reservations\.read / }).check();
    assert.deepEqual(await save(), {
      permissions: ['clusters.read', 'clusters.ssh', 'reservations.read'],
      expires_at: { 'clusters.read': null, 'clusters.ssh': end, 'reservations.read': null },
    });

    await show(page, '/members');
    await show(page, `/members/${eve}`);
    await page.getByRole('button', { name: 'Permissions…' }).click();
    const box = page.getByRole('checkbox', { name: /^clusters\.ssh / });
    await box.and(page.locator(':checked')).waitFor();
    await page.evaluate(`{ const real = Date.now; Date.now = () => real() + ${2 * hour}; }`);
    await page.getByText('Ended while this was open: clusters.ssh.').waitFor();
    assert.equal(await box.isChecked(), false);
    await box.check();
    const plan = page.getByRole('region', { name: 'What will change' });
    await plan.getByText('Gains clusters.ssh, with no end date.').waitFor();
    await checkPage(page, 'the form for permissions, after an end');
    assert.equal((await save()).expires_at['clusters.ssh'], null);
  });
});
