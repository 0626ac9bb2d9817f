/** Every page, and every read behind it that fails: the page says so, and counts nothing. */
import assert from 'node:assert/strict';
import type { Page, Request } from 'playwright-core';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import { alpha, becomes, beta, physics } from '../support/app.ts';
import { newPublicKey } from '../support/ssh-keys.ts';
import { signIn } from './harness.ts';
import { show, untilRead, useConsole } from './page.ts';

const lab: Lab = {
  ...physics,
  users: [...(physics.users ?? []), { email: 'ada@physics.example', staff: ['staff.operate'] }],
};

/** A page as it is in src/console/app/routes.tsx. */
interface Looked {
  /** An address of it. */
  at?: string;
  /** What its sentence says, and the reads that this rests on. */
  said?: RegExp;
  of?: RegExp;
}

export const pages: Record<string, Looked> = {
  '/': {},
  '/access': {},
  '/keys': { said: /active key/, of: /ssh-keys/ },
  '/clusters': { said: /in service/, of: /clusters\?/ },
  '/clusters/$clusterId': { at: `/clusters/${alpha}`, said: /GPUs/, of: /(usage|options)\?/ },
  '/clusters/$clusterId/slurm': { at: `/clusters/${alpha}/slurm`, of: /status\?/ },
  '/clusters/$clusterId/people': { at: `/clusters/${alpha}/people`, said: /have access/, of: /review/ },
  '/gpus': { said: /on \d+ nodes of/, of: /usage/ },
  '/storage': { said: /\d volumes? on/, of: /./ },
  '/members': { said: /owner or admin/, of: /review\?(?!due)/ },
  '/members/$userId': { at: '/members/BOB', said: /clusters?\./, of: /access\?/ },
  '/members/change': { at: '/members/change?people=BOB', said: /./, of: /access\?/ },
  '/requests': { said: /pending request/, of: /state=open/ },
  '/operator': { said: /clusters?/, of: /operator\/clusters/ },
  '/operator/machines': { said: /machines?:/, of: /machines/ },
  '/operator/people': { said: /staff/, of: /people/ },
  '/operator/service': { said: /replaced/, of: /installation/ },
  '/who': { said: /active sessions/i, of: /operator\/sessions/ },
  '/past': { said: /session/, of: /past/ },
  '/past/mine': { said: /session/, of: /past/ },
  '/audit': { said: /./, of: /audit/ },
  '/security': { said: /signed in with/, of: /^\/sessions/ },
};

/** Reads that only give something a nicer name, or a page its place in the menu: without them it says the same. */
const decorative = [
  /\/api\/business\/organizations\/[^/]+$/,
  /\/access-requests\?state=open$/,
  /\/api\/platform\/clusters\?/,
  /\/api\/business\/me$/,
  /\/permission-profiles$/,
  /\/operator\/clusters$/,
];
/** Where such a read is what the page is about. */
const essential: Record<string, RegExp> = {
  '/clusters': /\/api\/platform\/clusters\?/,
  '/gpus': /\/api\/platform\/clusters\?/,
  '/requests': /\/access-requests\?state=open$/,
  '/operator': /\/operator\/clusters$/,
  '/operator/machines': /\/operator\/clusters$/,
  '/storage': /\/operator\/clusters$/,
};

const injected = { code: 'internal', retryable: false };

/**
 * For the tests of a file: on a page, one read after the other fails: all, or those that its sentence rests on. Each is said, and
 * nothing is counted.
 */
export function useFailures(): (which: 'all' | 'counted') => Promise<void> {
  let bob = '';
  const site = useConsole({ lab }, async (app) => {
    const signedIn = await signIn(app, 'bob');
    await signedIn.ask('business/me/ssh-keys', { body: { public_key: newPublicKey() } });
    const me = await signedIn.ask('business/me');
    bob = me.user.id;
    const body = { permissions: ['clusters.kubernetes'], cluster_id: beta };
    await signedIn.ask(`business/organizations/${me.default_org_id}/access-requests`, { body });
  });
  /** The page reads again whatever it shows. */
  const readEverything = () =>
    site.app.test.app.store.write(async (tx) => tx.changed({ kind: 'everything' }));
  return (which) =>
    site.as('ada', async (page) => {
      let failing: string | undefined;
      await page.route(
        (url) => addressOf(url) === failing,
        (route) => route.fulfill({ status: 500, json: { ...injected, message: `Injected: ${failing}` } }),
      );
      const alertOf = (read: string) =>
        page
          .getByRole('alert')
          .filter({ hasText: `Injected: ${read}` })
          .first();
      for (const [name, { at = name, said, of }] of Object.entries(pages)) {
        await show(page, at.replace('BOB', bob));
        await untilRead(page);
        const sentence = page.locator('.sentence').filter({ hasText: said ?? /./ });
        if (said) await sentence.first().waitFor();
        const reads = await readsOf(page, name, { of, readEverything });
        const counted = reads.filter((one) => of?.test(one));
        assert.ok(of === undefined || counted.length > 0, name);
        // It was read once, and cannot be read again; after that it can, and all is as before.
        for (failing of which === 'all' ? reads : counted) {
          await readEverything();
          await alertOf(failing)
            .waitFor()
            .catch(() => assert.fail(`${name}: nothing is said of ${failing}`));
          if (said && of?.test(failing)) assert.equal(await sentence.count(), 0, `${name}, ${failing}`);
        }
        failing = undefined;
        await readEverything();
        await alertOf('').waitFor({ state: 'detached' });
      }
    });
}

const addressOf = ({ pathname, search }: URL) => `${pathname}${search}`;

/** What the page reads, of what it would be nothing without. */
async function readsOf(
  page: Page,
  name: string,
  { of = /./, readEverything }: { of: RegExp | undefined; readEverything: () => Promise<void> },
): Promise<string[]> {
  const asked = new Set<string>();
  const underWay = new Set<Request>();
  const begin = (request: Request) => {
    const url = new URL(request.url());
    if (request.method() !== 'GET' || !/^\/(api|sessions)/.test(url.pathname)) return;
    underWay.add(request);
    const address = addressOf(url);
    if (essential[name]?.test(address) || !decorative.some((one) => one.test(address))) asked.add(address);
  };
  const end = (request: Request) => underWay.delete(request);
  page.on('request', begin).on('requestfinished', end).on('requestfailed', end);
  await readEverything();
  await becomes(() => underWay.size === 0 && [...asked].some((address) => of.test(address)), true);
  page.off('request', begin).off('requestfinished', end).off('requestfailed', end);
  return [...asked];
}
