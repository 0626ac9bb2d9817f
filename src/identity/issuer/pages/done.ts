import { html } from '../../../lib/pages/html.ts';
import { layout } from '../../../lib/pages/layout.ts';

const check = html`<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true"><path d="M5 12.5l4.5 4.5L19 7.5"/></svg>`;
const cross = html`<svg viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2.5" stroke-linecap="round" aria-hidden="true"><path d="M7 7l10 10M17 7L7 17"/></svg>`;

export function approvedPage(): string {
  return layout(
    'You are signed in',
    html`<div class="sign good">${check}</div>
<h1>You are signed in</h1>
<p class="soft">You can close this window and go back to your terminal.</p>`,
  );
}

export function deniedPage(): string {
  return layout(
    'Sign-in denied',
    html`<div class="sign bad">${cross}</div>
<h1>Sign-in denied</h1>
<p class="soft">The device that asked gets no access. You can close this window.</p>
<p class="small soft">If you did not start this yourself, tell the people who run this installation that somebody sent
you the link.</p>`,
  );
}
