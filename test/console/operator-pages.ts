/** The operators' pages, walked in a browser that is signed in, with people logged in through the gateway. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { recordObserveFailure } from '../../src/store/clusters/cluster-sides.ts';
import { alpha, type TestApp } from '../support/app.ts';
import { type SshPerson, sshPerson } from '../support/ssh-person.ts';
import { type ConsoleApp, signIn } from './harness.ts';

export interface Walk {
  app: ConsoleApp;
  page: Page;
  /** Goes to a page as a link does. */
  show(path: string): Promise<void>;
  /** What axe finds in both schemes and what does not fit a narrow screen: nothing. */
  check(path: string): Promise<void>;
}

/** Somebody with a key and `ssh`; the calls that this needs are made through the console. */
export async function personOfConsole(app: ConsoleApp, name: string): Promise<SshPerson> {
  const browser = await signIn(app, name);
  const call =
    (api: string): TestApp['business'] =>
    async (path, { method = 'GET', body, headers } = {}) => {
      const response = await browser.call(`/api/${api}${path}`, {
        method,
        headers: { 'content-type': 'application/json', ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: await response.json(), headers: response.headers };
    };
  const business = call('business');
  const write: TestApp['write'] = (path, given) =>
    business(path, {
      method: 'POST',
      ...given,
      headers: { 'Idempotency-Key': `key-${path}`, 'Audit-Reason': 'a test' },
    });
  return sshPerson({ ...app.test, business, platform: call('platform'), write }, name);
}

/** Is everything converged: what must be mended is said in words, and comes and goes by itself. */
export async function walkInstallation({ app, page, show, check }: Walk): Promise<void> {
  await show('/operator');
  await page.getByText('2 clusters, all in sync.').waitFor();
  const words = 'alpha-login <img src=x onerror="window.hit=1"> cannot be reached.';
  // The next look at the cluster finds it well again.
  const failing = setInterval(
    () => void recordObserveFailure(app.test.app.store, alpha, 'slurm', words).catch(() => {}),
    100,
  );
  try {
    await page.getByText(words).first().waitFor();
    await page.getByText('See that its controller is up').waitFor();
    await page.getByRole('heading', { name: 'Needs attention' }).waitFor();
    await page.getByText('1 of 2 clusters needs attention.').waitFor();
    assert.equal(await page.evaluate('window.hit'), undefined);
    await check('/operator');
  } finally {
    clearInterval(failing);
  }
  await page.getByText('2 clusters, all in sync.').waitFor();
}

/** Active sessions: a session, closed with a reason that its person reads. */
export async function walkWhoIsOn({ app, page, show, check }: Walk): Promise<void> {
  await show('/who');
  await page.getByText('No one is logged in through the gateway').waitFor();
  using bob = await personOfConsole(app, 'bob');
  const shell = bob.start([bob.target, 'echo up; exec sleep 60']);
  await shell.said;
  // It is told of by itself.
  await page.getByText('1 person in 1 session on 1 cluster').waitFor();
  const row = page.getByRole('row').filter({ hasText: 'bob' });
  assert.match(await row.innerText(), /alpha\s.*127\.0\.0\.1/s);
  await check('/who');
  await page.getByRole('button', { name: 'Close the session of bob' }).click();
  await page.getByLabel('Reason').fill('maintenance <b>now</b>');
  await page.getByRole('button', { name: 'Close the session', exact: true }).click();
  assert.match((await shell.ended).err, /maintenance <b>now<\/b>/);
  await page.getByText('No one is logged in through the gateway').waitFor();
}

/** Who did what: newest first, narrowed by the address, saved as it is shown. */
export async function walkAudit({ page, show, check }: Walk): Promise<void> {
  await show('/audit');
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
  await check('/audit');

  await page.getByLabel('Result').selectOption('Refused');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.waitForURL(/\?result=refused$/);
  await page.getByText('No entry matches.').waitFor();
  await show('/audit');
  await page.getByText('The latest entry is number').waitFor();

  await page.getByRole('textbox', { name: 'Person' }).fill('bob@physics.example');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.getByText('The newest match is').waitFor();
  assert.match(page.url(), /\?person=bob%40physics\.example$/);
  const ofBob = await numbers();
  assert.ok(ofBob.length > 0 && ofBob.length < all.length);
  await show('/audit?person=bob%40physics.example&filter=operatorCloseSession');
  await page.locator('tbody tr').nth(1).waitFor({ state: 'detached' });
  const [json, csv] = [await saved(page, 'Save as JSONL'), await saved(page, 'Save as CSV')];
  assert.equal(JSON.parse(json).reason, 'maintenance <b>now</b>');
  assert.equal(csv.trim().split('\r\n').length, 2);
  assert.match(csv, /root@physics\.example.*bob@physics\.example/);

  await show('/audit?person=nobody%40physics.example');
  await page.getByText('There is no account for nobody@physics.example').waitFor();
  await show(`/audit?before=${all.at(-1)}&cluster=%22`);
  await page.getByText(/There is no cluster/).waitFor();
  await show(`/audit?before=${all.at(0)}&from=nonsense`);
  await page.getByText(`number ${all[1]},`).waitFor();
  await page.getByRole('link', { name: 'Newest' }).click();
  await page.getByText('The latest entry is number').waitFor();
}

export async function saved(page: Page, button: string): Promise<string> {
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: button }).click();
  return readFileSync(await (await download).path(), 'utf8');
}

/** The pages are in no menu of who may not read them, and say so to who comes by address. */
export async function checkRefused({ page, show }: Walk): Promise<void> {
  assert.equal(await page.getByRole('link', { name: 'Audit' }).count(), 0);
  assert.equal(await page.getByRole('link', { name: 'Active sessions' }).count(), 0);
  await show('/audit');
  await page.getByText('operators with the staff key staff.audit').waitFor();
  await show('/who');
  await page.getByText('operators with the staff key staff.read').waitFor();
  // An address may have anything in it.
  await show('/members?filter=5&org=7');
  await page.getByRole('table').waitFor();
}
