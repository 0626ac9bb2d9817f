/** Applies the colour scheme that a person chose, in every tab. It imports nothing, because it runs before the first paint. */
function follow(): void {
  // frame.tsx writes this key.
  document.documentElement.dataset['theme'] = localStorage.getItem('andromeda-theme') ?? 'system';
}
follow();
window.addEventListener('storage', follow);
