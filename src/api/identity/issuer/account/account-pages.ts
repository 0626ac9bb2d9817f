/** The page of a person's own account at the issuer, and the one that a link to set a password leads to. */
import { html } from '../../../../lib/pages/html.ts';
import { layout, problem } from '../../../../lib/pages/layout.ts';
import type { SecondFactor } from '../../../../store/people/second-factors.ts';

/** The own account: what there is to a person's sign-in, and what they can do about it. */
export function accountPage(page: {
  name: string;
  email: string;
  csrf: string;
  factor: SecondFactor | undefined;
  /** Whether the installation asks the person for one. */
  isAsked: boolean;
  message?: string | undefined;
}): string {
  const { factor, isAsked } = page;
  const doing = (value: string, label: string) =>
    html`<button class="second" type="submit" name="do" value="${value}">${label}</button>`;
  const { passkeys = [] } = factor ?? {};
  const kept = passkeys.map(({ id, since }) => ({ id, label: `passkey of ${since.slice(0, 10)}` }));
  if (factor?.sealed) kept.unshift({ id: 'app', label: 'authenticator app' });
  const names = kept.map(({ label }) => label).join(', ');
  const state = factor ? `${names}; ${factor.recovery.length} recovery codes left` : 'off';
  const removable = isAsked && kept.length < 2 ? [] : kept;
  return layout(
    'Your account',
    html`<h1>Your account</h1>
<dl>
<dt>Name</dt><dd>${page.name}</dd>
<dt>Email</dt><dd>${page.email}</dd>
<dt>Second factor</dt><dd>${state}</dd>
</dl>
${problem(page.message)}
<p><a href="/password">Change your password</a></p>
<form method="post" action="/account">
<input type="hidden" name="csrf" value="${page.csrf}">
<label for="password">Password, for each of these</label>
<input id="password" name="password" type="password" required maxlength="1024" autocomplete="current-password">
${doing('setup', factor ? 'Set up another app or passkey' : 'Set up a second factor')}
${factor ? doing('codes', 'New recovery codes') : undefined}
${removable.map(({ id, label }) => doing(`remove ${id}`, `Remove the ${label}`))}
${doing('sign-out', 'Sign out everywhere')}
</form>
<p class="small soft after">Browsers that are signed in to the console, and open SSH sessions, are on its page “Sessions”.</p>`,
  );
}

/** Where a person who follows a link of an operator sets a password. */
export function linkPage(page: {
  csrf: string;
  token: string;
  email: string;
  message?: string | undefined;
}): string {
  const field = (name: string, label: string) => html`<label for="${name}">${label}</label>
<input id="${name}" name="${name}" type="password" required maxlength="1024" autocomplete="new-password">`;
  return layout(
    'Set your password',
    html`<h1>Set your password</h1>
<p class="soft">At least twelve characters: a few words that do not belong together will do. What is signed in with an
earlier password is signed out.</p>
${problem(page.message)}
<form method="post" action="/link">
<input type="hidden" name="csrf" value="${page.csrf}">
<input type="hidden" name="token" value="${page.token}">
<label for="email">Email</label>
<input id="email" name="email" type="email" value="${page.email}" readonly autocomplete="username">
${field('next', 'New password')}
${field('again', 'New password again')}
<button type="submit">Set it</button>
</form>`,
  );
}
