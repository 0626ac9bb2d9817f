/** A real Chromium, where the machine has one. */
import { existsSync } from 'node:fs';
import { chromium, type Page } from 'playwright-core';

/** The one without windows takes half as much of the processor, and does the same with a page. */
const headless = '/usr/bin/chromium-headless-shell';
const whole = '/usr/bin/chromium';

/** Why a test that needs the browser is skipped; false where it is there. */
export const noBrowser =
  existsSync(headless) || existsSync(whole) ? false : 'chromium-headless-shell is not installed';

/** The same of a test for which it has to be the browser that people have. */
export const noWholeBrowser = existsSync(whole) ? false : 'chromium is not installed';

/** A browser that several tests of a file share. */
export interface Browser extends AsyncDisposable {
  /** Opens a page, without JavaScript unless told, with nothing kept from another one, and closes all of it afterwards. */
  withPage<T>(use: (page: Page) => Promise<T>, viewport?: Viewport, javaScriptEnabled?: boolean): Promise<T>;
}

interface Viewport {
  width: number;
  height: number;
}

export async function openBrowser({ isWhole = false } = {}): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: !isWhole && existsSync(headless) ? headless : whole,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  return {
    async withPage(use, viewport = { width: 1000, height: 800 }, javaScriptEnabled = false) {
      const context = await browser.newContext({ viewport, javaScriptEnabled });
      try {
        // A machine that runs all tests at once takes its time.
        context.setDefaultTimeout(45_000);
        return await use(await context.newPage());
      } finally {
        await context.close();
      }
    },
    [Symbol.asyncDispose]: () => browser.close(),
  };
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
