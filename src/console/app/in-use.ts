/** Whether somebody sits in front of the page: what it reads by itself must not keep a session open. */
const forMs = 120_000;
let usedAt = Date.now();

for (const event of ['pointerdown', 'keydown', 'wheel', 'touchstart']) {
  window.addEventListener(
    event,
    () => {
      usedAt = Date.now();
    },
    { passive: true, capture: true },
  );
}

export function isInUse(): boolean {
  return document.visibilityState === 'visible' && Date.now() - usedAt < forMs;
}
