/**
 * Moves the focus when its element is removed, and on navigation: a person who uses the keyboard continues near it, and
 * does not start again at the top.
 */
import type { AnyRouter } from '@tanstack/react-router';

const containers = 'dialog, .panel, .request, .step, .page, main';

/** The element that had the focus last and its ancestors, the innermost first. */
let trail: Element[] = [];
let isPointer = false;

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
  // On a whole page, the sentence that sums up its state gets the focus.
  const sentence = container?.matches('.page, main') ? container.querySelector('.page .sentence') : undefined;
  const to = sentence ?? container;
  if (to) focusOn(to);
}

function focusOn(element: Element): void {
  if (!(element instanceof HTMLElement)) return;
  if (!element.hasAttribute('tabindex')) {
    element.tabIndex = -1;
    // With a `tabindex` left on it, a click on its empty area would focus it.
    element.addEventListener('blur', () => element.removeAttribute('tabindex'), { once: true });
  }
  // A person who uses a pointer looks at it, so the page must not scroll away.
  element.focus({ preventScroll: isPointer });
}
