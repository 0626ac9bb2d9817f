/**
 * Before anything is drawn, and a file of its own for that: the scheme that the person chose in this browser. It imports nothing, for
 * a script that the page waits for cannot.
 */
try {
  // As frame.tsx keeps it.
  const chosen = localStorage.getItem('andromeda-theme');
  if (chosen !== null) document.documentElement.dataset['theme'] = chosen;
} catch {
  // A browser that keeps nothing has the scheme of its system.
}
