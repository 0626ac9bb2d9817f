/**
 * Where the focus goes when what had it is gone, and on another page: a person who uses the keyboard continues
 * there, and does not start at the top again.
 */
import type { AnyRouter } from '@tanstack/react-router';

const containers = 'dialog, .panel, .request, .step, .page, main';

/** What had the focus last and what was around it, the innermost first. */
let trail: Element[] = [];
let isPointer = false;

/** Keeps the focus on the page, from the first call on. */
export function keepFocus(router: AnyRouter): void {
  document.addEventListener('pointerdown', () => {
    isPointer = true;
  });
  document.addEventListener('keydown', () => {
    isPointer = false;
  });
  document.addEventListener('focusin', ({ target }) => {
    trail = target instanceof Element ? [...around(target)] : [];
  });
  new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
  router.subscribe('onRendered', ({ fromLocation, pathChanged }) => {
    const heading = document.querySelector('h1');
    if (fromLocation && pathChanged && heading) focusOn(heading);
  });
}

function* around(element: Element): Generator<Element> {
  for (let at: Element | null = element; at; at = at.parentElement) yield at;
}

function mend(): void {
  const [last] = trail;
  if (last === undefined || last.isConnected || document.activeElement !== document.body) return;
  const container = trail.find((one) => one.isConnected && one.matches(containers));
  trail = [];
  // Of a whole page, the sentence that says how things are now.
  const sentence = container?.matches('.page, main') ? container.querySelector('.page .sentence') : undefined;
  const to = sentence ?? container;
  if (to) focusOn(to);
}

function focusOn(element: Element): void {
  if (!(element instanceof HTMLElement)) return;
  if (!element.hasAttribute('tabindex')) {
    element.tabIndex = -1;
    // Otherwise a click on its empty area would focus it.
    element.addEventListener('blur', () => element.removeAttribute('tabindex'), { once: true });
  }
  // A person with a pointer looks at where it is.
  element.focus({ preventScroll: isPointer });
}
