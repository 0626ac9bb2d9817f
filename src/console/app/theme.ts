/** The colour scheme that a person chose in this browser, in every tab of it. It runs before anything is drawn, so it imports nothing. */
function follow(): void {
  // As frame.tsx keeps it.
  document.documentElement.dataset['theme'] = localStorage.getItem('andromeda-theme') ?? 'system';
}
follow();
window.addEventListener('storage', follow);
