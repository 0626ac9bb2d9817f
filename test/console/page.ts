/** Pages of the console in a real browser: signing in, going from one to the next, and what holds for every one. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before } from 'node:test';
import type { BrowserContext, Cookie, Page } from 'playwright-core';
import { consoleFiles } from '../../src/lib/packaging.ts';
import { type Browser, noBrowser, openBrowser } from '../support/browser.ts';
import { unless } from '../support/unless.ts';
import { type ConsoleApp, signIn, startConsoleApp } from './harness.ts';

type Use = (page: Page, complaints: string[]) => Promise<void>;

/** A test that needs the browser. */
export const test = unless(noBrowser);

let sites = 0;

/** A console, looked at with a browser. */
class Site implements AsyncDisposable {
  readonly app: ConsoleApp;
  /** Not its address, which may have been another's. */
  readonly #number: number;
  readonly #browser: Browser;
  readonly #cookies = new Map<string, Cookie[]>();
  /** By person, the page that they used last. */
  readonly #left = new Map<string, Page>();

  constructor(app: ConsoleApp, browser: Browser) {
    this.app = app;
    this.#browser = browser;
    sites += 1;
    this.#number = sites;
  }

  /**
   * A page that a person is signed in with, and what the browser complained of meanwhile. `prepare` has it before it loads
   * anything.
   */
  as(name: string, use: Use, prepare?: (page: Page) => void): Promise<void> {
    return this.#with(name, use, false, prepare);
  }

  /** The page that the person used last, at `/` and with whatever is kept in it; a new one where it is closed by now. */
  again(name: string, use: Use): Promise<void> {
    return this.#with(name, use, true);
  }

  async #with(name: string, use: Use, isAgain: boolean, prepare?: (page: Page) => void): Promise<void> {
    const own = `${this.#number} ${name}`;
    await this.#browser.withContext(own, async (context, last) => {
      const left = isAgain && last === own ? this.#left.get(name) : undefined;
      if (last !== own) await this.#begin(context, name);
      if (!left) await this.#beSignedIn(context, name);
      const page = left ?? (await context.newPage());
      try {
        await page.setViewportSize(wide);
        prepare?.(page);
        await watch(page, async (complaints) => {
          if (left) await show(page, '/');
          else await page.goto(this.app.url);
          await page.getByText('Live', { exact: true }).waitFor();
          await use(page, complaints);
        });
        page.removeAllListeners();
        await page.unrouteAll();
        this.#left.set(name, page);
      } finally {
        this.#cookies.set(name, await context.cookies());
        await closeOthers(context, page);
      }
    });
  }

  /** As the person left it; what another kept is gone. */
  async #begin(context: BrowserContext, name: string): Promise<void> {
    // A checkout builds the pages when they are first asked for, which takes its time on a busy machine.
    await consoleFiles();
    // While a page is open, the process stays, and with it what it has compiled.
    const [page = await context.newPage()] = context.pages();
    await closeOthers(context);
    await page.goto(`${this.app.url}/icon.svg`);
    await page.evaluate('localStorage.clear()');
    await context.clearCookies();
    await context.addCookies(this.#cookies.get(name) ?? []);
  }

  async #beSignedIn(context: BrowserContext, name: string): Promise<void> {
    const headers = { 'x-andromeda-console': 'idle', 'sec-fetch-site': 'same-origin' };
    if ((await context.request.get(`${this.app.url}/session`, { headers })).ok()) return;
    const { cookies } = await signIn(this.app, name);
    const own = [...cookies].map(([of, value]) => [...of.split(' '), value] as const);
    await context.addCookies(
      own.map(([url = '', cookie = '', value = '']) => ({ url, name: cookie, value })),
    );
  }

  /** A page where no person is signed in. */
  async withStranger(use: Use): Promise<void> {
    await consoleFiles();
    await this.#browser.withPage((page) => watch(page, (complaints) => use(page, complaints)), wide, true);
  }

  async [Symbol.asyncDispose]() {
    for (const page of this.#left.values()) await page.close();
    await this.#browser[Symbol.asyncDispose]();
  }
}

export async function openSite(app: ConsoleApp, options?: Parameters<typeof openBrowser>[0]): Promise<Site> {
  return new Site(app, await openBrowser(options));
}

