/** What a person may not see, the console does not ask for: every page, as everybody who may do something else. */
import assert from 'node:assert/strict';
import type { Page } from 'playwright-core';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { findPersonByEmail } from '../../src/store/people/people.ts';
import { alpha, becomes, beta, physics } from '../support/app.ts';
import { useConsole } from './page.ts';

const [first, second] = physics.organizations ?? [];
if (!first || !second) throw new Error('unreachable');
const member = (name: string, ...permissions: string[]) => ({
  email: `${name}@physics.example`,
  role: 'member' as const,
  username: name,
  permissions,
});
/** Everybody may do something else. */
const lab = {
  ...physics,
  users: [
    { email: 'root@physics.example', staff: ['staff.operate'] },
    { email: 'reader@physics.example', staff: ['staff.read'] },
    { email: 'auditor@physics.example', staff: ['staff.audit'] },
    { email: 'nobody@physics.example' },
  ],
  organizations: [
    {
      ...first,
      members: [
        ...(first.members ?? []),
        member('configures', 'clusters.configure'),
        member('manages', 'members.manage'),
        member('granted'),
        member('elsewhere'),
      ],
    },
    second,
  ],
  clusters: [
    ...(physics.clusters ?? []),
    { name: 'gamma', organization: 'chemistry', scheduler: 'kubernetes', simulated: { computeNodes: 1 } },
  ],
  grants: [
    { user: 'granted@physics.example', cluster: 'beta', relation: 'kubernetes.viewer' },
    { user: 'elsewhere@physics.example', cluster: 'gamma', relation: 'kubernetes.viewer' },
  ],
} as Lab;

const staff = new Set(['reader', 'auditor']);
/** Everybody, with a sentence of a page that they may see and of one that they may not. */
export const everybody: [name: string, seen: string, sentence: RegExp, unseen?: string, why?: RegExp][] = [
  ['ada', '/members', /7 members/, '/audit', /operators with the staff key staff\.audit/],
  [
    'eve',
    '/clusters',
    /You cannot see any clusters/,
    `/clusters/${alpha}`,
    /no such cluster, or you do not have access/,
  ],
  ['configures', `/clusters/${alpha}/slurm`, /No configuration yet/, '/requests', /members\.manage/],
  ['manages', '/requests', /No pending requests/, `/clusters/${alpha}/slurm`, /clusters\.configure/],
  ['granted', '/clusters', /1 of 1 cluster is in service/, `/clusters/${alpha}`, /no such cluster/],
  ['elsewhere', '/clusters', /You cannot see any clusters/, `/clusters/${beta}`, /no such cluster/],
  ['reader', '/operator', /in sync/, '/audit', /staff\.audit/],
  ['auditor', '/audit', /The latest entry is number/, '/operator/machines', /staff\.read/],
  ['nobody', '/keys', /You have no active keys/, '/access', /You are not in an organization/],
];

/** One rule keeps all pages of operators from everybody else: of those, one is enough. */
function pagesOf(bob: string, self: string, isStaff: boolean): string[] {
  return [
    ...['/', '/access', '/keys', '/clusters', `/clusters/${alpha}`, `/clusters/${beta}`],
    ...[`/clusters/${alpha}/slurm`, `/clusters/${alpha}/people`],
    ...['/members', `/members/${bob}`, `/members/${self}`, `/members/change?people=${bob}`, '/requests'],
    ...(isStaff ? ['/machines', '/people', '/service'] : []).map((one) => `/operator${one}`),
    '/operator',
    ...['/past', '/past/mine', '/audit'],
  ];
}

/** Goes there as a link does, and waits until the page has asked for all that it asks for. */
async function settle(page: Page, path: string, underWay: ReadonlySet<unknown>): Promise<void> {
  await page.evaluate(
    `new Promise((done) => {
       history.pushState(null, '', ${JSON.stringify(path)});
       dispatchEvent(new PopStateEvent('popstate'));
       requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
     })`,
  );
  await becomes(async () => underWay.size + (await page.locator('.loading').count()), 0);
}

/** For the tests of a file: a console where the pages are walked as one of `everybody`, `isWhole` or only those with sentences. */
export function useWalks(): (one: (typeof everybody)[number], isWhole: boolean) => Promise<void> {
  const site = useConsole({ lab });
  const idOf = async (name: string) =>
    (await findPersonByEmail(site.app.test.app.store.read, `${name}@physics.example`))?.id ?? '';
  return async ([name, seen, sentence, unseen, why], isWhole) => {
    const pages = isWhole ? pagesOf(await idOf('bob'), await idOf(name), staff.has(name)) : [];
    const underWay = new Set<unknown>();
    const refused: string[] = [];
    let at = '/';
    const watch = (page: Page) => {
      page.on('request', (request) => {
        if (!request.url().endsWith('/events')) underWay.add(request);
      });
      page.on('requestfailed', (request) => underWay.delete(request));
      page.on('requestfinished', (request) => underWay.delete(request));
      page.on('response', (response) => {
        const { pathname, search } = new URL(response.url());
        if (response.status() >= 400) refused.push(`${at}: ${response.status()} ${pathname}${search}`);
      });
    };
    const walk = async (page: Page) => {
      for (at of pages) await settle(page, at, underWay);
      await settle(page, seen, underWay);
      await page.getByText(sentence).first().waitFor();
      if (unseen !== undefined && why !== undefined) {
        await settle(page, unseen, underWay);
        await page.getByText(why).first().waitFor();
      }
      assert.deepEqual(refused, [], name);
    };
    await site.as(name, walk, watch);
  };
}
