/** A real Chromium, where the machine has one. */
import { existsSync } from 'node:fs';
import { type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { limit } from './limit.ts';

/** The one without windows takes half as much of the processor, and does the same with a page. */
const headless = '/usr/bin/chromium-headless-shell';
const whole = '/usr/bin/chromium';

/** Why a test that needs the browser is skipped; false where it is there. */
export const noBrowser =
  existsSync(headless) || existsSync(whole) ? false : 'chromium-headless-shell is not installed';

/** The same of a test for which it has to be the browser that people have. */
export const noWholeBrowser = existsSync(whole) ? false : 'chromium is not installed';

/** A browser, without windows the one that all of a process share. */
export interface Browser extends AsyncDisposable {
  /** Opens a page, without JavaScript unless told, with nothing kept from another one, and closes all of it afterwards. */
  withPage<T>(use: (page: Page) => Promise<T>, viewport?: Viewport, javaScriptEnabled?: boolean): Promise<T>;
  /**
   * What a person's pages share, such as cookies and the files that they loaded. It is the last one's, `last`, as they left
   * it, where nobody has it: its process takes a third of a new one's time to load pages.
   */
  withContext<T>(of: string, use: (context: BrowserContext, last?: string) => Promise<T>): Promise<T>;
}

interface Viewport {
  width: number;
  height: number;
}

let shared: Promise<Browser> | undefined;
let sharing = 0;

export async function openBrowser({ isWhole = false } = {}): Promise<Browser> {
  if (isWhole) return launch(whole);
  shared ??= launch(existsSync(headless) ? headless : whole);
  sharing += 1;
  return { ...(await shared), [Symbol.asyncDispose]: giveBack };
}

/** The next file of the process may want it. */
async function giveBack(): Promise<void> {
  sharing -= 1;
  const closing = shared;
  setTimeout(async () => {
    if (sharing > 0 || shared !== closing) return;
    shared = undefined;
    await (await closing)?.[Symbol.asyncDispose]();
  }, 2_000);
}

async function launch(executablePath: string): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      // A process for each page would compile what is on all of them anew.
      '--renderer-process-limit=1',
    ],
  });
  const openContext = async (options: BrowserContextOptions = {}) => {
    // What moves is drawn anew all the time that a test waits.
    const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
    context.setDefaultTimeout(limit(45_000));
    return context;
  };
  const free: { context: BrowserContext; last: string }[] = [];
  return {
    async withContext(of, use) {
      const own = free.findIndex(({ last }) => last === of);
      // Whoever's was free last, where there is none of their own.
      const [{ context, last } = { context: await openContext(), last: undefined }] = free.splice(own, 1);
      try {
        const result = await use(context, last);
        free.push({ context, last: of });
        return result;
      } catch (error) {
        await context.close();
        throw error;
      }
    },
    async withPage(use, viewport = { width: 1000, height: 800 }, javaScriptEnabled = false) {
      const context = await openContext({ viewport, javaScriptEnabled });
      try {
        return await use(await context.newPage());
      } finally {
        await context.close();
      }
    },
    [Symbol.asyncDispose]: () => browser.close(),
  };
}

/**
 * Takes the browser's cookies away. The page is left first: one of the console goes to the sign-in by itself when a read is
 * refused, which would break off the test's next navigation.
 */
export async function clearCookies(page: Page): Promise<void> {
  await page.goto('about:blank');
  await page.context().clearCookies();
}

/** One page in a browser of its own. */
export async function withPage<T>(
  use: (page: Page) => Promise<T>,
  viewport?: Viewport,
  javaScriptEnabled?: boolean,
): Promise<T> {
  await using browser = await openBrowser();
  return await browser.withPage(use, viewport, javaScriptEnabled);
}
