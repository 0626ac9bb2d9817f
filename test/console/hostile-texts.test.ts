/** Texts that people and clusters write, as long and as hostile as they may be: no page loses its shape by them. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import { recordObserveFailure } from '../../src/store/clusters/cluster-sides.ts';
import { findPersonByEmail } from '../../src/store/people/people.ts';
import { setSimulated } from '../platform/support.ts';
import { alpha, beta, eventually, physics } from '../support/app.ts';
import { signIn } from './harness.ts';
import { checkLayout, show, test, untilRead, useConsole } from './page.ts';

/** Everything behind it runs from right to left, where it is not kept apart. */
const override = '\u202e';
const name = `${override}${'W'.repeat(154)}`;
const address = `${'m'.repeat(60)}@${'w'.repeat(60)}.physics.${'w'.repeat(24)}.example`;
const reason = `${override}${'W'.repeat(3_000)} ${'long '.repeat(1_400)}`;
const [first, ...others] = physics.organizations ?? [];
const lab = {
  ...physics,
  users: [
    { email: 'root@physics.example', name: 'Root', staff: ['staff.operate'] },
    { email: 'ada@physics.example', name, staff: ['staff.operate'] },
    { email: 'eve@physics.example', name },
    { email: address, name },
  ],
  organizations: [
    {
      ...first,
      name,
      members: [...(first?.members ?? []), { email: address, role: 'member', username: 'longest' }],
    },
    ...others,
  ],
} as typeof physics;

const site = useConsole({ lab });

test('texts of any length and direction leave every page its width, its rows and its buttons', async () => {
  const { app: service } = site.app.test;
  await setSimulated(site.app.test, alpha, {
    nodesDrained: 1,
    drainReason: reason,
    schedulerFault: { reason: 'ControllerDown', message: reason },
  });
  await recordObserveFailure(service.store, beta, 'kubernetes', reason);
  const eve = await signIn(site.app, 'eve');
  const why = { reason: Buffer.from(`${override}${'W'.repeat(300)}`).toString('latin1') };
  const { default_org_id: org } = await eve.ask('business/me');
  const asked = { ...why, body: { permissions: ['clusters.ssh'], hours: 24, cluster_id: alpha } };
  const { id } = await eve.ask(`business/organizations/${org}/access-requests`, asked);
  await eve.ask(`business/me/access-requests/${id}/withdraw`, { ...why, body: {} });
  await eve.ask(`business/organizations/${org}/access-requests`, asked);
  const longest = await eventually(
    () => findPersonByEmail(service.store.read, address),
    (one) => one !== undefined,
  );
  const pages = [
    ...['/', '/access', '/keys', '/security', '/members', '/requests', '/clusters', '/gpus', '/storage'],
    ...[`/clusters/${alpha}`, `/clusters/${beta}`, `/clusters/${alpha}/people`, `/clusters/${beta}/people`],
    ...[`/members/${longest?.id}`, `/members/change?people=${longest?.id}`, '/who', '/past', '/past/mine'],
    ...['/audit', '/operator', '/operator/machines', '/operator/people', '/operator/service'],
  ];
  await site.as('ada', async (page) => {
    for (const path of pages) {
      await show(page, path);
      await untilRead(page);
      await checkLayout(page, path);
      assert.deepEqual(await page.evaluate(notApart), [], path);
    }
    await readWhole(page);
  });
});

/** Elements whose foreign text is followed by other text that it turns around. */
const notApart = `(() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    if (!text.data.includes('\u202e')) continue;
    let last = text;
    const isApart = (one) => /isolate|plaintext/.test(getComputedStyle(one).unicodeBidi);
    for (; !last.nextSibling?.textContent.trim(); last = last.parentElement)
      if (last instanceof Element && isApart(last)) break;
    if (!(last instanceof Element && isApart(last))) found.push(text.parentElement.outerHTML.slice(0, 200));
  }
  return found;
})()`;

/** What is cut can be read. */
async function readWhole(page: Page): Promise<void> {
  await show(page, `/clusters/${alpha}`);
  const row = page.getByRole('row').filter({ hasText: 'alpha-2' });
  const { length } = await row.innerText();
  assert.ok(length < 500, `${length} characters`);
  await row.getByRole('button', { name: 'Show all' }).click();
  await row.getByRole('button', { name: 'Show less' }).waitFor();
  assert.ok((await row.innerText()).length > 5_000);
  const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
  assert.ok(Number(wide) <= 0, `${wide} too wide`);
}