/** A console for all tests of a file, and a browser; they start before the first one and end after the last one. */
export function useConsole(
  options?: Parameters<typeof startConsoleApp>[0],
  prepare?: (app: ConsoleApp) => Promise<void>,
) {
  let site: Site | undefined;
  before(async () => {
    if (noBrowser) return;
    const browser = await openBrowser();
    site = new Site(await startConsoleApp(options), browser);
    // Not in a hook of the file: the hooks of a file that is run by itself begin together.
    await prepare?.(site.app);
  });
  after(async () => {
    await site?.[Symbol.asyncDispose]();
    await site?.app[Symbol.asyncDispose]();
  });
  const started = () => site ?? assert.fail('it is there in tests only');
  return {
    get app() {
      return started().app;
    },
    as: (...given: Parameters<Site['as']>) => started().as(...given),
    again: (...given: Parameters<Site['again']>) => started().again(...given),
    withStranger: (use: Use) => started().withStranger(use),
  };
}

/** All but the one that keeps the process. */
async function closeOthers(context: BrowserContext, but?: Page): Promise<void> {
  const [, ...opened] = context.pages();
  for (const one of opened) if (one !== but) await one.close();
}

const wide = { width: 1280, height: 800 };

async function watch(page: Page, use: (complaints: string[]) => Promise<void>): Promise<void> {
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (/policy|trusted|refused to/i.test(message.text())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  await use(complaints);
  assert.deepEqual(complaints, []);
}

/** Goes to a page as a link does, without loading everything again. Each page has a heading of its own. */
export async function show(page: Page, path: string): Promise<void> {
  const heading = page.getByRole('heading', { level: 1 });
  const isOther = new URL(page.url()).pathname !== path.split('?')[0];
  const old = isOther ? await heading.innerText() : undefined;
  await page.evaluate(
    `history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`,
  );
  if (old === undefined) return await heading.waitFor();
  const whole = new RegExp(`^${old.replace(/[^\w ]/g, '\\$&')}$`);
  await heading.filter({ hasNotText: whole }).waitFor();
}

/** Faults of a page's layout: it is wider than the screen, or a button lies outside of it. */
const outOfSight = `(() => {
  const wide = document.documentElement.scrollWidth;
  // What sorts a column moves with it, in a table that is wider than the screen; the buttons of its rows stay.
  const buttons = [...document.querySelectorAll('main :is(button, .button, summary)')].filter(
    (one) => !one.closest('thead'),
  );
  const beside = buttons.filter((one) => {
    const { left, right, width } = one.getBoundingClientRect();
    return one.checkVisibility() && width > 0 && (left < 0 || right > innerWidth + 0.5);
  });
  const rows = [...document.querySelectorAll('tbody tr')];
  const tall = rows.filter((one) => innerWidth > 640 && one.getBoundingClientRect().height > 450);
  return [
    ...(wide > innerWidth ? [wide + ' wide'] : []),
    ...beside.map((one) => 'beside the screen: ' + one.textContent.slice(0, 80)),
    ...tall.map((one) => 'a row too tall: ' + one.textContent.slice(0, 80)),
  ];
})()`;

/** At these widths of a laptop and a phone, everything of the page that is shown can be reached without scrolling sideways. */
export async function checkLayout(page: Page, path: string): Promise<void> {
  for (const width of [390, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    assert.deepEqual(await page.evaluate(outOfSight), [], `${path}, ${width} wide`);
  }
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** Until the page has what it asked for. Its policy lets nothing wait in it. */
export async function untilRead(page: Page): Promise<void> {
  const reading = page.locator('.loading');
  while ((await reading.count()) > 0) await reading.first().waitFor({ state: 'detached' });
}

/** Until the form that has the focus can be sent: before, Enter does nothing. */
export async function untilReady(page: Page): Promise<void> {
  await page.locator('form.write:focus-within [type=submit]:not([aria-disabled=true])').waitFor();
}

/** What depends on colours. */
const ofColours = ['color-contrast', 'link-in-text-block'];

/** Axe finds nothing in either scheme, and the page fits a narrow screen. */
export async function checkPage(page: Page, path: string): Promise<void> {
  await page.setViewportSize(wide);
  await untilRead(page);
  if (!(await page.evaluate(`'axe' in window`))) await page.evaluate(axe);
  for (const [colorScheme, runOnly] of [
    ['light', { type: 'tag', values: rules }],
    ['dark', { type: 'rule', values: ofColours }],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    // No rule that runs needs files of the page.
    const options = JSON.stringify({ runOnly, resultTypes: ['violations'], preload: false });
    const found = (await page.evaluate(
      `axe.run(${options}).then(({ violations }) =>
        violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.html).join(' ')))`,
    )) as string[];
    assert.deepEqual(found, [], `${path}, ${colorScheme}`);
  }
  await page.setViewportSize({ width: 320, height: 640 });
  const width = await page.evaluate('document.documentElement.scrollWidth');
  assert.ok(Number(width) <= 320, `${path} is ${width} wide on 320`);
  await page.setViewportSize(wide);
}
