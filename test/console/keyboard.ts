/** A person without a mouse: keys and typing, nothing else, and after each key it must be seen where the focus is. */
import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';

export interface Keyboard {
  press(key: string): Promise<void>;
  /** Puts it into what has the focus, in place of what it has, at once: each letter costs a drawing of the page. */
  type(text: string): Promise<void>;
  /** Goes on with Tab (or back, with Shift+Tab) until this has the focus. */
  tabTo(target: Locator, key?: 'Tab' | 'Shift+Tab'): Promise<void>;
  /** Goes there, and presses it. */
  activate(target: Locator, key?: 'Enter' | 'Space'): Promise<void>;
  /** Waits until this has the focus by itself, as a person expects it after what was done last. */
  expectFocus(target: Locator): Promise<void>;
  /** Goes around in a dialog both ways: the focus stays in it. */
  checkTrap(dialog: Locator): Promise<void>;
}

const mostStops = 120;

/** What is wrong with the place of the focus; '' where nothing is. Behind the last stop the browser's own bar has it. */
const faultOfFocus = `(() => {
  const one = document.activeElement;
  if (one === null || one === document.body) return '';
  const style = getComputedStyle(one);
  const name = one.outerHTML.slice(0, 160);
  // In a date's field the button of its calendar has it, and the field has not.
  if (!one.matches(':focus-visible, input:focus-within:not(:focus)')) return 'the focus is not shown on ' + name;
  const hasRing = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
  if (!hasRing && style.boxShadow === 'none') return 'no ring around ' + name;
  const box = one.getBoundingClientRect();
  const [left, right] = [Math.max(0, box.left), Math.min(innerWidth, box.right)];
  const [top, bottom] = [Math.max(0, box.top), Math.min(innerHeight, box.bottom)];
  if (left >= right || top >= bottom) return 'out of sight: ' + name;
  const over = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return over === null || one.contains(over) || over.contains(one) ? '' : 'covered: ' + name;
})()`;

/** In the page, whose types are not known here. */
function focusOf(one: { isConnected: boolean }): 'focused' | 'other' | 'gone' {
  const { document } = globalThis as unknown as { document: { activeElement: unknown } };
  if (one === document.activeElement) return 'focused';
  return one.isConnected ? 'other' : 'gone';
}
const focused = (page: Page) => page.locator(':focus');
const whereFocusIs = (page: Page) => page.evaluate('document.activeElement?.outerHTML.slice(0, 160)');

/** Goes on with the Tab key until this has the focus. */
export async function tabTo(
  page: Page,
  target: Locator,
  key: 'Tab' | 'Shift+Tab' = 'Tab',
  check?: () => Promise<void>,
): Promise<void> {
  await target.waitFor();
  let handle = await target.elementHandle();
  for (let left = mostStops; left > 0; left -= 1) {
    let state = await handle?.evaluate(focusOf);
    if (state === 'gone') {
      handle = await target.elementHandle();
      state = await handle?.evaluate(focusOf);
    }
    if (state === 'focused') return;
    await page.keyboard.press(key);
    await check?.();
  }
  assert.fail(`${key} does not get to ${target}; it is at ${await whereFocusIs(page)}`);
}

export async function useKeyboard(page: Page): Promise<Keyboard> {
  // Whatever a mouse or a finger would do is no part of this.
  await page.addInitScript(
    `for (const kind of ['pointerdown', 'mousedown', 'touchstart'])
       addEventListener(kind, () => { throw new Error('not by the keyboard: ' + kind); }, true);`,
  );
  const { keyboard } = page;

  /** What a page shows while it scrolls or is drawn anew passes; what stays is a fault. */
  async function checkFocus(): Promise<void> {
    for (let left = 20; left > 0; left -= 1) {
      if ((await page.evaluate(faultOfFocus)) === '') return;
      await page.waitForTimeout(50);
    }
    const fault = await page.evaluate(faultOfFocus);
    if (fault !== '') assert.fail(String(fault));
  }

  return {
    press: (key) => keyboard.press(key),
    async type(text) {
      await keyboard.press('Control+a');
      await keyboard.insertText(text);
    },
    tabTo: (target, key) => tabTo(page, target, key, checkFocus),
    async activate(target, key = 'Enter') {
      await tabTo(page, target, 'Tab', checkFocus);
      // A form that waits for its plan takes nothing yet.
      await target.and(page.locator(':not([aria-disabled=true])')).waitFor();
      await keyboard.press(key);
    },
    async expectFocus(target) {
      await target
        .and(focused(page))
        .waitFor()
        .catch(async (error: Error) => {
          assert.fail(`${error.message}; it is at ${await whereFocusIs(page)}`);
        });
      await checkFocus();
    },
    async checkTrap(dialog) {
      const outside = page.locator(':focus:not(dialog[open] *):not(dialog[open])');
      for (const key of ['Tab', 'Shift+Tab'] as const) {
        for (let left = 12; left > 0; left -= 1) {
          await keyboard.press(key);
          await checkFocus();
          assert.equal(await outside.count(), 0, `${key} leaves ${dialog}`);
        }
      }
      await dialog.waitFor();
    },
  };
}
