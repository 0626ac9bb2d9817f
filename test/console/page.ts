/** Pages of the console in a real browser: signing in, going from one to the next, and what holds for every one. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { consoleFiles } from '../../src/lib/packaging.ts';
import type { Browser } from '../support/browser.ts';
import { type ConsoleApp, password } from './harness.ts';

export type WithPerson = (
  name: string,
  use: (page: Page, complaints: string[]) => Promise<void>,
) => Promise<void>;

/** A page that a person is signed in with, and what the browser complained of meanwhile. */
export async function withPageOf(
  { app, browser }: { app: ConsoleApp; browser: Browser },
  name: string,
  use: (page: Page, complaints: string[]) => Promise<void>,
  viewport = { width: 1280, height: 800 },
): Promise<void> {
  // A checkout builds the pages when they are first asked for, which takes its time on a busy machine.
  await consoleFiles();
  await browser.withPage(
    async (page) => {
      const complaints: string[] = [];
      page.on('console', (message) => {
        if (/policy|trusted|refused to/i.test(message.text())) complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));
      await page.goto(app.url);
      await page.getByLabel('Email').fill(`${name}@physics.example`);
      await page.getByLabel('Password').fill(password);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText('Live', { exact: true }).waitFor();
      await use(page, complaints);
      assert.deepEqual(complaints, []);
    },
    viewport,
    true,
  );
}

/** Goes to a page as a link does, without loading everything again. Each page has a heading of its own. */
export async function show(page: Page, path: string): Promise<void> {
  const heading = page.getByRole('heading', { level: 1 });
  const isOther = new URL(page.url()).pathname !== path.split('?')[0];
  const old = isOther ? await heading.innerText() : undefined;
  await page.evaluate(
    `history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`,
  );
  await (old === undefined ? heading : heading.filter({ hasNotText: old })).waitFor();
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

/** Axe finds nothing in either scheme, and the page fits a narrow screen. */
export async function checkPage(page: Page, path: string): Promise<void> {
  await page.setViewportSize({ width: 1280, height: 800 });
  await untilRead(page);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    await page.evaluate(axe);
    const found = (await page.evaluate(
      `axe.run({ runOnly: { type: 'tag', values: ${JSON.stringify(rules)} } }).then(({ violations }) =>
        violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.html).join(' ')))`,
    )) as string[];
    assert.deepEqual(found, [], `${path}, ${colorScheme}`);
  }
  await page.setViewportSize({ width: 320, height: 640 });
  const width = await page.evaluate('document.documentElement.scrollWidth');
  assert.ok(Number(width) <= 320, `${path} is ${width} wide on 320`);
  await page.setViewportSize({ width: 1280, height: 800 });
}
